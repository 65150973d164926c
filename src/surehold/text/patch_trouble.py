"""Why a hunk was not applied, said so that it can be repaired without reading the file again."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from surehold.errors import PatchApplyError
from surehold.text.patch_block import Block, LineIndex
from surehold.text.patch_hunk import Hunk

_SHOWN = 120
_COPIED = 1000
"""How much of a line is handed over, for copying."""
_CANDIDATES = 3
_AROUND = 3
_LONGEST = 60
_FEW = 200
"""A line that stands in more places says nothing about which of them is meant."""


Candidate = dict[str, Any]
"""A place that almost fits, as plain data."""


class Trouble:
    """Builds the errors about one file."""

    def __init__(self, path: str, index: LineIndex) -> None:
        self._path = path
        self._index = index

    def not_found(self, block: Block, start: int = 0) -> PatchApplyError:
        """Say which line is different, and what stands there now."""
        standing = list(islice(self._index.find(block.old, start), 2))
        if standing:
            return self.wrong_end(block, standing[0])
        mark = self._index.before.encoding.bom
        if mark and block.old and block.old[0].startswith(mark):
            said = "it takes the byte order mark away, which stays before the first line"
            action = "Leave U+FEFF out of the rows, or write the whole file anew."
            return self._error(block, said, "byte_order_mark", action=action)
        above = next(self._index.find(block.old), None) if start else None
        if above is not None:
            said = f"its lines stand at line {above + 1}, but above its anchor at line {start + 1}"
            return self._error(block, said, "context_not_found", closest=self._closest(block))
        closest = self._closest(block)
        if len(list(islice(self._index.find(block.new), 2))) == 1:
            at = next(self._index.find(block.new))
            said = f"its new lines stand at line {at + 1} already"
            action = "Leave this hunk out: it was applied before."
            return self._error(
                block, said, "already_applied", action=action, already_applied=True, line=at + 1, closest=closest
            )
        return self._error(
            block,
            _difference(closest),
            "context_not_found",
            action=_repair(closest),
            already_applied=False,
            closest=closest,
        )

    def ambiguous(self, block: Block, places: Sequence[int], *, more: bool) -> PatchApplyError:
        """Say in which places the lines stand."""
        lines = [at + 1 for at in places]
        shown = ", ".join(map(str, lines)) + (" and more" if more else "")
        action = "Add more of the lines above or below, until the hunk stands in one place only."
        if block.hunk.start is None:
            action = "Add more lines above or below, or `@@` rows with the lines that open its class and function."
        said = f"its lines stand in several places: lines {shown}"
        return self._error(block, said, "context_ambiguous", action=action, lines=lines, more=more)

    def context_needed(self, block: Block) -> PatchApplyError:
        """Say that nothing tells where these rows go."""
        if block.hunk.start is None:
            said = "it only adds lines, and nothing says where"
            action = "Add a line that stands before or after them, or `*** End of File` to append."
        else:
            count = len(self._index)
            said = f"it only adds lines, after line {block.hunk.start}, and the file has {count} lines"
            action = "Add the lines that stand before and after them."
        return self._error(block, said, "context_needed", action=action, fresh=self._fresh(len(self._index), 0))

    def numbers_are_off(self, block: Block, moved: Block, by: int) -> PatchApplyError:
        """Say that rows without context rely on numbers that are wrong elsewhere."""
        said = f"it relies on line numbers alone, and those of hunk {moved.index} are off by {by}"
        action = "Add the lines that stand before and after the new ones."
        return self._error(block, said, "context_needed", action=action)

    def anchor_missing(self, block: Block, anchor: str, start: int, places: Sequence[int]) -> PatchApplyError:
        """Say where the anchor was searched, and where it stands instead."""
        lines = [at + 1 for at in places]
        if lines:
            said = (
                f"its anchor `{_cut(anchor)}` does not stand below line {start}, only at {', '.join(map(str, lines))}"
            )
            action = "Write the hunks in the order of the file, and anchors from the outermost inwards."
        else:
            said = f"no line of the file reads `{_cut(anchor)}`, which is its anchor"
            action = "Copy the whole line behind `@@`, or leave the anchor out and add lines of context."
        closest = self._closest(block)
        return self._error(block, said, "anchor_not_found", action=action, anchor=anchor, lines=lines, closest=closest)

    def outside_anchor(self, block: Block, above: int, left: int, at: int) -> PatchApplyError:
        """Say that the place lies behind what the anchor opens."""
        said = f"its lines stand at line {at + 1}, but what its anchor at line {above + 1} opens is over at line {left + 1}"
        action = "Name the line that opens the part you mean, or leave the anchor out; the lines below are those of the anchor."
        fresh = self._fresh(above, left - above)
        return self._error(
            block, said, "outside_anchor", action=action, anchor_line=above + 1, line=at + 1, fresh=fresh
        )

    def out_of_order(self, first: Block, second: Block, one: int, other: int) -> PatchApplyError:
        """Say which hunk stands above the one before it."""
        said = f"it stands at line {other + 1}, above hunk {first.index} at line {one + 1}"
        return self._error(second, said, "hunks_out_of_order", action="Write the hunks in the order of the file.")

    def overlap(self, first: Block, second: Block, one: int, other: int) -> PatchApplyError:
        """Say which hunks want the same lines."""
        pair = sorted((first.index, second.index))
        said = f"it and hunk {first.index} want the same lines, from line {max(one, other) + 1} on"
        action = "Merge the two hunks into one; all hunks look at the file as it is before the patch."
        return self._error(second, said, "hunks_overlap", action=action, hunks=pair)

    def no_change(self, block: Block, at: int) -> PatchApplyError:
        """Say that the file would stay as it is."""
        said = f"it would change nothing at line {at + 1}"
        return self._error(block, said, "no_change", action="Leave this hunk out.", line=at + 1)

    def repeated(self, block: Block, at: int) -> PatchApplyError:
        """Say that the new lines are there already."""
        said = f"its new lines stand at line {at + 1} already"
        action = "Leave this hunk out; if you want the lines twice, show the lines above and below the place."
        fresh = self._fresh(at, len(block.new))
        return self._error(
            block, said, "already_applied", action=action, already_applied=True, line=at + 1, fresh=fresh
        )

    def left_over(self, hunks: Sequence[Hunk]) -> PatchApplyError:
        """Say that a deletion does not show all that it deletes."""
        count = len(self._index)
        fresh = self._fresh(0, min(count, _AROUND))
        return PatchApplyError(
            f"The patch deletes `{self._path}`, but {count} lines of it do not stand in the patch.",
            path=self._path,
            reason="content_left",
            action="Read the file; delete it only if those lines may go.",
            hunk=max(0, len(hunks) - 1),
            lines_left=count,
            fresh=fresh,
        )

    def wrong_end(self, block: Block, at: int) -> PatchApplyError:
        """Say why lines that do stand there were not taken."""
        closest = [self._candidate(block, at)]
        end = at + len(block.old)
        if self._index.misplaces_mark(block, at):
            said = f"its lines stand at line {at + 1}, but a byte order mark only stands once, before the first line"
            action = "Leave U+FEFF out of the rows; the file keeps its own."
            return self._error(block, said, "byte_order_mark", action=action, closest=closest)
        if end != len(self._index) and (block.hunk.at_end or not (block.old_ended and block.new_ended)):
            said = f"its lines stand at line {at + 1}, but the file goes on after line {end}, and the hunk says it ends"
            action = "Leave the note about the end of the file out, or show the lines up to the end."
            return self._error(block, said, "not_at_end", action=action, closest=closest)
        if not block.old_ended and self._index.before.lines.final_newline:
            said = "the file ends in a newline, and the hunk says that it does not"
            action = r"Leave `\ No newline at end of file` out behind the old line."
            return self._error(block, said, "final_newline", action=action, closest=closest)
        return self._line_endings(block, at, closest)

    def _line_endings(self, block: Block, at: int, closest: list[Candidate]) -> PatchApplyError:
        said = f"its lines stand at line {at + 1}, but with other line endings ({self._index.before.lines.style})"
        action = "Write all rows of the hunk with LF; the file keeps its own line endings."
        return self._error(block, said, "line_endings", action=action, closest=closest)

    def _error(
        self, block: Block, said: str, reason: str, *, action: str | None = None, **details: object
    ) -> PatchApplyError:
        return PatchApplyError(
            f"Hunk {block.index} of `{self._path}` (line {block.hunk.line} of the patch) does not apply: {said}.",
            path=self._path,
            reason=reason,
            action=action,
            hunk=block.index,
            hunk_line=block.hunk.line,
            **details,
        )

    def _closest(self, block: Block) -> list[Candidate]:
        """Return the places that fit best: where most lines are right, else where they differ in blanks only."""
        votes = Counter[int]()
        for k, line in enumerate(block.old):
            places = list(islice(self._index.lines_like(line), _FEW + 1)) if line.strip() else []
            if len(places) <= _FEW:
                votes.update(at - k for at in places)
        if not votes:
            votes = self._votes_without_blanks(block)
        named = (block.hunk.start or 1) - 1
        if not votes and block.hunk.start:
            votes[min(named, max(0, len(self._index) - 1))] = 0
        best = sorted(votes, key=lambda at: (-votes[at], abs(at - named), at))
        return [self._candidate(block, at) for at in best[:_CANDIDATES]]

    def _votes_without_blanks(self, block: Block) -> Counter[int]:
        rows: dict[str | bytes, list[int]] = {}
        for k, line in enumerate(block.old):
            if squeezed := self._squeezed(line):
                rows.setdefault(squeezed, []).append(k)
        votes = Counter[int]()
        for at, line in enumerate(self._index.contents):
            offsets = rows.get(self._squeezed(line), ())
            if len(offsets) <= _AROUND:
                votes.update(at - k for k in offsets)
        return votes

    def _candidate(self, block: Block, at: int) -> Candidate:
        """Compare the hunk with the lines from here on."""
        here = [self._index.contents[i] if 0 <= i < len(self._index) else None for i in range(at, at + len(block.old))]
        differing = [k for k, (row, line) in enumerate(zip(block.old, here, strict=True)) if row != line]
        candidate: Candidate = {
            "line": at + 1,
            "matching_lines": len(block.old) - len(differing),
            "of_lines": len(block.old),
        }
        if differing:
            k = differing[0]
            found = here[k]
            candidate["differs"] = {
                "line": at + k + 1,
                "expected": self._text(block.old[k]),
                "found": None if found is None else self._text(found),
            }
            candidate["whitespace_only"] = all(
                self._squeezed(block.old[k]) == self._squeezed(here[k] or b"") for k in differing
            )
        candidate["fresh"] = self._fresh(at, len(block.old))
        return candidate

    def _fresh(self, at: int, count: int) -> list[Candidate]:
        """Return the lines of the file around a place, for copying."""
        begin, end = max(0, at - _AROUND), min(len(self._index), at + min(count, _LONGEST) + _AROUND)
        return [{"line": i + 1, "text": self._text(self._index.contents[i])} for i in range(begin, end)]

    def _squeezed(self, line: bytes) -> str | bytes:
        """Return a line without any blank."""
        encoding = self._index.before.encoding
        return b"".join(line.split()) if encoding.width == 1 else "".join(encoding.decode(line).split())

    def _text(self, line: bytes) -> str:
        return self._index.before.encoding.decode(line)[:_COPIED]


def _difference(closest: list[Candidate]) -> str:
    differs = closest[0].get("differs") if closest else None
    if differs is None:
        return "none of its lines stand in the file"
    if differs["found"] is None:
        return f"it expects `{_cut(str(differs['expected']))}` at line {differs['line']}, where the file has no line"
    blanks = ", which differs in blanks only" if closest[0].get("whitespace_only") else ""
    return (
        f"line {differs['line']} reads `{_cut(str(differs['found']))}` where the hunk has "
        f"`{_cut(str(differs['expected']))}`{blanks}"
    )


def _repair(closest: list[Candidate]) -> str | None:
    if not closest:
        return None
    return "Copy the lines from `closest[0].fresh`, which are those of the file now, and send the patch again."


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

"""Builds the errors for hunks that do not apply, with what is needed to repair them without reading the file again."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from surehold.errors import PatchApplyError
from surehold.text.patch.hunks import EncodedHunk, ParsedHunk, PatchLineIndex

_PREVIEW_CHARS = 120
_COPIED_CHARS = 1000
"""How much of a line is handed over, for copying."""
_MAX_CANDIDATES = 3
_NEARBY_LINES = 3
_MAX_COPIED_LINES = 60
_MAX_LINE_PLACES = 200
"""A line that stands in more places says nothing about which of them is meant."""


Candidate = dict[str, Any]
"""A place that almost fits, as plain data."""


class PatchRefusals:
    """Builds the errors about one file."""

    def __init__(self, path: str, index: PatchLineIndex) -> None:
        self._path = path
        self._index = index

    def not_found(self, block: EncodedHunk, start: int = 0) -> PatchApplyError:
        """Say which line is different, and what stands there now."""
        standing = list(islice(self._index.find_lines(block.old, start), 2))
        if standing:
            return self.wrong_end(block, standing[0])
        mark = self._index.before.encoding.bom
        if mark and block.old and block.old[0].startswith(mark):
            said = "it takes the byte order mark away, which stays before the first line"
            action = "Leave U+FEFF out of the rows, or write the whole file anew."
            return self._build_error(block, said, "byte_order_mark", action=action)
        above = next(self._index.find_lines(block.old), None) if start else None
        if above is not None:
            said = f"its lines stand at line {above + 1}, but above its anchor at line {start + 1}"
            return self._build_error(block, said, "context_not_found", closest=self._closest_candidates(block))
        closest = self._closest_candidates(block)
        if len(list(islice(self._index.find_lines(block.new), 2))) == 1:
            at = next(self._index.find_lines(block.new))
            said = f"its new lines stand at line {at + 1} already"
            action = "Leave this hunk out: it was applied before."
            return self._build_error(
                block, said, "already_applied", action=action, already_applied=True, line=at + 1, closest=closest
            )
        return self._build_error(
            block,
            _describe_difference(closest),
            "context_not_found",
            action=_repair_action(closest),
            already_applied=False,
            closest=closest,
        )

    def context_ambiguous(self, block: EncodedHunk, places: Sequence[int], *, more: bool) -> PatchApplyError:
        """Say in which places the lines stand."""
        lines = [at + 1 for at in places]
        shown = ", ".join(map(str, lines)) + (" and more" if more else "")
        action = "Add more of the lines above or below, until the hunk stands in one place only."
        if block.hunk.start is None:
            action = "Add more lines above or below, or `@@` rows with the lines that open its class and function."
        said = f"its lines stand in several places: lines {shown}"
        return self._build_error(block, said, "context_ambiguous", action=action, lines=lines, more=more)

    def context_needed(self, block: EncodedHunk) -> PatchApplyError:
        """Say that nothing tells where these rows go."""
        if block.hunk.start is None:
            said = "it only adds lines, and nothing says where"
            action = "Add a line that stands before or after them, or `*** End of File` to append."
        else:
            count = len(self._index)
            said = f"it only adds lines, after line {block.hunk.start}, and the file has {count} lines"
            action = "Add the lines that stand before and after them."
        return self._build_error(
            block, said, "context_needed", action=action, fresh=self._lines_around(len(self._index), 0)
        )

    def numbers_are_off(self, block: EncodedHunk, moved: EncodedHunk, by: int) -> PatchApplyError:
        """Say that rows without context rely on numbers that are wrong elsewhere."""
        said = f"it relies on line numbers alone, and those of hunk {moved.index} are off by {by}"
        action = "Add the lines that stand before and after the new ones."
        return self._build_error(block, said, "context_needed", action=action)

    def anchor_missing(self, block: EncodedHunk, anchor: str, start: int, places: Sequence[int]) -> PatchApplyError:
        """Say where the anchor was searched, and where it stands instead."""
        lines = [at + 1 for at in places]
        if lines:
            said = f"its anchor `{_cut_preview(anchor)}` does not stand below line {start}, only at {', '.join(map(str, lines))}"
            action = "Write the hunks in the order of the file, and anchors from the outermost inwards."
        else:
            said = f"no line of the file reads `{_cut_preview(anchor)}`, which is its anchor"
            action = "Copy the whole line behind `@@`, or leave the anchor out and add lines of context."
        closest = self._closest_candidates(block)
        return self._build_error(
            block, said, "anchor_not_found", action=action, anchor=anchor, lines=lines, closest=closest
        )

    def outside_anchor(self, block: EncodedHunk, above: int, left: int, at: int) -> PatchApplyError:
        """Say that the place lies behind what the anchor opens."""
        said = f"its lines stand at line {at + 1}, but what its anchor at line {above + 1} opens is over at line {left + 1}"
        action = "Name the line that opens the part you mean, or leave the anchor out; the lines below are those of the anchor."
        fresh = self._lines_around(above, left - above)
        return self._build_error(
            block, said, "outside_anchor", action=action, anchor_line=above + 1, line=at + 1, fresh=fresh
        )

    def out_of_order(self, first: EncodedHunk, second: EncodedHunk, one: int, other: int) -> PatchApplyError:
        """Say which hunk stands above the one before it."""
        said = f"it stands at line {other + 1}, above hunk {first.index} at line {one + 1}"
        return self._build_error(second, said, "hunks_out_of_order", action="Write the hunks in the order of the file.")

    def hunks_overlap(self, first: EncodedHunk, second: EncodedHunk, one: int, other: int) -> PatchApplyError:
        """Say which hunks want the same lines."""
        pair = sorted((first.index, second.index))
        said = f"it and hunk {first.index} want the same lines, from line {max(one, other) + 1} on"
        action = "Merge the two hunks into one; all hunks look at the file as it is before the patch."
        return self._build_error(second, said, "hunks_overlap", action=action, hunks=pair)

    def no_change(self, block: EncodedHunk, at: int) -> PatchApplyError:
        """Say that the file would stay as it is."""
        said = f"it would change nothing at line {at + 1}"
        return self._build_error(block, said, "no_change", action="Leave this hunk out.", line=at + 1)

    def already_applied(self, block: EncodedHunk, at: int) -> PatchApplyError:
        """Say that the new lines are there already."""
        said = f"its new lines stand at line {at + 1} already"
        action = "Leave this hunk out; if you want the lines twice, show the lines above and below the place."
        fresh = self._lines_around(at, len(block.new))
        return self._build_error(
            block, said, "already_applied", action=action, already_applied=True, line=at + 1, fresh=fresh
        )

    def content_left(self, hunks: Sequence[ParsedHunk]) -> PatchApplyError:
        """Say that a deletion does not show all that it deletes."""
        count = len(self._index)
        fresh = self._lines_around(0, min(count, _NEARBY_LINES))
        return PatchApplyError(
            f"The patch deletes `{self._path}`, but {count} lines of it do not stand in the patch.",
            path=self._path,
            reason="content_left",
            action="Read the file; delete it only if those lines may go.",
            hunk=max(0, len(hunks) - 1),
            lines_left=count,
            fresh=fresh,
        )

    def wrong_end(self, block: EncodedHunk, at: int) -> PatchApplyError:
        """Say why lines that do stand there were not taken."""
        closest = [self._compare_at(block, at)]
        end = at + len(block.old)
        if self._index.misplaces_bom(block, at):
            said = f"its lines stand at line {at + 1}, but a byte order mark only stands once, before the first line"
            action = "Leave U+FEFF out of the rows; the file keeps its own."
            return self._build_error(block, said, "byte_order_mark", action=action, closest=closest)
        if end != len(self._index) and (block.hunk.at_end or not (block.old_ended and block.new_ended)):
            said = f"its lines stand at line {at + 1}, but the file goes on after line {end}, and the hunk says it ends"
            action = "Leave the note about the end of the file out, or show the lines up to the end."
            return self._build_error(block, said, "not_at_end", action=action, closest=closest)
        if not block.old_ended and self._index.before.lines.final_newline:
            said = "the file ends in a newline, and the hunk says that it does not"
            action = r"Leave `\ No newline at end of file` out behind the old line."
            return self._build_error(block, said, "final_newline", action=action, closest=closest)
        return self._line_endings_differ(block, at, closest)

    def _line_endings_differ(self, block: EncodedHunk, at: int, closest: list[Candidate]) -> PatchApplyError:
        said = f"its lines stand at line {at + 1}, but with other line endings ({self._index.before.lines.style})"
        action = "Write all rows of the hunk with LF; the file keeps its own line endings."
        return self._build_error(block, said, "line_endings", action=action, closest=closest)

    def _build_error(
        self, block: EncodedHunk, said: str, reason: str, *, action: str | None = None, **details: object
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

    def _closest_candidates(self, block: EncodedHunk) -> list[Candidate]:
        """Return the places that fit best: where most lines are right, else where they differ in blanks only."""
        votes = Counter[int]()
        for k, line in enumerate(block.old):
            places = list(islice(self._index.find_line(line), _MAX_LINE_PLACES + 1)) if line.strip() else []
            if len(places) <= _MAX_LINE_PLACES:
                votes.update(at - k for at in places)
        if not votes:
            votes = self._votes_without_blanks(block)
        named = (block.hunk.start or 1) - 1
        if not votes and block.hunk.start:
            votes[min(named, max(0, len(self._index) - 1))] = 0
        best = sorted(votes, key=lambda at: (-votes[at], abs(at - named), at))
        return [self._compare_at(block, at) for at in best[:_MAX_CANDIDATES]]

    def _votes_without_blanks(self, block: EncodedHunk) -> Counter[int]:
        rows: dict[str | bytes, list[int]] = {}
        for k, line in enumerate(block.old):
            if squeezed := self._without_blanks(line):
                rows.setdefault(squeezed, []).append(k)
        votes = Counter[int]()
        for at, line in enumerate(self._index.contents):
            offsets = rows.get(self._without_blanks(line), ())
            if len(offsets) <= _NEARBY_LINES:
                votes.update(at - k for k in offsets)
        return votes

    def _compare_at(self, block: EncodedHunk, at: int) -> Candidate:
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
                "expected": self._line_text(block.old[k]),
                "found": None if found is None else self._line_text(found),
            }
            candidate["whitespace_only"] = all(
                self._without_blanks(block.old[k]) == self._without_blanks(here[k] or b"") for k in differing
            )
        candidate["fresh"] = self._lines_around(at, len(block.old))
        return candidate

    def _lines_around(self, at: int, count: int) -> list[Candidate]:
        """Return the lines of the file around a place, for copying."""
        begin, end = (
            max(0, at - _NEARBY_LINES),
            min(len(self._index), at + min(count, _MAX_COPIED_LINES) + _NEARBY_LINES),
        )
        return [{"line": i + 1, "text": self._line_text(self._index.contents[i])} for i in range(begin, end)]

    def _without_blanks(self, line: bytes) -> str | bytes:
        """Return a line without any blank."""
        encoding = self._index.before.encoding
        return b"".join(line.split()) if encoding.width == 1 else "".join(encoding.decode(line).split())

    def _line_text(self, line: bytes) -> str:
        return self._index.before.encoding.decode(line)[:_COPIED_CHARS]


def _describe_difference(closest: list[Candidate]) -> str:
    differs = closest[0].get("differs") if closest else None
    if differs is None:
        return "none of its lines stand in the file"
    if differs["found"] is None:
        return f"it expects `{_cut_preview(str(differs['expected']))}` at line {differs['line']}, where the file has no line"
    blanks = ", which differs in blanks only" if closest[0].get("whitespace_only") else ""
    return (
        f"line {differs['line']} reads `{_cut_preview(str(differs['found']))}` where the hunk has "
        f"`{_cut_preview(str(differs['expected']))}`{blanks}"
    )


def _repair_action(closest: list[Candidate]) -> str | None:
    if not closest:
        return None
    return "Copy the lines from `closest[0].fresh`, which are those of the file now, and send the patch again."


def _cut_preview(text: str) -> str:
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"

"""Builds the errors for hunks that do not apply, with what is needed to repair them without reading the file again."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from surehold.errors import PatchApplyError
from surehold.text.escape import quote_line
from surehold.text.patch.hunks import EncodedHunk, ParsedHunk, PatchLineIndex
from surehold.text.quoted.near_miss import describe_look_alikes
from surehold.text.quoted.nearest import compared_line_count, find_nearest, normalize_look

_PREVIEW_CHARS = 120
_COPIED_CHARS = 1000
"""How much of a line is handed over, for copying."""
_MAX_CANDIDATES = 3
MAX_LISTED_PLACES = 20
_NEARBY_LINES = 3
_MAX_COPIED_LINES = 60
_MAX_LINE_PLACES = 200
"""A line that occurs more often says nothing about which of the places is meant."""

Candidate = dict[str, Any]
"""A place that almost fits, as plain data."""


class PatchRefusals:
    """Builds the errors about one file."""

    def __init__(self, path: str, index: PatchLineIndex) -> None:
        self._path, self._index = path, index

    def not_found(self, block: EncodedHunk, start: int = 0) -> PatchApplyError:
        if (at := next(self._index.find_lines(block.old, start), None)) is not None:
            return self.wrong_end(block, at)
        mark = self._index.before.encoding.bom
        if mark and block.old and block.old[0].startswith(mark):
            why = "it removes the byte order mark, which stays before the first line"
            action = "Leave U+FEFF out of the rows, or write the whole file anew."
            return self._build_error(block, why, "byte_order_mark", action)
        closest = self._closest_candidates(block)
        above = next(self._index.find_lines(block.old), None) if start else None
        if above is not None:
            why = f"its lines are at line {above + 1}, but above its anchor at line {start + 1}"
            return self._build_error(block, why, "context_not_found", closest=closest)
        found = list(islice(self._index.find_lines(block.new), 2))
        if len(found) == 1 and any(piece.sign == " " and piece.content.strip() for piece in block.pieces):
            why = f"its new lines are already at line {found[0] + 1}"
            action = "Leave this hunk out: it was applied before."
            facts = {"already_applied": True, "line": found[0] + 1, "closest": closest}
            return self._build_error(block, why, "already_applied", action, **facts)
        repair = "Copy the lines from `closest`, which are those of the file now, and send the patch again."
        why = _describe_difference(closest)
        if found:  # without context around them, equal lines may be anywhere
            closest = closest or [self._compare_at(block, found[0])]
            old = "old line is" if len(block.old) == 1 else "old lines are"
            new = "a line equal to the new one is" if len(block.new) == 1 else "lines equal to the new ones are"
            why = f"the {old} not in the file; {new} at {', '.join(str(at + 1) for at in found)}"
        action = repair if closest else None
        return self._build_error(block, why, "context_not_found", action, already_applied=False, closest=closest)

    def context_ambiguous(self, block: EncodedHunk, places: Sequence[int]) -> PatchApplyError:
        lines, more = [at + 1 for at in places[:MAX_LISTED_PLACES]], len(places) > MAX_LISTED_PLACES
        shown = ", ".join(map(str, lines)) + (" and more" if more else "")
        action = "Add more of the lines above or below, until the hunk fits in one place only."
        if block.hunk.start is None:
            action = "Add more lines above or below, or `@@` rows with the lines that open its class and function."
        why = f"its lines occur in several places: lines {shown}"
        return self._build_error(block, why, "context_ambiguous", action, lines=lines, more=more)

    def context_needed(self, block: EncodedHunk) -> PatchApplyError:
        count = len(self._index)
        why = f"it only adds lines, after line {block.hunk.start}, and the file has {count} lines"
        action = "Add the lines before and after them."
        if block.hunk.start is None:
            why = "it only adds lines, and nothing says where"
            action = "Add a line before or after them, or `*** End of File` to append."
        return self._build_error(block, why, "context_needed", action, fresh=self._lines_around(count, 0))

    def numbers_are_off(self, block: EncodedHunk, moved: EncodedHunk, by: int) -> PatchApplyError:
        why = f"it relies on line numbers alone, and those of hunk {moved.index} are off by {by}"
        return self._build_error(block, why, "context_needed", "Add the lines before and after the new ones.")

    def anchor_missing(self, block: EncodedHunk, anchor: str, start: int, places: Sequence[int]) -> PatchApplyError:
        lines, shown = [at + 1 for at in places[:MAX_LISTED_PLACES]], quote_line(anchor, _PREVIEW_CHARS)
        why = f"no line of the file is {shown}, which is its anchor"
        action = "Copy the whole line after `@@`, or leave the anchor out and add lines of context."
        if lines:
            why = f"its anchor {shown} is not below line {start}, only at {', '.join(map(str, lines))}"
            action = "Write the hunks in the order of the file, and anchors from the outermost inwards."
        facts = {"anchor": anchor, "lines": lines, "closest": self._closest_candidates(block)}
        return self._build_error(block, why, "anchor_not_found", action, **facts)

    def outside_anchor(self, block: EncodedHunk, above: int, left: int, at: int) -> PatchApplyError:
        why = f"its lines are at line {at + 1}, but what its anchor at line {above + 1} opens ends at line {left + 1}"
        action = "Name the line that opens the part you mean, or leave the anchor out; the lines below are those of the anchor."
        facts = {"anchor_line": above + 1, "line": at + 1, "fresh": self._lines_around(above, left - above)}
        return self._build_error(block, why, "outside_anchor", action, **facts)

    def out_of_order(self, first: EncodedHunk, second: EncodedHunk, one: int, other: int) -> PatchApplyError:
        why = f"it belongs at line {other + 1}, above hunk {first.index} at line {one + 1}"
        return self._build_error(second, why, "hunks_out_of_order", "Write the hunks in the order of the file.")

    def hunks_overlap(self, first: EncodedHunk, second: EncodedHunk, one: int, other: int) -> PatchApplyError:
        why = f"it and hunk {first.index} change the same lines, from line {max(one, other) + 1} on"
        action = "Merge the two hunks into one; all hunks look at the file as it is before the patch."
        pair = sorted((first.index, second.index))
        return self._build_error(second, why, "hunks_overlap", action, hunks=pair)

    def no_change(self, block: EncodedHunk, at: int) -> PatchApplyError:
        why = f"it would change nothing at line {at + 1}"
        return self._build_error(block, why, "no_change", "Leave this hunk out.", line=at + 1)

    def already_applied(self, block: EncodedHunk, at: int) -> PatchApplyError:
        why = f"its new lines are already at line {at + 1}"
        action = "Leave this hunk out; if you want the lines twice, show the lines above and below the place."
        facts = {"already_applied": True, "line": at + 1, "fresh": self._lines_around(at, len(block.new))}
        return self._build_error(block, why, "already_applied", action, **facts)

    def content_left(self, hunks: Sequence[ParsedHunk]) -> PatchApplyError:
        count = len(self._index)
        left = f"{count} lines of it are" if count != 1 else "1 line of it is"
        return PatchApplyError(
            f"The patch deletes `{self._path}`, but {left} not in the patch.",
            path=self._path,
            reason="content_left",
            action="Read the file; delete it only if those lines may go.",
            hunk=max(0, len(hunks) - 1),
            lines_left=count,
            fresh=self._lines_around(0, min(count, _NEARBY_LINES)),
        )

    def wrong_end(self, block: EncodedHunk, at: int) -> PatchApplyError:
        end, style, reason = at + len(block.old), self._index.before.lines.style, "line_endings"
        why = f"its lines are at line {at + 1}, but with other line endings ({style})"
        action = "Write all rows of the hunk with LF; the file keeps its own line endings."
        if self._index.misplaces_bom(block, at):
            reason, action = "byte_order_mark", "Leave U+FEFF out of the rows; the file keeps its own."
            why = f"its lines are at line {at + 1}, but a byte order mark occurs only once, before the first line"
        elif end != len(self._index) and (block.hunk.at_end or not (block.old_ended and block.new_ended)):
            reason = "not_at_end"
            why = f"its lines are at line {at + 1}, but the file goes on after line {end}, and the hunk says it ends"
            action = "Leave the note about the end of the file out, or show the lines up to the end."
        elif not block.old_ended and self._index.before.lines.final_newline:
            reason, why = "final_newline", "the file ends in a newline, and the hunk says that it does not"
            action = r"Leave `\ No newline at end of file` out after the old line."
        return self._build_error(block, why, reason, action, closest=[self._compare_at(block, at)])

    def _build_error(
        self, block: EncodedHunk, why: str, reason: str, action: str | None = None, **details: Any
    ) -> PatchApplyError:
        hunk, line = block.index, block.hunk.line
        message = f"Hunk {hunk} of `{self._path}` (line {line} of the patch) does not apply: {why}."
        facts: dict[str, Any] = {"hunk": hunk, "hunk_line": line, **details}
        return PatchApplyError(message, path=self._path, reason=reason, action=action, **facts)

    def _closest_candidates(self, block: EncodedHunk) -> list[Candidate]:
        """Return the places that fit best: where most lines are right, else where they look the same, else like it."""
        votes = Counter[int]()
        for k, line in enumerate(block.old):
            places = list(islice(self._index.find_lines([line]), _MAX_LINE_PLACES + 1)) if line.strip() else []
            if len(places) <= _MAX_LINE_PLACES:
                votes.update(at - k for at in places)
        if not votes:
            votes = self._votes_by_look(block)
        if not votes:
            text = "\n".join(map(self._line_text, block.old))
            votes.update(near.line - 1 for near in find_nearest(self._index.before, text))
        named = (block.hunk.start or 1) - 1
        if not votes and block.hunk.start:
            votes[min(named, max(0, len(self._index) - 1))] = 0
        best = sorted(votes, key=lambda at: (-votes[at], abs(at - named), at))
        return [self._compare_at(block, at) for at in best[:_MAX_CANDIDATES]]

    def _votes_by_look(self, block: EncodedHunk) -> Counter[int]:
        rows: dict[str, list[int]] = {}
        for k, line in enumerate(block.old):
            if look := self._look_of(line):
                rows.setdefault(look, []).append(k)
        votes = Counter[int]()
        for at, line in enumerate(self._index.contents[: compared_line_count(self._index.before)]):
            offsets = rows.get(self._look_of(line), ())
            if len(offsets) <= _NEARBY_LINES:
                votes.update(at - k for k in offsets)
        return votes

    def _compare_at(self, block: EncodedHunk, at: int) -> Candidate:
        here = [self._index.contents[i] if 0 <= i < len(self._index) else None for i in range(at, at + len(block.old))]
        differing = [k for k, (row, line) in enumerate(zip(block.old, here, strict=True)) if row != line]
        total = len(block.old)
        candidate: Candidate = {"line": at + 1, "matching_lines": total - len(differing), "of_lines": total}
        if differing:
            k, found = differing[0], here[differing[0]]
            expected, actual = self._line_text(block.old[k]), None if found is None else self._line_text(found)
            candidate["differs"] = {"line": at + k + 1, "expected": expected, "found": actual}
            pairs = [(self._line_text(here[k] or b""), self._line_text(block.old[k])) for k in differing]
            candidate["whitespace_only"] = all(there.split() == wanted.split() for there, wanted in pairs)
            candidate["look_alikes"] = describe_look_alikes(*zip(*pairs, strict=True))
        candidate["fresh"] = self._lines_around(at, total)
        return candidate

    def _lines_around(self, at: int, count: int) -> list[Candidate]:
        end = min(len(self._index), at + min(count, _MAX_COPIED_LINES) + _NEARBY_LINES)
        numbers = range(max(0, at - _NEARBY_LINES), end)
        return [{"line": i + 1, "text": self._line_text(self._index.contents[i])} for i in numbers]

    def _look_of(self, line: bytes) -> str:
        return normalize_look(self._index.before.encoding.decode(line)).replace(" ", "")

    def _line_text(self, line: bytes) -> str:
        return self._index.before.encoding.decode(line)[:_COPIED_CHARS]


def _describe_difference(closest: list[Candidate]) -> str:
    differs = closest[0].get("differs") if closest else None
    if differs is None:
        return "none of its lines are in the file"
    line, expected = differs["line"], quote_line(str(differs["expected"]), _PREVIEW_CHARS)
    if differs["found"] is None:
        return f"it expects {expected} at line {line}, where the file has no line"
    said = f"line {line} is {quote_line(str(differs['found']), _PREVIEW_CHARS)} where the hunk has {expected}"
    if closest[0].get("whitespace_only"):
        return f"{said}, which differs in blanks only"
    signs = closest[0].get("look_alikes")
    return f"{said}, which only looks the same ({signs})" if signs else said

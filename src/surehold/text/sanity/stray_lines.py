"""Finds lines that were probably written by mistake: repeated neighbours, conflict markers, anchors, line numbers.

Whoever replaces lines 10 to 20 and repeats line 21 in the new text leaves it doubled. So a line at the edge of the new
block is suspicious when it equals the unchanged line next to it, has content, and was not there before. One more item
of a list is intended: real edits put another `false,` under an existing one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from surehold.text.anchored.rows import judge_quality
from surehold.text.escape import preview_text
from surehold.text.sanity.subject import FindingKind, SanityFinding, SanityRegion

_PREVIEW_CHARS = 60
_PLAIN_LINE = re.compile(
    rb"\s*(?:#\s*(?:endif|else)\b.*|(?:[-+]?\d[\w.]*|true|false|none|null|nil|undefined|void 0|\"\"|''),?)\s*",
    re.IGNORECASE,
)
"""Literals in a list, and closers of the preprocessor: they are often below each other."""
_LIST_ITEM = re.compile(rb"\s*[\w.:]+,\s*")


def find_repeated_neighbours(changed: Sequence[SanityRegion]) -> Iterator[SanityFinding]:
    """Find the edges at which a new line repeats its neighbour."""
    for region in changed:
        if not region.new or _is_one_more_item(region):
            continue
        old, new = region.old, region.new
        if _repeats_neighbour(new[0], region.above, old[:1] or region.below):
            yield _repeat_finding(new[0], region.line, "above")
        elif _repeats_neighbour(new[-1], region.below, old[-1:] or region.above):
            yield _repeat_finding(new[-1], region.line + len(new) - 1, "below")


def find_repeated_lines(changed: Sequence[SanityRegion]) -> Iterator[SanityFinding]:
    """Mention, once, a new line that the edit writes more than once."""
    fresh = Counter(row for region in changed for row in region.new if _has_content(row))
    gone = Counter(row for region in changed for row in region.old)
    row = next((row for row, count in fresh.items() if count > max(1, gone[row])), None)
    if row is None:
        return
    lines = [r.line + i for r in changed for i, text in enumerate(r.new) if text == row]
    yield SanityFinding(
        kind="duplicate_lines",
        fault=f"lines {lines[0]} and {lines[1]} of the new text are equal: `{preview_line(row)}`",
        line=lines[1],
    )


def preview_line(row: bytes) -> str:
    """Return a line as it may be quoted in a sentence."""
    return preview_text(row.decode("utf-8", "replace").strip(), _PREVIEW_CHARS)


def _repeats_neighbour(row: bytes, surviving: Sequence[bytes], earlier: Sequence[bytes]) -> bool:
    """Tell whether a new line equals the surviving one that it touches, which did not touch its like before."""
    touched = surviving[:1] == (row,)
    already = row in (*earlier[:1], *surviving[1:])
    return touched and not already and _has_content(row)


def _repeat_finding(row: bytes, line: int, side: str) -> SanityFinding:
    return SanityFinding(
        kind="seam_duplicate",
        fault=f"line {line} repeats the line {side} it, which was already there: `{preview_line(row)}`",
        line=line,
        suspicious=True,
    )


def _is_one_more_item(region: SanityRegion) -> bool:
    """Tell whether the edit only adds a name to a list that is written one item a line."""
    return not region.old and len(region.new) == 1 and _LIST_ITEM.fullmatch(region.new[0]) is not None


def _has_content(row: bytes) -> bool:
    return judge_quality(row.decode("utf-8", "replace"), 1) != "low" and not _PLAIN_LINE.fullmatch(row)


_CONFLICT = re.compile(rb"(?:<{7}|>{7}|\|{7})(?= |$)|={7}$")
_CONFLICT_MIDDLE = b"======="
_TITLE = re.compile(rb"\w[\w .,:-]{0,6}")
_ANCHOR = re.compile(rb"\s*[+-]?\s*\d+#[0-9a-fA-F]{6,64}(?:\.\d+)?(?:[+-]\d+)?[!~]?\|")
_NUMBERED = re.compile(rb"\s*\d+(?:\.\d+)?\xe2\x86\x92")
_MARKS: tuple[tuple[FindingKind, re.Pattern[bytes], str], ...] = (
    ("conflict_marker", _CONFLICT, "is a conflict marker"),
    ("anchor_prefix", _ANCHOR, "begins with an anchor, which is not part of the file"),
)


def find_tool_marks(changed: Sequence[SanityRegion], *, is_prose: bool) -> Iterator[SanityFinding]:
    """Find marks that the edit introduces; one that it only moves or keeps is not new."""
    for kind, pattern, mark in _MARKS:
        for region, index in _introduced_lines(changed, pattern):
            if region.new[index] == _CONFLICT_MIDDLE and (is_prose or _underlines_title(region, index)):
                continue
            row, line = region.new[index], region.line + index
            fault = f"line {line} {mark}: `{preview_line(row)}`"
            yield SanityFinding(kind=kind, fault=fault, line=line, suspicious=True)
            break
    numbered = next(_introduced_lines(changed, _NUMBERED), None)
    if numbered is not None:
        line = numbered[0].line + numbered[1]
        fault = f"line {line} begins with a line number and an arrow, as shown by a reading tool"
        yield SanityFinding(kind="line_number_prefix", fault=fault, line=line)


def _introduced_lines(
    changed: Sequence[SanityRegion], pattern: re.Pattern[bytes]
) -> Iterator[tuple[SanityRegion, int]]:
    known = Counter(row for region in changed for row in region.old if pattern.match(row))
    for region in changed:
        for index, row in enumerate(region.new):
            if not pattern.match(row):
                continue
            if known[row]:
                known[row] -= 1
                continue
            yield region, index


def _underlines_title(region: SanityRegion, index: int) -> bool:
    """Tell whether seven equals signs belong to a heading, as in the docstrings of many packages."""
    above = region.new[index - 1 : index] if index else region.above[:1]
    below = region.new[index + 1 : index + 2] or region.below[:1]
    return any(_TITLE.fullmatch(row.strip()) for row in (*above, *below))

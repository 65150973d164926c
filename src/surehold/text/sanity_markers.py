"""Marks of tools that do not belong into a file: conflict markers, anchors, line numbers."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from surehold.text.sanity_finding import Finding, FindingKind
from surehold.text.sanity_regions import Region
from surehold.text.sanity_seams import shown

_CONFLICT = re.compile(rb"(?:<{7}|>{7}|\|{7})(?= |$)|={7}$")
_MIDDLE = b"======="
_TITLE = re.compile(rb"\w[\w .,:-]{0,6}")
_ANCHOR = re.compile(rb"\s*[+-]?\s*\d+#[0-9a-fA-F]{6,64}(?:\.\d+)?(?:[+-]\d+)?[!~]?\|")
_NUMBERED = re.compile(rb"\s*\d+(?:\.\d+)?\xe2\x86\x92")
_MARKS: tuple[tuple[FindingKind, re.Pattern[bytes], str], ...] = (
    ("conflict_marker", _CONFLICT, "is a conflict marker"),
    ("anchor_prefix", _ANCHOR, "begins with an anchor, which is no part of the file"),
)


def foreign_marks(changed: Sequence[Region], *, is_prose: bool) -> Iterator[Finding]:
    """Find marks that the edit introduces; one that it only moves or keeps is not new."""
    for kind, pattern, fault in _MARKS:
        for region, index in _introduced(changed, pattern):
            if region.new[index] == _MIDDLE and (is_prose or _underlines(region, index)):
                continue
            row, line = region.new[index], region.line + index
            message = f"Line {line} {fault}: `{shown(row)}`."
            yield Finding(kind=kind, message=message, line=line, suspicious=True)
            break
    numbered = next(_introduced(changed, _NUMBERED), None)
    if numbered is not None:
        line = numbered[0].line + numbered[1]
        message = f"Line {line} begins with a line number and an arrow, as shown by a reading tool."
        yield Finding(kind="line_number_prefix", message=message, line=line)


def _introduced(changed: Sequence[Region], pattern: re.Pattern[bytes]) -> Iterator[tuple[Region, int]]:
    known = Counter(row for region in changed for row in region.old if pattern.match(row))
    for region in changed:
        for index, row in enumerate(region.new):
            if not pattern.match(row):
                continue
            if known[row]:
                known[row] -= 1
                continue
            yield region, index


def _underlines(region: Region, index: int) -> bool:
    """Tell whether seven equals signs belong to a heading, as in the docstrings of many packages."""
    above = region.new[index - 1 : index] if index else region.above[:1]
    below = region.new[index + 1 : index + 2] or region.below[:1]
    return any(_TITLE.fullmatch(row.strip()) for row in (*above, *below))

"""The operations of an anchored edit, and the changes of lines they come to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from surehold.errors import NotEncodable
from surehold.text.align import shared_ends
from surehold.text.anchored.anchor import LinePointer
from surehold.text.anchored.resolve import FoundLines
from surehold.text.plan import Span
from surehold.text.snapshot import Lines, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentOperation:
    op: ClassVar[str]

    def as_sent(self, **instead: Any) -> dict[str, Any]:
        """Return the operation as plain data, ready to be sent, with some fields replaced."""
        own = {each.name: getattr(self, each.name) for each in fields(self)} | instead
        return {"op": self.op, **{name: value for name, value in own.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SingleLineBase(_SentOperation):
    hash: str
    occurrence: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLine(_SingleLineBase):
    """Put other lines in the place of one."""

    op = "replace_line"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAfter(_SingleLineBase):
    """Put lines after one; after `EOF`, at the end."""

    op = "insert_after"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertBefore(_SingleLineBase):
    """Put lines before one; before `BOF`, at the beginning."""

    op = "insert_before"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteLine(_SingleLineBase):
    """Remove one line."""

    op = "delete_line"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineRangeBase(_SentOperation):
    """An operation on several lines, from the first to the last, both included."""

    start_hash: str
    end_hash: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRange(_LineRangeBase):
    """Put other lines in the place of several, from the first to the last, both included."""

    op = "replace_range"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRange(_LineRangeBase):
    """Remove several lines, from the first to the last, both included."""

    op = "delete_range"


Operation = ReplaceLine | InsertAfter | InsertBefore | DeleteLine | ReplaceRange | DeleteRange
SingleLineOperation = ReplaceLine | InsertAfter | InsertBefore | DeleteLine
RangeOperation = ReplaceRange | DeleteRange


_BREAK = re.compile(r"\r\n|\n")
_ANY_BREAK = re.compile(r"\r\n|\n|\r")
_COPIED_ANCHOR = re.compile(r"\d{1,9}#([0-9a-f]{6,16})(?:\.\d{1,9})?(?:[+-]\d{1,9})?[!~]?\|", re.IGNORECASE)


def split_rows(text: str, *, lone_cr_breaks: bool) -> list[str]:
    rows = (_ANY_BREAK if lone_cr_breaks else _BREAK).split(text)
    return rows[:-1] if len(rows) > 1 and not rows[-1] else rows


def copied_hashes(rows: Iterable[str]) -> list[str]:
    return [match[1].lower() for row in rows if (match := _COPIED_ANCHOR.match(row))]


def strip_copied_anchor(row: str) -> str:
    return _COPIED_ANCHOR.sub("", row, count=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOperation:
    """An operation with its anchors and its text read."""

    index: int
    op: Operation
    pointers: tuple[LinePointer, ...]
    rows: tuple[str, ...]
    """Without terminators."""

    @property
    def edge(self) -> str | None:
        """The edge of the file that it points at, instead of a line."""
        return self.pointers[0].anchor.edge


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """Lines `start` to `end` (0-based, half-open) become the rows of a request; an empty range is the gap before `start`."""

    request: ParsedOperation
    start: int
    end: int
    first: int
    """The first line that the request names: 0-based."""
    last: int
    found: FoundLines | None
    """How they were found; None for an edge of the file."""

    @property
    def index(self) -> int:
        return self.request.index

    @property
    def is_gap(self) -> bool:
        """Whether it only inserts."""
        return self.start == self.end


def sort_changes(changes: Sequence[LineChange]) -> list[LineChange]:
    """Sort changes from top to bottom; what goes into one gap keeps the order of the call."""
    return sorted(changes, key=lambda change: (change.start, not change.is_gap, change.index))


def find_overlaps(changes: Sequence[LineChange]) -> list[tuple[LineChange, LineChange]]:
    """Return the pairs that want the same lines, each conflict once; the changes are in order."""
    pairs, holder = list[tuple[LineChange, LineChange]](), None
    for change in changes:
        if holder is not None and change.start < holder.end:
            pairs.append((holder, change))
        if not change.is_gap and (holder is None or change.end > holder.end):
            holder = change
    return pairs


def byte_spans(before: Snapshot, changes: Sequence[LineChange]) -> list[Span]:
    """Return the bytes that change; the changes are in order and do not overlap."""
    return [span for region in _group_touching(changes) if (span := _region_span(before, region)) is not None]


def new_places(changes: Sequence[LineChange]) -> dict[int, tuple[int, int]]:
    """Return for every change where its own rows are afterwards: 0-based, half-open; the changes are in order."""
    places, shift = dict[int, tuple[int, int]](), 0
    for change in changes:
        start, count = change.start + shift, len(change.request.rows)
        places[change.index] = (start, start + count)
        shift += count - (change.end - change.start)
    return places


def _group_touching(changes: Sequence[LineChange]) -> list[list[LineChange]]:
    regions = list[list[LineChange]]()
    for change in changes:
        # They do not overlap, so the last one of a region reaches furthest.
        if regions and change.start <= regions[-1][-1].end:
            regions[-1].append(change)
        else:
            regions.append([change])
    return regions


def _region_span(before: Snapshot, region: Sequence[LineChange]) -> Span | None:
    """Return the bytes of a region, without the whole lines that stay the same at its edges."""
    lines, start, end = before.lines, region[0].start, region[-1].end
    rows = _terminate_rows(before, region)
    open_end = end == len(lines) > 0 and not lines.final_newline
    if open_end and start == end:
        return _appended_span(lines, rows)
    if open_end and rows:
        rows[-1] = (rows[-1][0], b"")
    new = [content + ending for content, ending in rows]
    old = [before.data[lines.starts[line] : lines.starts[line + 1]] for line in range(start, end)]
    head, tail = shared_ends(old, new)
    new, first, last = new[head : len(new) - tail], start + head, end - tail
    if first == last and not new:
        return None
    return Span(start=lines.starts[first], end=lines.starts[last], new=b"".join(new))


def _appended_span(lines: Lines, rows: list[tuple[bytes, bytes]]) -> Span | None:
    """Return rows after a last line that has no terminator: it gets one, and the new last row has none."""
    if not rows:
        return None
    at = lines.starts[len(lines)]
    endings = [lines.close_last_line(rows[0][1]), *(ending for _, ending in rows[:-1])]
    new = b"".join(ending + content for ending, (content, _) in zip(endings, rows, strict=True))
    return Span(start=at, end=at, new=new)


def _terminate_rows(before: Snapshot, region: Sequence[LineChange]) -> list[tuple[bytes, bytes]]:
    out = list[tuple[bytes, bytes]]()
    for change in region:
        rows = _encode_rows(before, change)
        out += zip(rows, before.lines.inherited_terminators(change.start, change.end, len(rows)), strict=True)
    return out


def _encode_rows(before: Snapshot, change: LineChange) -> list[bytes]:
    try:
        return [before.encoding.encode(row) for row in change.request.rows]
    except NotEncodable as error:
        error.details["operation_index"] = change.index
        raise

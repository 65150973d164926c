"""The lines that an edit really changes, and the surviving lines that they touch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from surehold.text.sanity_finding import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Whole lines `old` that became `new`; lines that both begin or end with belong to the surroundings."""

    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    above: tuple[bytes, ...]
    """Up to two surviving lines, the one that is touched first; none at the top."""
    below: tuple[bytes, ...]
    line: int
    """The line of the first new one."""


@dataclass(slots=True)
class _Extent:
    """Whole lines around one span, or around several that touch."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def regions(subject: Subject) -> list[Region]:
    """List what changed, line by line, from top to bottom; each byte is looked at once."""
    found = list[Region]()
    line, at = 1, 0
    for extent in _merged(subject):
        line += subject.after.count(b"\n", at, extent.new_start)
        at = extent.new_start
        region = _trimmed(subject, extent, line)
        if region.old or region.new:
            found.append(region)
    return found


def _merged(subject: Subject) -> Iterator[_Extent]:
    current: _Extent | None = None
    for extent in _extents(subject):
        if current is not None and extent.old_start <= current.old_end:
            current.old_end = max(current.old_end, extent.old_end)
            current.new_end = max(current.new_end, extent.new_end)
            continue
        if current is not None:
            yield current
        current = extent
    if current is not None:
        yield current


def _extents(subject: Subject) -> Iterator[_Extent]:
    before, after, shift = subject.before, subject.after, 0
    for span in subject.spans:
        lead = span.start - (before.rfind(b"\n", 0, span.start) + 1)
        new_start = span.start + shift
        new_end = new_start + len(span.new)
        tail = 0
        if _mid_line(before, span.end) or _mid_line(after, new_end):
            stop = before.find(b"\n", span.end)
            tail = (len(before) if stop < 0 else stop + 1) - span.end
        yield _Extent(span.start - lead, span.end + tail, new_start - lead, new_end + tail)
        shift += len(span.new) - (span.end - span.start)


def _mid_line(data: bytes, offset: int) -> bool:
    return offset > 0 and data[offset - 1 : offset] != b"\n"


def _trimmed(subject: Subject, extent: _Extent, line: int) -> Region:
    old = _lines(subject.before[extent.old_start : extent.old_end])
    new = _lines(subject.after[extent.new_start : extent.new_end])
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    tail = next((i for i in range(shortest - head) if old[-1 - i] != new[-1 - i]), shortest - head)
    return Region(
        old=tuple(old[head : len(old) - tail]),
        new=tuple(new[head : len(new) - tail]),
        above=_nearest(reversed(new[:head]), _lines_before(subject.after, extent.new_start)),
        below=_nearest(new[len(new) - tail :], _lines_after(subject.after, extent.new_end)),
        line=line + head,
    )


def _lines(data: bytes) -> list[bytes]:
    rows = data.split(b"\n")
    if not rows[-1]:
        rows.pop()
    return [row.removesuffix(b"\r") for row in rows]


def _nearest(*rows: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(islice(chain(*rows), 2))


def _lines_before(data: bytes, start: int) -> Iterator[bytes]:
    """Yield the lines that end before an offset, going up."""
    while start > 0:
        begin = data.rfind(b"\n", 0, start - 1) + 1
        yield data[begin:start].rstrip(b"\r\n")
        start = begin


def _lines_after(data: bytes, end: int) -> Iterator[bytes]:
    while end < len(data):
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop
        yield data[end:stop].removesuffix(b"\r")
        end = stop + 1

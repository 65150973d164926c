"""Carries a text through later changes of the text that it differs from, by the lines that differ.

1. The base is a list of lines; the text is told by which of them became which: its hunks, ascending.
2. Hunks are as wide as a merge of the whole texts makes them: of equal lines in a row all count as changed. Only a hunk
   that a later change touches can become wider or narrower, so only that is aligned again, with some lines around it.
3. What is not clean, and what is not plain lines that end in LF, is left to a merge of the whole texts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Self

from surehold.text.align import TextRegion, shared_length
from surehold.text.diff import split_lines
from surehold.text.diff_rows import HUNK_HEADER, classify_rows
from surehold.text.merge import changed_regions

_NEAR_LINES = 16
"""How near two changes may be for what is around one of them to matter for the other."""
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class LineHunk(NamedTuple):
    """Lines `a` to `a_end` of a text become these."""

    a: int
    a_end: int
    rows: tuple[bytes, ...]
    is_loose: bool = False
    """Something next to it has changed: it may be wider or narrower than a merge would make it."""

    @property
    def growth(self) -> int:
        return len(self.rows) - (self.a_end - self.a)

    def moved(self, lines: int) -> "LineHunk":
        a, a_end, rows, is_loose = self
        return LineHunk(a + lines, a_end + lines, rows, is_loose)


def find_line_hunks(before: bytes, after: bytes) -> tuple[LineHunk, ...]:
    """Return which lines of a text became which; none if one of them is not plain lines."""
    if not _is_plain(before) or not _is_plain(after):
        return ()
    whole, shorter = TextRegion(0, len(before), 0, len(after)), min(len(before), len(after))
    head, tail = shared_length(before, after, whole, 1), shared_length(before, after, whole, -1)
    # Of bytes that both ends could have, neither gets any: then it does not matter which end is compared first.
    start = before.rfind(b"\n", 0, min(head, shorter - tail)) + 1
    end = before.find(b"\n", len(before) - min(tail, shorter - head)) + 1 or len(before)
    rows = split_lines(before[start:end]), split_lines(after[start : len(after) - len(before) + end])
    return tuple(_hunks_between(*rows, before.count(b"\n", 0, start)))


class CarriedText:
    """A text, told by its difference from another one."""

    def __init__(self, base: list[bytes], hunks: Iterable[LineHunk]) -> None:
        self._base, self._hunks = base, list(hunks)
        self._lines = len(base) + sum(hunk.growth for hunk in self._hunks)

    @classmethod
    def from_base(cls, base: bytes, hunks: Iterable[LineHunk]) -> Self:
        return cls(split_lines(base), hunks)

    @property
    def is_base(self) -> bool:
        return not self._hunks

    def to_bytes(self) -> bytes:
        return b"".join(self._rows_between(0, len(self._base), self._hunks))

    def base_to_bytes(self) -> bytes:
        return b"".join(self._base)

    def read_change(self, diff: str) -> tuple[LineHunk, ...]:
        """Return the change of the base that a whole diff tells; none if it is not one of plain ASCII lines."""
        if not diff.isascii() or "\0" in diff or "\n\\" in diff:
            return ()
        hunks, old, new, at = list[LineHunk](), list[bytes](), list[bytes](), 0
        for kind, row in classify_rows(diff):
            line = row[1:].encode() + b"\n"
            if kind in {"same", "hunk", "header"} and (old or new):
                hunks.append(LineHunk(at - len(old), at, tuple(new), is_loose=True))
                old, new = [], []
            if kind == "hunk" and (match := HUNK_HEADER.match(row)):
                at = int(match[1]) - (match[2] != "0")
            elif kind == "added":
                new.append(line)
            elif kind in {"same", "removed"}:
                if self._base[at : at + 1] != [line]:
                    return ()
                at += 1
                old += [line] if kind == "removed" else []
        if old or new:
            hunks.append(LineHunk(at - len(old), at, tuple(new), is_loose=True))
        changed = CarriedText(self._base, hunks)
        changed._settle_hunks()
        return tuple(changed._hunks)

    def make_change(self, change: Sequence[LineHunk]) -> bool:
        """Make a change of the base to both texts; nothing happens if that is not clean."""
        growth = sum(one.growth for one in change)
        lines = self._lines + growth
        if lines <= 1 or self._meets(change):
            return False
        hunks, first = self._hunks, self._first_near(change[0])
        far = bisect_left(hunks, change[-1].a_end + _NEAR_LINES, first, key=lambda hunk: hunk.a)
        moved, shift, at, last = hunks[:first], 0, 0, -_NEAR_LINES
        for a, a_end, rows, _ in hunks[first:far]:
            while at < len(change) and (change[at].a, change[at].a_end) < (a, a_end):
                shift, last, at = shift + change[at].growth, change[at].a_end, at + 1
            is_near = a - last < _NEAR_LINES or (at < len(change) and change[at].a - a_end < _NEAR_LINES)
            moved.append(LineHunk(a + shift, a_end + shift, rows, is_near))
        moved += [hunk.moved(growth) for hunk in hunks[far:]] if growth else hunks[far:]
        self._hunks, self._lines = moved, lines
        self._splice_base(change)
        self._settle_hunks(first, far)
        return True

    def skip_change(self, change: Sequence[LineHunk]) -> None:
        """Make a change of the base alone."""
        hunks = self._hunks
        for one in reversed(change):
            first = self._first_near(one)
            last = next((at for at in range(first, len(hunks)) if hunks[at].a - _NEAR_LINES >= one.a_end), len(hunks))
            near = hunks[first:last]
            start, end = min([one.a, *(hunk.a for hunk in near)]), max([one.a_end, *(hunk.a_end for hunk in near)])
            rows = tuple(self._rows_between(start, end, near))
            hunks[first:] = [
                LineHunk(start, end + one.growth, rows, is_loose=True),
                *(hunk.moved(one.growth) for hunk in hunks[last:]),
            ]
            self._splice_base([one])
        self._settle_hunks(self._first_near(change[0]))

    def _first_near(self, one: LineHunk) -> int:
        """Return the first hunk that is not far above a change."""
        return bisect_right(self._hunks, one.a - _NEAR_LINES, key=lambda hunk: hunk.a_end)

    def _meets(self, change: Sequence[LineHunk]) -> bool:
        """Tell whether a change shares a line or a gap with the difference, or both of them end the text."""
        end = len(self._base)
        if self._hunks and change and self._hunks[-1].a_end == change[-1].a_end == end:
            return True
        for one in change:
            for hunk in islice(self._hunks, self._first_near(one), None):
                if hunk.a > one.a_end:
                    break
                same_gap = hunk.a == hunk.a_end == one.a == one.a_end
                if same_gap or (hunk.a < one.a_end and one.a < hunk.a_end):
                    return True
        return False

    def _splice_base(self, change: Sequence[LineHunk]) -> None:
        for one in reversed(change):
            self._base[one.a : one.a_end] = one.rows

    def _rows_between(self, start: int, end: int, hunks: Iterable[LineHunk]) -> Iterator[bytes]:
        """Yield the lines of the text from one line of the base to another; these are the hunks between them."""
        for hunk in hunks:
            yield from self._base[start : hunk.a]
            yield from hunk.rows
            start = hunk.a_end
        yield from self._base[start:end]

    def _settle_hunks(self, first: int = 0, end: int | None = None) -> None:
        for index in range((len(self._hunks) if end is None else end) - 1, first - 1, -1):
            if index < len(self._hunks) and self._hunks[index].is_loose:
                self._settle_hunk(index)

    def _settle_hunk(self, index: int) -> None:
        """Align the lines of a hunk again, with as many lines and hunks around it as that may concern."""
        hunks, base = self._hunks, self._base
        first, last, context = index, index + 1, _NEAR_LINES
        while True:
            start, end = hunks[index].a - context, hunks[index].a_end + context
            while first and hunks[first - 1].a_end >= start:
                first -= 1
                start = min(start, hunks[first].a - 1)
            while last < len(hunks) and hunks[last].a <= end:
                end = max(end, hunks[last].a_end + 1)
                last += 1
            start, end = max(start, 0), min(end, len(base))
            rows = list(self._rows_between(start, end, hunks[first:last]))
            found = list(_hunks_between(base[start:end], rows, start))
            is_open = bool(found) and start > 0 and found[0].a == start
            is_open_below = bool(found) and end < len(base) and found[-1].a_end == end
            if not is_open and not is_open_below:
                hunks[first:last] = found
                return
            context *= 2


def _hunks_between(before: list[bytes], after: list[bytes], at: int) -> Iterator[LineHunk]:
    for region in changed_regions(before, after):
        yield LineHunk(at + region.a, at + region.a_end, tuple(after[region.b : region.b_end]))


def _is_plain(data: bytes) -> bool:
    """Tell whether lines end in LF whatever the encoding is, and none could be taken for the begin of another one."""
    marked = data.startswith(_MARKS) or any(b"\n" + mark in data for mark in _MARKS)
    return b"\n" in data and b"\0" not in data and not marked

"""A text while edits are applied to it one after the other, kept as what differs from the original.

1. Regions of the original have new bytes. They are sorted, and at least one original byte stands between two of them.
2. What an edit wrote, with a little of what stands around it, goes to the log. A probe that stands neither in a clean
   stretch of the original nor in the log stands nowhere: the last edit that touched its place would have logged it.
3. No edit costs more than the regions there are; only `snapshot` looks at the whole text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property

from surehold.text.encoding import Encoding
from surehold.text.plan import Span
from surehold.text.snapshot import Snapshot
from surehold.text.staged_ends import Ends, LineIndex
from surehold.text.staged_probe import LONGEST, Probe, blocks_of, by_key, probes_of

_MARGIN = LONGEST + 1
"""More than a probe can reach, and a whole number of units in every encoding."""
_STEP = 512
_MOST_HITS = 64


class Staged:
    """The staged text: the original, and the regions of it that are something else by now."""

    def __init__(self, before: Snapshot, needles: Collection[bytes] = ()) -> None:
        """Begin with the original; only the places of these needles can be told later."""
        self.encoding = before.encoding
        self._before, self._data = before, before.data
        self._needles = needles
        self._whole: Snapshot | None = before
        self._starts, self._ends, self._news = list[int](), list[int](), list[bytes]()
        self._at = list[int]()
        """Where each region begins in the staged text."""
        self._gained, self._gains = list[int](), False
        """How many lines each region has more than what it replaced, and whether any ever had."""
        self._log, self._entries = bytearray(), list[tuple[int, int]]()
        """What edits wrote; where each entry begins, and which place of the original it belongs to."""
        self._noted = dict[bytes, list[int]]()
        """Needles whose probes the log has, and the places of these entries, if it need not be searched for them."""
        self._taken = list[tuple[int, int, int]]()

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self._data) + self._shift(len(self._at))

    @cached_property
    def probes(self) -> dict[bytes, Probe]:
        """Where the needles may stand in the original."""
        return probes_of(self._data, self._needles)

    @cached_property
    def _keyed(self) -> dict[int, list[Probe]]:
        return by_key(probe for probe in self.probes.values() if probe.places is not None)

    @cached_property
    def _keys(self) -> frozenset[int]:
        return frozenset(self._keyed)

    @cached_property
    def _watched(self) -> frozenset[bytes]:
        """The needles of probes that are looked for in everything that an edit writes."""
        return frozenset(probe.needle for sharing in self._keyed.values() for probe in sharing)

    @cached_property
    def _index(self) -> LineIndex:
        return LineIndex(self._before)

    @cached_property
    def bare_encoding(self) -> Encoding:
        """Its encoding, for parts of it: without a byte order mark."""
        return replace(self.encoding, bom=b"")

    @cached_property
    def ends(self) -> Ends:
        """How its lines end."""
        return Ends.of(self._before)

    @property
    def spans(self) -> tuple[Span, ...]:
        """What differs from the original."""
        rows = zip(self._starts, self._ends, self._news, strict=True)
        return tuple(Span(start=s, end=e, new=new) for s, e, new in rows if self._data[s:e] != new)

    # Looking.
    def snapshot(self) -> Snapshot:
        """Return all of it."""
        if self._whole is None:
            parts, at = list[bytes | memoryview](), 0
            view = memoryview(self._data)
            for start, end, new in zip(self._starts, self._ends, self._news, strict=True):
                parts += (view[at:start], new)
                at = end
            parts.append(view[at:])
            self._whole = Snapshot(b"".join(parts), meta=self._before.meta, encoding=self.encoding)
        return self._whole

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes; what lies outside of the text is left out."""
        start, end = max(start, 0), min(end, self.size)
        parts = list[bytes]()
        number = bisect_right(self._at, start) - 1
        while start < end:
            if number >= 0 and start < (past := self._at[number] + len(self._news[number])):
                parts.append(self._news[number][start - self._at[number] : end - self._at[number]])
                start = min(past, end)
                continue
            following = self._at[number + 1] if number + 1 < len(self._at) else self.size
            shift, stop = self._shift(number + 1), min(end, following)
            parts.append(self._data[start - shift : stop - shift])
            start, number = stop, number + 1
        return b"".join(parts)

    def around(self, start: int, end: int, *, whole_lines: bool) -> tuple[int, bytes]:
        """Return where some text around a place begins, and the text; whole lines begin with the one above."""
        begin = len(self.encoding.bom)
        if not whole_lines:
            low = max(start - _MARGIN, begin)
            return low, self.read(low, end + _MARGIN)
        low = self._line_start(start)
        low = self._line_start(low - 1) if low > begin else begin
        return low, self.read(low, self._line_end(end))

    def _line_start(self, offset: int) -> int:
        begin, step = len(self.encoding.bom), _STEP
        while True:
            low = max(offset - step, begin)
            at = self.read(low, offset).rfind(b"\n")
            if at >= 0 or low == begin:
                return low + at + 1 if at >= 0 else begin
            step *= 4

    def _line_end(self, offset: int) -> int:
        step = _STEP
        while True:
            at = self.read(offset, offset + step).find(b"\n")
            if at >= 0 or offset + step >= self.size:
                return offset + at + 1 if at >= 0 else self.size
            step *= 4

    def line(self, offset: int) -> int:
        """Return the 1-based line of a byte of the text."""
        number = bisect_right(self._at, offset) - 1
        if number < 0:
            return 1 + self._index.breaks(offset)
        inside = offset - self._at[number]
        if inside >= len(self._news[number]):
            return 1 + self._index.breaks(offset - self._shift(number + 1)) + self._gained_before(number + 1)
        before = self._index.breaks(self._starts[number]) + self._gained_before(number)
        return 1 + before + self.ends.breaks(self._news[number][:inside])

    def _gained_before(self, number: int) -> int:
        return sum(self._gained[:number]) if self._gains else 0

    def _shift(self, number: int) -> int:
        """Return how far what stands between a region and the one before it is shifted."""
        if number < len(self._at):
            return self._at[number] - self._starts[number]
        return self._at[-1] + len(self._news[-1]) - self._ends[-1] if self._at else 0

    def places(self, needle: bytes) -> tuple[int, ...] | None:
        """Return where these bytes stand, overlaps included; None when only a look at the whole text could tell."""
        probe = self.probes.get(needle)
        if probe is None or probe.places is None:
            return None
        logged = self._noted.get(needle, ()) if needle in self._watched else self._logged(probe.data)
        if len(logged) > _MOST_HITS:
            return None
        touched = {bisect_right(self._starts, place) - 1 for place in logged}
        found = set(self._clean(probe))
        for number in touched:
            found.update(self._around(number, needle))
        begin = len(self.encoding.bom)
        return tuple(sorted(at for at in found if at >= begin))

    def taken_by(self, start: int, end: int) -> dict[int, list[tuple[int, int]]]:
        """Return which edits removed original bytes of that range, and all that each of them removed."""
        removed = dict[int, list[tuple[int, int]]]()
        for one, other, index in self._taken:
            removed.setdefault(index, []).append((one, other))
        return {i: spans for i, spans in removed.items() if any(a < end and start < b for a, b in spans)}

    def _clean(self, probe: Probe) -> Iterator[int]:
        """Yield where the needle stands around probes in clean stretches of the original."""
        size, length = len(probe.needle), len(probe.data)
        for place in probe.places or ():
            if self._is_touched(place, place + length):
                continue
            begin = place - probe.offset
            shifted = begin + self._shift(bisect_right(self._ends, place))
            if not self._is_touched(begin, begin + size):
                if begin >= 0 and self._data.startswith(probe.needle, begin):
                    yield shifted
            elif shifted >= 0 and self.read(shifted, shifted + size) == probe.needle:
                yield shifted

    def _is_touched(self, start: int, end: int) -> bool:
        """Tell whether a region lies in this part of the original, at least partly."""
        number = bisect_right(self._ends, start)
        return number < len(self._starts) and self._starts[number] < end

    def _logged(self, data: bytes) -> list[int]:
        """Return the places of the entries of the log that have these bytes, up to one too many."""
        places = list[int]()
        at = self._log.find(data)
        while at >= 0 and len(places) <= _MOST_HITS:
            places.append(self._entries[bisect_right(self._entries, (at, len(self._data))) - 1][1])
            at = self._log.find(data, at + 1)
        return places

    def _around(self, number: int, needle: bytes) -> Iterator[int]:
        """Yield where the needle stands in a region or reaches into it."""
        margin = len(needle) - 1
        begin = max(self._at[number] - margin, 0)
        window = self.read(begin, self._at[number] + len(self._news[number]) + margin)
        at = window.find(needle)
        while at >= 0:
            yield begin + at
            at = window.find(needle, at + 1)

    # Changing.
    def splice(self, start: int, end: int, new: bytes, *, index: int) -> None:
        """Let an edit replace bytes of the staged text."""
        low = bisect_left(self._at, start)
        if low and self._at[low - 1] + len(self._news[low - 1]) >= start:
            low -= 1
        high = bisect_right(self._at, end)
        first, last, merged = self._merged(start, end, new, low, high)
        if self._needles:
            self._note(start, end, new, first)
        self._taken += ((one, other, index) for one, other in self._gaps(first, last, low, high))
        gained = self._lines_gained(first, last, merged) if self._needles else 0
        self._gains = self._gains or gained != 0
        grown, at = len(new) - (end - start), first + self._shift(low)
        self._at[low:high] = [at]
        if grown:
            self._at[low + 1 :] = [place + grown for place in self._at[low + 1 :]]
        self._starts[low:high], self._ends[low:high], self._news[low:high] = [first], [last], [merged]
        self._gained[low:high] = [gained]
        self._whole = None

    def keep(self, whole: Snapshot) -> None:
        """Take over all of it, from somebody who has built it anyway."""
        self._whole = whole

    def _merged(self, start: int, end: int, new: bytes, low: int, high: int) -> tuple[int, int, bytes]:
        """Return the one region that comes of an edit and of the regions that it touches."""
        first, last, head, tail = start - self._shift(low), end - self._shift(high), b"", b""
        if low < high and start >= self._at[low]:
            first, head = self._starts[low], self._news[low][: start - self._at[low]]
        if low < high and end <= self._at[high - 1] + len(self._news[high - 1]):
            last, tail = self._ends[high - 1], self._news[high - 1][end - self._at[high - 1] :]
        return first, last, head + new + tail

    def _note(self, start: int, end: int, new: bytes, place: int) -> None:
        """Log what stands there from now on, and count its line ends."""
        begin = max(start - _MARGIN, len(self.encoding.bom))
        around = self.read(begin, end + _MARGIN)
        head, old, tail = around[: start - begin], around[start - begin : end - begin], around[end - begin :]
        written = head + new + tail
        if not (old and new) or self.ends.may_be_in(old) or self.ends.may_be_in(new):
            self.ends.add(around, sign=-1)
            self.ends.add(written)
        self._entries.append((len(self._log), place))
        self._log += written
        for key in self._keys.intersection(blocks_of(written)):
            for probe in self._keyed[key]:
                if probe.data in written:
                    self._noted.setdefault(probe.needle, []).append(place)

    def _lines_gained(self, first: int, last: int, merged: bytes) -> int:
        return self.ends.breaks(merged) - self._index.between(first, last)

    def _gaps(self, first: int, last: int, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of the original that are replaced only now."""
        for number in range(low, high):
            if first < self._starts[number]:
                yield first, self._starts[number]
            first = self._ends[number]
        if first < last:
            yield first, last

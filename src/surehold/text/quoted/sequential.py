"""A text to which edits are applied one after the other, kept as its differences from the original.

Line endings
1. `LineEndingCounts` counts the terminators of the staged text; `LineBreakIndex` counts the LF before any byte of the
   original.

Probes: finding many needles in one pass
2. A probe is a short part of a needle: wherever the needle occurs, its probe occurs too.
3. The text is cut into blocks. Wherever a probe occurs, it covers whole blocks; which of its bytes they are depends
   only on how it lies on the grid. For every such position the rarest of these blocks is looked up, so one pass over
   the blocks of the text finds every place.
4. Needles that are shorter than a block, or too few to be worth a pass, are searched for one by one.

Regions: what the edits have written so far
5. Regions of the original have new bytes. They are sorted, with at least one original byte between any two of them.
6. What an edit wrote, with a little of the text around it, goes to the log. A probe that is neither in an untouched
   stretch of the original nor in the log occurs nowhere: the last edit that touched its place would have logged it.
7. No edit costs more than the number of regions; only `snapshot` builds the whole text.

Disjoint edits: each finds its text exactly once, whatever the others did before it
8. A probe occurs once in the original, with the whole needle around it. The places are further apart than a
   probe is long.
9. What an edit writes, with the text around it, contains no probe of another edit, so no needle can come to occur
   twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, chain, compress, count, pairwise
from struct import Struct
from typing import Literal

from surehold.text.encoding import Encoding
from surehold.text.lines import NewlineStyle
from surehold.text.plan import Span
from surehold.text.snapshot import Snapshot

_INDEX_BLOCK_BYTES = 1024


@dataclass(slots=True, kw_only=True)
class LineEndingCounts:
    """How many line ends of each kind there are."""

    encoding: Encoding
    lf: int = 0
    """LF without CR."""
    crlf: int = 0
    cr: int = 0
    """Every CR, also those of CRLF."""

    @classmethod
    def count_in(cls, snapshot: Snapshot) -> "LineEndingCounts":
        """Count those of a text."""
        ends = cls(encoding=snapshot.encoding)
        ends.add_bytes(snapshot.data[len(snapshot.encoding.bom) :])
        return ends

    @property
    def lf_ends_lines(self) -> bool:
        """Whether LF ends the lines: where there is none, a CR does."""
        return not self.cr or self.lf + self.crlf > 0

    @property
    def style(self) -> NewlineStyle:
        """Which terminators there are."""
        if not self.lf_ends_lines:
            return "cr"
        if self.lf and self.crlf:
            return "mixed"
        return "lf" if self.lf else "crlf" if self.crlf else "none"

    @property
    def dominant(self) -> bytes:
        """The terminator that most lines have."""
        newline = self.encoding.encode_newline
        return newline("\r") if not self.lf_ends_lines else newline("\r\n" if self.crlf > self.lf else "\n")

    def count_breaks(self, data: bytes) -> int:
        """Count the LF in some bytes."""
        return self._count_ending(data, "\n")

    def keeps_lf_lines(self, old: bytes, new: bytes) -> bool:
        """Tell whether LF still ends the lines when these bytes become those."""
        if not self.lf_ends_lines:
            return False
        left = self.lf + self.crlf - self.count_breaks(old) + self.count_breaks(new)
        return left > 0 or not (self.cr or self._count_ending(new, "\r"))

    def add_bytes(self, data: bytes, *, sign: int = 1) -> None:
        """Count what came, or with the sign turned, what went."""
        lf = self._count_ending(data, "\n")
        cr = self._count_ending(data, "\r") if b"\r" in data else 0
        crlf = self._count_ending(data, "\r\n") if cr and lf else 0
        self.crlf += sign * crlf
        self.lf += sign * (lf - crlf)
        self.cr += sign * cr

    def may_occur_in(self, data: bytes) -> bool:
        """Tell whether some bytes may hold a line end; where a look is not enough, they may."""
        return self.encoding.width > 1 or b"\n" in data or b"\r" in data

    def _count_ending(self, data: bytes, end: str) -> int:
        if self.encoding.width == 1:
            return data.count(end.encode())
        return data.decode(self.encoding.name, "replace").count(end)


class LineBreakIndex:
    """How many LF stand before any byte of a text."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._data = snapshot.data
        self._begin = len(snapshot.encoding.bom)
        self._encoding = snapshot.encoding

    def breaks_before(self, offset: int) -> int:
        """Count the LF before an offset."""
        block = offset // _INDEX_BLOCK_BYTES
        return self._block_sums[block] + self._count_between(block * _INDEX_BLOCK_BYTES, offset)

    def breaks_between(self, start: int, end: int) -> int:
        """Count the LF between two offsets."""
        return (
            self._count_between(start, end)
            if end - start < _INDEX_BLOCK_BYTES
            else self.breaks_before(end) - self.breaks_before(start)
        )

    @cached_property
    def _block_sums(self) -> list[int]:
        blocks = range(0, len(self._data), _INDEX_BLOCK_BYTES)
        return [0, *accumulate(self._count_between(start, start + _INDEX_BLOCK_BYTES) for start in blocks)]

    def _count_between(self, start: int, end: int) -> int:
        """Count the LF that begin between two offsets; wide ones only where a unit begins."""
        unit, width = self._encoding.encode_newline("\n"), self._encoding.width
        if width == 1:
            return self._data.count(unit, start, end)
        found, at = 0, self._data.find(unit, start, end + width - 1)
        while at >= 0:
            found += (at - self._begin) % width == 0
            at = self._data.find(unit, at + 1, end + width - 1)
        return found


MAX_PROBE_BYTES = 39
"""No probe has more bytes."""

_MAX_PLACES = 256
_MAX_CANDIDATES = 4096
_MAX_SHARED_PROBES = 64
_MAX_SEARCHED_NEEDLES = 32
_SMALL_TEXT_BYTES = 1 << 18
"""A pass over a text costs about as much as so many searches; in less text they always cost less."""
_MAX_OFFERED_PARTS = 4
_SAMPLE_EVERY_BLOCKS = 16
"""One of so many blocks is looked at to tell which are rare."""
_PASS_BYTES = 1 << 21
"""How many bytes are looked at in one go: a byte is kept for each of their blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleProbe:
    """A short part of a needle, and every place of it in a text."""

    needle: bytes
    data: bytes
    offset: int
    """Where in the needle it begins."""
    places: tuple[int, ...] | None
    """None when there are too many to be worth a look."""
    keys: tuple[int, ...] = ()
    """Blocks of which any bytes that hold the probe have one, when they are cut (`blocks_of`); none when it is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockGrid:
    """Cuts bytes into blocks of one size."""

    size: int
    code: Literal["Q", "I"]
    """The format of a block, for views and structs."""

    @property
    def min_probe_bytes(self) -> int:
        """How long a probe must be to cover a block wherever it stands."""
        return 2 * self.size - 1

    def keys_by_shift(self, part: bytes) -> list[tuple[int, ...]]:
        """Return the blocks that a part covers, for every way in which it may lie: shifted by 0, by 1 and so on."""
        size, code, length = self.size, self.code, len(part)
        shifts = range(min(size, length - size + 1))
        return [_block_struct((length - shift) // size, code).unpack_from(part, shift) for shift in shifts]

    def split_blocks(self, text: bytes) -> Iterator[tuple[int, "memoryview[int]"]]:
        """Yield parts of the text as blocks, and where each part begins."""
        view = memoryview(text)[: len(text) // self.size * self.size]
        for at in range(0, len(view), _PASS_BYTES):
            yield at, view[at : at + _PASS_BYTES].cast(self.code)


@cache
def _block_struct(count: int, code: str) -> Struct:
    return Struct(f"={count}{code}")


_WIDE, _NARROW = _BlockGrid(size=8, code="Q"), _BlockGrid(size=4, code="I")
KEY_BYTES = _WIDE.size
"""How many bytes a probe's key has."""

_OfferedParts = Mapping[int, list[tuple[int, ...]]]
"""Parts of a needle that could be its probe: their offsets, and their blocks for each shift."""


def probe_needles(text: bytes, needles: Collection[bytes]) -> dict[bytes, NeedleProbe]:
    """Return a probe for every needle."""
    found = dict[bytes, NeedleProbe]()
    long = [needle for needle in needles if len(needle) >= _WIDE.min_probe_bytes]
    short = [needle for needle in needles if _NARROW.min_probe_bytes <= len(needle) < _WIDE.min_probe_bytes]
    for grid, group in ((_WIDE, long), (_NARROW, short)):
        if len(group) > _MAX_SEARCHED_NEEDLES and len(text) > _SMALL_TEXT_BYTES:
            found.update((probe.needle, probe) for probe in sieve_probes(text, group, grid))
    found.update((needle, _search_alone(text, needle)) for needle in needles if needle not in found)
    return found


def group_by_key(probes: Iterable[NeedleProbe]) -> dict[int, list[NeedleProbe]]:
    """Return which probes have each key; those of them that share one with very many have none any more."""
    found = dict[int, list[NeedleProbe]]()
    for probe in probes:
        for key in set(probe.keys):
            found.setdefault(key, []).append(probe)
    crowded = {probe.needle for sharing in found.values() if len(sharing) > _MAX_SHARED_PROBES for probe in sharing}
    if not crowded:
        return found
    rest = {key: [probe for probe in sharing if probe.needle not in crowded] for key, sharing in found.items()}
    return {key: sharing for key, sharing in rest.items() if sharing}


def cut_blocks(data: bytes) -> "memoryview[int]":
    """Cut some bytes into blocks; keys of probes are such blocks."""
    return memoryview(data)[: len(data) // KEY_BYTES * KEY_BYTES].cast(_WIDE.code)


def sieve_probes(text: bytes, needles: Collection[bytes], grid: _BlockGrid = _WIDE) -> Iterator[NeedleProbe]:
    """Yield a probe for every needle, none of which is shorter than the grid's reach."""
    offers = {needle: _offer_parts(needle, grid) for needle in needles}
    keys = chain.from_iterable(row for offer in offers.values() for rows in offer.values() for row in rows)
    rates = _sample_rates(text, grid, keys)
    chosen = {needle: _choose_rarest(offer, rates) for needle, offer in offers.items()}
    standing = _locate_blocks(text, grid, {key for _, picks in chosen.values() for _, key in picks})
    for needle, (offset, picks) in chosen.items():
        data = needle[offset : offset + MAX_PROBE_BYTES]
        found = [(start, standing[key]) for start, key in picks if key in standing]
        known, keys = None, tuple(key for _, key in picks) if grid is _WIDE else ()
        if sum(len(row) for _, row in found) <= _MAX_CANDIDATES:
            begins = {at - start for start, row in found for at in row}
            places = sorted(at for at in begins if at >= 0 and text.startswith(data, at))
            known = tuple(places) if len(places) <= _MAX_PLACES else None
        yield NeedleProbe(needle=needle, data=data, offset=offset, places=known, keys=keys)


def _offer_parts(needle: bytes, grid: _BlockGrid) -> _OfferedParts:
    """Return some parts that could be the probe, spread over the needle: their offsets and blocks."""
    return {offset: grid.keys_by_shift(needle[offset : offset + MAX_PROBE_BYTES]) for offset in _part_offsets(needle)}


def _part_offsets(needle: bytes) -> list[int]:
    """Return where parts of a needle begin that together cover most of it."""
    last = max(len(needle) - MAX_PROBE_BYTES, 0)
    count = min((last + MAX_PROBE_BYTES // 2) // MAX_PROBE_BYTES, _MAX_OFFERED_PARTS - 1)
    return [last * number // count for number in range(count + 1)] if count else [0]


def _sample_rates(text: bytes, grid: _BlockGrid, wanted: Iterable[int]) -> Mapping[int, int]:
    """Return how often the wanted blocks stand in a sample of the text."""
    found = dict.fromkeys(wanted, 0)
    for _, blocks in grid.split_blocks(text):
        for key in filter(found.__contains__, blocks[::_SAMPLE_EVERY_BLOCKS]):
            found[key] += 1
    return found


def _choose_rarest(offer: _OfferedParts, rates: Mapping[int, int]) -> tuple[int, list[tuple[int, int]]]:
    """Choose the part whose blocks are the rarest; return its offset, and where in it the block begins for each shift."""
    rate = rates.__getitem__
    keys = {offset: [min(row, key=rate) for row in rows] for offset, rows in offer.items()}
    best = min(keys, key=lambda offset: sum(map(rate, keys[offset]))) if len(keys) > 1 else next(iter(keys))
    size = len(offer[best])
    return best, [
        (shift + row.index(key) * size, key)
        for shift, (row, key) in enumerate(zip(offer[best], keys[best], strict=True))
    ]


def _locate_blocks(text: bytes, grid: _BlockGrid, wanted: Collection[int]) -> Mapping[int, list[int]]:
    """Return where the wanted blocks stand."""
    found = dict[int, list[int]]()
    for begin, blocks in grid.split_blocks(text):
        hits = bytes(map(wanted.__contains__, blocks))  # a byte for each block: the next hit is found at once
        number = hits.find(1)
        while number >= 0:
            found.setdefault(blocks[number], []).append(begin + number * grid.size)
            number = hits.find(1, number + 1)
    return found


def _search_alone(text: bytes, needle: bytes) -> NeedleProbe:
    """Search for one needle alone; a part that stands in many places is given up for another."""
    places = list[int]()
    for offset in _part_offsets(needle):
        data = needle[offset : offset + MAX_PROBE_BYTES]
        places.clear()
        at = text.find(data)
        while at >= 0 and len(places) <= _MAX_PLACES:
            places.append(at)
            at = text.find(data, at + 1)
        if len(places) <= _MAX_PLACES:
            return NeedleProbe(needle=needle, data=data, offset=offset, places=tuple(places))
    return NeedleProbe(needle=needle, data=needle[:MAX_PROBE_BYTES], offset=0, places=None)


_MARGIN_BYTES = MAX_PROBE_BYTES + 1
"""More than a probe can reach, and a whole number of units in every encoding."""
_SCAN_BYTES = 512
_MAX_LOG_HITS = 64


class StagedText:
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
        return len(self._data) + self._shift_before(len(self._at))

    @cached_property
    def probes(self) -> dict[bytes, NeedleProbe]:
        """Where the needles may stand in the original."""
        return probe_needles(self._data, self._needles)

    @cached_property
    def _probes_by_key(self) -> dict[int, list[NeedleProbe]]:
        return group_by_key(probe for probe in self.probes.values() if probe.places is not None)

    @cached_property
    def _probe_keys(self) -> frozenset[int]:
        return frozenset(self._probes_by_key)

    @cached_property
    def _watched_needles(self) -> frozenset[bytes]:
        """The needles of probes that are looked for in everything that an edit writes."""
        return frozenset(probe.needle for sharing in self._probes_by_key.values() for probe in sharing)

    @cached_property
    def _break_index(self) -> LineBreakIndex:
        return LineBreakIndex(self._before)

    @cached_property
    def bare_encoding(self) -> Encoding:
        """Its encoding, for parts of it: without a byte order mark."""
        return replace(self.encoding, bom=b"")

    @cached_property
    def line_endings(self) -> LineEndingCounts:
        """How its lines end."""
        return LineEndingCounts.count_in(self._before)

    @property
    def changed_spans(self) -> tuple[Span, ...]:
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

    def read_bytes(self, start: int, end: int) -> bytes:
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
            shift, stop = self._shift_before(number + 1), min(end, following)
            parts.append(self._data[start - shift : stop - shift])
            start, number = stop, number + 1
        return b"".join(parts)

    def text_around(self, start: int, end: int, *, whole_lines: bool) -> tuple[int, bytes]:
        """Return where some text around a place begins, and the text; whole lines begin with the one above."""
        begin = len(self.encoding.bom)
        if not whole_lines:
            low = max(start - _MARGIN_BYTES, begin)
            return low, self.read_bytes(low, end + _MARGIN_BYTES)
        low = self._line_start(start)
        low = self._line_start(low - 1) if low > begin else begin
        return low, self.read_bytes(low, self._line_end(end))

    def _line_start(self, offset: int) -> int:
        begin, step = len(self.encoding.bom), _SCAN_BYTES
        while True:
            low = max(offset - step, begin)
            at = self.read_bytes(low, offset).rfind(b"\n")
            if at >= 0 or low == begin:
                return low + at + 1 if at >= 0 else begin
            step *= 4

    def _line_end(self, offset: int) -> int:
        step = _SCAN_BYTES
        while True:
            at = self.read_bytes(offset, offset + step).find(b"\n")
            if at >= 0 or offset + step >= self.size:
                return offset + at + 1 if at >= 0 else self.size
            step *= 4

    def line_number(self, offset: int) -> int:
        """Return the 1-based line of a byte of the text."""
        number = bisect_right(self._at, offset) - 1
        if number < 0:
            return 1 + self._break_index.breaks_before(offset)
        inside = offset - self._at[number]
        if inside >= len(self._news[number]):
            return (
                1
                + self._break_index.breaks_before(offset - self._shift_before(number + 1))
                + self._gained_before(number + 1)
            )
        before = self._break_index.breaks_before(self._starts[number]) + self._gained_before(number)
        return 1 + before + self.line_endings.count_breaks(self._news[number][:inside])

    def _gained_before(self, number: int) -> int:
        return sum(self._gained[:number]) if self._gains else 0

    def _shift_before(self, number: int) -> int:
        """Return how far what stands between a region and the one before it is shifted."""
        if number < len(self._at):
            return self._at[number] - self._starts[number]
        return self._at[-1] + len(self._news[-1]) - self._ends[-1] if self._at else 0

    def find_places(self, needle: bytes) -> tuple[int, ...] | None:
        """Return where these bytes stand, overlaps included; None when only a look at the whole text could tell."""
        probe = self.probes.get(needle)
        if probe is None or probe.places is None:
            return None
        logged = self._noted.get(needle, ()) if needle in self._watched_needles else self._logged_places(probe.data)
        if len(logged) > _MAX_LOG_HITS:
            return None
        touched = {bisect_right(self._starts, place) - 1 for place in logged}
        found = set(self._places_in_original(probe))
        for number in touched:
            found.update(self._places_in_region(number, needle))
        begin = len(self.encoding.bom)
        return tuple(sorted(at for at in found if at >= begin))

    def edits_that_removed(self, start: int, end: int) -> dict[int, list[tuple[int, int]]]:
        """Return which edits removed original bytes of that range, and all that each of them removed."""
        removed = dict[int, list[tuple[int, int]]]()
        for one, other, index in self._taken:
            removed.setdefault(index, []).append((one, other))
        return {i: spans for i, spans in removed.items() if any(a < end and start < b for a, b in spans)}

    def _places_in_original(self, probe: NeedleProbe) -> Iterator[int]:
        """Yield where the needle stands around probes in clean stretches of the original."""
        size, length = len(probe.needle), len(probe.data)
        for place in probe.places or ():
            if self._is_touched(place, place + length):
                continue
            begin = place - probe.offset
            shifted = begin + self._shift_before(bisect_right(self._ends, place))
            if not self._is_touched(begin, begin + size):
                if begin >= 0 and self._data.startswith(probe.needle, begin):
                    yield shifted
            elif shifted >= 0 and self.read_bytes(shifted, shifted + size) == probe.needle:
                yield shifted

    def _is_touched(self, start: int, end: int) -> bool:
        """Tell whether a region lies in this part of the original, at least partly."""
        number = bisect_right(self._ends, start)
        return number < len(self._starts) and self._starts[number] < end

    def _logged_places(self, data: bytes) -> list[int]:
        """Return the places of the entries of the log that have these bytes, up to one too many."""
        places = list[int]()
        at = self._log.find(data)
        while at >= 0 and len(places) <= _MAX_LOG_HITS:
            places.append(self._entries[bisect_right(self._entries, (at, len(self._data))) - 1][1])
            at = self._log.find(data, at + 1)
        return places

    def _places_in_region(self, number: int, needle: bytes) -> Iterator[int]:
        """Yield where the needle stands in a region or reaches into it."""
        margin = len(needle) - 1
        begin = max(self._at[number] - margin, 0)
        window = self.read_bytes(begin, self._at[number] + len(self._news[number]) + margin)
        at = window.find(needle)
        while at >= 0:
            yield begin + at
            at = window.find(needle, at + 1)

    # Changing.
    def replace_bytes(self, start: int, end: int, new: bytes, *, index: int) -> None:
        """Let an edit replace bytes of the staged text."""
        low = bisect_left(self._at, start)
        if low and self._at[low - 1] + len(self._news[low - 1]) >= start:
            low -= 1
        high = bisect_right(self._at, end)
        first, last, merged = self._merge_regions(start, end, new, low, high)
        if self._needles:
            self._log_written(start, end, new, first)
        self._taken += ((one, other, index) for one, other in self._newly_replaced(first, last, low, high))
        gained = self._lines_gained(first, last, merged) if self._needles else 0
        self._gains = self._gains or gained != 0
        grown, at = len(new) - (end - start), first + self._shift_before(low)
        self._at[low:high] = [at]
        if grown:
            self._at[low + 1 :] = [place + grown for place in self._at[low + 1 :]]
        self._starts[low:high], self._ends[low:high], self._news[low:high] = [first], [last], [merged]
        self._gained[low:high] = [gained]
        self._whole = None

    def keep_snapshot(self, whole: Snapshot) -> None:
        """Take over all of it, from somebody who has built it anyway."""
        self._whole = whole

    def _merge_regions(self, start: int, end: int, new: bytes, low: int, high: int) -> tuple[int, int, bytes]:
        """Return the one region that comes of an edit and of the regions that it touches."""
        first, last, head, tail = start - self._shift_before(low), end - self._shift_before(high), b"", b""
        if low < high and start >= self._at[low]:
            first, head = self._starts[low], self._news[low][: start - self._at[low]]
        if low < high and end <= self._at[high - 1] + len(self._news[high - 1]):
            last, tail = self._ends[high - 1], self._news[high - 1][end - self._at[high - 1] :]
        return first, last, head + new + tail

    def _log_written(self, start: int, end: int, new: bytes, place: int) -> None:
        """Log what stands there from now on, and count its line ends."""
        begin = max(start - _MARGIN_BYTES, len(self.encoding.bom))
        around = self.read_bytes(begin, end + _MARGIN_BYTES)
        head, old, tail = around[: start - begin], around[start - begin : end - begin], around[end - begin :]
        written = head + new + tail
        if not (old and new) or self.line_endings.may_occur_in(old) or self.line_endings.may_occur_in(new):
            self.line_endings.add_bytes(around, sign=-1)
            self.line_endings.add_bytes(written)
        self._entries.append((len(self._log), place))
        self._log += written
        for key in self._probe_keys.intersection(cut_blocks(written)):
            for probe in self._probes_by_key[key]:
                if probe.data in written:
                    self._noted.setdefault(probe.needle, []).append(place)

    def _lines_gained(self, first: int, last: int, merged: bytes) -> int:
        return self.line_endings.count_breaks(merged) - self._break_index.breaks_between(first, last)

    def _newly_replaced(self, first: int, last: int, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of the original that are replaced only now."""
        for number in range(low, high):
            if first < self._starts[number]:
                yield first, self._starts[number]
            first = self._ends[number]
        if first < last:
            yield first, last


_MIN_DISTANCE_BYTES = MAX_PROBE_BYTES + 1


def find_disjoint_spans(before: Snapshot, probes: Sequence[NeedleProbe], news: Sequence[bytes]) -> list[Span] | None:
    """Return the span of every edit, in the order of the edits; None when they might meet."""
    spans, begin = list[Span](), len(before.encoding.bom)
    for probe, new in zip(probes, news, strict=True):
        if not probe.keys or probe.places is None or len(probe.places) != 1:
            return None
        start = probe.places[0] - probe.offset
        if start < begin or not before.data.startswith(probe.needle, start):
            return None
        spans.append(Span(start=start, end=start + len(probe.needle), new=new))
    ordered = sorted(spans, key=lambda span: span.start)
    if any(other.start - one.end < _MIN_DISTANCE_BYTES for one, other in pairwise(ordered)) or _may_interfere(
        before, probes, spans
    ):
        return None
    return spans


def _may_interfere(before: Snapshot, probes: Sequence[NeedleProbe], spans: Sequence[Span]) -> bool:
    """Tell whether an edit writes what may hold another one's probe."""
    data, begin = before.data, len(before.encoding.bom)
    around = [
        data[max(s.start - _MIN_DISTANCE_BYTES, begin) : s.start] + s.new + data[s.end : s.end + _MIN_DISTANCE_BYTES]
        for s in spans
    ]
    begins = list(accumulate(map(len, around), initial=0))
    keyed, blocks = group_by_key(probes), cut_blocks(b"".join(around))
    if len({probe.needle for sharing in keyed.values() for probe in sharing}) < len(probes):
        return True
    for at in compress(count(), map(keyed.__contains__, blocks)):
        number = bisect_right(begins, at * KEY_BYTES) - 1
        if any(probe.data in around[number] for probe in keyed[blocks[at]] if probe is not probes[number]):
            return True
    return False

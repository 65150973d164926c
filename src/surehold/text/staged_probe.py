"""Where many needles stand in one text, found by one pass over it.

1. A probe is a short part of a needle: where the needle stands, its probe stands too.
2. Cut the text into blocks. Wherever a probe stands, it covers whole blocks: which of its bytes they are depends only on
   how it lies on the grid. For every way of lying, the rarest of these blocks is looked up; so one look at each block of
   the text finds every place.
3. Needles that are too short for a block, or too few to be worth a pass, are searched for one by one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from struct import Struct
from typing import Literal

LONGEST = 39
"""No probe has more bytes."""

_MOST_PLACES = 256
_MOST_CANDIDATES = 4096
_MOST_SHARING = 64
_FEW = 32
_SMALL = 1 << 18
"""A pass over a text costs about as much as so many searches; in less text they always cost less."""
_OFFERS = 4
_SAMPLED = 16
"""One of so many blocks is looked at to tell which are rare."""
_PART = 1 << 21
"""How many bytes are looked at in one go: a byte is kept for each of their blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
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
class _Grid:
    """Cuts bytes into blocks of one size."""

    size: int
    code: Literal["Q", "I"]
    """The format of a block, for views and structs."""

    @property
    def reach(self) -> int:
        """How long a probe must be to cover a block wherever it stands."""
        return 2 * self.size - 1

    def keys(self, part: bytes) -> list[tuple[int, ...]]:
        """Return the blocks that a part covers, for every way in which it may lie: shifted by 0, by 1 and so on."""
        size, code, length = self.size, self.code, len(part)
        shifts = range(min(size, length - size + 1))
        return [_blocks((length - shift) // size, code).unpack_from(part, shift) for shift in shifts]

    def blocks(self, text: bytes) -> Iterator[tuple[int, "memoryview[int]"]]:
        """Yield parts of the text as blocks, and where each part begins."""
        view = memoryview(text)[: len(text) // self.size * self.size]
        for at in range(0, len(view), _PART):
            yield at, view[at : at + _PART].cast(self.code)


@cache
def _blocks(count: int, code: str) -> Struct:
    return Struct(f"={count}{code}")


_WIDE, _NARROW = _Grid(size=8, code="Q"), _Grid(size=4, code="I")
BLOCK = _WIDE.size
"""How many bytes a probe's key has."""

_Offers = Mapping[int, list[tuple[int, ...]]]
"""Parts of a needle that could be its probe: their offsets, and their blocks for each shift."""


def probes_of(text: bytes, needles: Collection[bytes]) -> dict[bytes, Probe]:
    """Return a probe for every needle."""
    found = dict[bytes, Probe]()
    long = [needle for needle in needles if len(needle) >= _WIDE.reach]
    short = [needle for needle in needles if _NARROW.reach <= len(needle) < _WIDE.reach]
    for grid, group in ((_WIDE, long), (_NARROW, short)):
        if len(group) > _FEW and len(text) > _SMALL:
            found.update((probe.needle, probe) for probe in sieved(text, group, grid))
    found.update((needle, _searched(text, needle)) for needle in needles if needle not in found)
    return found


def by_key(probes: Iterable[Probe]) -> dict[int, list[Probe]]:
    """Return which probes have each key; those of them that share one with very many have none any more."""
    found = dict[int, list[Probe]]()
    for probe in probes:
        for key in set(probe.keys):
            found.setdefault(key, []).append(probe)
    crowded = {probe.needle for sharing in found.values() if len(sharing) > _MOST_SHARING for probe in sharing}
    if not crowded:
        return found
    rest = {key: [probe for probe in sharing if probe.needle not in crowded] for key, sharing in found.items()}
    return {key: sharing for key, sharing in rest.items() if sharing}


def blocks_of(data: bytes) -> "memoryview[int]":
    """Cut some bytes into blocks; keys of probes are such blocks."""
    return memoryview(data)[: len(data) // BLOCK * BLOCK].cast(_WIDE.code)


def sieved(text: bytes, needles: Collection[bytes], grid: _Grid = _WIDE) -> Iterator[Probe]:
    """Yield a probe for every needle, none of which is shorter than the grid's reach."""
    offers = {needle: _offers(needle, grid) for needle in needles}
    keys = chain.from_iterable(row for offer in offers.values() for rows in offer.values() for row in rows)
    rates = _rates(text, grid, keys)
    chosen = {needle: _rarest(offer, rates) for needle, offer in offers.items()}
    standing = _standing(text, grid, {key for _, picks in chosen.values() for _, key in picks})
    for needle, (offset, picks) in chosen.items():
        data = needle[offset : offset + LONGEST]
        found = [(start, standing[key]) for start, key in picks if key in standing]
        known, keys = None, tuple(key for _, key in picks) if grid is _WIDE else ()
        if sum(len(row) for _, row in found) <= _MOST_CANDIDATES:
            begins = {at - start for start, row in found for at in row}
            places = sorted(at for at in begins if at >= 0 and text.startswith(data, at))
            known = tuple(places) if len(places) <= _MOST_PLACES else None
        yield Probe(needle=needle, data=data, offset=offset, places=known, keys=keys)


def _offers(needle: bytes, grid: _Grid) -> _Offers:
    """Return some parts that could be the probe, spread over the needle: their offsets and blocks."""
    return {offset: grid.keys(needle[offset : offset + LONGEST]) for offset in _offsets(needle)}


def _offsets(needle: bytes) -> list[int]:
    """Return where parts of a needle begin that together cover most of it."""
    last = max(len(needle) - LONGEST, 0)
    count = min((last + LONGEST // 2) // LONGEST, _OFFERS - 1)
    return [last * number // count for number in range(count + 1)] if count else [0]


def _rates(text: bytes, grid: _Grid, wanted: Iterable[int]) -> Mapping[int, int]:
    """Return how often the wanted blocks stand in a sample of the text."""
    found = dict.fromkeys(wanted, 0)
    for _, blocks in grid.blocks(text):
        for key in filter(found.__contains__, blocks[::_SAMPLED]):
            found[key] += 1
    return found


def _rarest(offer: _Offers, rates: Mapping[int, int]) -> tuple[int, list[tuple[int, int]]]:
    """Choose the part whose blocks are the rarest; return its offset, and where in it the block begins for each shift."""
    rate = rates.__getitem__
    keys = {offset: [min(row, key=rate) for row in rows] for offset, rows in offer.items()}
    best = min(keys, key=lambda offset: sum(map(rate, keys[offset]))) if len(keys) > 1 else next(iter(keys))
    size = len(offer[best])
    return best, [
        (shift + row.index(key) * size, key)
        for shift, (row, key) in enumerate(zip(offer[best], keys[best], strict=True))
    ]


def _standing(text: bytes, grid: _Grid, wanted: Collection[int]) -> Mapping[int, list[int]]:
    """Return where the wanted blocks stand."""
    found = dict[int, list[int]]()
    for begin, blocks in grid.blocks(text):
        hits = bytes(map(wanted.__contains__, blocks))  # a byte for each block: the next hit is found at once
        number = hits.find(1)
        while number >= 0:
            found.setdefault(blocks[number], []).append(begin + number * grid.size)
            number = hits.find(1, number + 1)
    return found


def _searched(text: bytes, needle: bytes) -> Probe:
    """Search for one needle alone; a part that stands in many places is given up for another."""
    places = list[int]()
    for offset in _offsets(needle):
        data = needle[offset : offset + LONGEST]
        places.clear()
        at = text.find(data)
        while at >= 0 and len(places) <= _MOST_PLACES:
            places.append(at)
            at = text.find(data, at + 1)
        if len(places) <= _MOST_PLACES:
            return Probe(needle=needle, data=data, offset=offset, places=tuple(places))
    return Probe(needle=needle, data=needle[:LONGEST], offset=0, places=None)

"""Where many needles stand in one text, found by one pass over it.

1. A probe is a short part of a needle: where the needle stands, its probe stands too.
2. Cut the text into blocks. Wherever a probe stands, it covers whole blocks: which of its bytes they are depends only on
   how it lies on the grid. For every way of lying, the rarest of these blocks is looked up; so one look at each block of
   the text finds every place.
3. Needles that are too short for a block, or too few to be worth a pass, are searched for one by one.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

LONGEST = 39
"""No probe has more bytes."""

_MOST_PLACES = 256
_MOST_CANDIDATES = 4096
_FEW = 32
_SMALL = 1 << 18
"""A pass over a text costs about as much as so many searches; in less text they always cost less."""
_OFFERS = 4
_SAMPLED = 16
"""One of so many blocks is looked at to tell which are rare."""
_PART = 1 << 21
"""How many bytes are looked at in one go: their blocks become a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A short part of a needle, and every place of it in a text."""

    needle: bytes
    data: bytes
    offset: int
    """Where in the needle it begins."""
    places: tuple[int, ...] | None
    """None when there are too many to be worth a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Cuts bytes into blocks of one size."""

    size: int

    @property
    def reach(self) -> int:
        """How long a probe must be to cover a block wherever it stands."""
        return 2 * self.size - 1

    def keys(self, part: bytes) -> list[list[int]]:
        """Return the blocks that a part covers, for every way in which it may lie: shifted by 0, by 1 and so on."""
        return [self._cut(part[shift:]).tolist() for shift in range(self.size)]

    def blocks(self, text: bytes, *, step: int = 1) -> Iterator[tuple[range, list[int]]]:
        """Yield where blocks of the text begin, and the blocks; of every `step` blocks the first."""
        for at in range(0, len(text), _PART):
            cut = self._cut(text[at : at + _PART])[::step]
            yield range(at, at + len(cut) * self.size * step, self.size * step), cut.tolist()

    def _cut(self, data: bytes) -> "memoryview[int]":
        whole = memoryview(data)[: len(data) // self.size * self.size]
        return whole.cast("Q") if self.size == 8 else whole.cast("I")  # noqa: PLR2004 - the size of a Q


_WIDE, _NARROW = _Grid(size=8), _Grid(size=4)


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


def sieved(text: bytes, needles: Collection[bytes], grid: _Grid = _WIDE) -> Iterator[Probe]:
    """Yield a probe for every needle, none of which is shorter than the grid's reach."""
    offers = {needle: _offers(needle, grid) for needle in needles}
    rates = _rates(
        text, grid, {key for offer in offers.values() for rows in offer.values() for row in rows for key in row}
    )
    chosen = {needle: _rarest(offer, rates) for needle, offer in offers.items()}
    standing = _standing(text, grid, {key for _, picks in chosen.values() for _, key in picks})
    for needle, (offset, picks) in chosen.items():
        data = needle[offset : offset + LONGEST]
        if sum(len(standing.get(key, ())) for _, key in picks) > _MOST_CANDIDATES:
            yield Probe(needle=needle, data=data, offset=offset, places=None)
            continue
        begins = {at - start for start, key in picks for at in standing.get(key, ())}
        places = sorted(at for at in begins if at >= 0 and text.startswith(data, at))
        known = tuple(places) if len(places) <= _MOST_PLACES else None
        yield Probe(needle=needle, data=data, offset=offset, places=known)


def _offers(needle: bytes, grid: _Grid) -> dict[int, list[list[int]]]:
    """Return some parts that could be the probe, spread over the needle: their offsets and blocks."""
    return {offset: grid.keys(needle[offset : offset + LONGEST]) for offset in _offsets(needle)}


def _offsets(needle: bytes) -> list[int]:
    """Return where parts of a needle begin that together cover most of it."""
    last = max(len(needle) - LONGEST, 0)
    count = min((last + LONGEST // 2) // LONGEST, _OFFERS - 1)
    return [last * number // count for number in range(count + 1)] if count else [0]


def _rates(text: bytes, grid: _Grid, wanted: Collection[int]) -> Mapping[int, int]:
    """Return how often the wanted blocks stand in a sample of the text."""
    found = Counter[int]()
    for _, blocks in grid.blocks(text, step=_SAMPLED):
        found.update(filter(wanted.__contains__, blocks))
    return {**dict.fromkeys(wanted, 0), **found}


def _rarest(offer: Mapping[int, list[list[int]]], rates: Mapping[int, int]) -> tuple[int, list[tuple[int, int]]]:
    """Choose the part whose blocks are the rarest; return its offset, and where in it the block begins for each shift."""
    best = dict[int, tuple[int, list[tuple[int, int]]]]()
    rate = rates.__getitem__
    for offset, rows in offer.items():
        keys = [min(row, key=rate) for row in rows]
        picks = [(shift + rows[shift].index(key) * len(rows), key) for shift, key in enumerate(keys)]
        best.setdefault(sum(map(rate, keys)), (offset, picks))
    return best[min(best)]


def _standing(text: bytes, grid: _Grid, wanted: Collection[int]) -> Mapping[int, list[int]]:
    """Return where the wanted blocks stand."""
    found = dict[int, list[int]]()
    for begins, blocks in grid.blocks(text):
        hits = bytes(map(wanted.__contains__, blocks))  # a byte for each block: the next hit is found at once
        number = hits.find(1)
        while number >= 0:
            found.setdefault(blocks[number], []).append(begins[number])
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

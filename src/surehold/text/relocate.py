"""Where lines of an earlier version are now.

A place counts as found only if two proofs agree:

1. The alignment of both versions maps the lines, without a gap, to equal lines.
2. The lines, with the context that is still around them, occur exactly once in both versions. In both, because the only
   one left of two may be the other one.
3. The alignment must not depend on where it starts: from the bottom it maps the lines to the same place.
4. If the context next to the lines was edited, equal lines that the alignment maps to nothing are rivals: they may be
   the ones that remained. There must be none nearby, nor anywhere with exactly the neighbours that the lines had.
5. Context that is no longer next to the lines must not go on elsewhere with equal lines, unless the alignment takes it
   there from another place that had it too: blocks with equal bodies may have changed places.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from surehold.text.align import EqualRun, TextRegion, align_from_below, align_lines, shared_length

Evidence = Literal["same", "block", "context", "above", "below"]

_CONTEXT_STEPS = (0, 1, 2, 3, 5, 8, 13, 16)
# With so many lines intact on both sides, other lines cannot have taken this place.
_AMPLE_CONTEXT_LINES = 3
# `}`, `else:` and blank lines are the same line only if a neighbour is the same as well.
_TELLING_BYTES = 6
# Of a block so long that was the only one, a second one is a copy, and the copy may be the one that kept its context.
_LINES_OF_A_COPY = 3
# What occurs more often than this proves nothing, and would take long to compare.
_MAX_CANDIDATES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBlock:
    """Lines `start` to `end` (0-based, half-open); an empty range is the gap before line `start`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLines:
    """The lines are now at `start` to `end`, which is `shift` lines further down than before."""

    start: int
    end: int
    shift: int
    evidence: Evidence
    """What occurs once: the lines alone, with context on both sides or on one; or nothing changed at all."""
    context: int
    """How many lines of context the proof took on a side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostLines:
    """The lines cannot be proven to be anywhere."""

    reason: Literal["changed", "ambiguous", "disagree"]
    """Edited or gone; equal lines exist that could be meant; or found, but not where they belong."""


def relocate_lines(
    base: Sequence[bytes], current: Sequence[bytes], ranges: Sequence[LineBlock]
) -> list[MovedLines | LostLines]:
    """Return for every range of `base` where its lines are in `current`; the lines there are equal, byte for byte."""
    for wanted in ranges:
        if not 0 <= wanted.start <= wanted.end <= len(base):
            raise ValueError(f"{wanted} is not within {len(base)} lines.")
    if not ranges:
        return []
    pair = _VersionPair(base, current)
    if pair.base.ids == pair.current.ids:
        return [MovedLines(start=each.start, end=each.end, shift=0, evidence="same", context=0) for each in ranges]
    return [_find_gap(pair, each.start) if each.start == each.end else _find_block(pair, each) for each in ranges]


def _find_gap(pair: "_VersionPair", line: int) -> MovedLines | LostLines:
    """Find a gap by the two lines around it, which must still touch; an edge of the file takes the place of a missing one."""
    old, new = len(pair.base.ids), len(pair.current.ids)
    if not old:
        return LostLines(reason="changed")
    place = _find_block(pair, LineBlock(start=max(line - 1, 0), end=min(line + 1, old)))
    if isinstance(place, LostLines):
        return place
    if (line == 0 and place.start > 0) or (line == old and place.end < new):
        return LostLines(reason="changed")
    here = line + place.shift
    return MovedLines(start=here, end=here, shift=place.shift, evidence=place.evidence, context=place.context)


def _find_block(pair: "_VersionPair", wanted: LineBlock) -> MovedLines | LostLines:
    start, end = wanted.start, wanted.end
    here = pair.forward.mapped_start(start, end)
    if pair.from_below.mapped_start(start, end) != here:
        return LostLines(reason="ambiguous")
    if here is None:
        return LostLines(reason="disagree" if pair.count_occurrences(start, end) == (1, 1) else "changed")
    place = _AlignedBlock(pair=pair, start=start, end=end, here=here)
    for context in _CONTEXT_STEPS:
        up, down = min(context, place.same_above), min(context, place.same_below)
        if context > max(up, down):
            break
        counts = pair.count_occurrences(start - up, end + down)
        if counts == (1, 1) and pair.says_enough(start - up, end + down):
            if place.has_rivals() or place.has_lost_context():
                break
            evidence = "block" if not context else "context" if up and down else "above" if up else "below"
            return MovedLines(
                start=here, end=here + end - start, shift=here - start, evidence=evidence, context=context
            )
        if counts[0] == 1 < counts[1] and up + end - start + down >= _LINES_OF_A_COPY:
            break
    return LostLines(reason="ambiguous")


class _IndexedLines:
    """The lines of one version as numbers, and where each number occurs."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids
        self.where: dict[int, list[int]] = {}
        for place, number in enumerate(ids):
            self.where.setdefault(number, []).append(place)

    def count_line(self, number: int) -> int:
        return len(self.where.get(number, ()))

    def find_pattern(self, pattern: list[int], start: int = 0, end: int | None = None) -> list[int] | None:
        """Return where the pattern begins, from `start` on and before `end`; None if that is too much to look at."""
        rarest = min(range(len(pattern)), key=lambda index: self.count_line(pattern[index]))
        candidates = self.where.get(pattern[rarest], [])
        first = bisect_left(candidates, start + rarest)
        last = len(candidates) if end is None else bisect_left(candidates, end + rarest)
        if last - first > _MAX_CANDIDATES:
            return None
        begins = [place - rarest for place in candidates[first:last]]
        return [begin for begin in begins if self.ids[begin : begin + len(pattern)] == pattern]


class _AlignmentMap:
    """Where an alignment puts runs of lines."""

    def __init__(self, runs: list[tuple[int, int, int]]) -> None:
        self._runs = runs
        self._starts = [run[0] for run in runs]

    def mapped_start(self, start: int, end: int) -> int | None:
        """Return where the lines went, if they went there together."""
        index = bisect_right(self._starts, start) - 1
        if index < 0:
            return None
        begin, there, size = self._runs[index]
        return there + start - begin if end <= begin + size else None

    def run_around(self, line: int) -> EqualRun:
        """Return the run that an aligned line belongs to."""
        return EqualRun(*self._runs[bisect_right(self._starts, line) - 1])


class _ContextSearch:
    """Looks in the other version for what was above (-1) or below (1) lines of one version and is no longer there."""

    def __init__(self, text: _IndexedLines, other: _IndexedLines, there: _AlignmentMap, back: _AlignmentMap) -> None:
        self._text, self._other, self._there, self._back = text, other, there, back
        self._edges: dict[tuple[EqualRun, int], int] = {}
        self._places: dict[tuple[EqualRun, int, int], list[_EdgePlace] | None] = {}

    def is_elsewhere(self, line: int, direction: int) -> bool:
        """Tell whether an equal line is elsewhere, with more of the context than this aligned line has kept.

        It does not count if the alignment says that it came from a third line that had as much of this context.
        """
        run = self._there.run_around(line)
        edge = self._find_edge(run, direction)
        if not 0 <= edge < len(self._text.ids):
            return False
        size = abs(edge - line) + 1
        places = self._find_edge_places(run, direction, min(size, _CONTEXT_STEPS[-1]))
        if places is None:
            return True
        for place in places:
            if place.inwards >= size:
                shift, beyond = place.line - edge, edge + direction * (place.outwards - 1)
                if not self._came_with(line + shift, min(line, beyond) + shift, max(line, beyond) + 1 + shift):
                    return True
        return False

    def _came_with(self, line: int, start: int, end: int) -> bool:
        """Tell whether this line of the other version came from one that had the same lines around it."""
        origin = self._back.mapped_start(line, line + 1)
        if origin is None:
            return False
        if self._back.mapped_start(start, end) is not None:
            return True
        shift = origin - line
        return start + shift >= 0 and self._other.ids[start:end] == self._text.ids[start + shift : end + shift]

    def _find_edge(self, run: EqualRun, direction: int) -> int:
        """Return the first line that follows in one version only; beyond the text if there is none."""
        if (run, direction) not in self._edges:
            own, there = (run.a - 1, run.b - 1) if direction < 0 else (run.a + run.size, run.b + run.size)
            same = _count_equal(self._text.ids, self._other.ids, own, there, direction)
            self._edges[run, direction] = own + direction * same
        return self._edges[run, direction]

    def _find_edge_places(self, run: EqualRun, direction: int, size: int) -> "list[_EdgePlace] | None":
        """Return where the other version has the edge and the next lines inwards; None if that is too much to look at."""
        key = run, direction, size
        if key not in self._places:
            text, other, edge = self._text.ids, self._other.ids, self._find_edge(run, direction)
            depth = run.a + run.size - edge if direction < 0 else edge + 1 - run.a
            start = edge if direction < 0 else edge + 1 - size
            found = self._other.find_pattern(text[start : start + size])
            self._places[key] = (
                None
                if found is None
                else [
                    _EdgePlace(
                        line=line,
                        inwards=_count_equal(text, other, edge, line, -direction, most=depth),
                        outwards=_count_equal(text, other, edge, line, direction, most=_CONTEXT_STEPS[-1]),
                    )
                    for line in (begin + edge - start for begin in found)
                ]
            )
        return self._places[key]


class _EdgePlace(NamedTuple):
    """A line of the other version that is equal to an edge, and how many lines are equal from it on, itself included."""

    line: int
    inwards: int
    outwards: int


def _count_equal(
    text: list[int], other: list[int], line: int, there: int, direction: int, *, most: int | None = None
) -> int:
    """Return how many lines are equal from these two on, upwards (-1) or downwards (1)."""
    above, below = (line + 1, there + 1), (len(text) - line, len(other) - there)
    size = min(*(above if direction < 0 else below), len(text) if most is None else most)
    region = (
        TextRegion(line + 1 - size, line + 1, there + 1 - size, there + 1)
        if direction < 0
        else TextRegion(line, line + size, there, there + size)
    )
    return shared_length(text, other, region, direction)


class _VersionPair:
    """Both versions, indexed once for all ranges."""

    def __init__(self, base: Sequence[bytes], current: Sequence[bytes]) -> None:
        ids: dict[bytes, int] = {}
        self._lines = base
        self.base = _IndexedLines([ids.setdefault(line, len(ids)) for line in base])
        self.current = _IndexedLines([ids.setdefault(line, len(ids)) for line in current])
        self._blocks = align_lines(base, current)
        self.forward = _AlignmentMap([(a, b, size) for a, b, size in self._blocks])
        self.from_below = _AlignmentMap([(a, b, size) for a, b, size in align_from_below(base, current)])
        self.backward = _AlignmentMap([(b, a, size) for a, b, size in self._blocks])
        self.from_base = _ContextSearch(self.base, self.current, self.forward, self.backward)
        self.from_current = _ContextSearch(self.current, self.base, self.backward, self.forward)

    def says_enough(self, start: int, end: int) -> bool:
        """Tell whether these lines of the base can be told from any others by what they say."""
        return end - start > 1 or len(b"".join(self._lines[start].split())) >= _TELLING_BYTES

    def count_occurrences(self, start: int, end: int) -> tuple[int, int]:
        """Return how often these lines of the base occur in it, and in the current version."""
        pattern = self.base.ids[start:end]
        places = self.base.find_pattern(pattern), self.current.find_pattern(pattern)
        old, new = (_MAX_CANDIDATES if found is None else len(found) for found in places)
        return old, new

    @cached_property
    def solid_lines(self) -> tuple[list[int], list[int]]:
        """Where, in both versions, lines are that occur once in both and are aligned: nothing crosses them."""
        once = {
            number for number, places in self.base.where.items() if len(places) == self.current.count_line(number) == 1
        }
        pairs = [
            (place, block.b + place - block.a)
            for block in self._blocks
            for place in range(block.a, block.a + block.size)
            if self.base.ids[place] in once
        ]
        return [old for old, _ in pairs], [new for _, new in pairs]


@dataclass(frozen=True, kw_only=True)
class _AlignedBlock:
    """Lines `start` to `end` of the base, aligned with the lines from `here` on."""

    pair: _VersionPair
    start: int
    end: int
    here: int

    @cached_property
    def same_above(self) -> int:
        """How many lines above are the same, as far as context goes."""
        old, new = self.pair.base.ids, self.pair.current.ids
        return _count_equal(old, new, self.start - 1, self.here - 1, -1, most=_CONTEXT_STEPS[-1])

    @cached_property
    def same_below(self) -> int:
        """How many lines below are the same, as far as context goes."""
        old, new = self.pair.base.ids, self.pair.current.ids
        return _count_equal(old, new, self.end, self.here + self.end - self.start, 1, most=_CONTEXT_STEPS[-1])

    def has_rivals(self) -> bool:
        """Tell whether other lines, equal to these, may be the ones that remained here."""
        size = self.end - self.start
        suspects = [
            *([] if self._ample_above else [(self.start, self.start + 1)]),
            *([] if self._ample_below else [(self.end - 1, self.end)]),
        ]
        if not suspects:
            return False
        pair = self.pair
        return (
            any(self._has_leftovers(start, end) for start, end in (*suspects, (self.start, self.end)))
            or _occurs_unaligned(pair.base, pair.current, pair.backward, self.start, self.end)
            or _occurs_unaligned(pair.current, pair.base, pair.forward, self.here, self.here + size)
        )

    def has_lost_context(self) -> bool:
        """Tell whether context that is no longer here goes on elsewhere, in either version, with lines equal to these."""
        last, shift = self.end - 1, self.here - self.start
        return any(
            search.is_elsewhere(line, direction)
            for search, line, direction in (
                (self.pair.from_base, self.start, -1),
                (self.pair.from_base, last, 1),
                (self.pair.from_current, self.here, -1),
                (self.pair.from_current, last + shift, 1),
            )
        )

    def _has_leftovers(self, start: int, end: int) -> bool:
        pair, shift = self.pair, self.here - self.start
        old, new = pair.solid_lines
        return _has_unaligned_equals(pair.base, pair.forward, start, end, old) or _has_unaligned_equals(
            pair.current, pair.backward, start + shift, end + shift, new
        )

    @property
    def _ample_above(self) -> bool:
        return self.same_above >= _AMPLE_CONTEXT_LINES or self.start == self.here == self.same_above

    @property
    def _ample_below(self) -> bool:
        old_left = len(self.pair.base.ids) - self.end
        new_left = len(self.pair.current.ids) - self.end - self.here + self.start
        return self.same_below >= _AMPLE_CONTEXT_LINES or old_left == new_left == self.same_below


def _has_unaligned_equals(text: _IndexedLines, other: _AlignmentMap, start: int, end: int, solid: list[int]) -> bool:
    """Tell whether lines equal to these are aligned with nothing, and no solid line is between."""
    before, after = bisect_left(solid, start) - 1, bisect_left(solid, end)
    first = solid[before] + 1 if before >= 0 else 0
    last = solid[after] if after < len(solid) else len(text.ids)
    size = end - start
    places = text.find_pattern(text.ids[start:end], first, last)
    return places is None or any(place != start and other.mapped_start(place, place + size) is None for place in places)


def _occurs_unaligned(text: _IndexedLines, other: _IndexedLines, back: _AlignmentMap, start: int, end: int) -> bool:
    """Tell whether the other version has these lines with these neighbours where the alignment knows nothing of them."""
    up, down = min(1, start), min(1, len(text.ids) - end)
    size = end - start
    places = other.find_pattern(text.ids[start - up : end + down])
    return places is None or any(back.mapped_start(place + up, place + up + size) is None for place in places)

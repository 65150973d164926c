"""Aligns two texts: which lines, or leading and trailing bytes, both of them have.

1. What both ends share is matched first, by comparing slices.
2. Lines that only one side has are left out: they cannot match, and without them most edits leave equal sequences.
3. The shortest difference of all is looked for first (Myers), with a small part of the work allowance.
4. If that is not enough, lines that occur once on both sides split the rest (patience); in large regions so do runs of
   2, 4, … lines. What remains is solved exactly, as long as the work allowance lasts.
5. When it is spent, the best path so far is taken and the search restarts at its end: near linear, never stalls.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from math import isqrt
from operator import sub
from typing import NamedTuple, TypeVar, cast

T = TypeVar("T", bytes, int)

# One unit is about one turn of an inner loop, 0.1 to 0.3 µs.
_MYERS_ALLOWANCE = 1_500_000
_PATIENCE_ALLOWANCE_PER_LINE = 24
# So much is tried for the shortest difference of all, before unique lines split the texts.
_EXACT_ALLOWANCE = 100_000
# Deeper, the trace of the search takes more memory than the answer is worth; shallower, the answer is poor.
_DEEPEST_SEARCH = 1024
_SHALLOWEST_SEARCH = 12
# Smaller regions are left to Myers, which is exact and cheap there.
_RUNS_AS_ANCHORS_FROM = 512
_LONGEST_RUN = 32
_LINES_PER_ANCHOR = 2
# Larger slices would only take more memory.
_CHUNK_ITEMS = 1 << 16


class EqualRun(NamedTuple):
    """`size` lines from `a` on in the first text equal those from `b` on in the second."""

    a: int
    b: int
    size: int


class TextRegion(NamedTuple):
    """Items `a` to `a_end` of one text, compared with or replaced by items `b` to `b_end` of another."""

    a: int
    a_end: int
    b: int
    b_end: int


def align_lines(a: Sequence[bytes], b: Sequence[bytes]) -> list[EqualRun]:
    """Return the runs of equal lines of `a` and `b`, ascending in both, none empty."""
    # Slices of different sequence types never compare equal.
    a = a if isinstance(a, list) else list(a)
    b = b if isinstance(b, list) else list(b)
    head, inner, tail = _trim_ends(a, b, TextRegion(0, len(a), 0, len(b)))
    blocks = [head]
    # One line against one line: they differ, or they had been trimmed.
    if inner.a < inner.a_end and inner.b < inner.b_end and (inner.a_end - inner.a, inner.b_end - inner.b) != (1, 1):
        kept = _SharedItems(a[inner.a : inner.a_end], b[inner.b : inner.b_end])
        found = _RunFinder(kept.xs, kept.ys).find_runs()
        blocks += (EqualRun(inner.a + i, inner.b + j, size) for i, j, size in kept.unfold_runs(found))
    return join_runs([*blocks, tail])


def align_from_below(a: Sequence[bytes], b: Sequence[bytes]) -> list[EqualRun]:
    """Align the lines from their end: where equal lines repeat, this chooses the other ones."""
    found = reversed(align_lines(a[::-1], b[::-1]))
    return [EqualRun(len(a) - run.a - run.size, len(b) - run.b - run.size, run.size) for run in found]


def find_changes(a: Sequence[bytes], b: Sequence[bytes]) -> list[TextRegion]:
    """Return which lines of `a` became which lines of `b`: everything between the runs of equal lines."""
    whole = TextRegion(0, len(a), 0, len(b))
    if len(a) == len(b) == 1:  # what most edits touch, and nothing to align
        return [whole] if a[0] != b[0] else []
    return [part for part in regions_between(align_lines(a, b), whole) if (part.a, part.b) != (part.a_end, part.b_end)]


def join_runs(blocks: Iterable[EqualRun]) -> list[EqualRun]:
    """Return ascending blocks without the empty ones, and with those that touch on both sides made one."""
    joined: list[EqualRun] = []
    for block in blocks:
        if not block.size:
            continue
        last = joined[-1] if joined else None
        if last and last.a + last.size == block.a and last.b + last.size == block.b:
            joined[-1] = EqualRun(last.a, last.b, last.size + block.size)
        else:
            joined.append(block)
    return joined


def _trim_ends(a: list[T], b: list[T], region: TextRegion) -> tuple[EqualRun, TextRegion, EqualRun]:
    """Return what both ends of the region share, and the rest between."""
    head = shared_length(a, b, region, 1)
    inner = TextRegion(region.a + head, region.a_end, region.b + head, region.b_end)
    tail = shared_length(a, b, inner, -1)
    inner = inner._replace(a_end=inner.a_end - tail, b_end=inner.b_end - tail)
    return EqualRun(region.a, region.b, head), inner, EqualRun(inner.a_end, inner.b_end, tail)


def shared_length(a: Sequence[object], b: Sequence[object], region: TextRegion, direction: int) -> int:
    """Return how many items are equal from the start of the region (1) or from its end (-1)."""
    end = min(region.a_end - region.a, region.b_end - region.b)
    done, step = 0, 8
    # Equal chunks are skipped at the speed of C, and grow; a chunk that differs is halved until one item is left.
    while done < end:
        step = min(step, end - done)
        i = region.a + done if direction > 0 else region.a_end - done - step
        j = region.b + done if direction > 0 else region.b_end - done - step
        if a[i : i + step] == b[j : j + step]:
            done += step
            step = min(2 * step, _CHUNK_ITEMS)
        elif step == 1:
            break
        else:
            end = done + step
            step = (step + 1) // 2
    return done


def shared_ends(one: Sequence[object], other: Sequence[object]) -> tuple[int, int]:
    """Return how many leading and how many further trailing bytes or lines are equal; both must be of one type."""
    head = shared_length(one, other, TextRegion(0, len(one), 0, len(other)), 1)
    return head, shared_length(one, other, TextRegion(head, len(one), head, len(other)), -1)


class _SharedItems:
    """Two sequences without the items that only one of them has, as numbers.

    Everything here runs over whole files, so it is put together from loops that run in C.
    """

    def __init__(self, a: list[T], b: list[T]) -> None:
        ids = dict(zip(a, range(len(a)), strict=True))
        numbers_b = list(map(ids.get, b))
        on_both = set(numbers_b)
        on_both.discard(None)
        numbers_a = list(map(ids.__getitem__, a))
        self.xs, self._skipped_a = _select_wanted(numbers_a, on_both)
        self.ys, self._skipped_b = _select_wanted(numbers_b, on_both)

    def unfold_runs(self, blocks: Iterable[EqualRun]) -> Iterator[EqualRun]:
        """Yield the blocks in the numbering of the full sequences, cut where items were left out."""
        skipped_a, skipped_b = self._skipped_a, self._skipped_b
        for a, b, size in blocks:
            i, j, end = a, b, a + size
            while i < end:
                skip_a, skip_b, rest = skipped_a[i], skipped_b[j], end - i
                # The number of items left out never falls, so a run ends where it rises.
                length = min(
                    bisect_right(skipped_a, skip_a, i, i + rest) - i, bisect_right(skipped_b, skip_b, j, j + rest) - j
                )
                yield EqualRun(i + skip_a, j + skip_b, length)
                i, j = i + length, j + length


def _select_wanted(numbers: Sequence[int | None], wanted: set[int | None]) -> tuple[list[int], list[int]]:
    """Return the wanted numbers, and for each how many were left out before it."""
    chosen = list(map(wanted.__contains__, numbers))
    places = list(compress(range(len(numbers)), chosen))
    kept = cast("list[int]", list(compress(numbers, chosen)))
    return kept, list(map(sub, places, range(len(places))))


class _RunFinder:
    """One alignment of two sequences of numbers, within a work allowance."""

    def __init__(self, xs: list[int], ys: list[int]) -> None:
        self._xs, self._ys = xs, ys
        self._myers = _MYERS_ALLOWANCE
        self._patience = _PATIENCE_ALLOWANCE_PER_LINE * (len(xs) + len(ys))

    def find_runs(self) -> list[EqualRun]:
        blocks: list[EqualRun] = []
        # A stack of our own: the depth depends on the text, and a text must not overflow Python's.
        stack = [TextRegion(0, len(self._xs), 0, len(self._ys))]
        while stack:
            head, region, tail = _trim_ends(self._xs, self._ys, stack.pop())
            blocks += (head, tail)
            if region.a == region.a_end or region.b == region.b_end:
                continue
            anchors = self._find_anchors(region)
            few = len(anchors) * _LINES_PER_ANCHOR < min(region.a_end - region.a, region.b_end - region.b)
            least = 0 if blocks[2:] else _EXACT_ALLOWANCE
            direct = self._solve_directly(region, least) if anchors and (few or least) else None
            if direct is not None:
                blocks += direct
            elif anchors:
                runs = self._runs_from_anchors(anchors, region)
                blocks += runs
                stack += regions_between(runs, region)
            else:
                blocks += self._solve_leaf(region)
        return sorted(block for block in blocks if block.size)

    def _find_anchors(self, region: TextRegion) -> dict[int, int]:
        """Return items, or else starts of runs of items, that occur once on both sides, in the same order."""
        xs, ys = self._xs[region.a : region.a_end], self._ys[region.b : region.b_end]
        total = len(xs) + len(ys)
        length = 1
        while self._patience > 0:
            self._patience -= total
            pairs = _longest_increasing(*_unique_pairs(xs, ys))
            if pairs or total < _RUNS_AS_ANCHORS_FROM or length == _LONGEST_RUN:
                return pairs
            xs, ys = _double_run_length(xs, ys, length)
            length *= 2
        return {}

    def _runs_from_anchors(self, anchors: dict[int, int], region: TextRegion) -> list[EqualRun]:
        """Return the anchors as blocks, each with the equal items that follow it."""
        runs: list[EqualRun] = []
        end_a, end_b = region.a, region.b
        for i, j in anchors.items():
            a, b = region.a + i, region.b + j
            if a >= end_a and b >= end_b:  # else an earlier run covers it
                size = shared_length(self._xs, self._ys, TextRegion(a, region.a_end, b, region.b_end), 1)
                runs.append(EqualRun(a, b, size))
                end_a, end_b = a + size, b + size
        return runs

    def _solve_directly(self, region: TextRegion, least: int) -> list[EqualRun] | None:
        """Return the exact answer if few edits lead to it: a lone anchor that moved must not undo thousands of matches."""
        xs, ys = self._xs[region.a : region.a_end], self._ys[region.b : region.b_end]
        path = _search_greedily(xs, ys, 0, 0, min(max(2 * (len(xs) + len(ys)), least), max(self._myers, 0)))
        self._myers -= path.cost
        return [EqualRun(region.a + i, region.b + j, size) for i, j, size in path.blocks] if path.complete else None

    def _solve_leaf(self, region: TextRegion) -> Iterator[EqualRun]:
        """Yield the exact answer while the allowance lasts, then a fair one."""
        kept = _SharedItems(self._xs[region.a : region.a_end], self._ys[region.b : region.b_end])
        blocks, i, j = list[EqualRun](), 0, 0
        while i < len(kept.xs) and j < len(kept.ys):
            path = _search_greedily(kept.xs, kept.ys, i, j, max(self._myers, 0))
            self._myers -= path.cost
            blocks += path.blocks
            i, j = path.end
        for a, b, size in kept.unfold_runs(blocks):
            yield EqualRun(region.a + a, region.b + b, size)


def regions_between(runs: list[EqualRun], region: TextRegion) -> Iterator[TextRegion]:
    """Yield what is before, between and after the runs, empty regions too."""
    i, j = region.a, region.b
    for a, b, size in runs:
        yield TextRegion(i, a, j, b)
        i, j = a + size, b + size
    yield TextRegion(i, region.a_end, j, region.b_end)


def _unique_pairs(xs: list[int], ys: list[int]) -> tuple[list[int], list[int]]:
    """Return the places of the items that occur once on both sides, in the order of `xs`."""
    once = {x for x, count in Counter(xs).items() if count == 1}
    once &= {y for y, count in Counter(ys).items() if count == 1}
    where = dict(zip(ys, range(len(ys)), strict=True))
    chosen = list(map(once.__contains__, xs))
    return list(compress(range(len(xs)), chosen)), [where[x] for x in compress(xs, chosen)]


def _longest_increasing(places_x: list[int], places_y: list[int]) -> dict[int, int]:
    """Return a longest choice of the pairs that ascends in the second numbers; the first ones do already."""
    if places_y == sorted(places_y):
        return dict(zip(places_x, places_y, strict=True))
    tops, top_index, previous = list[int](), list[int](), list[int]()
    for index, y in enumerate(places_y):
        pile = bisect_left(tops, y) if tops and y < tops[-1] else len(tops)
        previous.append(top_index[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [y]
        top_index[pile : pile + 1] = [index]
    chosen, index = list[int](), top_index[-1]
    while index >= 0:
        chosen.append(index)
        index = previous[index]
    return {places_x[index]: places_y[index] for index in reversed(chosen)}


def _double_run_length(xs: list[int], ys: list[int], length: int) -> tuple[list[int], list[int]]:
    """Return numbers for runs twice as long as those that `xs` and `ys` number now."""
    ids: dict[tuple[int, int], int] = {}
    return (
        [ids.setdefault(run, len(ids)) for run in zip(xs, xs[length:], strict=False)],
        [ids.setdefault(run, len(ids)) for run in zip(ys, ys[length:], strict=False)],
    )


class _EditPath(NamedTuple):
    blocks: list[EqualRun]
    end: tuple[int, int]
    cost: int
    complete: bool


def _search_greedily(xs: list[int], ys: list[int], i: int, j: int, allowance: int) -> _EditPath:
    """Return a shortest edit path from `(i, j)` to the ends, or as far as the allowance leads.

    Myers' greedy search: `furthest` holds the furthest x on each diagonal x - y = k after `d` edits.
    """
    n, m = len(xs) - i, len(ys) - j
    limit = max(_SHALLOWEST_SEARCH, min(_DEEPEST_SEARCH, isqrt(2 * allowance)))
    zero = limit + 2
    furthest = [-1] * (2 * zero + 1)
    furthest[zero + 1] = 0
    trace, cost = list[list[int]](), 0
    for d in range(limit + 1):
        for k in range(-d, d + 1, 2):
            left, right = furthest[zero + k - 1], furthest[zero + k + 1]
            start = x = right if right > left else left + 1
            while x < n and x - k < m and xs[i + x] == ys[j + x - k]:
                x += 1
            cost += 1 + x - start
            furthest[zero + k] = x
            if x >= n and x - k >= m:
                trace.append(furthest[zero - d - 2 : zero + d + 3])
                return _EditPath(_backtrack_runs(trace, k, i, j), (i + n, j + m), cost, complete=True)
        trace.append(furthest[zero - d - 2 : zero + d + 3])
        if cost > allowance and d >= _SHALLOWEST_SEARCH:
            break
    return _furthest_path(trace, TextRegion(i, i + n, j, j + m), cost)


def _furthest_path(trace: list[list[int]], region: TextRegion, cost: int) -> _EditPath:
    """Return the path that got furthest; without one inside the region, the region counts as replaced."""
    d = len(trace) - 1
    ends = [(region.a + x, region.b + x - k, k) for k in range(-d, d + 1, 2) for x in (trace[d][k + d + 2],)]
    inside = [end for end in ends if end[0] <= region.a_end and end[1] <= region.b_end]
    if not inside:
        return _EditPath([], (region.a_end, region.b_end), cost, complete=False)
    a, b, k = max(inside, key=lambda end: end[0] + end[1])
    return _EditPath(_backtrack_runs(trace, k, region.a, region.b), (a, b), cost, complete=False)


def _backtrack_runs(trace: list[list[int]], k: int, i: int, j: int) -> list[EqualRun]:
    """Return the equal runs on the way to the furthest point of diagonal `k`, ascending."""
    blocks: list[EqualRun] = []
    x = trace[-1][k + len(trace) + 1]
    for d in range(len(trace) - 1, 0, -1):
        left, right = trace[d - 1][k + d], trace[d - 1][k + d + 2]
        start = right if right > left else left + 1
        blocks.append(EqualRun(i + start, j + start - k, x - start))
        k, x = (k + 1, right) if right > left else (k - 1, left)
    blocks.append(EqualRun(i, j, x))
    blocks.reverse()
    return blocks

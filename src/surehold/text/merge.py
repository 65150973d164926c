"""Merges two changes of one text, line by line, where that is provably clean.

1. A line counts as kept only if aligning both versions from the top and from the bottom agree on it. So of equal lines
   in a row, none is taken for the one that was added or removed: all of them count as changed.
2. Two changes are clean if they share no line and do not insert at the same place. They may touch.
3. The result must have exactly the lines that were put together: no unterminated line runs into the next one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from surehold.text.align import EqualRun, TextRegion, align_from_below, align_lines, regions_between
from surehold.text.snapshot import Lines, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """Both changes are about the same lines."""

    lines: tuple[int, ...] = ()
    """1-based, in the version that both changes were made to; empty when it is not a text of lines."""


def merge_changes(base: Snapshot, ours: Snapshot, theirs: Snapshot) -> bytes | MergeConflict:
    """Return the text with both changes, or the lines that both of them touch."""
    if not base.is_text or not all(side.data.startswith(base.encoding.bom) for side in (ours, theirs)):
        return MergeConflict()
    rows = base.lines.raw
    sides = [Lines(side.data, base.encoding).raw for side in (ours, theirs)]
    changes = sorted((region, side) for side in (0, 1) for region in changed_regions(rows, sides[side]))
    if shared := tuple(dict.fromkeys(_shared_lines(changes))):
        return MergeConflict(lines=shared)
    merged, at = list[bytes](), 0
    for region, side in changes:
        merged += rows[at : region.a] + sides[side][region.b : region.b_end]
        at = region.a_end
    merged += rows[at:]
    data = base.encoding.bom + b"".join(merged)
    if Lines(data, base.encoding).raw != merged:
        return MergeConflict(lines=tuple(region.a + 1 for region, _ in changes))
    return data


def changed_regions(base: list[bytes], side: list[bytes]) -> list[TextRegion]:
    """Return which lines became which, where it can be told; what cannot be told counts as changed."""
    whole = TextRegion(0, len(base), 0, len(side))
    runs = list(_agreed_runs(align_lines(base, side), align_from_below(base, side)))
    return [part for part in regions_between(runs, whole) if (part.a, part.b) != (part.a_end, part.b_end)]


def _agreed_runs(one: list[EqualRun], other: list[EqualRun]) -> Iterator[EqualRun]:
    """Yield the lines that two alignments map to the same place."""
    i = j = 0
    while i < len(one) and j < len(other):
        first, second = one[i], other[j]
        start, end = max(first.a, second.a), min(first.a + first.size, second.a + second.size)
        if start < end and first.b - first.a == second.b - second.a:
            yield EqualRun(start, start + first.b - first.a, end - start)
        if first.a + first.size <= second.a + second.size:
            i += 1
        else:
            j += 1


def _shared_lines(changes: list[tuple[TextRegion, int]]) -> Iterator[int]:
    """Yield where a change of one side meets a change of the other."""
    last: dict[int, TextRegion] = {}
    for region, side in changes:
        if earlier := last.get(1 - side):
            same_gap = region.a == region.a_end == earlier.a == earlier.a_end
            if region.a < earlier.a_end or same_gap:
                yield region.a + 1
        last[side] = region

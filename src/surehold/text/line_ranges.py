"""Ranges of lines: inclusive pairs of line numbers, as a session was shown them."""

from collections.abc import Iterable

LineRanges = tuple[tuple[int, int], ...]


def merge_ranges(spans: Iterable[tuple[int, int]]) -> LineRanges:
    """Sort spans and join those that touch."""
    out = list[tuple[int, int]]()
    for first, last in sorted(spans):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)

"""On which lines of its file the source of each cell stands: what a session was shown is remembered in lines."""

from collections.abc import Sequence
from itertools import pairwise

from surehold.text.notebook import Cell, Notebook
from surehold.text.snapshot import LineCounter, Snapshot

LineRange = tuple[int, int]


def source_lines(notebook: Notebook, snapshot: Snapshot, cells: Sequence[Cell]) -> tuple[LineRange, ...] | None:
    """Return the first and last line of these cells' sources; None when cells share lines, so that lines say nothing."""
    places = [place for cell in cells for place in cell.source_place]
    counter = LineCounter(snapshot)
    numbers = [counter.line(offset) for offset in notebook.byte_offsets(places)]
    ranges = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return None if any(one[1] >= other[0] for one, other in pairwise(ranges)) else ranges


def lines_of(notebook: Notebook, snapshot: Snapshot, index: int) -> LineRange | None:
    """Return the lines of one cell's source; None when it shares them with a neighbour."""
    first = max(index - 1, 0)
    ranges = source_lines(notebook, snapshot, notebook.cells[first : index + 2])
    return ranges[index - first] if ranges else None

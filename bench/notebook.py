"""One cell of a large notebook is changed or shown, against `json.loads` of the same bytes, which changes nothing."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from table import Row
from timing import interleave

from surehold.dialects.claude.notebook_cells import render_cells
from surehold.text.notebook.edit import CellEdit, CellRequest
from surehold.text.snapshot import Snapshot

SIZE = 40_000_000
REPEAT = 9
_GOAL = 2.0

Cell = dict[str, Any]


def rows(size: int = SIZE, repeat: int = REPEAT) -> list[Row]:
    kinds: dict[str, Callable[[random.Random], list[Cell]]] = {"images": _image, "printed lines": _printed}
    return [row for name, kind in kinds.items() for row in _rows(name, notebook(kind, size), repeat)]


def _rows(name: str, data: bytes, repeat: int) -> Iterator[Row]:
    def load(_: int) -> None:
        json.loads(data)

    def edit(number: int) -> None:
        request = CellRequest(mode="replace", name="cell-7", source=f"value = {number}  # é\n")
        CellEdit(request).plan(Snapshot(data))

    def insert(number: int) -> None:
        CellEdit(CellRequest(mode="insert", name="cell-7", source="value", seed=number)).plan(Snapshot(data))

    def show(number: int) -> None:
        render_cells(Snapshot(data), offset=number + 1)

    for work, goal in ((edit, _GOAL), (insert, _GOAL), (show, None)):
        pair = interleave(load, work, repeat=repeat)
        said = f"{work.__name__} a cell of a notebook, {len(data) / 1e6:.0f} MB of {name}"
        yield Row(name=said, measured=pair.ratio, goal=goal, note=f"of json.loads: {pair.note}")


def notebook(kind: Callable[[random.Random], list[Cell]], size: int) -> bytes:
    """Return a notebook as Jupyter writes it, of about this size."""
    pick, cells, grown = random.Random(size), list[Cell](), 0
    while grown < size:
        source = [f"x{len(cells)} = load()\n", "x.plot()"]
        cell: Cell = {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": kind(pick),
            "source": source,
        }
        cells.append(cell)
        grown += len(json.dumps(cell, indent=1))
    top = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(top, indent=1, ensure_ascii=False).encode() + b"\n"


def _image(pick: random.Random) -> list[Cell]:
    encoded = base64.b64encode(b"\x89PNG\r\n\x1a\n" + pick.randbytes(300_000)).decode()
    data = {"image/png": encoded, "text/plain": ["<Figure size 640x480 with 1 Axes>"]}
    return [{"data": data, "metadata": {}, "output_type": "display_data"}]


def _printed(pick: random.Random) -> list[Cell]:
    text = [f"step {number}: loss {pick.random():.6f} → ok\n" for number in range(2_000)]
    return [{"name": "stdout", "output_type": "stream", "text": text}]

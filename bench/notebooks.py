"""Edit every cell of real notebooks and look whether anything else changed: `python bench/notebooks.py [name==version …]`.

The notebooks come out of source releases of packages, fetched once by name. Each cell is replaced by itself (no byte may
change), by another source and back (the file must be as it was, but for outputs), has a cell inserted behind it that is
deleted again (the file must be as it was), and is deleted. After each step every other cell must have its very bytes, and
the file must be the JSON that was meant. The exit code is 1 when one was not.
"""

import json
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from table import Row, render

from surehold.dialects.claude.notebook_cells import render_cells
from surehold.errors import NotebookInvalid
from surehold.text.notebook.edit import CellEdit, CellRequest
from surehold.text.notebook.model import Notebook, NotebookCell, read_notebook
from surehold.text.snapshot import Snapshot

USUAL = (
    "nbformat==5.11.1",
    "nbconvert==7.17.2",
    "nbclient==0.11.0",
    "nbdime==4.0.4",
    "nbsphinx==0.9.8",
    "nbval==0.11.0",
    "papermill==2.7.0",
    "jupytext==1.19.6",
    "ipyparallel==9.2.0",
    "seaborn==0.13.2",
    "holoviews==1.23.2",
    "nbstripout==0.9.1",
)
MOST_CELLS = 15
"""Of one notebook."""

Tally = Counter[str]


def main(names: list[str]) -> int:
    start, tally, wrong = time.monotonic(), Tally(), list[str]()
    for name in names or USUAL:
        print(f"{name} …", file=sys.stderr, flush=True)
        for path, data in notebooks(name):
            tally["notebooks"] += 1
            wrong += [f"{name} {path}: {problem}" for problem in tried(data, tally)]
    for row in wrong[:50]:
        print(row)
    print(render(_rows(tally, len(wrong))))
    print(f"\n{time.monotonic() - start:.0f} s.")
    return 1 if wrong else 0


def notebooks(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the notebooks of a source release."""
    folder = Path(gettempdir()) / "surehold-notebooks" / name
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", name.partition("==")[0], "--dest", str(folder), name], check=True)
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as packed:
            for member in packed:
                if member.name.endswith(".ipynb") and member.isfile() and (file := packed.extractfile(member)):
                    yield member.name, file.read()


def tried(data: bytes, tally: Tally) -> Iterator[str]:
    """Yield what went wrong with one notebook."""
    try:
        notebook = read_notebook(data)
    except NotebookInvalid as refused:
        tally[f"refused: {refused.reason}"] += 1
        return
    tally[_hand(notebook)] += 1
    render_cells(Snapshot(data))
    for cell in notebook.cells[:MOST_CELLS]:
        tally["cells"] += 1
        for problem in (_replaced(data, notebook, cell), _inserted(data, cell), _deleted(data, notebook, cell)):
            tally["edits"] += 1
            if problem:
                yield f"{cell.name}: {problem}"


def _replaced(data: bytes, notebook: Notebook, cell: NotebookCell) -> str:
    if _edited(data, mode="replace", name=cell.name, source=cell.source) != data:
        return "the same source changed the file"
    other = "# another\n" + cell.source
    there = _edited(data, mode="replace", name=cell.name, source=other)
    wanted = json.loads(data)
    meant = wanted["cells"][cell.index]
    meant["source"] = _like(meant["source"], other)
    if cell.kind == "code":
        meant |= {"outputs": [], "execution_count": None}
    if json.loads(there) != wanted:
        return "the replaced notebook is another one"
    if _others(notebook, cell) != _others(read_notebook(there), cell):
        return "a replaced cell changed others"
    if cell.kind == "code" and (cell.execution_count is not None or notebook.read_part(cell, "outputs")):
        return ""  # there is no way back to outputs
    back = _edited(there, mode="replace", name=cell.name, source=cell.source)
    return (
        "" if back == data or not _is_usual(json.loads(data)["cells"][cell.index]) else "the way back leads elsewhere"
    )


def _is_usual(cell: dict[str, Any]) -> bool:
    """Tell whether a program wrote the cell so: its lines split at line feeds, and all parts there."""
    complete = cell["cell_type"] != "code" or {"outputs", "execution_count"} <= set(cell)
    return complete and cell["source"] == _like(cell["source"], "".join(cell["source"]))


def _inserted(data: bytes, cell: NotebookCell) -> str:
    edit = CellEdit(CellRequest(mode="insert", name=cell.name, source="a = 1\nb", kind="code", seed=7))
    there = edit.plan(Snapshot(data)).after.data
    after = json.loads(there)["cells"]
    if "".join(after.pop(cell.index + 1)["source"]) != "a = 1\nb" or after != json.loads(data)["cells"]:
        return "the insert is not where it was meant"
    back = _edited(there, mode="delete", name=f"#{cell.index + 1}")
    return "" if back == data else "an insert that is deleted again left a trace"


def _deleted(data: bytes, notebook: Notebook, cell: NotebookCell) -> str:
    there = _edited(data, mode="delete", name=cell.name)
    wanted = json.loads(data)
    del wanted["cells"][cell.index]
    if json.loads(there) != wanted:
        return "the notebook without the cell is another one"
    kept = read_notebook(there)
    texts = [_text(kept, one) for one in kept.cells]
    return "" if texts == _others(notebook, cell) else "a deleted cell changed others"


def _edited(data: bytes, **request: Any) -> bytes:
    return CellEdit(CellRequest(**request)).plan(Snapshot(data)).after.data


def _like(source: str | list[str], text: str) -> str | list[str]:
    *rows, last = text.split("\n")
    return text if isinstance(source, str) else [f"{row}\n" for row in rows] + [last] * bool(last)


def _others(notebook: Notebook, cell: NotebookCell) -> list[str]:
    return [_text(notebook, one) for one in notebook.cells if one.index != cell.index]


def _text(notebook: Notebook, cell: NotebookCell) -> str:
    return notebook.text[cell.place.start : cell.place.end]


def _hand(notebook: Notebook) -> str:
    """Say how a notebook is written: its format, indent and key order."""
    text, place = notebook.text, notebook.place
    gap = text[place.start + 1 : place.members[0].at]
    keys = [one.key for one in notebook.cells[0].place.members] if notebook.cells else []
    order = "sorted keys" if keys == sorted(keys) else "other keys"
    return f"  4.{notebook.minor}, indent {gap.rpartition(chr(10))[2]!r}, {order}"


def _rows(tally: Tally, wrong: int) -> list[Row]:
    share = 100 * wrong / max(tally["edits"], 1)
    found = [
        Row(
            name="edits that changed anything else",
            measured=share,
            unit="%",
            goal=0,
            note=f"{wrong} of {tally['edits']:,}",
        )
    ]
    return found + [Row(name=name, measured=count, unit="") for name, count in tally.most_common()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

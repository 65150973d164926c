"""A notebook as it is shown: cells with their outputs, within a budget.

    shown = shown_cells(snapshot, offset=params.offset, limit=params.limit, characters=context.budget.page_characters)
    context.session.saw(path, snapshot, spans=shown.lines)     # what NotebookEdit asks for later
    shown.text()                                               # for a model; `[image 1]` is the first of shown.images
    [cell.as_dict() for cell in shown.cells]                   # for programs
    shown.images                                               # bytes whose base64 and magic bytes are right; not decoded
    shown.next_offset                                          # where the next page begins, or None

`offset` and `limit` count cells, from 1, as they count lines of a text. A cell's `id` is the name that NotebookEdit
takes. `NotebookInvalid` is raised for what is no notebook; such a file can still be shown as text.
"""

from dataclasses import dataclass
from typing import Any

from surehold.dialects.claude.cell_outputs import OUTPUT_CHARACTERS, Gallery, ShownImage, ShownOutput, shown_outputs
from surehold.text.notebook import Cell, Notebook, read_notebook
from surehold.text.notebook_lines import LineRange, source_lines
from surehold.text.snapshot import Snapshot
from surehold.text.visible import safe

_AROUND = 80
"""Characters that a cell costs besides its source and its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCell:
    """One cell."""

    id: str
    """The name by which NotebookEdit finds it."""
    index: int
    cell_type: str
    source: str
    truncated: bool = False
    """Not all of the source is here."""
    execution_count: int | None = None
    outputs: tuple[ShownOutput, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        data: dict[str, Any] = {"id": self.id, "index": self.index, "cell_type": self.cell_type, "source": self.source}
        if self.truncated:
            data["truncated"] = True
        if self.cell_type == "code":
            data |= {"execution_count": self.execution_count, "outputs": [one.as_dict() for one in self.outputs]}
        return data

    def text(self) -> str:
        """Show it to a model: a heading, the source as it is, the outputs."""
        run = f" · ran as [{self.execution_count}]" if self.execution_count is not None else ""
        cut = " · not all of it is shown" if self.truncated else ""
        rows = [f"### {safe(self.id)} · {safe(self.cell_type)} · index {self.index}{run}{cut}", self.source]
        if self.outputs:
            rows += ["--- output", *(one.text_for_model() for one in self.outputs)]
        return "\n".join(rows)

    @property
    def size(self) -> int:
        """How many characters it takes, about."""
        return _AROUND + len(self.source) + sum(len(one.text) + _AROUND for one in self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNotebook:
    """Some cells of one version of a notebook."""

    cells: tuple[ShownCell, ...]
    offset: int
    cell_count: int
    next_offset: int | None
    language: str
    lines: tuple[LineRange, ...]
    """The lines of the file on which the shown sources stand, for the session's memory; none when cells share lines."""
    images: tuple[ShownImage, ...]

    @property
    def notice(self) -> str | None:
        """What a caller should know beside the cells."""
        if not self.cell_count:
            return "the notebook has no cells"
        if not self.cells:
            return f"the notebook has only {self._count}"
        last = self.offset + len(self.cells) - 1
        return (
            f"cells {self.offset} to {last} of {self.cell_count}; goes on: offset={self.next_offset}"
            if self.next_offset
            else None
        )

    @property
    def _count(self) -> str:
        return "1 cell" if self.cell_count == 1 else f"{self.cell_count} cells"

    def text(self) -> str:
        """Show the cells to a model."""
        rows = [f"notebook · {self._count} · {self.language}", *([f"[{self.notice}]"] if self.notice else [])]
        return "\n".join([*rows, *(cell.text() for cell in self.cells)])


def shown_cells(
    snapshot: Snapshot, *, offset: int = 1, limit: int = 2_000, characters: int = 40_000, images: int = 20
) -> ShownNotebook:
    """Return cells from `offset` on, as many as fit; at least one, cut when it is too large alone."""
    notebook = read_notebook(snapshot.data)
    first = max(offset, 1) - 1
    gallery, shown, room = Gallery(most=images), list[ShownCell](), characters
    for cell in notebook.cells[first : first + max(limit, 1)]:
        hung = len(gallery.images)
        one = _shown(notebook, cell, gallery, characters)
        if shown and one.size > room:
            del gallery.images[hung:]  # they come with their cell, on the next page
            break
        shown.append(one)
        room -= one.size
    ranges = source_lines(notebook, snapshot, notebook.cells)
    following = first + len(shown)
    return ShownNotebook(
        cells=tuple(shown),
        offset=first + 1,
        cell_count=len(notebook.cells),
        next_offset=following + 1 if shown and following < len(notebook.cells) else None,
        language=notebook.language,
        lines=tuple(ranges[one.index] for one in shown if not one.truncated) if ranges else (),
        images=tuple(gallery.images),
    )


def _shown(notebook: Notebook, cell: Cell, gallery: Gallery, characters: int) -> ShownCell:
    """Return one cell; alone it never takes more than a page."""
    outputs = ()
    if cell.kind == "code":
        room = max(0, min(OUTPUT_CHARACTERS, characters - len(cell.source)))
        outputs = shown_outputs(notebook.part(cell, "outputs"), gallery, cell=cell.index, room=room)
    return ShownCell(
        id=cell.name,
        index=cell.index,
        cell_type=cell.kind,
        source=cell.source[:characters],
        truncated=len(cell.source) > characters,
        execution_count=cell.execution_count,
        outputs=outputs,
    )

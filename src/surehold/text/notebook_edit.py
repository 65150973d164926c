"""One cell of a notebook is replaced, inserted or deleted; every other byte of the file stays.

1. The result is a few spans inside of the target cell, or one whole cell with its comma.
2. What was written is read again before anything happens: a result that is no sound cell is refused.
3. The same request on the same version gives the same bytes: the new id is drawn once, by the caller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from surehold.errors import InvalidArgument
from surehold.text.encoding import UTF8
from surehold.text.notebook import Cell, Notebook, names_of, read_notebook
from surehold.text.notebook_lines import lines_of
from surehold.text.notebook_pieces import (
    CODE_ONLY,
    Piece,
    applied,
    check_cell,
    emptied,
    insertion,
    part,
    removal,
    rows_text,
    source_text,
    spans_of,
    with_code_keys,
    without_code_keys,
)
from surehold.text.notebook_style import layout_of, ordered, spelling_of
from surehold.text.plan import Applied, EditPlan, LineSpan, Span, splice
from surehold.text.snapshot import Snapshot

EditMode = Literal["replace", "insert", "delete"]
CellKind = Literal["code", "markdown", "raw"]
Position = Literal["after", "before", "start", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """What a caller wants of one cell."""

    mode: EditMode
    name: str = ""
    """Which cell; for an insert the one it goes behind."""
    source: str = ""
    kind: CellKind | None = None
    position: Position | None = None
    """Where an insert goes; by default behind the named cell, or at the start."""
    seed: int = 0
    """Where the search for a free id begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """What a request comes to in one version of a notebook."""

    mode: EditMode
    index: int
    name: str
    """How the cell is called afterwards; of a deleted one, how it was called."""
    kind: str
    language: str
    old_source: str | None
    new_source: str | None
    spans: tuple[Span, ...] = ()
    cleared: bool = False
    """Outputs or the count of a run went away."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other cells that have another name now, since they have no id."""
    notices: tuple[str, ...] = ()


class CellEdit:
    """Change one cell. Worked out once for each version that it is asked about."""

    def __init__(self, request: CellRequest) -> None:
        """Refuse what contradicts itself."""
        _check(request)
        self.request = request
        self._read: tuple[Snapshot, Notebook] | None = None
        self._change: tuple[Snapshot, CellChange] | None = None

    def notebook(self, before: Snapshot) -> Notebook:
        """Return the notebook, read once."""
        if self._read is None or self._read[0] is not before:
            self._read = (before, read_notebook(before.data))
        return self._read[1]

    def change(self, before: Snapshot) -> CellChange:
        """Work out what happens, or refuse."""
        if self._change is None or self._change[0] is not before:
            self._change = (before, self._worked_out(self.notebook(before)))
        return self._change[1]

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the spans; none when the cell is so already. The lines of its source are what must have been seen."""
        change = self.change(before)
        plan = splice(before, change.spans, warnings=change.notices)
        return replace(plan, applied=(Applied(index=0, occurrences=1, ranges=self._ranges(plan, change), tier="cell"),))

    def _ranges(self, plan: EditPlan, change: CellChange) -> tuple[LineSpan, ...]:
        found = (
            lines_of(self.notebook(plan.before), plan.before, change.index) if change.old_source is not None else None
        )
        if found is None or not plan.spans:
            return ()
        written = plan.line_spans()
        new_start, new_end = written[0].new_start_line, written[-1].new_end_line
        return (LineSpan(start_line=found[0], end_line=found[1], new_start_line=new_start, new_end_line=new_end),)

    def _worked_out(self, notebook: Notebook) -> CellChange:
        match self.request.mode:
            case "replace":
                return _replaced(notebook, notebook.find(self.request.name), self.request)
            case "insert":
                return _inserted(notebook, self.request)
            case "delete":
                return _deleted(notebook, notebook.find(self.request.name))


def _replaced(notebook: Notebook, cell: Cell, request: CellRequest) -> CellChange:
    kind, source = request.kind or cell.kind, request.source
    pieces, cleared, notices = list[Piece](), False, ()
    layout, spelling = layout_of(notebook, cell.index), spelling_of(notebook, cell.index, new=source)
    if source != cell.source:
        pieces.append(part(cell, "source", source_text(notebook, cell, source, layout, spelling)))
    if kind != cell.kind:
        pieces.append(part(cell, "cell_type", spelling.string(kind)))
    if pieces:
        changed = emptied(notebook, cell) if kind == "code" else without_code_keys(cell)
        cleared = bool(changed)
        pieces += changed + (with_code_keys(cell, layout, spelling) if kind == "code" else [])
        check_cell(applied(notebook.text, pieces, cell), source=source, kind=kind)
    if kind == "code" and cell.kind != "code" and cell.place.member("attachments"):
        notices = ("The cell keeps its attachments, which code cells do not have; Jupyter may complain about them.",)
    return CellChange(
        mode="replace",
        index=cell.index,
        name=cell.name,
        kind=kind,
        language=notebook.language,
        old_source=cell.source,
        new_source=source,
        spans=spans_of(notebook, pieces),
        cleared=cleared,
        notices=notices,
    )


def _inserted(notebook: Notebook, request: CellRequest) -> CellChange:
    cells, kind = notebook.cells, request.kind or "code"
    at, notices = _where(notebook, request)
    near = min(max(at - 1, 0), len(cells) - 1)
    layout, spelling = layout_of(notebook, near), spelling_of(notebook, near, new=request.source)
    new_id = _free_id(notebook, request.seed) if notebook.has_ids else ""
    listed = cells[near].listed if cells else True
    parts = {
        "cell_type": spelling.string(kind),
        "metadata": "{}",
        "source": rows_text(request.source, {}, layout, spelling) if listed else spelling.string(request.source),
        **({"id": spelling.string(new_id)} if new_id else {}),
        **(CODE_ONLY if kind == "code" else {}),
    }
    gaps = layout.members
    members = [f"{spelling.string(key)}{layout.colon}{parts[key]}" for key in ordered(list(parts), cells, kind)]
    text = "{" + gaps.opening + gaps.between.join(members) + gaps.closing + "}"
    check_cell(text, source=request.source, kind=kind)
    ids = [cell.id for cell in cells]
    names = names_of([*ids[:at], new_id, *ids[at:]])
    return CellChange(
        mode="insert",
        index=at,
        name=names[at],
        kind=kind,
        language=notebook.language,
        old_source=None,
        new_source=request.source,
        spans=spans_of(notebook, [insertion(notebook, at, text, layout)]),
        renamed=_renamed(notebook, [*names[:at], *names[at + 1 :]]),
        notices=notices,
    )


def _deleted(notebook: Notebook, cell: Cell) -> CellChange:
    others = [one for one in notebook.cells if one is not cell]
    names = names_of([one.id for one in others])
    return CellChange(
        mode="delete",
        index=cell.index,
        name=cell.name,
        kind=cell.kind,
        language=notebook.language,
        old_source=cell.source,
        new_source=None,
        spans=spans_of(notebook, [removal(notebook, cell)]),
        renamed={one.name: name for one, name in zip(others, names, strict=True) if one.name != name},
    )


def _check(request: CellRequest) -> None:
    UTF8.encode(request.source)  # half of a character cannot be saved
    if request.mode != "insert" and not request.name:
        raise InvalidArgument(
            f"`cell_id` is missing: {request.mode} needs to know which cell.",
            reason="no_cell",
            action="Send the id of the cell as reading the notebook shows it.",
        )
    if request.mode != "insert" and request.position:
        raise InvalidArgument(f"`position` means nothing for {request.mode}.", reason="bad_position")
    if request.position in ("after", "before") and not request.name:
        raise InvalidArgument(f"`position` is {request.position}, but `cell_id` is missing.", reason="bad_position")
    if request.position in ("start", "end") and request.name:
        raise InvalidArgument(
            f"`position` is {request.position}, so `cell_id` means nothing.",
            reason="bad_position",
            action="Leave one of them out.",
        )


def _where(notebook: Notebook, request: CellRequest) -> tuple[int, tuple[str, ...]]:
    """Return the index of the new cell, and what to say about it."""
    if request.name:
        index = notebook.find(request.name).index
        return index if request.position == "before" else index + 1, ()
    if request.position == "end":
        return len(notebook.cells), ()
    if request.position == "start" or not notebook.cells:
        return 0, ()
    told = "The cell went to the start of the notebook, since no `cell_id` was named; position 'end' appends."
    return 0, (told,)


def _free_id(notebook: Notebook, seed: int) -> str:
    taken = {cell.id for cell in notebook.cells}
    while (name := f"{seed & 0xFFFFFFFF:08x}") in taken:
        seed += 1
    return name


def _renamed(notebook: Notebook, names: list[str]) -> dict[str, str]:
    return {cell.name: name for cell, name in zip(notebook.cells, names, strict=True) if cell.name != name}

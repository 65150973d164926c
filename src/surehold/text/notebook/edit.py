"""Replaces, inserts or deletes one cell of a notebook; every other byte of the file stays.

1. The result is a few spans inside the target cell, or one whole cell with its comma.
2. The new text is parsed again before anything is written: a result that is not a valid cell is refused.
3. The same request on the same version gives the same bytes: the new id is drawn once, by the caller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from surehold.errors import InvalidArgument, NotebookInvalid
from surehold.text.encoding import UTF8
from surehold.text.notebook.json_spans import JsonText
from surehold.text.notebook.model import Notebook, NotebookCell, cell_lines, cell_names, read_notebook
from surehold.text.notebook.style import NotebookLayout, key_position, learn_layout, order_keys, split_source
from surehold.text.plan import EditOutcome, EditPlan, LineSpan, Span, splice_spans
from surehold.text.snapshot import Snapshot

CODE_ONLY_KEYS = {"execution_count": "null", "outputs": "[]"}
"""What every code cell has and no other, as it is before a run."""


@dataclass(frozen=True, slots=True)
class CellPiece:
    """Characters `start` to `end` become `new`."""

    start: int
    end: int
    new: str


def insertion_piece(notebook: Notebook, at: int, text: str, layout: NotebookLayout) -> CellPiece:
    """Put a cell where it becomes the one at this index, with the comma that ties it to the others."""
    cells, array, gaps = notebook.cells, notebook.array, layout.cells
    if not cells:
        return CellPiece(array.start + 1, array.end - 1, gaps.opening + text + gaps.closing)
    if at:
        end = cells[at - 1].place.end
        return CellPiece(end, end, gaps.between + text)
    start = cells[0].place.start
    return CellPiece(start, start, text + gaps.between)


def removal_piece(notebook: Notebook, cell: NotebookCell) -> CellPiece:
    """Take a cell away with the comma that tied it to the others."""
    cells, array, index = notebook.cells, notebook.array, cell.index
    if len(cells) == 1:
        return CellPiece(array.start + 1, array.end - 1, "")
    if index:
        return CellPiece(cells[index - 1].place.end, cell.place.end, "")
    return CellPiece(cell.place.start, cells[1].place.start, "")


def source_text(notebook: Notebook, cell: NotebookCell, source: str, layout: NotebookLayout) -> str:
    """Write a source as the cell's own was; lines that stay are copied as they are spelled."""
    if not cell.listed:
        return layout.spelling.json_string(source)
    json = JsonText(notebook.text)
    rows = json.read_items(cell.source_member.start).members
    known = {json.read_value(row.start)[0]: notebook.text[row.start : row.end] for row in reversed(rows)}
    return rows_text(source, known, layout)


def rows_text(source: str, known: Mapping[str, str], layout: NotebookLayout) -> str:
    """Write a source as a list of lines; known lines as they are spelled already."""
    rows, gaps = split_source(source), layout.rows
    if not rows:
        return "[]"
    written = gaps.between.join(known.get(row) or layout.spelling.json_string(row) for row in rows)
    return f"[{gaps.opening}{written}{gaps.closing}]"


def member_piece(cell: NotebookCell, key: str, new: str) -> CellPiece:
    member = next(one for one in cell.place.members if one.key == key)
    return CellPiece(member.start, member.end, new)


def clear_run_results(notebook: Notebook, cell: NotebookCell) -> list[CellPiece]:
    places = [one for one in cell.place.members if one.key in CODE_ONLY_KEYS]
    stale = [one for one in places if notebook.text[one.start : one.end] not in ("null", "[]")]
    return [CellPiece(one.start, one.end, CODE_ONLY_KEYS[one.key]) for one in stale]


def remove_code_keys(cell: NotebookCell) -> list[CellPiece]:
    """Take away what only code cells have, each part with its comma."""
    members = cell.place.members
    first = next(index for index, one in enumerate(members) if one.key not in CODE_ONLY_KEYS)
    pieces = [CellPiece(members[0].at, members[first].at, "")] if first else []
    for one, following in zip(members[first:], members[first + 1 :], strict=False):
        if following.key in CODE_ONLY_KEYS:
            pieces.append(CellPiece(one.end, following.end, ""))
    return pieces


def add_code_keys(cell: NotebookCell, layout: NotebookLayout) -> list[CellPiece]:
    members, gaps = cell.place.members, layout.members
    keys, added = [one.key for one in members], dict[int, str]()
    for key, value in CODE_ONLY_KEYS.items():
        if key in keys:
            continue
        place, member = key_position(key, keys), layout.write_member(key, value)
        added[place] = added.get(place, "") + (gaps.between + member if place else member + gaps.between)
    at = {place: members[place - 1].end if place else members[0].at for place in added}
    return [CellPiece(at[place], at[place], new) for place, new in added.items()]


def pieces_to_spans(notebook: Notebook, pieces: list[CellPiece]) -> tuple[Span, ...]:
    """Return the pieces as spans of bytes, in order."""
    pieces = sorted(pieces, key=lambda one: (one.start, one.end))
    offsets = iter(notebook.byte_offsets([place for one in pieces for place in (one.start, one.end)]))
    return tuple(Span(start=next(offsets), end=next(offsets), new=one.new.encode()) for one in pieces)


def apply_pieces(text: str, pieces: list[CellPiece], cell: NotebookCell) -> str:
    parts, at = list[str](), cell.place.start
    for piece in sorted(pieces, key=lambda one: (one.start, one.end)):
        parts += (text[at : piece.start], piece.new)
        at = piece.end
    return "".join([*parts, text[at : cell.place.end]])


def check_cell(text: str, *, source: str, kind: str) -> None:
    """Refuse a cell that does not say what it should. Every other byte of the file is as it was."""
    json = JsonText(text)
    try:
        found, end = json.read_value(0)
        json.expect_end(end)
    except (ValueError, RecursionError):
        found = None
    cell = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    written = cell.get("source")
    joined = "".join(cast("list[str]", written)) if isinstance(written, list) else written
    if cell.get("cell_type") != kind or joined != source or {key in cell for key in CODE_ONLY_KEYS} != {kind == "code"}:
        raise NotebookInvalid(
            f"The {kind} cell would not be sound afterwards.",
            reason="unsound_result",
            action="Look at the cell in Jupyter: it lacks a part that its type needs, or has one of another type.",
        )


EditMode = Literal["replace", "insert", "delete"]
CellKind = Literal["code", "markdown", "raw"]
InsertPosition = Literal["after", "before", "start", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """What a caller wants of one cell."""

    mode: EditMode
    name: str = ""
    """Which cell; for an insert the one before it."""
    source: str = ""
    kind: CellKind | None = None
    position: InsertPosition | None = None
    """Where an insert goes; by default after the named cell, or at the start."""
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
    old_source: str | None = None
    new_source: str | None = None
    spans: tuple[Span, ...] = ()
    cleared: bool = False
    """Outputs or the count of a run went away."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other cells that have another name now, since they have no id."""
    notices: tuple[str, ...] = ()


class CellEdit:
    """Change one cell. Worked out once for each version that it is asked about."""

    def __init__(self, request: CellRequest) -> None:
        _check_request(request)
        self.request = request
        self._read: tuple[Snapshot, Notebook] | None = None
        self._change: tuple[Snapshot, CellChange] | None = None

    def notebook_for(self, before: Snapshot) -> Notebook:
        """Return the notebook, read once."""
        if self._read is None or self._read[0] is not before:
            self._read = (before, read_notebook(before.data))
        return self._read[1]

    def change_for(self, before: Snapshot) -> CellChange:
        """Work out what happens, or refuse."""
        if self._change is None or self._change[0] is not before:
            self._change = (before, self._work_out_change(self.notebook_for(before)))
        return self._change[1]

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the spans; none when the cell already has this content. The lines of its source are what must have been seen."""
        change = self.change_for(before)
        plan = splice_spans(before, change.spans, warnings=change.notices)
        made = EditOutcome(index=0, occurrences=1, ranges=self._source_ranges(plan, change), tier="cell")
        return replace(plan, applied=(made,))

    def _source_ranges(self, plan: EditPlan, change: CellChange) -> tuple[LineSpan, ...]:
        if change.old_source is None or not plan.spans:
            return ()
        found = cell_lines(self.notebook_for(plan.before), plan.before, change.index)
        if found is None:
            return ()
        written = plan.line_spans()
        new_start, new_end = written[0].new_start_line, written[-1].new_end_line
        return (LineSpan(start_line=found[0], end_line=found[1], new_start_line=new_start, new_end_line=new_end),)

    def _work_out_change(self, notebook: Notebook) -> CellChange:
        match self.request.mode:
            case "replace":
                return _replace_cell(notebook, notebook.find_cell(self.request.name), self.request)
            case "insert":
                return _insert_cell(notebook, self.request)
            case "delete":
                return _delete_cell(notebook, notebook.find_cell(self.request.name))


def _replace_cell(notebook: Notebook, cell: NotebookCell, request: CellRequest) -> CellChange:
    kind, source = request.kind or cell.kind, request.source
    pieces, cleared, notices = list[CellPiece](), False, ()
    layout = learn_layout(notebook, cell.index, new=source)
    if source != cell.source:
        pieces.append(member_piece(cell, "source", source_text(notebook, cell, source, layout)))
    if kind != cell.kind:
        pieces.append(member_piece(cell, "cell_type", layout.spelling.json_string(kind)))
    if pieces:
        changed = clear_run_results(notebook, cell) if kind == "code" else remove_code_keys(cell)
        cleared = bool(changed)
        pieces += changed + (add_code_keys(cell, layout) if kind == "code" else [])
        check_cell(apply_pieces(notebook.text, pieces, cell), source=source, kind=kind)
    if kind == "code" and cell.kind != "code" and cell.place.find_member("attachments"):
        notices = ("The cell keeps its attachments, which code cells do not have; Jupyter may complain about them.",)
    change = _change_of(notebook, cell, "replace", pieces)
    return replace(change, kind=kind, new_source=source, cleared=cleared, notices=notices)


def _insert_cell(notebook: Notebook, request: CellRequest) -> CellChange:
    cells, kind = notebook.cells, request.kind or "code"
    at, notices = _insertion_index(notebook, request)
    near = min(max(at - 1, 0), len(cells) - 1)
    layout = learn_layout(notebook, near, new=request.source)
    new_id = _free_id(notebook, request.seed) if notebook.has_ids else ""
    listed = cells[near].listed if cells else True
    parts = {
        "cell_type": layout.spelling.json_string(kind),
        "metadata": "{}",
        "source": rows_text(request.source, {}, layout) if listed else layout.spelling.json_string(request.source),
        **({"id": layout.spelling.json_string(new_id)} if new_id else {}),
        **(CODE_ONLY_KEYS if kind == "code" else {}),
    }
    gaps = layout.members
    members = [layout.write_member(key, parts[key]) for key in order_keys(list(parts), cells, kind)]
    text = "{" + gaps.opening + gaps.between.join(members) + gaps.closing + "}"
    check_cell(text, source=request.source, kind=kind)
    ids = [cell.id for cell in cells]
    names = cell_names([*ids[:at], new_id, *ids[at:]])
    others = zip(cells, [*names[:at], *names[at + 1 :]], strict=True)
    return CellChange(
        mode="insert",
        index=at,
        name=names[at],
        kind=kind,
        language=notebook.language,
        new_source=request.source,
        spans=pieces_to_spans(notebook, [insertion_piece(notebook, at, text, layout)]),
        renamed={cell.name: name for cell, name in others if cell.name != name},
        notices=notices,
    )


def _delete_cell(notebook: Notebook, cell: NotebookCell) -> CellChange:
    others = [one for one in notebook.cells if one is not cell]
    names = cell_names([one.id for one in others])
    change = _change_of(notebook, cell, "delete", [removal_piece(notebook, cell)])
    renamed = {one.name: name for one, name in zip(others, names, strict=True) if one.name != name}
    return replace(change, renamed=renamed)


def _change_of(notebook: Notebook, cell: NotebookCell, mode: EditMode, pieces: list[CellPiece]) -> CellChange:
    return CellChange(
        mode=mode,
        index=cell.index,
        name=cell.name,
        kind=cell.kind,
        language=notebook.language,
        old_source=cell.source,
        spans=pieces_to_spans(notebook, pieces),
    )


def _check_request(request: CellRequest) -> None:
    UTF8.encode(request.source)  # half of a character cannot be saved
    if request.mode != "insert" and not request.name:
        message = f"`cell_id` is missing: {request.mode} needs to know which cell."
        action = "Send the id of the cell as reading the notebook shows it."
        raise InvalidArgument(message, reason="no_cell", action=action)
    if request.mode != "insert" and request.position:
        raise InvalidArgument(f"`position` is not allowed with edit_mode={request.mode}.", reason="bad_position")
    if request.position in ("after", "before") and not request.name:
        raise InvalidArgument(f"`position` is {request.position}, but `cell_id` is missing.", reason="bad_position")
    if request.position in ("start", "end") and request.name:
        message = f"`cell_id` is not allowed with position={request.position}."
        raise InvalidArgument(message, reason="bad_position", action="Leave one of them out.")


def _insertion_index(notebook: Notebook, request: CellRequest) -> tuple[int, tuple[str, ...]]:
    """Return the index of the new cell, and what to say about it."""
    if request.name:
        index = notebook.find_cell(request.name).index
        return index if request.position == "before" else index + 1, ()
    if request.position == "end":
        return len(notebook.cells), ()
    if request.position == "start" or not notebook.cells:
        return 0, ()
    return 0, ("The cell went to the start of the notebook, since no `cell_id` was named; position 'end' appends.",)


def _free_id(notebook: Notebook, seed: int) -> str:
    taken = {cell.id for cell in notebook.cells}
    while (name := f"{seed & 0xFFFFFFFF:08x}") in taken:
        seed += 1
    return name

"""The pieces of text that make up a change to one cell: what goes, and what is written in its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from surehold.errors import NotebookInvalid
from surehold.text.json_spans import JsonText
from surehold.text.notebook import Cell, Notebook
from surehold.text.notebook_style import Layout, Spelling, place_for, rows_of
from surehold.text.plan import Span

CODE_ONLY = {"execution_count": "null", "outputs": "[]"}
"""What every code cell has and no other, as it is before a run."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` become `new`."""

    start: int
    end: int
    new: str


def insertion(notebook: Notebook, at: int, text: str, layout: Layout) -> Piece:
    """Put a cell where it becomes the one at this index, with the comma that ties it to the others."""
    cells, array, gaps = notebook.cells, notebook.array, layout.cells
    if not cells:
        return Piece(array.start + 1, array.end - 1, gaps.opening + text + gaps.closing)
    if at:
        end = cells[at - 1].place.end
        return Piece(end, end, gaps.between + text)
    start = cells[0].place.start
    return Piece(start, start, text + gaps.between)


def removal(notebook: Notebook, cell: Cell) -> Piece:
    """Take a cell away with the comma that tied it to the others."""
    cells, array, index = notebook.cells, notebook.array, cell.index
    if len(cells) == 1:
        return Piece(array.start + 1, array.end - 1, "")
    if index:
        return Piece(cells[index - 1].place.end, cell.place.end, "")
    return Piece(cell.place.start, cells[1].place.start, "")


def source_text(notebook: Notebook, cell: Cell, source: str, layout: Layout, spelling: Spelling) -> str:
    """Write a source as the cell's own was; lines that stay are copied as they are spelled."""
    if not cell.listed:
        return spelling.string(source)
    json, known = JsonText(notebook.text), dict[str, str]()

    def keep(at: int) -> int:
        row, end = json.value(at)
        known.setdefault(row, notebook.text[at:end])
        return end

    json.array(cell.source_at, keep)
    return rows_text(source, known, layout, spelling)


def rows_text(source: str, known: Mapping[str, str], layout: Layout, spelling: Spelling) -> str:
    """Write a source as a list of lines; known lines as they are spelled already."""
    rows, gaps = rows_of(source), layout.rows
    if not rows:
        return "[]"
    return (
        "["
        + gaps.opening
        + gaps.between.join(known.get(row) or spelling.string(row) for row in rows)
        + gaps.closing
        + "]"
    )


def part(cell: Cell, key: str, new: str) -> Piece:
    """Give a part of a cell another value."""
    member = next(one for one in cell.place.members if one.key == key)
    return Piece(member.start, member.end, new)


def emptied(notebook: Notebook, cell: Cell) -> list[Piece]:
    """Clear what an earlier run left."""
    places = [one for one in cell.place.members if one.key in CODE_ONLY]
    stale = [one for one in places if notebook.text[one.start : one.end] not in ("null", "[]")]
    return [Piece(one.start, one.end, CODE_ONLY[one.key]) for one in stale]


def without_code_keys(cell: Cell) -> list[Piece]:
    """Take away what only code cells have, each part with its comma."""
    members = cell.place.members
    first = next(index for index, one in enumerate(members) if one.key not in CODE_ONLY)
    pieces = [Piece(members[0].at, members[first].at, "")] if first else []
    for one, following in zip(members[first:], members[first + 1 :], strict=False):
        if following.key in CODE_ONLY:
            pieces.append(Piece(one.end, following.end, ""))
    return pieces


def with_code_keys(cell: Cell, layout: Layout, spelling: Spelling) -> list[Piece]:
    """Add what every code cell has and this one lacks."""
    members, gaps = cell.place.members, layout.members
    keys, added = [one.key for one in members], dict[int, str]()
    for key, value in CODE_ONLY.items():
        if key in keys:
            continue
        place, member = place_for(key, keys), f"{spelling.string(key)}{layout.colon}{value}"
        added[place] = added.get(place, "") + (gaps.between + member if place else member + gaps.between)
    return [
        Piece(at, at, new)
        for place, new in added.items()
        for at in [members[place - 1].end if place else members[0].at]
    ]


def spans_of(notebook: Notebook, pieces: list[Piece]) -> tuple[Span, ...]:
    """Return the pieces as spans of bytes, in order."""
    pieces = sorted(pieces, key=lambda one: (one.start, one.end))
    offsets = iter(notebook.byte_offsets([place for one in pieces for place in (one.start, one.end)]))
    return tuple(Span(start=next(offsets), end=next(offsets), new=one.new.encode()) for one in pieces)


def applied(text: str, pieces: list[Piece], cell: Cell) -> str:
    """Return the cell's own text with the pieces in it."""
    parts, at = list[str](), cell.place.start
    for piece in sorted(pieces, key=lambda one: (one.start, one.end)):
        parts += (text[at : piece.start], piece.new)
        at = piece.end
    return "".join([*parts, text[at : cell.place.end]])


def check_cell(text: str, *, source: str, kind: str) -> None:
    """Refuse a cell that does not say what it should. Every other byte of the file is as it was."""
    json = JsonText(text)
    found: Any = None
    try:
        found, end = json.value(0)
        json.ends_at(end)
    except (ValueError, RecursionError):
        found = None
    cell = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    written = cell.get("source")
    joined = "".join(cast("list[str]", written)) if isinstance(written, list) else written
    code = all(key in cell for key in CODE_ONLY) if kind == "code" else not any(key in cell for key in CODE_ONLY)
    if cell.get("cell_type") != kind or joined != source or not code:
        raise NotebookInvalid(
            f"The {kind} cell would not be sound afterwards.",
            reason="unsound_result",
            action="Look at the cell in Jupyter: it lacks a part that its type needs, or has one of another type.",
        )

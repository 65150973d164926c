"""A notebook (`.ipynb`) as its file has it: the cells, their names, and where each of them is.

1. The file is read once and never rewritten: a cell knows the offsets of its parts.
2. A cell's name is its id; without one it is `cell-N`, counted from 0. `cell-N` finds a cell with an id too, unless it is an id.
3. A name that may mean two cells means none. `#N` always means the cell at N: no id can be spelled so.
4. What a session has seen is remembered in lines, so the lines of a cell's source can be looked up.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from json import JSONDecodeError
from typing import Any, cast

from surehold.errors import CellAmbiguous, CellNotFound, NotebookInvalid
from surehold.text.escape import escape_text, preview_text
from surehold.text.notebook.json_spans import JsonBlock, JsonMember, JsonText
from surehold.text.snapshot import LineCounter, Snapshot

_BOM = "\ufeff"
_SUPPORTED_MAJOR = 4
_LARGE_KEYS = frozenset({"outputs", "attachments"})
"""Parts that may be huge: they are looked at when asked for, and not kept."""
_PLACE_NAME = re.compile(r"(?:cell-|#)(0|[1-9][0-9]{0,8})")
_CONFLICT = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
_MAX_LISTED_CELLS = 50
"""How many cells a refusal lists."""
_PREVIEW_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCell:
    """One cell, and where it is."""

    index: int
    name: str
    """How callers address it."""
    id: str
    """Empty without one."""
    kind: str
    """code, markdown or raw."""
    source: str
    listed: bool
    """Its source is written as a list of lines, not as one string."""
    place: JsonBlock
    execution_count: int | None = None

    @property
    def source_place(self) -> tuple[int, int]:
        """Where its source begins, key included, and its last character."""
        return self.source_member.at, self.source_member.end - 1

    @property
    def source_member(self) -> JsonMember:
        return next(one for one in self.place.members if one.key == "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    text: str
    """Without a byte order mark."""
    mark: int
    """How many bytes that mark has."""
    place: JsonBlock
    array: JsonBlock
    cells: tuple[NotebookCell, ...]
    minor: int
    language: str

    @property
    def has_ids(self) -> bool:
        """Whether this version of the format gives cells an id."""
        return self.minor >= 5  # noqa: PLR2004 - 4.5 brought them

    def read_part(self, cell: NotebookCell, key: str) -> Any:
        """Return a part of a cell, read now; None when it has none."""
        member = cell.place.find_member(key)
        try:
            return JsonText(self.text).read_value(member.start)[0] if member else None
        except RecursionError:
            raise NotebookInvalid("The notebook is nested too deeply.", reason="too_deep") from None

    def byte_offsets(self, places: Sequence[int]) -> list[int]:
        """Return where characters are in the bytes of the file; the places grow."""
        if self.text.isascii():
            return [self.mark + place for place in places]
        found, at, offset = list[int](), 0, self.mark
        for place in places:
            offset += len(self.text[at:place].encode())
            at = place
            found.append(offset)
        return found

    def find_cell(self, name: str) -> NotebookCell:
        """Return the cell of that name, or refuse."""
        found = [self.cells[index] for index in _cells_meant(name, [cell.id for cell in self.cells])]
        if len(found) == 1:
            return found[0]
        if found:
            raise CellAmbiguous(
                f"`{escape_text(name)}` may mean {len(found)} cells of this notebook.",
                action="Name one of them by its place, such as " + " or ".join(f"`{c.name}`" for c in found[:2]) + ".",
                candidates=[_cell_summary(cell) for cell in found[:_MAX_LISTED_CELLS]],
            )
        match = _PLACE_NAME.fullmatch(name)
        at = int(match[1]) if match else len(self.cells)
        own = escape_text(self.cells[at].name) if at < len(self.cells) else ""
        raise CellNotFound(
            f"No cell is called `{escape_text(name[:80])}`.",
            action=f"The cell at {at} has an id: call it `{own}`." if own else None,
            cells=[_cell_summary(cell) for cell in self.cells[:_MAX_LISTED_CELLS]],
            cell_count=len(self.cells),
        )


def cell_names(ids: Sequence[str]) -> list[str]:
    """Return how cells with these ids are called, in order; each name means one cell only."""
    names = [one or f"cell-{index}" for index, one in enumerate(ids)]
    count = Counter(names)
    return [name if count[name] == 1 else f"#{index}" for index, name in enumerate(names)]


def read_notebook(data: bytes) -> Notebook:
    """Read a notebook of format 4, or refuse with `NotebookInvalid`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        message = f"The notebook is not UTF-8: byte {error.start} fits no character."
        raise NotebookInvalid(message, reason="not_utf8") from None
    body = text.removeprefix(_BOM)
    try:
        return _parse_notebook(body, len(_BOM.encode()) if body is not text else 0)
    except RecursionError:
        raise NotebookInvalid("The notebook is nested too deeply.", reason="too_deep") from None
    except ValueError as error:
        raise _invalid_json(body, error) from None


class _CellCollector:
    """Gathers cells while the file is walked through."""

    def __init__(self, json: JsonText) -> None:
        self.json = json
        self.array: JsonBlock | None = None
        self.found = list[tuple[JsonBlock, dict[str, Any]]]()
        self.facts = dict[str, Any]()

    def read_top_member(self, key: str, at: int) -> int:
        if key == "cells" and self.json.text.startswith("[", at):
            self.array = self.json.read_array(at, self.read_cell)
            return self.array.end
        self.facts[key], end = self.json.read_value(at)
        return end

    def read_cell(self, at: int) -> int:
        facts = dict[str, Any]()

        def read_member(key: str, at: int) -> int:
            value, end = self.json.read_value(at)
            if key not in _LARGE_KEYS:
                facts[key] = value
            return end

        if not self.json.text.startswith("{", at):
            self.json.read_value(at)  # no value at all is another problem
            raise NotebookInvalid(f"Cell {len(self.found)} is not an object.", reason="malformed")
        place = self.json.read_object(at, read_member)
        self.found.append((place, facts))
        return place.end


def _parse_notebook(text: str, mark: int) -> Notebook:
    json = JsonText(text)
    cells = _CellCollector(json)
    begin = json.skip_blanks(0)
    if begin < len(text) and not text.startswith("{", begin):
        json.expect_end(json.read_value(begin)[1])
        raise NotebookInvalid("The file is JSON, but not a notebook.", reason="malformed")
    place = json.read_object(begin, cells.read_top_member)
    json.expect_end(place.end)
    minor = _minor_version(cells.facts)
    _check_keys(place, "the notebook")
    if cells.array is None:
        raise NotebookInvalid("The notebook has no list of cells.", reason="malformed")
    names = cell_names([_text_or_empty(facts.get("id")) for _, facts in cells.found])
    found = tuple(_build_cell(at, name, *one) for at, (name, one) in enumerate(zip(names, cells.found, strict=True)))
    language = _code_language(cells.facts.get("metadata"))
    return Notebook(text=text, mark=mark, place=place, array=cells.array, cells=found, minor=minor, language=language)


def _check_keys(place: JsonBlock, name: str) -> None:
    if (key := place.repeated_key) is not None:
        raise NotebookInvalid(f"The key `{escape_text(key)}` occurs twice in {name}.", reason="duplicate_key")


def _build_cell(index: int, name: str, place: JsonBlock, facts: dict[str, Any]) -> NotebookCell:
    _check_keys(place, f"cell {index}")
    kind, source, count = facts.get("cell_type"), facts.get("source"), facts.get("execution_count")
    if not isinstance(kind, str):
        raise NotebookInvalid(f"Cell {index} does not say its type.", reason="malformed")
    rows: list[Any] = cast("list[Any]", source) if isinstance(source, list) else [source]
    if not all(isinstance(row, str) for row in rows):
        raise NotebookInvalid(f"The source of cell {index} is neither a text nor a list of texts.", reason="malformed")
    return NotebookCell(
        index=index,
        name=name,
        id=_text_or_empty(facts.get("id")),
        kind=kind,
        source="".join(rows),
        listed=isinstance(source, list),
        place=place,
        execution_count=count if isinstance(count, int) and not isinstance(count, bool) else None,
    )


def _cells_meant(name: str, ids: Sequence[str]) -> list[int]:
    match = _PLACE_NAME.fullmatch(name)
    at = int(match[1]) if match else len(ids)
    if name.startswith("#") and at < len(ids):
        return [at]
    found = [index for index, one in enumerate(ids) if (one == name if one else index == at)] if name else []
    # A cell that is itself called like another place is not meant by its own: `cell-4` at 3 after `cell-3` was deleted.
    return found if found or at >= len(ids) or _PLACE_NAME.fullmatch(ids[at]) else [at]


def _minor_version(facts: dict[str, Any]) -> int:
    major, minor = facts.get("nbformat"), facts.get("nbformat_minor", 0)
    if not isinstance(major, int) or not isinstance(minor, int):
        raise NotebookInvalid("The file does not say which notebook format it has.", reason="no_format")
    if major < _SUPPORTED_MAJOR:
        message = f"The notebook has format {major}, which keeps its cells elsewhere."
        action = "Convert it first: `jupyter nbconvert --to notebook --inplace FILE`."
        raise NotebookInvalid(message, reason="old_format", action=action, nbformat=major)
    if major > _SUPPORTED_MAJOR:
        message = f"The notebook has format {major}, which is not known here."
        action = "Save it as format 4, or change it in the program that wrote it."
        raise NotebookInvalid(message, reason="new_format", action=action, nbformat=major)
    return minor


def _code_language(metadata: Any) -> str:
    """Return the language of the code cells, as the notebook says it; most are Python and some say nothing."""
    facts = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        part = facts.get(key)
        said = cast("dict[str, Any]", part).get(name) if isinstance(part, dict) else None
        if isinstance(said, str) and said:
            return escape_text(said[:_PREVIEW_CHARS])
    return "python"


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _cell_summary(cell: NotebookCell) -> str:
    first = cell.source.strip().partition("\n")[0]
    shown = escape_text(preview_text(first, _PREVIEW_CHARS))
    return f"{escape_text(cell.name)} | {escape_text(cell.kind)} at {cell.index} | {shown}"


def _invalid_json(text: str, error: ValueError) -> NotebookInvalid:
    if _CONFLICT.search(text):
        message = "The notebook holds the markers of an unfinished merge."
        action = "Finish the merge first, for example with `nbdime` or by taking one side."
        return NotebookInvalid(message, reason="conflict_markers", action=action)
    if not text.strip():
        return NotebookInvalid("The notebook is an empty file.", reason="empty", action="Create it in Jupyter first.")
    if not isinstance(error, JSONDecodeError):
        return NotebookInvalid("The notebook holds a number that is too long.", reason="not_json")
    message = f"The notebook is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}."
    action = "Correct it there, or open an earlier version of it."
    return NotebookInvalid(message, reason="not_json", action=action, line=error.lineno, column=error.colno)


CellLines = tuple[int, int]


def source_lines(notebook: Notebook, snapshot: Snapshot, cells: Sequence[NotebookCell]) -> tuple[CellLines, ...] | None:
    """Return the first and last line of these cells' sources; None when cells share lines, so that lines say nothing."""
    places = [place for cell in cells for place in cell.source_place]
    counter = LineCounter(snapshot)
    numbers = [counter.line_at(offset) for offset in notebook.byte_offsets(places)]
    ranges = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return None if any(one[1] >= other[0] for one, other in pairwise(ranges)) else ranges


def cell_lines(notebook: Notebook, snapshot: Snapshot, index: int) -> CellLines | None:
    """Return the lines of one cell's source; None when it shares them with a neighbour."""
    first = max(index - 1, 0)
    ranges = source_lines(notebook, snapshot, notebook.cells[first : index + 2])
    return ranges[index - first] if ranges else None

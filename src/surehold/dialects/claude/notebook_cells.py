"""Show the cells of a notebook with their outputs, within a character budget.

`offset` and `limit` count cells from 1, as they count lines of a text. A cell's `id` is the name that NotebookEdit takes. Outputs
are shown without terminal codes, long text is cut, and broken images are left out. `NotebookInvalid` is raised for a file that is
not a notebook; such a file can still be shown as text.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from surehold.media.magic import HEAD_BYTES, FileKind, kind_of
from surehold.text.escape import escape_lines, escape_text
from surehold.text.measure import TextRoom
from surehold.text.notebook.model import CellLines, Notebook, NotebookCell, read_notebook, source_lines
from surehold.text.snapshot import Snapshot

OUTPUT_CHARACTERS = 10_000
"""How much text one cell's outputs may have together."""
_EXAMINED_CHARS = 1 << 20
"""Of an endless text only so many characters at each end are looked at."""
_MAX_OUTPUTS = 50
_MAX_OTHER_TYPES = 5
_MAX_IMAGE_BYTES = 20 << 20
"""All images of one answer together."""

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]|\x9b[0-?]*[ -/]*[@-~]|\x1b"
)
_MIME_TYPE = re.compile(r"[A-Za-z0-9][\w.+-]{0,60}/[A-Za-z0-9][\w.+-]{0,60}", re.ASCII)
_TEXT_TYPES = ("text/plain", "text/markdown", "text/latex")
"""Shown as text, the first of them that is there."""
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
ShownImage = tuple[FileKind, bytes]
"""An image of an output, of a kind by its first bytes, whatever the notebook says; it was not decoded yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOutput:
    """One output, or what is said in its place."""

    kind: Literal["text", "error", "image", "other"]
    text: str = ""
    mime: str = ""
    size: int = 0
    """Of what is not shown as text: bytes of an image, characters of anything else."""
    image: int | None = None
    """Its number among the images of the answer, from 1."""
    truncated: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    def text_for_model(self) -> str:
        if self.kind == "image":
            return f"[image {self.image}: {self.mime}, {self.size:,} bytes]"
        return self.text if self.kind in ("text", "error") else f"[{self.text}]"


@dataclass(slots=True)
class ImageCollector:
    most: int
    images: list[ShownImage] = field(default_factory=list[ShownImage])

    def add_image(self, mime: str, encoded: str) -> ShownOutput:
        """Take an image in, or say why not."""
        if len(self.images) >= self.most:
            return _placeholder_output(mime, len(encoded), f"not shown: the answer has {self.most} images already")
        if len(encoded) * 3 // 4 > _MAX_IMAGE_BYTES - sum(len(data) for _, data in self.images):
            return _placeholder_output(mime, len(encoded), "not shown: too large")
        try:
            data = base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            return _placeholder_output(mime, len(encoded), "not shown: its base64 is broken")
        real = kind_of(data[:HEAD_BYTES])
        if real is None or real.mime not in _IMAGE_TYPES:
            return _placeholder_output(mime, len(encoded), "not shown: it is not an image")
        self.images.append((real, data))
        return ShownOutput(kind="image", mime=real.mime, size=len(data), image=len(self.images))


def render_outputs(outputs: Any, gallery: ImageCollector, *, room: int = OUTPUT_CHARACTERS) -> tuple[ShownOutput, ...]:
    """Return the outputs of a cell in their order; together their text stays within the room."""
    listed = cast("list[Any]", outputs) if isinstance(outputs, list) else []
    shown = list[ShownOutput]()
    for number, output in enumerate(listed):
        if number >= _MAX_OUTPUTS or (room <= 0 and shown):
            left = len(listed) - number
            shown.append(ShownOutput(kind="other", text=f"{left} more outputs are not shown", truncated=True))
            break
        for one in _render_output(output, gallery, max(room, 0)):
            room -= len(one.text)
            shown.append(one)
    return tuple(shown)


def strip_terminal_codes(text: str) -> str:
    """Return what a terminal would show in the end: no codes, and of a line that was drawn over only the last."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(next(filter(None, reversed(row.split("\r"))), "") for row in text.split("\n"))
    return escape_lines(text)


def _render_output(output: Any, gallery: ImageCollector, room: int) -> Sequence[ShownOutput]:
    facts = cast("dict[str, Any]", output) if isinstance(output, dict) else {}
    match facts.get("output_type"):
        case "stream":
            return [_render_text(_join_lines(facts.get("text")), room)]
        case "error":
            return [_render_text(_traceback_text(facts), room, kind="error")]
        case "display_data" | "execute_result" | "update_display_data":
            data = facts.get("data")
            bundle = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
            return _render_mime_bundle(bundle, gallery, room)
        case _:
            return [ShownOutput(kind="other", text="an output of an unknown type")]


def _render_mime_bundle(bundle: dict[str, Any], gallery: ImageCollector, room: int) -> Sequence[ShownOutput]:
    """Show the image if there is one, else the text; say what else there is."""
    image = next((mime for mime in _IMAGE_TYPES if mime in bundle), None)
    shown = [gallery.add_image(image, _join_lines(bundle[image]))] if image else []
    text = next((mime for mime in _TEXT_TYPES if mime in bundle), None)
    if text and not any(one.kind == "image" for one in shown):
        shown.append(_render_text(_join_lines(bundle[text]), room))
    others = [mime for mime in bundle if mime not in (image, *_TEXT_TYPES)]
    named = others[:_MAX_OTHER_TYPES]
    shown += [_placeholder_output(mime, _character_count(bundle[mime]), "not shown") for mime in named]
    if (left := len(others) - _MAX_OTHER_TYPES) > 0:
        shown.append(ShownOutput(kind="other", text=f"{left} more types are not shown", truncated=True))
    return shown


def _render_text(text: str, room: int, *, kind: Literal["text", "error"] = "text") -> ShownOutput:
    """Show a text; of one that is too long both ends, since errors are at the end."""
    skipped = max(0, len(text) - 2 * _EXAMINED_CHARS)
    ends = [text[:_EXAMINED_CHARS], text[-_EXAMINED_CHARS:]] if skipped else [text]
    ends = [strip_terminal_codes(one) for one in ends]
    whole = sum(map(len, ends))
    if not skipped and whole <= room:
        return ShownOutput(kind=kind, text=ends[0].rstrip("\n"))
    half = room // 2
    cut = f"\n[… {whole + skipped - 2 * half:,} characters left out …]\n"
    tail = ends[-1][len(ends[-1]) - half :].rstrip("\n")
    return ShownOutput(kind=kind, text=ends[0][:half] + cut + tail, truncated=True)


def _traceback_text(facts: dict[str, Any]) -> str:
    rows = facts.get("traceback")
    told = "\n".join(map(_join_lines, cast("list[Any]", rows))) if isinstance(rows, list) and rows else ""
    return told or f"{_join_lines(facts.get('ename'))}: {_join_lines(facts.get('evalue'))}"


def _placeholder_output(mime: str, size: int, why: str) -> ShownOutput:
    """Name what is not shown. The name of a type comes from the file, so it is repeated only if it is well-formed."""
    name = mime if _MIME_TYPE.fullmatch(mime) else "a type with an improper name"
    return ShownOutput(kind="other", mime=name, size=size, text=f"{name}, {size:,} characters, {why}")


def _join_lines(value: Any) -> str:
    if isinstance(value, list):
        return "".join(one for one in cast("list[Any]", value) if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _character_count(value: Any) -> int:
    if isinstance(value, (str, list)):
        return len(_join_lines(cast("str | list[Any]", value)))
    try:
        return len(json.dumps(value))
    except RecursionError:  # it was read on the brink of what can be
        return 0


_CELL_OVERHEAD_UNITS = 80
"""What a cell costs besides its source and its outputs."""
_MIN_CELL_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCell:
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
        data: dict[str, Any] = {"id": self.id, "index": self.index, "cell_type": self.cell_type, "source": self.source}
        if self.truncated:
            data["truncated"] = True
        if self.cell_type == "code":
            data |= {"execution_count": self.execution_count, "outputs": [one.as_dict() for one in self.outputs]}
        return data

    def text_for_model(self) -> str:
        run = f" · ran as [{self.execution_count}]" if self.execution_count is not None else ""
        cut = " · not all of it is shown" if self.truncated else ""
        heading = f"### {escape_text(self.id)} · {escape_text(self.cell_type)} · index {self.index}{run}{cut}"
        outputs = ["--- output", *(one.text_for_model() for one in self.outputs)] if self.outputs else []
        return "\n".join([heading, self.source, *outputs])

    def text_size(self, room: TextRoom) -> int:
        return room.measure(self.source) + sum(room.measure(one.text) for one in self.outputs)

    def estimated_size(self, room: TextRoom) -> int:
        return self.text_size(room) + (1 + len(self.outputs)) * _CELL_OVERHEAD_UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNotebook:
    cells: tuple[ShownCell, ...]
    offset: int
    cell_count: int
    next_offset: int | None
    language: str
    lines: tuple[CellLines, ...]
    """The lines of the file that the shown sources are on, for the session's memory; none when cells share lines."""
    images: tuple[ShownImage, ...]

    @property
    def notice(self) -> str | None:
        if not self.cell_count:
            return "the notebook has no cells"
        if not self.cells:
            return f"the notebook has only {self._cell_count_text}"
        last = self.offset + len(self.cells) - 1
        shown = f"cells {self.offset} to {last} of {self.cell_count}"
        return f"{shown}; goes on: offset={self.next_offset}" if self.next_offset else None

    @property
    def _cell_count_text(self) -> str:
        return "1 cell" if self.cell_count == 1 else f"{self.cell_count} cells"

    def text_for_model(self) -> str:
        rows = [f"notebook · {self._cell_count_text} · {self.language}", *([f"[{self.notice}]"] if self.notice else [])]
        return "\n".join([*rows, *(cell.text_for_model() for cell in self.cells)])


_DEFAULT_ROOM = TextRoom(size=40_000)


def render_cells(
    snapshot: Snapshot, *, offset: int = 1, limit: int = 2_000, room: TextRoom = _DEFAULT_ROOM, images: int = 20
) -> ShownNotebook:
    """Return cells from `offset` on, as many as fit; at least one, cut when it is too large alone."""
    notebook = read_notebook(snapshot.data)
    first = max(offset, 1) - 1
    gallery, shown, left = ImageCollector(most=images), list[ShownCell](), room.size
    for cell in notebook.cells[first : first + max(limit, 1)]:
        hung, characters = len(gallery.images), room.size
        one = _render_cell(notebook, cell, gallery, characters)
        while not shown and characters > _MIN_CELL_CHARS and one.text_size(room) > room.size:
            del gallery.images[hung:]
            characters = characters * 2 // 3  # its characters take more room than one each
            one = _render_cell(notebook, cell, gallery, characters)
        if shown and one.estimated_size(room) > left:
            del gallery.images[hung:]  # they come with their cell, on the next page
            break
        shown.append(one)
        left -= one.estimated_size(room)
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


def _render_cell(notebook: Notebook, cell: NotebookCell, gallery: ImageCollector, characters: int) -> ShownCell:
    """Return one cell; alone it never takes more than a page."""
    outputs = ()
    if cell.kind == "code":
        room = max(0, min(OUTPUT_CHARACTERS, characters - len(cell.source)))
        outputs = render_outputs(notebook.read_part(cell, "outputs"), gallery, room=room)
    return ShownCell(
        id=cell.name,
        index=cell.index,
        cell_type=cell.kind,
        source=cell.source[:characters],
        truncated=len(cell.source) > characters,
        execution_count=cell.execution_count,
        outputs=outputs,
    )

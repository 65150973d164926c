"""`surehold view`: shows an image, a PDF document, a notebook or a text file in a terminal."""

import argparse
from typing import TYPE_CHECKING, Any

from surehold.errors import BinaryFile, FileTooLarge, NotebookInvalid
from surehold.front.cli.command import FILE_ARGUMENT, CommandContext, argument, command, quote_for_shell
from surehold.front.cli.output import Output, format_count, format_size
from surehold.text.escape import reveal_text
from surehold.text.measure import TextRoom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surehold.dialects.claude.notebook_cells import ShownNotebook
    from surehold.media.documents import Document, DocumentFacts
    from surehold.media.magic import FileKind
    from surehold.media.pictures import Picture
    from surehold.text.snapshot import Snapshot

_MAX_FILE_BYTES = 128 << 20
_FIRST_PAGES = 3
_LINES, _CHARACTERS = 200, 2_000
"""How much of a text is printed, and of one line of it."""
_PREVIEW_COLUMNS, _PREVIEW_ROWS = 72, 48
_NO_LIMIT = 1 << 30


@command(
    "view",
    "Show what is in an image, a PDF document or a notebook.",
    FILE_ARGUMENT,
    argument("--pages", "LIST", "pages of a PDF, such as 1-5 or 1,4,7-9; at most 20"),
    example="surehold view report.pdf --pages 1-3",
)
def view_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.media.magic import HEAD_BYTES, kind_of

    try:
        with context.open_workspace() as workspace:
            snapshot = workspace.read(args.path, limit=_MAX_FILE_BYTES)
    except FileTooLarge as large:
        part = f"surehold read {quote_for_shell(args.path)} --lines 1:200"
        raise FileTooLarge(large.message, path=large.path, action=f"For some lines of a text: {part}") from None
    kind = kind_of(snapshot.data[:HEAD_BYTES])
    if args.pages and not (kind and kind.family == "pdf"):
        context.err.print_line(context.err.paint("--pages applies to PDF documents only and was ignored", "yellow"))
    if kind and kind.family == "image":
        _view_image(context, args.path, snapshot, kind)
    elif kind and kind.family == "pdf":
        _view_document(context, args.path, snapshot, args.pages)
    elif not (args.path.casefold().endswith(".ipynb") and _view_notebook(context, args.path, snapshot)):
        _refuse_binary(args.path, snapshot, kind)
        _view_text(context, args.path, snapshot)


def _refuse_binary(path: str, snapshot: "Snapshot", kind: "FileKind | None") -> None:
    if not snapshot.is_text or (kind and kind.certain):
        what = f" ({kind.name})" if kind else ""
        message = f"`{path}` is a binary file{what}, not a text, an image or a PDF document."
        raise BinaryFile(message, path=path, action="Open it with a program that supports its format.")


def _file_record(path: str, kind: str, snapshot: "Snapshot", **facts: Any) -> dict[str, Any]:
    return {"path": path, "type": kind, "size": snapshot.size, "sha256": snapshot.sha256, **facts}


def _view_image(context: CommandContext, path: str, snapshot: "Snapshot", kind: "FileKind") -> None:
    from surehold.media.pictures import decode_picture

    out = context.out
    found = decode_picture(snapshot.data, kind, path=path)
    width, height = found.original.width, found.original.height
    shown = {"mime": found.mime, "width": found.display.width, "height": found.display.height, "size": len(found.data)}
    if context.json:
        facts = {"width": width, "height": height, "frames": found.frames, "orientation": found.orientation}
        out.print_json(_file_record(path, "image", snapshot, format=kind.name, mode=found.mode, **facts, shown=shown))
        return
    out.print_line(f"{reveal_text(path)}: {kind.name} image, {width} x {height} pixels, {format_size(snapshot.size)}")
    if found.frames > 1:
        out.print_line(f"{found.frames} frames; this shows the first")
    if found.orientation != 1:
        out.print_line(f"rotated upright (EXIF orientation {found.orientation})")
    if found.data != snapshot.data:
        out.print_line(f"a model sees {shown['width']} x {shown['height']} pixels, {format_size(len(found.data))}")
    if out.colour and out.is_terminal:
        _print_preview(context, path, snapshot, kind, found)


def _print_preview(
    context: CommandContext, path: str, snapshot: "Snapshot", kind: "FileKind", found: "Picture"
) -> None:
    """Draw two pixels per character: the upper one as its colour, the lower one as its background."""
    from surehold.media.pictures import decode_preview

    out = context.out
    fitting = _PREVIEW_ROWS * found.original.width // found.original.height
    columns = max(min(_PREVIEW_COLUMNS, out.columns - 1, fitting), 1)
    small = decode_preview(snapshot.data, kind, path=path, columns=columns, rows=_PREVIEW_ROWS)
    pixels = [tuple(small.colours[at : at + 3]) for at in range(0, len(small.colours), 3)]
    for top in range(0, small.rows, 2):
        upper, lower = (pixels[row * columns : (row + 1) * columns] for row in (top, top + 1))
        cells = (
            f"\x1b[38;2;{_colour_code(one)};48;2;{_colour_code(other)}m▀"
            for one, other in zip(upper, lower, strict=True)
        )
        out.print_line("".join(cells) + "\x1b[0m")


def _colour_code(pixel: tuple[int, ...]) -> str:
    return ";".join(map(str, pixel))


def _view_document(context: CommandContext, path: str, snapshot: "Snapshot", pages: str) -> None:
    from surehold.media.documents import decode_document, page_numbers

    out = context.out

    def choose_pages(facts: "DocumentFacts") -> "Sequence[int]":
        if pages:
            return page_numbers(pages, facts.count, path=path)
        return range(1, min(facts.count, _FIRST_PAGES) + 1)

    found = decode_document(snapshot.data, choose_pages, path=path, room=0)
    facts = found.facts
    if context.json:
        outline = [{"title": one.title, "level": one.level, "page": one.page} for one in facts.outline]
        texts = [{"page": page.number, "text": page.text} for page in found.pages]
        record = {"pages": facts.count, "title": facts.title, "outline": outline, "text": texts}
        out.print_json(_file_record(path, "pdf", snapshot, **record))
        return
    out.print_line(f"{reveal_text(path)}: PDF, {format_count(facts.count, 'page')}, {format_size(snapshot.size)}")
    if facts.title:
        out.print_line(reveal_text(facts.title))
    for entry in facts.outline:
        page = out.paint(f"  page {entry.page}", "dim") if entry.page else ""
        out.print_line(f"{'  ' * (entry.level + 1)}{reveal_text(entry.title)}{page}")
    if facts.outline_cut:
        out.print_line(out.paint("  … and more headings", "dim"))
    _print_pages(context, path, found, hint=not pages)


def _print_pages(context: CommandContext, path: str, found: "Document", *, hint: bool) -> None:
    out = context.out
    for page in found.pages:
        out.print_line(out.paint(f"── page {page.number}", "dim"))
        out.print_line(reveal_text(page.text, keep="\n\t") or out.paint(f"({page.problem or 'no text'})", "dim"))
    if hint and found.facts.count > len(found.pages):
        after = len(found.pages) + 1
        until = min(found.facts.count, after + 4)
        context.print_hint(f"More: surehold view {quote_for_shell(path)} --pages {after}-{until}")


def _view_notebook(context: CommandContext, path: str, snapshot: "Snapshot") -> bool:
    """Show the cells; return False if it is not a notebook."""
    from surehold.dialects.claude.notebook_cells import render_cells

    try:
        found = render_cells(snapshot, limit=_NO_LIMIT, room=TextRoom(size=_NO_LIMIT))
    except NotebookInvalid as error:
        context.err.print_line(context.err.paint(reveal_text(error.message), "yellow"))
        return False
    if context.json:
        cells = [cell.as_dict() for cell in found.cells]
        context.out.print_json(_file_record(path, "notebook", snapshot, language=found.language, cells=cells))
    else:
        _print_cells(context, path, found)
    return True


def _print_cells(context: CommandContext, path: str, found: "ShownNotebook") -> None:
    out = context.out
    cells = format_count(found.cell_count, "cell")
    out.print_line(f"{reveal_text(path)}: notebook, {cells}, {reveal_text(found.language)}")
    for cell in found.cells:
        heading, _, body = cell.text_for_model().partition("\n")
        out.print_line(out.paint(reveal_text(heading), "cyan"))
        out.print_line(reveal_text(body, keep="\n\t"))


def _view_text(context: CommandContext, path: str, snapshot: "Snapshot") -> None:
    out = context.out
    rows = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[:_LINES]]
    if context.json:
        facts = {
            "lines": snapshot.line_count,
            "encoding": snapshot.encoding.name,
            "newline_style": snapshot.lines.style,
        }
        out.print_json(_file_record(path, "text", snapshot, **facts, shown=rows))
        return
    lines = format_count(snapshot.line_count, "line")
    out.print_line(f"{reveal_text(path)}: text, {lines}, {format_size(snapshot.size)}")
    out.print_numbered([_cut_row(out, row) for row in rows], start=1, last=len(rows))
    if snapshot.line_count > len(rows):
        rest = format_count(snapshot.line_count - len(rows), "more line")
        out.print_line(f"{rest}: surehold read {quote_for_shell(path)}")


def _cut_row(out: Output, row: str) -> str:
    rest = len(row) - _CHARACTERS
    more = out.paint(f" … {format_count(rest, 'more character')}", "dim") if rest > 0 else ""
    return reveal_text(row[:_CHARACTERS], keep="\t") + more

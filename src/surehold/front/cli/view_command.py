"""view: what an image, a document, a notebook or a text shows, in a terminal."""

import argparse
from typing import TYPE_CHECKING, Any

from surehold.errors import BinaryFile, FileTooLarge, NotebookInvalid
from surehold.front.cli.command import Command, Context, quoted
from surehold.front.cli.output import plural, safe, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surehold.dialects.claude.cells import ShownNotebook
    from surehold.media.documents import Document, Facts
    from surehold.media.magic import FileKind
    from surehold.media.pictures import Picture
    from surehold.text.snapshot import Snapshot

_LARGEST = 128 << 20
_FIRST_PAGES = 3
_LINES, _CHARACTERS = 200, 2_000
"""How much of a text is printed, and of one line of it."""
_PREVIEW_COLUMNS, _PREVIEW_ROWS = 72, 48
_EVERYTHING = 1 << 30


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument(
        "--pages", metavar="LIST", default="", help="pages of a PDF, such as 1-5 or 1,4,7-9; at most 20"
    )


def _view(context: Context, args: argparse.Namespace) -> int:
    from surehold.media.magic import HEAD, kind_of

    try:
        with context.open() as workspace:
            snapshot = workspace.read(args.path, limit=_LARGEST)
    except FileTooLarge as large:
        part = f"surehold read {quoted(args.path)} --lines 1:200"
        raise FileTooLarge(large.message, path=large.path, action=f"For some lines of a text: {part}") from None
    kind = kind_of(snapshot.data[:HEAD])
    if args.pages and not (kind and kind.family == "pdf"):
        context.err.line(context.err.paint("--pages is for PDF documents and was ignored", "yellow"))
    if kind and kind.family == "image":
        _view_image(context, args.path, snapshot, kind)
    elif kind and kind.family == "pdf":
        _view_document(context, args.path, snapshot, args.pages)
    elif not (args.path.casefold().endswith(".ipynb") and _view_notebook(context, args.path, snapshot)):
        _refuse_binary(args.path, snapshot, kind)
        _view_text(context, args.path, snapshot)
    return 0


def _refuse_binary(path: str, snapshot: "Snapshot", kind: "FileKind | None") -> None:
    if not snapshot.is_text or (kind and kind.certain):
        what = f" ({kind.name})" if kind else ""
        raise BinaryFile(
            f"`{path}` is a binary file{what}, neither text nor an image nor a PDF document.",
            path=path,
            action="Look at it with a program that knows its format.",
        )


def _record(path: str, kind: str, snapshot: "Snapshot", **facts: Any) -> dict[str, Any]:
    return {"path": path, "type": kind, "size": snapshot.size, "sha256": snapshot.sha256, **facts}


def _view_image(context: Context, path: str, snapshot: "Snapshot", kind: "FileKind") -> None:
    from surehold.media.pictures import picture

    found = picture(snapshot.data, kind, path=path)
    width, height = found.original.width, found.original.height
    shown = {"mime": found.mime, "width": found.display.width, "height": found.display.height, "size": len(found.data)}
    if context.json:
        facts = {"width": width, "height": height, "frames": found.frames, "orientation": found.orientation}
        context.out.json(_record(path, "image", snapshot, format=kind.name, mode=found.mode, **facts, shown=shown))
        return
    context.out.line(f"{safe(path)}: {kind.name} image, {width} x {height} pixels, {size(snapshot.size)}")
    if found.frames > 1:
        context.out.line(f"{found.frames} frames; the first one is shown")
    if found.orientation != 1:
        context.out.line(f"turned upright (EXIF orientation {found.orientation})")
    if found.data != snapshot.data:
        context.out.line(f"a model sees {shown['width']} x {shown['height']} pixels, {size(len(found.data))}")
    if context.out.colour and context.out.is_terminal:
        _print_preview(context, path, snapshot, kind, found)


def _print_preview(context: Context, path: str, snapshot: "Snapshot", kind: "FileKind", found: "Picture") -> None:
    """Draw two pixels in every character: the upper half in its colour, the lower one in that of its ground."""
    from surehold.media.pictures import preview

    fitting = _PREVIEW_ROWS * found.original.width // found.original.height
    columns = max(min(_PREVIEW_COLUMNS, context.out.columns - 1, fitting), 1)
    small = preview(snapshot.data, kind, path=path, columns=columns, rows=_PREVIEW_ROWS)
    pixels = [tuple(small.colours[at : at + 3]) for at in range(0, len(small.colours), 3)]
    for top in range(0, small.rows, 2):
        upper, lower = (pixels[row * columns : (row + 1) * columns] for row in (top, top + 1))
        cells = (f"\x1b[38;2;{_code(one)};48;2;{_code(other)}m▀" for one, other in zip(upper, lower, strict=True))
        context.out.line("".join(cells) + "\x1b[0m")


def _code(pixel: tuple[int, ...]) -> str:
    return ";".join(map(str, pixel))


def _view_document(context: Context, path: str, snapshot: "Snapshot", pages: str) -> None:
    from surehold.media.documents import document
    from surehold.media.page_range import page_numbers

    def choose(facts: "Facts") -> "Sequence[int]":
        if pages:
            return page_numbers(pages, facts.count, path=path)
        return range(1, min(facts.count, _FIRST_PAGES) + 1)

    found = document(snapshot.data, choose, path=path, room=0)
    facts = found.facts
    if context.json:
        outline = [{"title": one.title, "level": one.level, "page": one.page} for one in facts.outline]
        texts = [{"page": page.number, "text": page.text} for page in found.pages]
        context.out.json(
            _record(path, "pdf", snapshot, pages=facts.count, title=facts.title, outline=outline, text=texts)
        )
        return
    context.out.line(f"{safe(path)}: PDF, {plural(facts.count, 'page')}, {size(snapshot.size)}")
    if facts.title:
        context.out.line(safe(facts.title))
    for entry in facts.outline:
        page = context.out.paint(f"  page {entry.page}", "dim") if entry.page else ""
        context.out.line(f"{'  ' * (entry.level + 1)}{safe(entry.title)}{page}")
    if facts.outline_cut:
        context.out.line(context.out.paint("  … more headings are not listed", "dim"))
    _print_pages(context, path, found, hint=not pages)


def _print_pages(context: Context, path: str, found: "Document", *, hint: bool) -> None:
    for page in found.pages:
        context.out.line(context.out.paint(f"── page {page.number}", "dim"))
        context.out.line(safe(page.text, keep="\n\t") or context.out.paint(f"({page.problem or 'no text'})", "dim"))
    if hint and found.facts.count > len(found.pages):
        after = len(found.pages) + 1
        until = min(found.facts.count, after + 4)
        context.hint(f"More: surehold view {quoted(path)} --pages {after}-{until}")


def _view_notebook(context: Context, path: str, snapshot: "Snapshot") -> bool:
    """Show the cells; False when it is no notebook."""
    from surehold.dialects.claude.cells import shown_cells

    try:
        found = shown_cells(snapshot, limit=_EVERYTHING, characters=_EVERYTHING)
    except NotebookInvalid as error:
        context.err.line(context.err.paint(safe(error.message), "yellow"))
        return False
    if context.json:
        cells = [cell.as_dict() for cell in found.cells]
        context.out.json(_record(path, "notebook", snapshot, language=found.language, cells=cells))
    else:
        _print_cells(context, path, found)
    return True


def _print_cells(context: Context, path: str, found: "ShownNotebook") -> None:
    out = context.out
    out.line(f"{safe(path)}: notebook, {plural(found.cell_count, 'cell')}, {safe(found.language)}")
    for cell in found.cells:
        heading, _, body = cell.text().partition("\n")
        out.line(out.paint(safe(heading), "cyan"))
        out.line(safe(body, keep="\n\t"))


def _view_text(context: Context, path: str, snapshot: "Snapshot") -> None:
    rows = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[:_LINES]]
    if context.json:
        facts = {
            "lines": snapshot.line_count,
            "encoding": snapshot.encoding.name,
            "newline_style": snapshot.lines.style,
        }
        context.out.json(_record(path, "text", snapshot, **facts, shown=rows))
        return
    context.out.line(f"{safe(path)}: text, {plural(snapshot.line_count, 'line')}, {size(snapshot.size)}")
    digits = len(str(len(rows)))
    for number, row in enumerate(rows, 1):
        rest = len(row) - _CHARACTERS
        more = context.out.paint(f" … {plural(rest, 'more character')}", "dim") if rest > 0 else ""
        shown = safe(row[:_CHARACTERS], keep="\t") + more
        context.out.line(f"{context.out.paint(f'{number:>{digits}}', 'dim')}  {shown}".rstrip(" "))
    if snapshot.line_count > len(rows):
        context.out.line(f"{plural(snapshot.line_count - len(rows), 'more line')}: surehold read {quoted(path)}")


VIEW_COMMANDS = (
    Command(
        name="view",
        group="Look",
        help="Show what is in an image, a PDF document or a notebook.",
        example="surehold view report.pdf --pages 1-3",
        add_arguments=_arguments,
        run=_view,
    ),
)

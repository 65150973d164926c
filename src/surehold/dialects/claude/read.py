"""`Read`: show a file: text as numbered lines, images as images, PDF documents by page, notebooks by cell."""

from contextlib import suppress
from typing import Annotated, ClassVar

from pydantic import Field

from surehold.dialects.claude.located_file import LocatedFile, locate_file
from surehold.dialects.claude.read_result import FileReadResult
from surehold.dialects.claude.read_text import RequestedRange, read_text
from surehold.dialects.claude.wire import WIRE
from surehold.errors import BinaryFile, FileTooLarge, ImageInvalid, InvalidArgument, NotebookInvalid, PdfInvalid
from surehold.media.magic import HEAD_BYTES, FileKind, kind_of
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import Params, SubjectPath
from surehold.tools.spec import tool

_DEFAULT_LINES = 2_000
_IMAGE_NAMES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico", ".avif", ".heic")


class FileReadParams(Params):
    ALIASES: ClassVar = {"path": "file_path", "filePath": "file_path"}

    file_path: SubjectPath
    """Absolute path of the file; a relative one begins at the first root."""
    offset: int | None = 1
    """First line, from 1; in a notebook the first cell."""
    limit: int | None = _DEFAULT_LINES
    """How many lines, at most 2000 at once; in a notebook cells."""
    pages: Annotated[str | None, Field(coerce_numbers_to_str=True)] = None
    """PDF only: such as "3", "1-5" or "1,4,7-9", at most 20."""
    column: int | None = 1
    """First character of line `offset`, to go on in a very long line."""
    encoding: str | None = None
    """Such as cp1252, when the guess is wrong."""
    sha256: bool = False
    """Read a file above 256 MiB to its end, so that it can be edited."""


@tool(
    "Read",
    hints=Hints(kind="read", title="Read", loaded_when_alone=True, read_only=True, idempotent=True),
    wire=WIRE,
    method="claude_read",
)
def read(context: CallContext, params: FileReadParams) -> FileReadResult:
    """Read a file of any kind: text, an image, a PDF document or a Jupyter notebook.

    Text comes as numbered lines, `N→text`; the number and the arrow are not part of the line. At most 2,000 lines and 40,000
    characters come back at once, and the end says how to go on. A line above 2,000 characters continues as `N.2→`.
    A PDF above 10 pages needs `pages`. Write, Edit and NotebookEdit want a file to be read first.
    """
    wanted = _requested_range(params)
    place = locate_file(context.session, params.file_path, head=HEAD_BYTES)
    kind, name = kind_of(place.head), place.target.parts[-1].casefold() if place.target.parts else ""
    _check_extension(place, kind, name)
    if kind and kind.family != "other":
        from surehold.dialects.claude.read_media import read_document, read_image

        is_image = kind.family == "image"
        return read_image(context, place, kind) if is_image else read_document(context, place, params.pages or "")
    place = place.with_notices(
        "its name is that of an image, but it is text" if name.endswith(_IMAGE_NAMES) else "",
        "`pages` is for PDF documents and was ignored" if params.pages else "",
    )
    if name.endswith(".ipynb"):
        return _read_as_notebook(context, place, wanted)
    return _read_as_text(context, place, wanted, kind)


def _requested_range(params: FileReadParams) -> RequestedRange:
    offset, column = params.offset or 1, params.column or 1
    limit = _DEFAULT_LINES if params.limit is None else params.limit
    if offset < 1 or limit < 1 or column < 1:
        raise InvalidArgument(
            f"{limit} lines from line {offset}, column {column} cannot be read.",
            path=params.file_path,
            reason="bad_lines",
            action="Lines and columns are counted from 1, and at least one line is asked for.",
        )
    return RequestedRange(
        offset=offset,
        limit=limit,
        limited="limit" in params.model_fields_set and params.limit is not None,
        column=column,
        encoding=params.encoding or None,
        sha256=params.sha256,
    )


def _check_extension(place: LocatedFile, kind: FileKind | None, name: str) -> None:
    """Refuse what has the extension of a document or an image but is neither."""
    if place.look.type != "file" or (kind and kind.family != "other"):
        return
    if name.endswith(".pdf"):
        begins = place.head[:80].decode("utf-8", "replace").splitlines()[:1]
        raise PdfInvalid(
            f"`{place.path}` has a PDF extension but is not a PDF.",
            path=place.path,
            size_bytes=place.look.size,
            begins_with=begins[0] if begins else "",
        )
    if name.endswith(_IMAGE_NAMES) and not place.look.size:
        raise ImageInvalid(f"The image `{place.path}` is empty.", path=place.path, reason="empty")


def _read_as_notebook(context: CallContext, place: LocatedFile, wanted: RequestedRange) -> FileReadResult:
    """Show cells; a file that is not a notebook is shown as text, so that one can see what is wrong with it."""
    from surehold.dialects.claude.read_media import read_notebook

    try:
        return read_notebook(context, place, offset=wanted.offset, limit=wanted.limit)
    except NotebookInvalid as invalid:
        return _read_as_text(context, place.with_notices(f'not a notebook: "{invalid.message}"'), wanted, None)
    except FileTooLarge:
        return _read_as_text(context, place.with_notices("too large to be shown as a notebook"), wanted, None)


def _read_as_text(
    context: CallContext, place: LocatedFile, wanted: RequestedRange, kind: FileKind | None
) -> FileReadResult:
    with suppress(BinaryFile):
        if wanted.encoding or not (kind and kind.certain):
            return read_text(context, place, wanted)
    what = f" ({kind.name})" if kind else ""
    raise BinaryFile(
        f"`{place.path}` is a binary file{what}, neither text nor an image nor a PDF document.",
        path=place.path,
        action="Leave it as it is, or look at it with a program that knows its format.",
        size_bytes=place.look.size,
    )

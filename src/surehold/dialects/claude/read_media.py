"""Show images, PDF documents and notebooks for `Read`."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from surehold.dialects.claude.located_file import LocatedFile
from surehold.dialects.claude.read_result import Dimensions, FileReadResult, ImagePart, PagePart, encode_base64
from surehold.dialects.shared.delivery_record import deliveries_of
from surehold.errors import FileTooLarge, ImageTooLarge, MediaError, PdfInvalid, PdfPagesRequired
from surehold.media import documents, pictures
from surehold.media.documents import Document, DocumentFacts, DocumentPage, page_numbers, page_ranges
from surehold.media.magic import PDF, FileKind
from surehold.media.workers import DecodeDeadline
from surehold.text.measure import TextRoom
from surehold.text.snapshot import Snapshot
from surehold.tools.call import CallContext

_MAX_UNASKED_PAGES = 10
"""A longer document is shown only by pages."""
_MAX_RAW_BYTES = 3 << 20
_MAX_NOTEBOOK_BYTES = 100 << 20
_DECODE_SECONDS = 30.0
_PAGE_HEADING_UNITS = 160
"""What the heading of a page takes, at most."""


def read_image(context: CallContext, place: LocatedFile, kind: FileKind) -> FileReadResult:
    snapshot = _load_media(context, place, pictures.MAX_IMAGE_FILE_BYTES, ImageTooLarge)
    found = pictures.decode_picture(snapshot.data, kind, path=place.path, patience=_decode_patience(context))
    _remember_shown(context, place, snapshot, whole=True)
    original, display = found.original, found.display
    factor = max(original.width, original.height) / max(display.width, display.height)
    place = place.with_notices(
        f"{kind.name}, {original.width}x{original.height} pixels, {snapshot.size:,} bytes",
        f"shown as {display.width}x{display.height}; multiply coordinates by {factor:.3f}" if factor != 1 else "",
        f"the first of {found.frames} frames" if found.frames > 1 else "",
        "turned upright" if found.orientation != 1 else "",
    )
    return FileReadResult(
        type="image",
        file_path=place.absolute_path,
        sha256=snapshot.sha256,
        notice=place.notice,
        base64=encode_base64(found.data),
        content_index=1,
        mime_type=found.mime,
        original_size=snapshot.size,
        dimensions=Dimensions(
            original_width=original.width,
            original_height=original.height,
            display_width=display.width,
            display_height=display.height,
        ),
        frames=found.frames,
    )


def read_document(context: CallContext, place: LocatedFile, pages: str) -> FileReadResult:
    """Return pages of a PDF document as text and pictures, or all of it where the host can take that."""
    snapshot = _load_media(context, place, documents.MAX_DOCUMENT_BYTES, PdfInvalid)
    pages = pages.strip()
    raw = deliveries_of(context.session).raw_documents and not pages and snapshot.size <= _MAX_RAW_BYTES

    def choose_pages(facts: DocumentFacts) -> Sequence[int]:
        if not pages and facts.count > _MAX_UNASKED_PAGES:
            raise _pages_required_error(place, facts)
        if raw:
            return ()
        return page_numbers(pages, facts.count, path=place.path) if pages else range(1, facts.count + 1)

    found = documents.decode_document(
        snapshot.data,
        choose_pages,
        path=place.path,
        density_above=None if pages else _MAX_UNASKED_PAGES,
        patience=_decode_patience(context),
    )
    if raw:
        _remember_shown(context, place, snapshot, whole=True)
        return _whole_document(place, snapshot, found.facts)
    return _pages_result(context, place, snapshot, found)


def read_notebook(context: CallContext, place: LocatedFile, *, offset: int, limit: int) -> FileReadResult:
    """Return cells with their outputs; `NotebookInvalid` when it is not a notebook."""
    from surehold.dialects.claude.notebook_cells import render_cells

    snapshot = context.session.workspace.read(place.path, limit=_MAX_NOTEBOOK_BYTES)
    room = context.budget.beside(place.notice).page_room
    found = render_cells(snapshot, offset=offset, limit=limit, room=room)
    # never whole: metadata and much output is not shown
    context.session.record_shown_lines(place.path, snapshot, spans=found.lines)
    images, problems = list[ImagePart](), list[str]()
    for number, (kind, data) in enumerate(found.images, 1):
        try:
            shown = pictures.decode_picture(data, kind, path=f"image {number}", patience=_decode_patience(context))
        except MediaError as error:
            problems.append(f"image {number} is not shown: {error.details.get('cause', error.kind)}")
            continue
        images.append(_image_part(shown.data, shown.mime, shown.display, len(images) + 1, number))
    return FileReadResult.from_known(
        type="notebook",
        file_path=place.absolute_path,
        sha256=snapshot.sha256,
        cells=tuple(cell.as_dict() for cell in found.cells),
        total_cells=found.cell_count,
        language=found.language,
        images=tuple(images),
        truncated=bool(found.next_offset) or any(cell.truncated for cell in found.cells),
        notice=place.with_notices(found.notice or "", *problems).notice or None,
        shown=replace(found, next_offset=None).text_for_model() if found.cells else "",
        next_offset=found.next_offset,
    )


def _load_media(context: CallContext, place: LocatedFile, limit: int, error: type[MediaError]) -> Snapshot:
    try:
        return context.session.workspace.read(place.path, limit=limit)
    except FileTooLarge as large:
        raise error(large.message, path=large.path, reason="size_limit", **large.details) from None


def _remember_shown(context: CallContext, place: LocatedFile, snapshot: Snapshot, *, whole: bool) -> None:
    """Record that it was shown. The bytes are not kept: nothing of them is ever rebased."""
    context.session.record_shown_lines(place.target, snapshot, spans=(), whole=whole, keep=False)


def _decode_patience(context: CallContext) -> DecodeDeadline:
    return DecodeDeadline(seconds=_DECODE_SECONDS, cancelled=context.cancelled)


def _pages_required_error(place: LocatedFile, facts: DocumentFacts) -> PdfPagesRequired:
    outline = [
        f"{'  ' * entry.level}{entry.title}" + (f" · page {entry.page}" if entry.page else "")
        for entry in facts.outline
    ] + ["… more headings are not listed"] * facts.outline_cut
    return PdfPagesRequired(
        f"`{place.path}` has {facts.count} pages; name those that you want.",
        path=place.path,
        page_count=facts.count,
        outline=outline,
        characters_per_page=list(facts.characters),
    )


def _whole_document(place: LocatedFile, snapshot: Snapshot, facts: DocumentFacts) -> FileReadResult:
    return FileReadResult(
        type="pdf",
        file_path=place.absolute_path,
        sha256=snapshot.sha256,
        base64=encode_base64(snapshot.data),
        content_index=1,
        mime_type=PDF.mime,
        original_size=snapshot.size,
        count=facts.count,
        notice=f"PDF, {facts.count} pages, {snapshot.size:,} bytes",
    )


def _pages_result(context: CallContext, place: LocatedFile, snapshot: Snapshot, found: Document) -> FileReadResult:
    """Return the pages that fit; the first one in any case, its text cut when it is too long alone."""
    room = context.budget.beside(place.notice).page_room
    kept, images = list[PagePart](), 0
    for page in found.pages:
        for_text = room.less(min(_PAGE_HEADING_UNITS, room.size // 2))
        if kept and room.measure(page.text) > for_text.size:
            break
        images += page.image is not None
        kept.append(_page_part(page, images, for_text))
        room = room.less(room.measure(_page_text(kept[-1]) + "\n"))
    rest = tuple(page.number for page in found.pages[len(kept) :]) + found.unfinished
    facts = found.facts
    is_all = len(kept) == facts.count and not any(part.notice for part in kept)
    _remember_shown(context, place, snapshot, whole=is_all)
    shown = page_ranges(tuple(part.page for part in kept))
    place = place.with_notices(
        f"PDF, page{'s' * (len(kept) > 1)} {shown} of {facts.count}",
        f"took too long: {page_ranges(found.unfinished)}" if found.unfinished else "",
        f"goes on: pages={page_ranges(rest)}" if rest else "",
    )
    return FileReadResult.from_known(
        type="parts",
        file_path=place.absolute_path,
        sha256=snapshot.sha256,
        original_size=snapshot.size,
        count=facts.count,
        pages=tuple(kept),
        truncated=bool(rest) or any(part.notice for part in kept),
        notice=place.notice,
        shown="\n".join(_page_text(part) for part in kept),
        next_pages=page_ranges(rest) or None,
    )


def _page_part(page: DocumentPage, index: int, room: TextRoom) -> PagePart:
    text = room.cut_text(page.text)
    notices = [
        page.problem,
        "its picture is left out: the answer has no room for more" if page.left_out else "",
        f"its text is cut after {len(text):,} characters" if text != page.text or page.text_cut else "",
    ]
    image = _image_part(page.image, "image/jpeg", page.display, index) if page.image and page.display else None
    notice = "; ".join(filter(None, notices)) or None
    return PagePart.from_known(page=page.number, text=text, image=image, notice=notice)


def _page_text(part: PagePart) -> str:
    picture = f" · image {part.image.content_index}" if part.image else ""
    notice = f" · {part.notice}" if part.notice else ""
    return f"### page {part.page}{picture}{notice}\n{part.text}".rstrip()


def _image_part(data: bytes, mime: str, size: pictures.PictureSize, index: int, number: int | None = None) -> ImagePart:
    encoded = encode_base64(data)
    return ImagePart.from_known(mime_type=mime, base64=encoded, content_index=index, image=number, **asdict(size))

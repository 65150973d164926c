"""Renders a PDF document page by page as text and images. Runs in the decoding process only."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pypdfium2 import PdfDocument, PdfiumError  # pyright: ignore[reportMissingTypeStubs] - it has none

from surehold.media.child import DecodeRefusal, Json, Piece
from surehold.media.child_image import save_small_jpeg

_WRONG_PASSWORD = 4
_PAGE_SIDE_PIXELS = 1568
"""Pixels along the longer side of a page: models see no more."""
_MAX_SCALE = 4.0
"""A tiny page is not enlarged beyond this."""
_MAX_HEADINGS = 60
"""How many headings are listed."""
_MAX_COUNTED_PAGES = 100
_COUNTING_SECONDS = 0.4
"""Characters are counted in this many pages, for this many seconds."""
_MAX_TEXT_CHARS = 200_000
_MAX_PAGE_IMAGE_BYTES = 600_000
_HYPHENS = str.maketrans({"\ufffe": "-", "\x02": "-", "\r": None, "\0": None})
"""How the library writes a hyphen at the end of a line."""


class OpenPdf:
    def __init__(self, data: bytes) -> None:
        try:
            self._pdf: Any = PdfDocument(data)
        except PdfiumError as error:
            # The library may report the error of the document before this one.
            if getattr(error, "err_code", None) == _WRONG_PASSWORD and b"/Encrypt" in data:
                raise DecodeRefusal("encrypted", "it needs a password") from None
            raise DecodeRefusal("invalid", "it has no pages that can be read") from None
        self._pdf.init_forms()

    def facts(self, *, density_above: int | None) -> Json:
        """Return its facts; if it has more than `density_above` pages, also how many characters the first of them have."""
        outline = [
            {"title": mark.get_title()[:200].translate(_HYPHENS), "level": mark.level, "page": _page_number(mark)}
            for mark in islice(self._pdf.get_toc(), _MAX_HEADINGS + 1)
        ]
        title = str(self._pdf.get_metadata_value("Title"))[:200].translate(_HYPHENS)
        counted = list(self._count_chars()) if density_above is not None and len(self._pdf) > density_above else []
        facts: Json = {"count": len(self._pdf), "title": title, "characters": counted}
        return {**facts, "outline": outline[:_MAX_HEADINGS], "outline_cut": len(outline) > _MAX_HEADINGS}

    def pages(self, request: Json) -> Iterator[Piece]:
        """Yield pages; once `room` bytes are used up, without images."""
        room = int(request["room"])
        for number in request["numbers"]:
            head, body = self._render_page(int(number), with_image=room > 0)
            if len(body) > room:
                head, body = {**head, "left_out": True}, b""
                room = 0
            room -= len(body)
            yield head, body

    def _count_chars(self) -> Iterator[int]:
        end = time.monotonic() + _COUNTING_SECONDS
        for number in range(min(len(self._pdf), _MAX_COUNTED_PAGES)):
            if time.monotonic() > end:
                return
            try:
                yield self._pdf[number].get_textpage().count_chars()
            except PdfiumError:
                yield 0

    def _render_page(self, number: int, *, with_image: bool) -> Piece:
        try:
            page = self._pdf[number - 1]
        except PdfiumError:
            return {"page": number, "text": "", "problem": "this page is damaged"}, b""
        width, height = page.get_size()
        head: Json = {"page": number, **_page_text(page)}
        if not with_image:
            return {**head, "left_out": True}, b""
        try:
            body, size = _page_image(page, max(width, height, 1.0))
        except (PdfiumError, ValueError):
            return {**head, "problem": "this page cannot be drawn"}, b""
        finally:
            page.close()
        return {**head, "size_shown": size}, body


def _page_number(mark: Any) -> int | None:
    target = mark.get_dest()
    index = target.get_index() if target else None
    return None if index is None else index + 1


def _page_text(page: Any) -> Json:
    try:
        text = page.get_textpage().get_text_bounded().translate(_HYPHENS).rstrip()
    except PdfiumError:
        return {"text": "", "problem": "the text of this page cannot be read"}
    return {"text": text[:_MAX_TEXT_CHARS], "text_cut": len(text) > _MAX_TEXT_CHARS}


def _page_image(page: Any, longest: float) -> tuple[bytes, tuple[int, int]]:
    scale = min((_PAGE_SIDE_PIXELS - 1) / longest, _MAX_SCALE)  # sizes are rounded up
    image = page.render(scale=scale, rev_byteorder=True).to_pil()
    return save_small_jpeg(image, (80, 60, 40), most=_MAX_PAGE_IMAGE_BYTES), image.size

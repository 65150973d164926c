"""PDF documents: parses page ranges such as `1,4,7-9`, and returns text and an image for each requested page."""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from surehold.errors import PdfBadRange, PdfEncrypted, PdfInvalid, missing_extra
from surehold.media.child import DecodeRefusal
from surehold.media.magic import kind_of
from surehold.media.pictures import PictureSize
from surehold.media.workers import WORKERS, DecodeDeadline, DecoderGone, DecoderSlow, WorkerPool
from surehold.text.snapshot import merge_ranges

MAX_PAGES = 20
"""How many pages are shown in one call."""
_FEWER_PAGES = "Read fewer pages, or others."
_PAGE_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:[-–]\s*([0-9]{1,9})\s*)?", re.ASCII)


def page_numbers(pages: str, count: int, *, path: str) -> tuple[int, ...]:
    """Return the requested pages, each once and in order, of a document that has `count`."""
    found = set[int]()
    for part in pages.split(","):
        match = _PAGE_RANGE.fullmatch(part)
        if match is None:
            raise _invalid_pages(pages, count, path, f"`{part.strip()}` is neither a page nor a range")
        first, last = int(match[1]), int(match[2] or match[1])
        if first < 1:
            raise _invalid_pages(pages, count, path, "pages are counted from 1")
        if last < first:
            raise _invalid_pages(pages, count, path, f"{first} is after {last}")
        if last > count:
            raise _invalid_pages(pages, count, path, f"the last page is {count}")
        found.update(range(first, min(last, first + MAX_PAGES) + 1))
        if len(found) > MAX_PAGES:
            raise _invalid_pages(pages, count, path, f"at most {MAX_PAGES} pages are shown in one call")
    return tuple(sorted(found))


def page_ranges(numbers: tuple[int, ...]) -> str:
    """Return the range that names these pages."""
    spans = merge_ranges((number, number) for number in numbers)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _invalid_pages(pages: str, count: int, path: str, why: str) -> PdfBadRange:
    return PdfBadRange(
        f"The pages `{pages[:80]}` cannot be shown: {why}.",
        path=path,
        action=f"Name at most {MAX_PAGES} of the pages 1 to {count}, such as '1-{min(count, 5)}'.",
        page_count=count,
    )


MAX_DOCUMENT_BYTES = 128 << 20
"""Larger documents are not opened."""
MAX_IMAGES_BYTES = 8 << 20
"""Bytes of images in one answer; later pages are shown as text only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineEntry:
    """One heading of a document's own table of contents."""

    title: str
    level: int
    page: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    number: int
    text: str
    text_cut: bool = False
    """Whether the text was cut at its limit."""
    image: bytes | None = None
    """A JPEG; None if the page could not be drawn, or if there was no room for it."""
    display: PictureSize | None = None
    left_out: bool = False
    """Whether there was no room for the image."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What is known about a document before any page is shown."""

    count: int
    title: str
    outline: tuple[OutlineEntry, ...]
    outline_cut: bool
    """Whether there are more headings."""
    characters: tuple[int, ...]
    """How many characters its first pages have, as far as they were counted; few mean a scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    facts: DocumentFacts
    pages: tuple[DocumentPage, ...] = ()
    unfinished: tuple[int, ...] = ()
    """Requested pages that took too long."""


PageChoice = Callable[[DocumentFacts], Sequence[int]]
"""Chooses the pages to show, given the facts; may refuse."""


def decode_document(
    data: bytes,
    choose: PageChoice,
    *,
    path: str,
    density_above: int | None = None,
    room: int = MAX_IMAGES_BYTES,
    patience: DecodeDeadline | None = None,
    workers: WorkerPool = WORKERS,
) -> Document:
    """Return the facts about a document and the pages that `choose` names.

    Characters are counted in a document of more than `density_above` pages.
    """
    if find_spec("pypdfium2") is None:
        raise missing_extra(f"`{path}` cannot be shown", "media")
    if len(data) > MAX_DOCUMENT_BYTES:
        raise PdfInvalid(
            f"The document `{path}` has {len(data)} bytes, more than {MAX_DOCUMENT_BYTES}.",
            path=path,
            reason="size_limit",
            action="Split it into smaller documents, and read those.",
        )
    with _explain_failures(path), workers.lend_worker(patience) as worker:
        ((head, _),) = worker.ask({"do": "open", "density_above": density_above}, data, patience=patience)
        found = Document(facts=_parse_facts(head))
        numbers = tuple(choose(found.facts))
        if not numbers:
            return found
        request = {"do": "pages", "numbers": numbers, "room": room}
        return _with_pages(found, numbers, worker.ask(request, patience=patience))


def _with_pages(found: Document, numbers: tuple[int, ...], answer: Iterator[tuple[dict[str, Any], bytes]]) -> Document:
    """Collect pages as they arrive; those that arrived before the time was up are kept."""
    pages = list[DocumentPage]()
    try:
        for head, body in answer:
            pages.append(_parse_page(head, body))
    except (DecoderSlow, DecoderGone):
        if not pages:
            raise
    return replace(found, pages=tuple(pages), unfinished=numbers[len(pages) :])


def _parse_page(head: dict[str, Any], body: bytes) -> DocumentPage:
    shown = kind_of(body)
    if shown is None or shown.name != "JPEG":
        body = b""
    return DocumentPage(
        number=int(head["page"]),
        text=str(head["text"]),
        text_cut=bool(head.get("text_cut")),
        image=body or None,
        display=PictureSize(width=head["size_shown"][0], height=head["size_shown"][1]) if body else None,
        left_out=bool(head.get("left_out")),
        problem=str(head.get("problem", "")),
    )


def _parse_facts(head: dict[str, Any]) -> DocumentFacts:
    return DocumentFacts(
        count=int(head["count"]),
        title=str(head["title"]),
        outline=tuple(OutlineEntry(**row) for row in head["outline"]),
        outline_cut=bool(head["outline_cut"]),
        characters=tuple(head["characters"]),
    )


@contextmanager
def _explain_failures(path: str) -> Generator[None]:
    try:
        yield
    except DecodeRefusal as refused:
        if refused.error == "encrypted":
            raise PdfEncrypted(f"The document `{path}` is protected by a password.", path=path) from None
        raise PdfInvalid(f"`{path}` is not a PDF document that can be read.", path=path, cause=refused.cause) from None
    except DecoderGone:
        message = f"`{path}` cannot be shown: the decoder crashed, or needed too much time or memory."
        raise PdfInvalid(message, path=path, reason="crashed", action=_FEWER_PAGES) from None
    except DecoderSlow:
        message = f"The pages of `{path}` take too long to draw."
        raise PdfInvalid(message, path=path, reason="timeout", action=_FEWER_PAGES) from None

"""A PDF document becomes text and a picture for each page that was asked for."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from surehold.errors import PdfEncrypted, PdfInvalid
from surehold.media.magic import kind_of
from surehold.media.pictures import Size
from surehold.media.workers import WORKERS, DecoderGone, DecoderSlow, Patience, Refused, Workers

MOST_BYTES = 128 << 20
"""Larger documents are not opened."""
IMAGE_ROOM = 8 << 20
"""Bytes of pictures in one answer; pages behind that are shown as text alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineEntry:
    """One heading of a document's own table of contents."""

    title: str
    level: int
    page: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """One page: what it says, and how it looks."""

    number: int
    text: str
    text_cut: bool = False
    """The text was too long even for a program."""
    image: bytes | None = None
    """A JPEG; None when the page could not be drawn, or there was no room for it."""
    display: Size | None = None
    left_out: bool = False
    """There was no room for the picture."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a document before any page is shown."""

    count: int
    title: str
    outline: tuple[OutlineEntry, ...]
    outline_cut: bool
    """There are more headings."""
    characters: tuple[int, ...]
    """How many characters its first pages have, as far as they were counted; few mean a scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Some pages of a document."""

    facts: Facts
    pages: tuple[DocumentPage, ...] = field(default=())
    unfinished: tuple[int, ...] = field(default=())
    """Pages that were asked for and took too long."""


Choice = Callable[[Facts], Sequence[int]]
"""Says which pages to show, once it is known what there is; may refuse."""


def document(
    data: bytes,
    choose: Choice,
    *,
    path: str,
    density_above: int | None = None,
    room: int = IMAGE_ROOM,
    patience: Patience | None = None,
    workers: Workers = WORKERS,
) -> Document:
    """Return the facts about a document and the pages that `choose` names.

    Characters are counted in a document of more than `density_above` pages.
    """
    if len(data) > MOST_BYTES:
        raise PdfInvalid(
            f"The document `{path}` has {len(data)} bytes, more than {MOST_BYTES}.",
            path=path,
            reason="size_limit",
            action="Split it into smaller documents, and read those.",
        )
    with _explained(path), workers.worker(patience) as worker:
        ((head, _),) = worker.ask({"do": "open", "density_above": density_above}, data, patience=patience)
        found = Document(facts=_facts(head))
        numbers = tuple(choose(found.facts))
        if not numbers:
            return found
        return _with_pages(found, numbers, worker.ask(_pages(numbers, room), patience=patience))


def _pages(numbers: Sequence[int], room: int) -> dict[str, Any]:
    return {"do": "pages", "numbers": list(numbers), "room": room}


def _with_pages(found: Document, numbers: tuple[int, ...], answer: Iterator[tuple[dict[str, Any], bytes]]) -> Document:
    """Take pages as they come; those that are there when the time is over are kept."""
    pages = list[DocumentPage]()
    try:
        for head, body in answer:
            pages.append(_page(head, body))
    except (DecoderSlow, DecoderGone):
        if not pages:
            raise
    return replace(found, pages=tuple(pages), unfinished=numbers[len(pages) :])


def _page(head: dict[str, Any], body: bytes) -> DocumentPage:
    shown = kind_of(body)
    if shown is None or shown.name != "JPEG":
        body = b""
    return DocumentPage(
        number=int(head["page"]),
        text=str(head["text"]),
        text_cut=bool(head.get("text_cut")),
        image=body or None,
        display=Size(width=head["size_shown"][0], height=head["size_shown"][1]) if body else None,
        left_out=bool(head.get("left_out")),
        problem=str(head.get("problem", "")),
    )


def _facts(head: dict[str, Any]) -> Facts:
    return Facts(
        count=int(head["count"]),
        title=str(head["title"]),
        outline=tuple(OutlineEntry(**row) for row in head["outline"]),
        outline_cut=bool(head["outline_cut"]),
        characters=tuple(head["characters"]),
    )


@contextmanager
def _explained(path: str) -> Generator[None]:
    """Turn whatever happened to the decoder into an error about the document."""
    try:
        yield
    except Refused as refused:
        if refused.error == "encrypted":
            raise PdfEncrypted(f"The document `{path}` is protected by a password.", path=path) from None
        raise PdfInvalid(f"`{path}` is not a PDF document that can be read.", path=path, cause=refused.cause) from None
    except DecoderGone:
        cause = "the decoder crashed, or took more time or memory than it may"
        raise PdfInvalid(
            f"`{path}` cannot be shown: {cause}.", path=path, reason="crashed", action="Read fewer pages, or others."
        ) from None
    except DecoderSlow:
        raise PdfInvalid(
            f"The pages of `{path}` take too long to draw.",
            path=path,
            reason="timeout",
            action="Read fewer pages, or others.",
        ) from None

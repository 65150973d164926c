"""What goes over the wire for the review page: forms and numbers that come, documents and files that go."""

from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from surehold.errors import SureholdError
from surehold.front.review import markup

_MAX_FORM_BYTES = 4 << 20
SEQ_DIGITS_LIMIT = 19
"""Shorter numbers are such that the store can count to."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send `Origin: null`, also to ourselves
    "X-Content-Type-Options": "nosniff",
}


async def send_parts(first: str, parts: Iterator[str]) -> AsyncIterator[bytes]:
    yield first.encode("utf-8", "replace")
    try:
        while (part := await run_in_threadpool(next, parts, None)) is not None:
            yield part.encode("utf-8", "replace")
    except SureholdError as error:
        yield markup.render_problem(str(error)).encode("utf-8", "replace")
    yield markup.DOCUMENT_END.encode()


def is_same_origin(request: Request) -> bool:
    _, found, host = request.headers.get("origin", "").partition("://")
    return bool(found) and host.casefold() == request.headers.get("host", "").casefold()


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, each once; nothing of it is a file."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def read_number(request: Request, name: str) -> int:
    """Return a number of the address; 0 for what is none, or more than the store can count to."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < SEQ_DIGITS_LIMIT else 0


async def static_file(request: Request) -> Response:
    kinds = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
    name = request.path_params["name"]
    if name not in kinds:
        return plain_response("There is no such page.\n", 404)
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return Response(text, media_type=kinds[name], headers=HEADERS)


def html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text.encode("utf-8", "replace"), status, HEADERS)


def plain_response(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status, HEADERS)

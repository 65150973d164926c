"""Decodes images and documents in a separate process, so that a malicious file can harm nothing else.

1. Requests arrive on standard input, one after the other: a line of JSON, then as many bytes as its `size` says.
2. An answer is one or more such pieces; `more` says that another one follows.
3. Memory and processor time are limited by the operating system. No file can be written.
4. It exits when no request arrives for a while, or when its parent has exited.
"""

import json
import os
import resource
import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

Json = dict[str, Any]
Piece = tuple[Json, bytes]
_MAX_MEMORY_BYTES = 2 << 30
_MAX_DOCUMENT_MEMORY_BYTES = 1 << 30
"""A document is drawn in pieces: it needs less than a large image."""
_IDLE_SECONDS = 45.0


class DecodeRefusal(Exception):
    """The request cannot be fulfilled; raised in the child, and again in its parent."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(cause)
        self.error = error
        self.cause = cause


def limit_process() -> None:
    """Limit the memory, and forbid to write files."""
    for what, most in ((resource.RLIMIT_AS, _MAX_MEMORY_BYTES), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(what, (most, most))


def limit_memory(request: Json) -> None:
    """Limit the memory for one request."""
    most = _MAX_DOCUMENT_MEMORY_BYTES if request["do"] in {"open", "pages"} else _MAX_MEMORY_BYTES
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def limit_time(seconds: int) -> None:
    """Allow this many more seconds of processor time."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime) + 1
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


class DecodeRequests:
    """Answers requests; an open document is kept until its pages are requested."""

    def __init__(self) -> None:
        self._document: Any = None

    def answer_request(self, request: Json, data: bytes) -> Iterator[Piece]:
        match request["do"]:
            case "ping":
                self._document = None
                yield {"python": sys.version_info[:2]}, b""
            case "picture":
                from surehold.media.child_image import render_picture

                yield render_picture(data, request)
            case "open":
                from surehold.media.child_pdf import OpenPdf

                self._document = OpenPdf(data)
                yield self._document.facts(density_above=request.get("density_above")), b""
            case "pages":
                document, self._document = self._document, None
                yield from document.pages(request)
            case other:
                raise DecodeRefusal("unknown", f"unknown request `{other}`")


def serve_requests(source: BinaryIO, drain: BinaryIO) -> None:
    """Answer requests until none arrives for a while."""
    requests = DecodeRequests()
    while select.select([source], [], [], _IDLE_SECONDS)[0] and (line := source.readline()):
        request: Json = json.loads(line)
        limit_time(int(request.get("seconds", 30)))
        limit_memory(request)
        for head, body in _answer_safely(requests, request, source.read(int(request["size"]))):
            drain.write(json.dumps({**head, "size": len(body)}).encode() + b"\n")
            drain.write(body)
            drain.flush()


def _answer_safely(requests: DecodeRequests, request: Json, data: bytes) -> Iterator[Piece]:
    try:
        for head, body in requests.answer_request(request, data):
            yield {**head, "more": True}, body
        last: Json = {}
    except DecodeRefusal as refusal:
        last = {"error": refusal.error, "cause": refusal.cause}
    except MemoryError:
        last = {"error": "too_large", "cause": "it needs too much memory"}
    except Exception as error:  # noqa: BLE001 - decoders raise anything for damaged bytes
        last = {"error": "invalid", "cause": f"{type(error).__name__}: {error}"[:300]}
    yield {**last, "more": False}, b""


def main() -> None:
    limit_process()
    with open(os.dup(0), "rb") as source, open(os.dup(1), "wb") as drain, suppress(BrokenPipeError):  # noqa: PTH123 - descriptors
        serve_requests(source, drain)


if __name__ == "__main__":
    main()

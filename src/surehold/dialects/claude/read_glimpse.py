"""A page of a very large file, which is read only up to the end of that page.

So is a file that another program is writing: of that no more can be said than what was there.
"""

from collections.abc import Callable, Iterator
from functools import partial

from surehold.dialects.claude.read_names import Place, head_of
from surehold.errors import StaleFile
from surehold.text.encoding import Encoding, detect
from surehold.text.page import Page, read_page
from surehold.workspace.editorconfig import charset_of
from surehold.workspace.session import Session

_FIRST = 192 << 10
"""How much of the beginning of such a file is looked at first: more than a page can hold."""


def glimpsed(
    session: Session, place: Place, *, start: int, count: int, max_bytes: int, encoding: str | None
) -> tuple[Page, bool]:
    """Return a page, and whether the file was read to its end: only then the facts about all of it are true."""
    workspace = session.workspace

    def decide(head: bytes) -> Encoding:
        configured = partial(charset_of, workspace.disk, place.target)
        return detect(head, requested=encoding, configured=configured)

    if page := _first_page(head_of(session, place.target, _FIRST), start, count, max_bytes, decide):
        return page, False
    chunks = _Chunks(workspace.disk.chunks(place.target), start, count, max_bytes)

    def decide_for_all(head: bytes) -> Encoding:
        found = decide(head)
        chunks.stops = found.width == 1  # a byte like LF ends no line where characters have several bytes
        return found

    page = read_page(iter(chunks), start=start, count=count, max_bytes=max_bytes, decide=decide_for_all)
    return page, not chunks.stopped


def _first_page(
    head: bytes, start: int, count: int, max_bytes: int, decide: Callable[[bytes], Encoding]
) -> Page | None:
    """Take a page out of the beginning of a file; None when it does not lie there completely."""
    if start > len(head):
        return None
    lines = head.split(b"\n", start + count - 1)
    begin = sum(map(len, lines[: start - 1])) + start - 1
    end = len(head) - len(lines[-1])
    is_full = end - begin > max_bytes
    if is_full:
        end = head.rfind(b"\n", begin, begin + max_bytes) + 1
    elif len(lines) < start + count:
        return None
    encoding = decide(head[: head.rfind(b"\n") + 1])
    if end <= begin or encoding.width > 1 or encoding.bom:
        return None
    body = head[begin:end]
    ended = body.count(b"\r\n")
    rows = tuple([line + b"\n" for line in (body[:-1].split(b"\n") if is_full else lines[start - 1 : -1])])
    return Page(
        start=start,
        rows=rows,
        cut=False,
        line_count=start + len(rows),
        size=0,
        sha256="",
        style="mixed" if 0 < ended < len(rows) else "crlf" if ended else "lf",
        final_newline=True,
        encoding=encoding,
        file_encoding=encoding,
    )


class _Chunks:
    """The chunks of a file, up to the one in which a page ends."""

    def __init__(self, chunks: Iterator[bytes], start: int, count: int, max_bytes: int) -> None:
        self._chunks = chunks
        self._start = start
        self._end = start + count - 1
        self._max_bytes = max_bytes
        self.stops = True
        self.stopped = False

    def __iter__(self) -> Iterator[bytes]:
        lines = taken = 0
        chunk = next(self._chunks, None)
        while chunk is not None:
            yield chunk
            taken += len(chunk) if lines >= self._start - 1 else 0
            lines += chunk.count(b"\n")
            try:
                chunk = next(self._chunks, None)
            except StaleFile:  # what was read is shown; that it is the file as it is now is not claimed
                self.stopped = True
                return
            if self.stops and (lines >= self._end or taken > self._max_bytes):
                self.stopped = chunk is not None
                return

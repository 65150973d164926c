"""One page of lines from a file that may be too large for memory, read in a single pass.

The sha256, the size and the line count describe the whole file; only the requested lines are kept. An index of the pass
gives other pages of the same bytes without a second one.
"""

import codecs
import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from surehold.text.encoding import SNIFF_BYTES, UTF8, Encoding, detect_encoding
from surehold.text.snapshot import NewlineStyle, Snapshot, newline_style

_LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    """Lines `start` to `start + len(rows) - 1` of a file, with their terminators."""

    start: int
    rows: tuple[bytes, ...]
    cut: bool
    """The last row is only the beginning of a line that is longer than the page."""
    line_count: int
    size: int
    sha256: str
    style: NewlineStyle
    final_newline: bool
    encoding: Encoding
    """How the rows spell characters."""
    file_encoding: Encoding
    """How the file does; wide ones that stream by are turned into UTF-8."""
    ends_lines_with_cr: bool = False
    """The whole file has a CR and no LF, and was cut into lines at LF: it is to be read again, with CR as the breaker."""

    @property
    def next_line(self) -> int | None:
        """The line to ask for next; None at the end."""
        following = self.start + len(self.rows)
        return following if following <= self.line_count else None

    @property
    def text(self) -> str:
        return self.encoding.decode(b"".join(self.rows))


@dataclass(slots=True)
class _PageWindow:
    """Collects the asked lines while the file streams by, and counts the rest."""

    start: int
    count: int
    max_bytes: int
    breaker: bytes
    line: int = 1
    """Number of the line that the next byte belongs to."""
    rows: list[bytes] = field(default_factory=list[bytes])
    parts: list[bytes] = field(default_factory=list[bytes])
    kept: int = 0
    full: bool = False
    cut: bool = False
    open_line: bool = False

    def feed_bytes(self, body: bytes) -> None:
        at = self._keep_whole_lines(body, self._skip_lines_before(body))
        while at < len(body) and not self.full and self.line < self.start + self.count:
            end = body.find(self.breaker, at)
            stop = len(body) if end < 0 else end + len(self.breaker)
            if self.line >= self.start:
                self._keep_piece(body[at:stop], ended=end >= 0)
            self.open_line = end < 0
            self.line += end >= 0
            at = stop
        if at < len(body):
            self.line += body.count(self.breaker, at)
            self.open_line = not body.endswith(self.breaker)

    def _skip_lines_before(self, body: bytes) -> int:
        """Count the lines before the page, all at once; return where the rest begins."""
        missing = self.start - self.line
        if missing <= 0 or not body:
            return 0
        found = body.count(self.breaker)
        self.line += min(found, missing)
        if found < missing:
            self.open_line = not body.endswith(self.breaker)
            return len(body)
        self.open_line = False
        return _end_of_line(missing, body, self.breaker)

    def _keep_whole_lines(self, body: bytes, at: int) -> int:
        """Keep the lines that are whole in these bytes and fit, all at once; return where the rest begins."""
        wanted = self.start + self.count - self.line
        if self.line < self.start or wanted <= 0 or self.full or self.open_line:
            return at
        *whole, _ = body[at : at + self.max_bytes - self.kept].split(self.breaker, wanted)
        self.rows += [line + self.breaker for line in whole]
        self.line += len(whole)
        size = sum(map(len, whole)) + len(whole) * len(self.breaker)
        self.kept += size
        return at + size

    def _keep_piece(self, piece: bytes, *, ended: bool) -> None:
        room = self.max_bytes - self.kept
        if len(piece) > room:
            self.full = True
            if self.rows:
                self.parts = []
                return
            piece, self.cut, ended = piece[:room], True, True
        self.parts.append(piece)
        self.kept += len(piece)
        if ended:
            self.close_row()

    def close_row(self) -> None:
        if self.parts:
            self.rows.append(b"".join(self.parts))
            self.parts = []


@dataclass(slots=True, kw_only=True)
class PageIndex:
    """Where the lines of a file are, as one pass over it saw them, and the facts about all of it."""

    facts: FilePage | None = None
    """A page of it without its rows."""
    breaker: bytes = b"\n"
    marks: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """To which line the first byte of each chunk belongs, and whether that line began before it."""
    offsets: list[int] = field(default_factory=list[int])

    def cut_page(
        self,
        read_from: Callable[[int], Iterable[bytes]],
        *,
        start: int,
        count: int,
        max_bytes: int,
        decide: Callable[[bytes], Encoding],
    ) -> FilePage | None:
        """Read one page of the bytes that were indexed; None if that takes a pass over all of them."""
        facts = self.facts
        if facts is None or not self.marks or facts.file_encoding.width > 1:
            return None
        if _sniff_encoding(next(iter(read_from(0)), b""), decide) != facts.file_encoding:
            return None
        number = bisect_right(self.marks, (start, False)) - 1
        line, is_open = self.marks[number]
        window = _PageWindow(start, count, max_bytes, self.breaker, line=line, open_line=is_open)
        skipped = len(facts.file_encoding.bom) if number == 0 else 0
        for chunk in read_from(self.offsets[number]):
            window.feed_bytes(chunk[skipped:])
            skipped = 0
            if window.full or window.line >= start + count:
                break
        window.close_row()
        return replace(facts, start=start, rows=tuple(window.rows), cut=window.cut)


def _end_of_line(line: int, body: bytes, breaker: bytes) -> int:
    """Return where a line ends that does; found by halves, so that nothing is made of the lines before it."""
    at, step = 0, 1 << len(body).bit_length()
    while step:
        found = body.count(breaker, at, at + step)
        if found < line:
            at, line = at + step, line - found
        step //= 2
    return at + len(breaker)


def read_page(
    chunks: Iterable[bytes],
    *,
    start: int = 1,
    count: int = 2000,
    max_bytes: int = 262_144,
    decide: Callable[[bytes], Encoding] = detect_encoding,
    breaker: bytes = b"\n",
    index: PageIndex | None = None,
) -> FilePage:
    r"""Take one page out of a stream of chunks, and index them. A file with lone CR as terminator needs `breaker=b"\r"`."""
    digest, size, crlf, last, has_cr = hashlib.sha256(), 0, 0, b"", False
    window = _PageWindow(start, count, max_bytes, breaker)
    for chunk, body in (bodies := _DecodedBodies(chunks, decide)):
        digest.update(chunk)
        if index is not None:
            index.marks.append((window.line, window.open_line))
            index.offsets.append(size)
        size += len(chunk)
        has_cr = has_cr or b"\r" in body
        if last == b"\r" or b"\r" in body:
            crlf += body.count(b"\r\n") + (last == b"\r" and body.startswith(b"\n"))
        last = body[-1:] or last
        window.feed_bytes(body)
    window.close_row()
    found, breaks = bodies.encoding, window.line - 1
    page = FilePage(
        start=start,
        rows=tuple(window.rows),
        cut=window.cut,
        line_count=breaks + window.open_line,
        size=size,
        sha256=digest.hexdigest(),
        style="cr" if breaks and breaker == b"\r" else newline_style(breaks - crlf, crlf),
        final_newline=last == breaker,
        encoding=Encoding(name="utf-8", bom=found.bom) if found.width > 1 else found,
        file_encoding=found,
        ends_lines_with_cr=has_cr and breaker == b"\n" and not breaks,
    )
    if index is not None:
        index.facts, index.breaker = replace(page, rows=()), breaker
    return page


def page_from_snapshot(snapshot: Snapshot, *, start: int = 1, count: int = 2000, max_bytes: int = 262_144) -> FilePage:
    """Take one page out of a file that is in memory; every encoding as it is."""
    raw = snapshot.lines.raw[start - 1 : start - 1 + count]
    kept, size = list[bytes](), 0
    for row in raw:
        size += len(row)
        if size > max_bytes:
            break
        kept.append(row)
    cut = bool(raw) and not kept
    if cut:
        kept = [raw[0][: max(max_bytes // snapshot.encoding.width * snapshot.encoding.width, 0)]]
    return FilePage(
        start=start,
        rows=tuple(kept),
        cut=cut,
        line_count=len(snapshot.lines),
        size=snapshot.size,
        sha256=snapshot.sha256,
        style=snapshot.lines.style,
        final_newline=snapshot.lines.final_newline,
        encoding=snapshot.encoding,
        file_encoding=snapshot.encoding,
    )


class _DecodedBodies:
    """Every chunk with its bytes as an ASCII superset, without the byte order mark; wide encodings become UTF-8."""

    def __init__(self, chunks: Iterable[bytes], decide: Callable[[bytes], Encoding]) -> None:
        self._chunks, self._decide = chunks, decide
        self.encoding = UTF8
        """Known after the first chunk."""

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        decoder: codecs.IncrementalDecoder | None = None
        for number, chunk in enumerate(self._chunks):
            body = chunk
            if number == 0:
                self.encoding = _sniff_encoding(chunk, self._decide)
                body = chunk[len(self.encoding.bom) :]
                if self.encoding.width > 1:
                    decoder = codecs.getincrementaldecoder(self.encoding.name)("backslashreplace")
            yield chunk, decoder.decode(body).encode() if decoder else body


def _sniff_encoding(first: bytes, decide: Callable[[bytes], Encoding]) -> Encoding:
    """Judge by the first chunk only; a character cut at its end must not count against it."""
    if len(first) <= SNIFF_BYTES:
        return decide(first)
    end = first.rfind(b"\n") + 1
    if end < SNIFF_BYTES:  # a line that is longer than that: all of it, without what may be half a character of UTF-8
        _, whole = codecs.utf_8_decode(first[-_LONGEST_CHARACTER:], "ignore")
        end = len(first) - _LONGEST_CHARACTER + whole
    is_wide = b"\0" in first[:SNIFF_BYTES]
    return decide(first[: len(first) // 4 * 4] if is_wide else first[:end])

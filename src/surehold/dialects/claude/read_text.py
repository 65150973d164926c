"""Show text for `Read` as numbered lines, `N→text`, and record which lines the session has seen.

A very long line continues as `N.2→`. A file above 256 MiB is read only up to the end of the requested page: its sha256 and line
count are then unknown, so it cannot be edited until it was read with `sha256: true`. The same applies to a file that another
program keeps writing, such as a log.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import add

from surehold.dialects.claude.located_file import LocatedFile
from surehold.dialects.claude.read_result import FileReadResult
from surehold.dialects.shared.delivery_record import deliveries_of
from surehold.errors import StaleFile
from surehold.text.encoding import Encoding, detect_encoding
from surehold.text.measure import TextRoom
from surehold.text.page import FilePage, read_page
from surehold.text.snapshot import Snapshot
from surehold.tools.call import CallContext
from surehold.workspace.file_source import open_source
from surehold.workspace.session import Session

ARROW = "→"
_ROW_CHARS = 2_000
"""Characters of a line in one row."""
_FIRST_PAGE_LINES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """Lines laid out for reading, as many as fit."""

    rows: tuple[str, ...]
    lines: int
    """Lines that are shown, the last one perhaps in part."""
    next_column: int | None = None
    """Where the only line goes on that is here."""
    characters: int | None = None
    """How many the line has, when it is shown in part and that is known."""


def number_lines(page: FilePage, column: int, room: TextRoom) -> NumberedRows:
    """Lay lines out with their numbers, as many as fit; the first one is shown in part when it alone is too long."""
    if column == 1 and (plain := _number_short_lines(page, room)):
        return plain
    rows = list[str]()
    for lines, row in enumerate(page.rows):
        text = strip_terminator(page.encoding.decode(row), page)
        is_cut = page.cut and lines == len(page.rows) - 1
        if column > max(len(text), 1):
            return NumberedRows(rows=(), lines=0, characters=None if is_cut else len(text))
        number, rest = page.start + lines, text[column - 1 :]
        pieces = _split_line(number, rest, column)
        if is_cut or room.count_fitting(pieces) < len(pieces):
            if rows:
                return NumberedRows(rows=tuple(rows), lines=lines)
            shown, length = _cut_long_line(pieces, room)
            total = None if is_cut else len(text)
            return NumberedRows(rows=shown, lines=1, next_column=column + length, characters=total)
        room = room.less(room.measure("\n".join(pieces) + "\n"))
        rows += pieces
    return NumberedRows(rows=tuple(rows), lines=len(page.rows))


def _cut_long_line(pieces: Sequence[str], room: TextRoom) -> tuple[tuple[str, ...], int]:
    """Return the pieces of a line that fit, the first one cut when it alone is too long, and their characters."""
    shown = pieces[: room.count_fitting(pieces)]
    if not shown:
        prefix, arrow, text = pieces[0].partition(ARROW)
        shown = [
            f"{prefix}{arrow}{room.less(room.measure(prefix + arrow) + room.measure(chr(10))).cut_text(text) or text[:1]}"
        ]
    return tuple(shown), sum(len(piece.partition(ARROW)[2]) for piece in shown)


def _number_short_lines(page: FilePage, room: TextRoom) -> NumberedRows | None:
    """Lay out lines of which none is long, all at once; None when it is not that simple."""
    if page.cut or page.style == "cr" or not page.rows:
        return None
    text = page.text
    lines = text.removesuffix("\n").split("\n")
    if "\r" in text:
        ended = len(lines) - (not text.endswith("\n"))
        lines = [*(line.removesuffix("\r") for line in lines[:ended]), *lines[ended:]]
    if len(lines) != len(page.rows) or max(map(len, lines)) > _ROW_CHARS:
        return None
    rows = list(map(add, _line_prefixes(page.start, len(lines)), lines))
    kept = room.count_fitting(rows)
    return NumberedRows(rows=tuple(rows[:kept]), lines=kept) if kept else None


def _line_prefixes(first: int, count: int) -> Sequence[str]:
    """Return the prefixes of so many lines; those of the first page of a file are made only once."""
    if first == 1 and count <= _FIRST_PAGE_LINES:
        return _first_prefixes()
    return [f"{number}{ARROW}" for number in range(first, first + count)]


@cache
def _first_prefixes() -> tuple[str, ...]:
    return tuple(f"{number}{ARROW}" for number in range(1, _FIRST_PAGE_LINES + 1))


def _split_line(number: int, text: str, column: int) -> list[str]:
    """Return a line, or what is left of it from a column on, in rows of limited length."""
    if column == 1 and len(text) <= _ROW_CHARS:
        return [f"{number}{ARROW}{text}"]
    found = list[str]()
    for start in range(0, len(text), _ROW_CHARS):
        part = (column - 1 + start) // _ROW_CHARS + 1
        found.append(f"{number}{f'.{part}' if part > 1 else ''}{ARROW}{text[start : start + _ROW_CHARS]}")
    return found


def strip_terminator(text: str, page: FilePage) -> str:
    """Return a line without its terminator; a CR that ends no line is content."""
    if page.style == "cr":
        return text.removesuffix("\r")
    bare = text.removesuffix("\n")
    return bare.removesuffix("\r") if len(bare) < len(text) else text


_HEAD_BYTES = 192 << 10
"""How much of the beginning of such a file is looked at first: more than a page can hold."""


def read_until_page_end(
    session: Session, place: LocatedFile, *, start: int, count: int, max_bytes: int, encoding: str | None
) -> tuple[FilePage, bool]:
    """Return a page, and whether the file was read to its end: only then the facts about all of it are true."""
    workspace = session.workspace

    def choose_encoding(head: bytes) -> Encoding:
        configured = partial(workspace.reader.configured_charset, place.target)
        return detect_encoding(head, requested=encoding, configured=configured)

    head = workspace.reader.read_head(place.target, _HEAD_BYTES)
    if page := _page_in_head(head, start, count, max_bytes, choose_encoding):
        return page, False
    chunks = _PageChunks(workspace.read_chunks(place.target), start, count, max_bytes)

    def choose_stream_encoding(head: bytes) -> Encoding:
        found = choose_encoding(head)
        chunks.stops = found.width == 1  # a byte like LF ends no line where characters have several bytes
        return found

    page = read_page(iter(chunks), start=start, count=count, max_bytes=max_bytes, decide=choose_stream_encoding)
    return page, not chunks.stopped


def _page_in_head(
    head: bytes, start: int, count: int, max_bytes: int, decide: Callable[[bytes], Encoding]
) -> FilePage | None:
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
    return FilePage(
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


@dataclass(slots=True)
class _PageChunks:
    """The chunks of a file, up to the one in which a page ends."""

    chunks: Iterator[bytes]
    start: int
    count: int
    max_bytes: int
    stops: bool = True
    stopped: bool = False

    def __iter__(self) -> Iterator[bytes]:
        lines = taken = 0
        chunk = next(self.chunks, None)
        while chunk is not None:
            yield chunk
            taken += len(chunk) if lines >= self.start - 1 else 0
            lines += chunk.count(b"\n")
            try:
                chunk = next(self.chunks, None)
            except StaleFile:  # what was read is shown; that it is the file as it is now is not claimed
                self.stopped = True
                return
            if self.stops and (lines >= self.start + self.count - 1 or taken > self.max_bytes):
                self.stopped = chunk is not None
                return


_MAX_WHOLE_BYTES = 256 << 20
"""Larger files are not read to their end unless that is asked for."""
_MAX_LINE_BYTES = 64 << 20
"""How far into a line a column may lie."""
_BYTES_PER_CHARACTER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRange:
    offset: int
    limit: int
    limited: bool
    """The caller itself said how many lines."""
    column: int
    encoding: str | None
    sha256: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakenPage:
    """A page, and how far it can be trusted."""

    page: FilePage
    complete: bool
    """The facts are of the whole file."""
    changing: bool = False
    """Another program is writing it."""
    snapshot: Snapshot | None = None


def read_text(context: CallContext, place: LocatedFile, wanted: RequestedRange) -> FileReadResult:
    room = context.budget.beside(place.notice).page_room
    taken = _take_page(context, place, wanted, room.size)
    page, key = taken.page, place.target.key
    rows = number_lines(page, wanted.column, room)
    asked = (key, wanted.offset, wanted.limit, wanted.column, wanted.encoding or "")
    if taken.complete:
        _remember_lines(context.session, place, taken, rows, wanted.column)
        if deliveries_of(context.session).is_repeated(asked, page.sha256):
            note = "nothing changed since these lines were delivered"
            return FileReadResult(type="file_unchanged", file_path=place.absolute_path, sha256=page.sha256, notice=note)
    return _build_result(place, taken, rows, wanted)


def _take_page(context: CallContext, place: LocatedFile, wanted: RequestedRange, room: int) -> _TakenPage:
    count = min(wanted.limit, context.budget.lines) if wanted.column == 1 else 1
    reach = wanted.column - 1 + room
    max_bytes = reach * _BYTES_PER_CHARACTER
    if wanted.column > 1:
        max_bytes = min(max_bytes, _MAX_LINE_BYTES)
    large = place.look.size > _MAX_WHOLE_BYTES
    if not large or wanted.sha256:
        try:
            source = open_source(context.session, place.path, wanted.encoding)
            page = source.read_page(wanted.offset, count, max_bytes)
            return _TakenPage(page=page, complete=True, snapshot=source.snapshot)
        except StaleFile:
            if wanted.sha256:
                raise
    page, complete = read_until_page_end(
        context.session, place, start=wanted.offset, count=count, max_bytes=max_bytes, encoding=wanted.encoding
    )
    return _TakenPage(page=page, complete=complete, changing=not large)


def _remember_lines(session: Session, place: LocatedFile, taken: _TakenPage, rows: NumberedRows, column: int) -> None:
    """Record what was shown; a line that is shown in part counts when all of its parts were."""
    page = replace(taken.page, rows=taken.page.rows[: rows.lines], cut=False)
    if page.rows and (column > 1 or rows.next_column):
        length = len(strip_terminator(page.text, page))
        line = (place.target.key, page.sha256, page.start)
        last = rows.next_column - 1 if rows.next_column else length
        total = None if rows.next_column else length
        page = replace(page, cut=not deliveries_of(session).saw_columns(line, column, last, total=total))
    session.record_shown_page(place.path, page, snapshot=taken.snapshot)


def _build_result(place: LocatedFile, taken: _TakenPage, rows: NumberedRows, wanted: RequestedRange) -> FileReadResult:
    page = taken.page
    following = page.start if rows.next_column else page.start + rows.lines
    is_more = bool(rows.next_column) or not taken.complete or following <= page.line_count
    next_offset = following if is_more and rows.lines else None
    is_end = taken.complete and not next_offset
    place = place.with_notices(_page_notice(taken, rows, wanted, next_offset), *_format_facts(page, is_end=is_end))
    return FileReadResult.from_known(
        type="text",
        file_path=place.absolute_path,
        content="\n".join(rows.rows),
        num_lines=rows.lines,
        start_line=page.start if rows.lines else 0,
        total_lines=page.line_count if taken.complete else None,
        sha256=page.sha256 if taken.complete else None,
        encoding=page.file_encoding.name,
        eol=page.style,
        truncated=bool(rows.next_column) or (bool(next_offset) and not (wanted.limited and rows.lines == wanted.limit)),
        next_offset=next_offset,
        next_column=rows.next_column,
        notice=place.notice or None,
    )


def _page_notice(taken: _TakenPage, rows: NumberedRows, wanted: RequestedRange, next_offset: int | None) -> str:
    page = taken.page
    last = page.start + rows.lines - 1
    if rows.next_column:
        length = f" of {rows.characters:,}" if rows.characters else ""
        is_last = taken.complete and page.start == page.line_count
        return (
            f"line {page.start} is very long: characters {wanted.column:,} to {rows.next_column - 1:,}{length} are shown; "
            f"it goes on: offset={page.start} column={rows.next_column}"
        ) + ("" if is_last else f"; the next line: offset={page.start + 1}")
    if not taken.complete and rows.lines:
        what = "a very large file, which was not read to its end", "read it with sha256=true"
        if taken.changing:
            what = "a file that another program is writing", "read it when that is done"
        return f"lines {page.start}-{last} of {what[0]}; goes on: offset={next_offset}; to edit it, {what[1]}"
    if not page.line_count:
        return "the file is empty"
    if page.cut and not rows.lines:
        return f"so much of line {page.start} cannot be shown; Grep shows places in it"
    if rows.characters is not None:
        return f"line {page.start} has only {rows.characters:,} characters"
    if not rows.lines:
        return f"the file has only {page.line_count:,} lines"
    goes_on = f"; goes on: offset={next_offset}" if next_offset else ""
    if wanted.column > 1:
        return f"the end of line {page.start}, from character {wanted.column:,}{goes_on}"
    if next_offset:
        return f"lines {page.start}-{last} of {page.line_count:,}{goes_on}"
    return "" if page.start == 1 else f"lines {page.start}-{last} of {page.line_count:,}, up to the end"


def _format_facts(page: FilePage, *, is_end: bool) -> list[str]:
    if not page.rows:
        return []
    encoding = page.file_encoding
    unknown = "its encoding is unknown, and bytes outside of ASCII are shown as \\xNN"
    return [
        "" if encoding.name in {"utf-8", "ascii"} else unknown if encoding.is_raw else encoding.name,
        "byte order mark" if encoding.bom else "",
        "" if page.style in {"lf", "none"} else f"line ends: {page.style}",
        "no newline at the end of the file" if is_end and not page.final_newline else "",
    ]

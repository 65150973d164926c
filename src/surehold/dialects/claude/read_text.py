"""Text as `Read` shows it, and what the session has then seen of it.

A file above 256 MiB is read only as far as it must be: its sha256 and line count are then unknown, so that the session
cannot prove to have seen it, and it is not edited before it was read with `sha256: true`. So is one that another program
writes without a pause, such as a log.
"""

from dataclasses import dataclass, replace

from surehold.dialects.claude.read_glimpse import glimpsed
from surehold.dialects.claude.read_names import Place
from surehold.dialects.claude.read_result import FileReadResult
from surehold.dialects.claude.read_rows import Rows, bare, laid_out
from surehold.dialects.shared.deliveries import deliveries_of
from surehold.dialects.shared.source import source_of
from surehold.errors import StaleFile
from surehold.text.page import Page
from surehold.text.snapshot import Snapshot
from surehold.tools.context import Context

_WHOLE = 256 << 20
"""Larger files are not read to their end unless that is asked for."""
_LINE_BYTES = 64 << 20
"""How far into a line a column may lie."""
_BYTES_PER_CHARACTER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which part of a text is asked for."""

    offset: int
    limit: int
    limited: bool
    """The caller itself said how many lines."""
    column: int
    encoding: str | None
    sha256: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """A page, and how far it can be trusted."""

    page: Page
    complete: bool
    """The facts are of the whole file."""
    changing: bool = False
    """Another program is writing it."""
    snapshot: Snapshot | None = None


def read_text(context: Context, place: Place, wanted: Wanted) -> FileReadResult:
    """Return some lines of a text, and remember that they were shown."""
    room = context.budget.page_beside(place.notice)
    taken = _taken(context, place, wanted, room)
    page, key = taken.page, place.target.key
    rows = laid_out(page, wanted.column, room)
    asked = (key, wanted.offset, wanted.limit, wanted.column, wanted.encoding or "")
    if taken.complete:
        _remember(context, place, taken, rows, wanted.column)
        if deliveries_of(context.session).is_repeated(asked, page.sha256):
            note = "nothing changed since these lines were delivered"
            return FileReadResult(type="file_unchanged", file_path=place.absolute, sha256=page.sha256, notice=note)
    return _result(place, taken, rows, wanted)


def _taken(context: Context, place: Place, wanted: Wanted, room: int) -> _Taken:
    count = min(wanted.limit, context.budget.lines) if wanted.column == 1 else 1
    reach = wanted.column - 1 + room
    max_bytes = min(reach * _BYTES_PER_CHARACTER, _LINE_BYTES) if wanted.column > 1 else reach * _BYTES_PER_CHARACTER
    large = place.look.size > _WHOLE
    if not large or wanted.sha256:
        try:
            source = source_of(context.session, place.path, wanted.encoding)
            return _Taken(page=source.page(wanted.offset, count, max_bytes), complete=True, snapshot=source.snapshot)
        except StaleFile:
            if wanted.sha256:
                raise
    page, complete = glimpsed(
        context.session,
        place,
        start=wanted.offset,
        count=count,
        max_bytes=max_bytes,
        encoding=wanted.encoding,
    )
    return _Taken(page=page, complete=complete, changing=not large)


def _remember(context: Context, place: Place, taken: _Taken, rows: Rows, column: int) -> None:
    """Record what was shown; a line that is shown in part counts when all of its parts were."""
    page = replace(taken.page, rows=taken.page.rows[: rows.lines], cut=False)
    if page.rows and (column > 1 or rows.next_column):
        length = len(bare(page.text, page))
        line = (place.target.key, page.sha256, page.start)
        last = rows.next_column - 1 if rows.next_column else length
        deliveries = deliveries_of(context.session)
        page = replace(
            page, cut=not deliveries.saw_columns(line, column, last, total=None if rows.next_column else length)
        )
    context.session.saw_page(place.path, page, snapshot=taken.snapshot)


def _result(place: Place, taken: _Taken, rows: Rows, wanted: Wanted) -> FileReadResult:
    page = taken.page
    following = page.start if rows.next_column else page.start + rows.lines
    is_more = bool(rows.next_column) or not taken.complete or following <= page.line_count
    next_offset = following if is_more and rows.lines else None
    is_end = taken.complete and not next_offset
    notices = [place.notice, _notice(taken, rows, wanted, next_offset), *_facts(page, is_end=is_end)]
    return FileReadResult.of(
        type="text",
        file_path=place.absolute,
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
        notice="; ".join(filter(None, notices)) or None,
    )


def _notice(taken: _Taken, rows: Rows, wanted: Wanted, next_offset: int | None) -> str:
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
    if wanted.column > 1:
        return f"the end of line {page.start}, from character {wanted.column:,}" + (
            f"; goes on: offset={next_offset}" if next_offset else ""
        )
    if next_offset:
        return f"lines {page.start}-{last} of {page.line_count:,}; goes on: offset={next_offset}"
    return "" if page.start == 1 else f"lines {page.start}-{last} of {page.line_count:,}, up to the end"


def _facts(page: Page, *, is_end: bool) -> list[str]:
    """Say what the numbered lines do not show."""
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

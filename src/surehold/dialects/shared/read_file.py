"""`read_file`: lines of a file, the sha256 of the whole file, and anchors on request."""

import base64
import hashlib
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from surehold.dialects.shared.params import PATH_ALIASES, CamelParams, CamelResult, CamelResultPart
from surehold.dialects.shared.wire import WIRE
from surehold.disk.base import Target
from surehold.errors import BinaryFile, InvalidArgument, SpelledText, argument, spell
from surehold.text.anchored.lines import AnchoredLine, Quality, render_sparse
from surehold.text.escape import escape_text
from surehold.text.page import FilePage
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool
from surehold.workspace.file_source import FileSource, anchored_rows, cut_page_to_fit, open_source

_NO_END_LINE = 1 << 40
_MAX_BYTES_PER_CHAR = 4
_MAX_LINE_BYTES = 64 << 20
"""How far into a line a column may lie."""


class ReadParams(CamelParams):
    ALIASES: ClassVar = PATH_ALIASES

    path: SubjectPath
    """Relative to the first root, or absolute below any root."""
    start_line: int | None = None
    """First line, from 1."""
    start_column: int | None = None
    """First character of startLine, to go on in a very long line."""
    end_line: int | None = None
    """Last line, inclusive."""
    max_bytes: int = 262_144
    """Stop after so many bytes, at a whole line."""
    hashes: bool = False
    """Show each line as `N#HASH|content`."""
    anchors: Literal["all", "sparse"] = "all"
    """With hashes: sparse shows an anchor on some good lines only, the others as `+2|`: two below it, `N#HASH+2`."""
    allow_binary: bool = False
    """Return a binary file as base64."""
    start_byte: int = Field(default=0, ge=0)
    """With allowBinary: bytes to skip."""
    encoding: str | None = None
    """Such as cp1252, when the guess is wrong."""
    if_none_match: str | None = None
    """A sha256; if the file still has it, no content is sent."""


class LineFact(CamelResultPart):
    line: int
    hash: str
    occurrence: int | None = None
    quality: Quality


class ReadResult(CamelResult):
    path: str
    content: str | None = None
    content_base64: str | None = None
    start_line: int = 0
    end_line: int = 0
    line_count: int = 0
    size_bytes: int
    sha256: str
    truncated: bool = False
    next_line: int | None = None
    next_column: int | None = None
    """Where the only line goes on that is here, as startColumn with the same startLine."""
    next_byte: int | None = None
    """Where base64 goes on, as startByte."""
    encoding: str
    newline_style: Literal["lf", "crlf", "cr", "mixed", "none"] = "none"
    has_bom: bool = False
    final_newline: bool = False
    not_modified: bool | None = None
    lines: tuple[LineFact, ...] | None = None
    """With `hashes`: the anchor and quality of every line."""
    notice: str | None = None

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        content, notice = self.content or self.content_base64 or "", f"[{self.notice}]" if self.notice else ""
        following = f"[{self._following}]" if self._following else ""
        rows = (self._heading_text(), notice, content.removesuffix("\n") if following else content, following)
        return "\n".join(filter(None, rows))

    @property
    def _following(self) -> str:
        """The call that goes on; it is named above and below the page, since hosts cut at either end or between."""
        if self.next_byte:
            return f"goes on: startByte={self.next_byte}"
        if self.next_column:
            after = f"; next line: startLine={self.next_line}" if self.next_line else ""
            return f"goes on: startLine={self.start_line} startColumn={self.next_column}{after}"
        return f"goes on: startLine={self.next_line}" if self.next_line else ""

    def _heading_text(self) -> str:
        shown = f"lines {self.start_line}-{self.end_line} of {self.line_count}" if self.content else ""
        facts = [
            escape_text(self.path),
            shown or (f"{self.size_bytes} bytes" if self.content_base64 else f"{self.line_count} lines"),
            f"sha256 {self.sha256}",
            "" if self.encoding == "utf-8" else self.encoding,
            "" if self.newline_style in ("lf", "none") else self.newline_style,
            "byte order mark" if self.has_bom else "",
            "no final newline" if self.content and not self.final_newline else "",
            self._following,
        ]
        return " · ".join(fact for fact in facts if fact)


@tool(
    "read_file",
    hints=Hints(kind="read", title="Read a file", always_loaded=True, read_only=True, idempotent=True),
    wire=WIRE,
)
def read_file(context: CallContext, params: ReadParams) -> ReadResult:
    """Read a text file: its lines, and the sha256 that changing tools want as expectedSha256.

    The sha256 is of the whole file, also when only some lines are shown. At most 2,000 lines and 40,000 characters come
    back at once; nextLine says where to go on. With hashes each line carries an anchor (`!`: a bad one, `~`: middling).
    """
    first, last = _requested_lines(params)
    target = context.session.workspace.target(params.path)
    source = open_source(context.session, target, params.encoding)
    key = target.key
    room, column = context.budget.beside(escape_text(key)).page_room, params.start_column or 1
    count, max_bytes = min(last - first + 1, context.budget.lines), params.max_bytes
    if column > 1:
        count, max_bytes = 1, max(max_bytes, min((column + room.size) * _MAX_BYTES_PER_CHAR, _MAX_LINE_BYTES))
    try:
        page = source.read_page(first, count, max_bytes)
    except BinaryFile:
        return _read_binary(context, params, target, source)
    if params.if_none_match and params.if_none_match.strip().lower() == page.sha256:
        return ReadResult(**_file_facts(key, page), content="", not_modified=True, notice="not modified")
    anchored = anchored_rows(source, page) if params.hashes and column == 1 else ()
    spelled = render_sparse(anchored) if params.anchors == "sparse" else map(str, anchored)
    whole = list(spelled) if anchored else [page.encoding.decode(row)[column - 1 :] for row in page.rows]
    page, texts = cut_page_to_fit(page, whole, room, end="\n" if params.hashes else "")
    prefix = len(whole[0]) - len(anchored[0].text) if anchored else 0
    next_column = column + len(texts[0]) - prefix if page.cut and texts[0] else None
    end = first + len(page.rows) - 1
    following = page.next_line if end < last else None
    result = ReadResult(
        **_file_facts(key, page),
        content=("\n" if params.hashes else "").join(texts),
        start_line=first if page.rows else 0,
        end_line=end if page.rows else 0,
        truncated=bool(following) or page.cut,
        next_line=following,
        next_column=next_column,
        lines=tuple(map(_line_fact, anchored[: len(page.rows)])) if params.hashes else None,
        notice=_page_notice(page, first, column, next_column),
    )
    if context.budget.delivers(result.text(context.budget)):
        seen = replace(page, cut=page.cut or column > 1)  # one part of a line is not the line
        context.session.record_shown_page(target, seen, anchored=params.hashes, snapshot=source.snapshot)
    return result


def _requested_lines(params: ReadParams) -> tuple[int, int]:
    first = 1 if params.start_line is None else params.start_line
    last = _NO_END_LINE if params.end_line is None else params.end_line
    if first < 1 or last < first:
        wanted = f"from {first} on" if params.end_line is None else f"{first} to {last}"
        message = f"Lines {wanted} cannot be read."
        names = argument("endLine"), argument("startLine")
        action = spell("Lines are counted from 1; {} is not before {}.", *names)
        raise InvalidArgument(message, path=params.path, reason="bad_lines", action=action)
    if params.start_column is not None and params.start_column < 1:
        message = spell("`{}` must be at least 1.", argument("startColumn"))
        raise InvalidArgument(message, path=params.path, reason="bad_lines")
    if params.max_bytes < 1:
        message = spell("`{}` must be at least 1.", argument("maxBytes"))
        raise InvalidArgument(message, path=params.path, reason="bad_max_bytes")
    return first, last


def _file_facts(key: str, page: FilePage) -> dict[str, Any]:
    return {
        "path": key,
        "line_count": page.line_count,
        "size_bytes": page.size,
        "sha256": page.sha256,
        "encoding": page.file_encoding.name,
        "newline_style": page.style,
        "has_bom": bool(page.file_encoding.bom),
        "final_newline": page.final_newline,
    }


def _page_notice(page: FilePage, first: int, column: int, next_column: int | None) -> str | None:
    if page.cut and not next_column:
        return f"so much of line {first} cannot be shown; search_files with mode regex shows places in it"
    if next_column:
        return f"line {first} is too long to be shown whole: characters {column:,} to {next_column - 1:,}"
    if column > 1 and page.rows:
        return f"the end of line {first}, from character {column:,}"
    if not page.line_count:
        return "the file is empty"
    return None if page.rows else f"the file has only {page.line_count} lines"


def _line_fact(row: AnchoredLine) -> LineFact:
    return LineFact(line=row.line, hash=row.hash, occurrence=row.occurrence, quality=row.quality)


def _read_binary(context: CallContext, params: ReadParams, target: Target, source: FileSource) -> ReadResult:
    """Return base64 when that was asked for; else refuse, with the facts that are known all the same."""
    room = context.budget.beside(escape_text(target.key)).page_room
    most, skipped = min(params.max_bytes, room.size // 4 * 3), params.start_byte
    digest, size, wanted = hashlib.sha256(), 0, b""
    for chunk in [source.snapshot.data] if source.snapshot else context.session.workspace.read_chunks(target):
        begin = max(skipped - size, 0)
        wanted += chunk[begin : begin + most - len(wanted)]
        digest.update(chunk)
        size += len(chunk)
    if not params.allow_binary:
        raise BinaryFile(
            f"`{target.key}` is a binary file.",
            path=target.key,
            action=SpelledText(
                "Send allowBinary: true to get base64, or name its encoding.",
                "Pass allow_binary=True to get base64, or name its encoding.",
            ),
            size_bytes=size,
            sha256=digest.hexdigest(),
        )
    encoded = room.cut_text(base64.b64encode(wanted).decode("ascii"))
    encoded = encoded[: len(encoded) // 4 * 4]  # whole groups
    end = skipped + min(len(encoded) // 4 * 3, len(wanted))
    part = f"bytes {skipped:,} to {end:,} of {size:,}" if skipped < size else f"the file has only {size:,} bytes"
    return ReadResult(
        path=target.key,
        content_base64=encoded,
        size_bytes=size,
        sha256=digest.hexdigest(),
        truncated=end < size,
        next_byte=end if skipped < end < size else None,
        encoding="base64",
        notice=part if skipped or end < size else None,
    )

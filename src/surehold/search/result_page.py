"""One page of a search result: its cursor, the rows that fit, how a long line is cut, and which characters match."""

import base64
import binascii
import json
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from surehold.errors import InvalidArgument, InvalidPattern
from surehold.search.deadline import Deadline
from surehold.search.engine import Engine, searched_bytes
from surehold.search.query import Hit, MatchedLine, ResultWindow, Search
from surehold.text.encoding import UTF8
from surehold.text.snapshot import Snapshot


def encode_cursor(question: object, *place: object) -> str:
    """Write down a place in the answer to a question."""
    data = json.dumps([_question_checksum(question), *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_cursor(question: object, text: str) -> list[object]:
    """Read a place; refuse one that belongs to another question."""
    try:
        mark, *found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, binascii.Error):
        mark, found = None, []
    if mark != _question_checksum(question):
        raise InvalidArgument(
            "This cursor belongs to another call.",
            reason="bad_cursor",
            action="Repeat the call with the same arguments, or leave the cursor out to begin again.",
        )
    return found


def _question_checksum(question: object) -> int:
    return zlib.crc32(repr(question).encode("utf-8", "surrogatepass"))


_SEPARATOR_CHARS = 3
"""What stands between path, line and text, and behind them."""


class ResultPage:
    """Takes files or rows, one after the other, until it is full."""

    def __init__(self, sought: ResultWindow) -> None:
        self.to_pass = sought.offset
        self.further = False
        """Whether something did not fit any more."""
        self.rows = list[MatchedLine]()
        self.names = list[str]()
        self._limit = sought.limit
        self._room = sought.room

    def take_name(self, name: str) -> bool:
        """Take a file; False when the page is full."""
        if not self._reserve_room(len(name) + _SEPARATOR_CHARS, len(self.names)):
            return False
        if not self.to_pass:
            self.names.append(name)
        self.to_pass = max(0, self.to_pass - 1)
        return True

    def take_row(self, row: MatchedLine) -> bool:
        """Take a row; False when the page is full."""
        if not self._reserve_room(
            len(row.path) + len(row.text) + len(str(row.line)) + _SEPARATOR_CHARS, len(self.rows)
        ):
            return False
        if not self.to_pass:
            self.rows.append(row)
        self.to_pass = max(0, self.to_pass - 1)
        return True

    def _reserve_room(self, size: int, count: int) -> bool:
        if self.to_pass:
            return True
        if (self._limit is not None and count >= self._limit) or (size > self._room and count):
            self.further = True
            return False
        self._room -= size
        return True


LINE_CHARS = 500
"""A longer line is cut around the match."""
_ELLIPSIS = "…"


class SearchedFile:
    """One file as it is searched: offsets lead to lines and columns."""

    def __init__(self, path: str, snapshot: Snapshot) -> None:
        self._path = path
        encoding = snapshot.encoding
        # What engines search is not always what is on the disk; the lines and characters are the same.
        same = not encoding.bom
        self._text = snapshot if same else Snapshot(searched_bytes(snapshot.data), encoding=UTF8)
        self._decoded: tuple[int, str] = (-1, "")

    def build_hits(self, offsets: Sequence[int], context: int) -> list[Hit]:
        """Show some matches."""
        return [self._build_hit(offset, context) for offset in offsets]

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._text.lines)

    def build_row(self, line: int, begins: int | None) -> MatchedLine:
        """Show a line; where its first match begins, in bytes, if it has one."""
        text = self._decode_line(line - 1)
        at = 0
        if begins and len(text) > LINE_CHARS:
            at = len(self._text.encoding.decode(self._text.lines.contents[line - 1][:begins]))
        shown = cut_around(text, at)
        return MatchedLine(path=self._path, line=line, text=shown, is_match=begins is not None, is_whole=shown == text)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        lines = self._text.lines
        index = lines.index_at(offset)
        begin = lines.starts[index]
        return index + 1, len(self._text.encoding.decode(self._text.data[begin:offset])) + 1

    def _build_hit(self, offset: int, context: int) -> Hit:
        line, column = self.line_and_column(offset)
        at, count = line - 1, len(self._text.lines)
        return Hit(
            path=self._path,
            line=line,
            column=column,
            preview=cut_around(self._decode_line(at), column - 1),
            before=tuple(cut_around(self._decode_line(each), 0) for each in range(max(0, at - context), at)),
            after=tuple(cut_around(self._decode_line(each), 0) for each in range(at + 1, min(count, at + 1 + context))),
        )

    def _decode_line(self, index: int) -> str:
        if self._decoded[0] != index:  # many matches may stand in one very long line
            self._decoded = index, self._text.encoding.decode(self._text.lines.contents[index])
        return self._decoded[1]


def cut_around(text: str, at: int) -> str:
    """Return a line, or the part of it that has this place in its middle."""
    if len(text) <= LINE_CHARS:
        return text
    begin = max(0, min(at - LINE_CHARS // 2, len(text) - LINE_CHARS))
    end = begin + LINE_CHARS
    return (
        (_ELLIPSIS if begin else "")
        + text[begin + bool(begin) : end - (end < len(text))]
        + (_ELLIPSIS if end < len(text) else "")
    )


Highlights = dict[tuple[str, int], list[tuple[int, int]]]
"""By path and line: from which character to which."""


def highlight_matches(search: Search, engine: Engine, rows: Sequence[MatchedLine], budget: Deadline) -> Highlights:
    """Search the shown lines alone; what matches only across lines, or by what is not shown, has no mark."""
    matching = [row for row in rows if row.is_match]
    texts = [row.text.encode("utf-8", "surrogateescape") for row in matching]
    data = b"\n".join(texts)
    begins = list(accumulate((len(text) + 1 for text in texts), initial=0))
    try:
        spans = engine.match_spans(replace(search, multiline=False, dot_all=False), data, budget)
    except InvalidPattern:  # it is about line ends
        return {}
    marks: Highlights = {}
    for start, end in spans:
        at = bisect_right(begins, start) - 1
        row, before = matching[at], _count_chars(data[begins[at] : start])
        marks.setdefault((row.path, row.line), []).append((before, before + _count_chars(data[start:end])))
    return marks


def _count_chars(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogateescape"))

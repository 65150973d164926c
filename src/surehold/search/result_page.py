"""One page of a search result: its cursor, the rows that fit, how a long line is cut, and which characters match."""

import base64
import binascii
import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from surehold.errors import InvalidArgument, InvalidPattern
from surehold.search.engine import Deadline, Engine, MatchPosition, searched_bytes
from surehold.search.query import Hit, MatchedLine, ResultWindow, Search, name_some
from surehold.text.encoding import UTF8
from surehold.text.escape import escape_text
from surehold.text.measure import ANY_SIZE, TextRoom
from surehold.text.snapshot import Snapshot

LINE_CHARS = 500
"""A longer line is cut around the match."""
_ELLIPSIS = "…"
_SEPARATOR_UNITS = 2
"""What separates path, line and text, or ends the line."""
_CURSOR_GROWTH_UNITS = 100
"""How much longer a cursor gets as the numbers of the matches in a file grow."""
_SHA256_EXAMPLE = f" · sha256 {'0123456789abcdef' * 4}"
"""What is after the path of a file with matches."""


def path_sort_key(name: str) -> str:
    """Return what sorts paths name by name: a directory comes before its neighbours, `a/x` before `a-b`."""
    return name.replace("/", "\0")


def encode_cursor(question: object, *place: object) -> str:
    data = json.dumps([_question_checksum(question), *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def measure_cursor(room: TextRoom, cursor: str) -> int:
    """Return what a cursor takes of a page, which names it at its beginning and at its end."""
    return 2 * room.measure(cursor) if cursor else 0


def decode_cursor(question: object, text: str) -> list[object]:
    """Decode a place; refuse one that belongs to another question."""
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


class ResultPage:
    """Takes files, lines or matches, one after the other, until it is full."""

    def __init__(self, window: ResultWindow, question: object = None) -> None:
        self.names, self.rows, self.hits = list[str](), list[MatchedLine](), list[Hit]()
        self.further = False
        """Whether something did not fit."""
        self.lost_context = False
        """Whether a match is shown without the lines around it, which alone fill the page."""
        self.to_skip = window.offset
        self._window, self._question = window, question
        self._left = window.room.size
        self._cursor_units = 0
        """What the cursor after the newest match takes."""
        self._last = ("", 0, -1)
        if window.cursor:
            name, line, begins = decode_cursor(question, window.cursor)
            self._last = path_sort_key(str(name)), int(str(line)), int(str(begins))
        self._last_name = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return ("The lines around the first match do not fit; ask for fewer.",) if self.lost_context else ()

    @property
    def next(self) -> str:
        return encode_cursor(self._question, self._last_name, *self._last[1:]) if self.further and self.hits else ""

    @property
    def rows_wanted(self) -> int | None:
        """How many more lines or matches the page can need; None for any number."""
        limit = self._window.limit
        return None if limit is None else self.to_skip + limit - len(self.rows) - len(self.hits)

    def skip_file(self, name: str, count: int) -> bool:
        if self._window.want == "matches":
            return path_sort_key(name) < self._last[0]
        if self._window.before or self._window.after or self.to_skip < count:
            return False
        self.to_skip -= count
        return True

    def take_name(self, name: str) -> bool:
        """Take a file; False if the page is full."""
        if self.to_skip:
            self.to_skip -= 1
        elif not self._reserve_room((escape_text(name),), len(self.names)):
            return False
        else:
            self.names.append(name)
        return True

    def take_file(self, key: str, name: str, snapshot: Snapshot, places: list[MatchPosition]) -> bool:
        """Take the matches of a file, or the matching lines with those around them; False if the page is full."""
        view = _SearchedFile(key, snapshot)
        if self._window.want == "matches":
            order = path_sort_key(name)
            return all(self._take_hit(view, name, place) for place in places if (order, *place) > self._last)
        matching = dict(places)
        numbers = _line_numbers(matching, self._window, view.line_count)
        return all(self._take_row(view, number, matching.get(number)) for number in numbers)

    def _take_row(self, view: "_SearchedFile", line: int, begins: int | None) -> bool:
        if self.to_skip:  # there may be very many, so they are not even looked at
            self.to_skip -= 1
            return True
        row = view.build_row(line, begins)
        if not self._reserve_room((escape_text(row.path), row.text, str(row.line)), len(self.rows)):
            return False
        self.rows.append(row)
        return True

    def _take_hit(self, view: "_SearchedFile", name: str, place: MatchPosition) -> bool:
        hit = view.build_hit(place, self._window)
        if not self.hits or self.hits[-1].path != hit.path:
            self._left -= self._window.room.measure(escape_text(hit.path) + _SHA256_EXAMPLE)
            self._cursor_units = self._measure_next(name, place)
        around = (*hit.before, *hit.after)
        texts = (hit.preview, *around, *[str(hit.line)] * (1 + len(around)), str(hit.column))
        if around and not self.hits and self._size_of(texts) > self._left - self._cursor_units:
            hit, texts = replace(hit, before=(), after=()), (hit.preview, str(hit.line), str(hit.column))
            self.lost_context = True
        if not self._reserve_room(texts, len(self.hits)):
            return False
        self.hits.append(hit)
        self._last, self._last_name = (path_sort_key(name), *place), name
        return True

    def _measure_next(self, name: str, place: MatchPosition) -> int:
        if self._window.room is ANY_SIZE:
            return 0
        return measure_cursor(self._window.room, encode_cursor(self._question, name, *place)) + _CURSOR_GROWTH_UNITS

    def _size_of(self, texts: Sequence[str]) -> int:
        return sum(self._window.room.measure(text) + _SEPARATOR_UNITS for text in texts)

    def _reserve_room(self, texts: Sequence[str], count: int) -> bool:
        """Take the room of a row in its parts; the first row of a page is shown in any case."""
        limit, size = self._window.limit, self._size_of(texts)
        if (limit is not None and count >= limit) or (size > self._left - self._cursor_units and count):
            self.further = True
            return False
        self._left -= size
        return True


def _line_numbers(matching: Iterable[int], window: ResultWindow, count: int) -> Iterator[int]:
    shown = 0
    for line in matching:
        for number in range(max(1, line - window.before, shown + 1), min(count, line + window.after) + 1):
            yield number
            shown = number


class _SearchedFile:
    """One file as it is searched: positions lead to lines and columns."""

    def __init__(self, key: str, snapshot: Snapshot) -> None:
        self._key = key
        # Engines search the text without its byte order mark; the lines and characters are the same.
        has_mark = snapshot.encoding.bom
        self._text = Snapshot(searched_bytes(snapshot.data), encoding=UTF8) if has_mark else snapshot
        self._decoded: tuple[int, str] = (0, "")

    @property
    def line_count(self) -> int:
        return len(self._text.lines)

    def build_row(self, line: int, begins: int | None) -> MatchedLine:
        """Show a line; `begins` is where its first match begins, in bytes, if it has one."""
        text = self._decode_line(line)
        at = self._count_chars(line, begins) if begins and len(text) > LINE_CHARS else 0
        shown = cut_around(text, at)
        return MatchedLine(path=self._key, line=line, text=shown, is_match=begins is not None, is_whole=shown == text)

    def build_hit(self, place: MatchPosition, window: ResultWindow) -> Hit:
        line, begins = place
        column = self._count_chars(line, begins) + 1
        numbers = range(max(1, line - window.before), min(self.line_count, line + window.after) + 1)
        texts = {each: self._decode_line(each) for each in numbers}
        shown = {each: cut_around(text, column - 1 if each == line else 0) for each, text in texts.items()}
        return Hit(
            path=self._key,
            line=line,
            column=column,
            preview=shown[line],
            before=tuple(text for each, text in shown.items() if each < line),
            after=tuple(text for each, text in shown.items() if each > line),
            whole_lines=tuple(each for each, text in shown.items() if text == texts[each]),
        )

    def _count_chars(self, line: int, size: int) -> int:
        return len(self._text.encoding.decode(self._text.lines.contents[line - 1][:size]))

    def _decode_line(self, line: int) -> str:
        if self._decoded[0] != line:  # many matches may be in one very long line
            self._decoded = line, self._text.encoding.decode(self._text.lines.contents[line - 1])
        return self._decoded[1]


def cut_around(text: str, at: int) -> str:
    """Return a line, or the part of it around this character."""
    if len(text) <= LINE_CHARS:
        return text
    begin = max(0, min(at - LINE_CHARS // 2, len(text) - LINE_CHARS))
    end = begin + LINE_CHARS
    left, right = _ELLIPSIS if begin else "", _ELLIPSIS if end < len(text) else ""
    return left + text[begin + len(left) : end - len(right)] + right


def left_out_note(count: int, kinds: Sequence[str], nouns: tuple[str, str], names: Sequence[str]) -> str:
    """Return the note of a search without matches: how many entries that were left out would match."""
    *first, last = kinds
    which = f"{', '.join(first)} or {last}" if first else last
    noun, verb = (nouns[0], "matches") if count == 1 else (nouns[1], "match")
    return f"0 matches; {count} {which} {noun} {verb}" + (f": {name_some(names)}." if names else ".")


Highlights = dict[tuple[str, int], list[tuple[int, int]]]
"""By path and line: from which character to which."""


def highlight_matches(search: Search, engine: Engine, rows: Sequence[MatchedLine], deadline: Deadline) -> Highlights:
    """Search the shown lines alone; what matches only across lines, or by what is not shown, has no highlight."""
    matching = [row for row in rows if row.is_match]
    texts = [row.text.encode("utf-8", "surrogateescape") for row in matching]
    data = b"\n".join(texts)
    begins = list(accumulate((len(text) + 1 for text in texts), initial=0))
    try:
        spans = engine.match_spans(replace(search, multiline=False, dot_all=False), data, deadline)
    except InvalidPattern:  # it is about line ends
        return {}
    marks: Highlights = {}
    for start, end in spans:
        at = bisect_right(begins, start) - 1
        row, before = matching[at], _count_decoded(data[begins[at] : start])
        marks.setdefault((row.path, row.line), []).append((before, before + _count_decoded(data[start:end])))
    return marks


def _count_decoded(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogateescape"))

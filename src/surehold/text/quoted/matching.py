"""Where a quoted text occurs in a file's bytes, by the first tier that finds it anywhere. Never by similarity.

1. Tiers: exactly these bytes; the same text with the file's own line endings; then (only `find_quoted`) the same text
   with curly and straight quotes taken for each other. The last tier needs at least four characters that are not only
   blanks and quotes.
2. A match begins and ends between characters, and never between the CR and the LF of one terminator.
3. `Haystack` searches in bytes: only positions are decoded, never the file.
4. A text that the file's encoding cannot represent is not in the file; the same text with straight quotes may be.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from surehold.errors import NotEncodable
from surehold.text.snapshot import Snapshot

ByteTier = Literal["exact", "line_endings"]

_SELF_SYNCHRONISING = re.compile(r"utf-8|ascii|bytes|latin|iso8859|cp125\d|cp4|cp7|cp8[56]|koi8|mac|tis")


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Bytes `start` to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Every place where a needle stands, found by one tier."""

    tier: ByteTier
    found: tuple[TextMatch, ...]
    ambiguous_overlap: bool = False
    """A second place overlaps the only one, as `aa` in `aaa`."""

    @property
    def count(self) -> int:
        """How often it stands there."""
        return len(self.found) + self.ambiguous_overlap


class Haystack:
    """A file to search in; what several searches need is computed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._data = snapshot.data
        self._encoding = snapshot.encoding
        self._begin = len(snapshot.encoding.bom)
        self._starts, self._ends = _CharacterBoundaries(snapshot), _CharacterBoundaries(snapshot)

    def find(self, needle: str) -> TextMatches:
        """Find every place of the needle, by the first tier that finds any."""
        encoded = self._encoding.encode(needle)
        found = tuple(self._find_exact(encoded))
        if found:
            overlap = len(found) == 1 and self._overlaps_itself(encoded, found[0])
            return TextMatches("exact", found, overlap)
        if "\n" in needle or "\r" in needle:
            found = tuple(self._find_any_ending(needle))
        return TextMatches(
            "line_endings", found, len(found) == 1 and self._overlaps_with_other_breaks(needle, found[0])
        )

    def _find_exact(self, needle: bytes) -> Iterator[TextMatch]:
        at = self._data.find(needle, self._begin)
        while at >= 0:
            if self._is_whole(at, at + len(needle)):
                yield TextMatch(at, at + len(needle))
                at = self._data.find(needle, at + len(needle))
            else:
                at = self._data.find(needle, at + 1)

    def _overlaps_itself(self, needle: bytes, match: TextMatch) -> bool:
        at, end = match.start, match.end + len(needle) - 1
        while (at := self._data.find(needle, at + 1, end)) >= 0:
            if self._is_whole(at, at + len(needle)):
                return True
        return False

    def _overlaps_with_other_breaks(self, needle: str, match: TextMatch) -> bool:
        """Tell whether a second place, with whichever line endings, overlaps the only one."""
        codec = "latin-1" if self._encoding.is_raw else self._encoding.name
        around = str(self._data[match.start : 3 * match.end - 2 * match.start], codec, "replace")
        text, wanted = re.sub(r"\r\n|\r", "\n", around), re.sub(r"\r\n|\r", "\n", needle)
        return text.find(wanted, 1, 2 * len(wanted) - 1) >= 0

    def _find_any_ending(self, needle: str) -> Iterator[TextMatch]:
        """Search with every kind of line ending taken as the same."""
        if self._encoding.width > 1:
            yield from self._find_any_ending_wide(needle)
            return
        wanted = self._encoding.encode(re.sub(r"\r\n|\r", "\n", needle))
        text, keys = self._lf_data
        at = text.find(wanted, self._begin)
        while at >= 0:
            end = at + len(wanted)
            start_byte, end_byte = at + bisect_left(keys, at), end + bisect_left(keys, end)
            if self._is_whole(start_byte, end_byte):
                yield TextMatch(start_byte, end_byte)
            at = text.find(wanted, end)

    def _find_any_ending_wide(self, needle: str) -> Iterator[TextMatch]:
        pieces = [re.escape(self._encoding.encode(piece)) for piece in re.split(r"\r\n|\n|\r", needle)]
        ends = b"|".join(re.escape(self._encoding.encode_newline(sign)) for sign in ("\r\n", "\n", "\r"))
        for match in re.finditer((b"(?>" + ends + b")").join(pieces), self._data[self._begin :], re.DOTALL):
            start, end = match.start() + self._begin, match.end() + self._begin
            if self._is_whole(start, end):
                yield TextMatch(start, end)

    @cached_property
    def _lf_data(self) -> tuple[bytes, list[int]]:
        """The bytes with LF endings, and where in them a CR is missing."""
        if self._snapshot.lines.breaker == b"\r":
            return self._data.replace(b"\r", b"\n"), []
        keys = [m.start() - k for k, m in enumerate(re.finditer(rb"\r\n", self._data))]
        return self._data.replace(b"\r\n", b"\n"), keys

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether both ends lie between characters and outside a CRLF."""
        if self._encoding.width > 1:
            return (start - self._begin) % self._encoding.width == 0 and not self._splits_crlf_wide(start, end)
        if self._data[start - 1 : start + 1] == b"\r\n" or self._data[end - 1 : end + 1] == b"\r\n":
            return False
        if _SELF_SYNCHRONISING.match(self._encoding.name):
            return True
        return self._starts.is_boundary(start) and self._ends.is_boundary(end)

    def _splits_crlf_wide(self, start: int, end: int) -> bool:
        width, crlf = self._encoding.width, self._encoding.encode_newline("\r\n")
        return any(self._data[max(at - width, self._begin) : at + width] == crlf for at in (start, end))


class _CharacterBoundaries:
    """Which offsets lie between characters: while they grow, no byte is decoded twice."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._at = self._begin = len(snapshot.encoding.bom)

    def is_boundary(self, offset: int) -> bool:
        """Decode on to the offset: inside of a character, bytes are left over."""
        data, breaker = self._snapshot.data, self._snapshot.lines.breaker
        if offset < self._at:
            self._at = self._begin
            self._incremental_decoder.reset()
        line = data.rfind(breaker, self._at, offset) + 1
        if line:  # no character reaches over the end of a line
            self._at = line
            self._incremental_decoder.reset()
        self._incremental_decoder.decode(data[self._at : offset])
        self._at = offset
        return not self._incremental_decoder.getstate()[0]

    @cached_property
    def _incremental_decoder(self) -> codecs.IncrementalDecoder:
        return codecs.getincrementaldecoder(self._snapshot.encoding.name)("replace")


QuoteTier = Literal["exact", "line_endings", "quotes"]

SINGLE_QUOTES = "\u2018\u2019\u201a\u201b"
DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f"
_CR_BREAK = re.compile(r"\r\n|\r")
_BREAK_CHARACTER = re.compile(r"[\r\n]")
_STRAIGHT_QUOTE = re.compile("['\"]")
_MIN_QUOTED_CHARS = 4
_ONE_SPELLING = re.compile(r"utf|ascii|latin|iso8859|cp125\d|koi8|mac|gb")
_DECODE_STEP_BYTES = 4096
_WIDE_ENCODINGS = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteMatches:
    """Every place where a text stands, found by one tier."""

    tier: QuoteTier = "exact"
    matches: tuple[TextMatch, ...] = ()
    count: int = 0
    """How often it stands there; two places that overlap count as two."""
    encoded_alike: bool = True
    """Encoding the text again gives these very bytes; some codecs have two spellings of a character."""


def straighten_quotes(text: str) -> str:
    """Return a text with straight quotes only."""
    if text.isascii():
        return text
    for sign in SINGLE_QUOTES:  # faster than a table, by far
        text = text.replace(sign, "'")
    for sign in DOUBLE_QUOTES:
        text = text.replace(sign, '"')
    return text


def find_quoted(snapshot: Snapshot, needle: str, *, haystack: Haystack | None = None) -> QuoteMatches:
    """Find every place of a text that is not empty, by the first tier that finds any."""
    try:
        found = (haystack or Haystack(snapshot)).find(needle)
    except NotEncodable:
        pass
    else:
        if found.found and (found.tier == "exact" or snapshot.encoding.width == 1):
            again = (
                found.tier == "line_endings"
                and len(found.found) == 1
                and _overlaps_again(snapshot, needle, found.found[0])
            )
            return QuoteMatches(tier=found.tier, matches=found.found, count=max(found.count, 1 + again))
    return _find_by_characters(snapshot, needle) or _find_by_quotes(snapshot, needle)


def _overlaps_again(snapshot: Snapshot, needle: str, match: TextMatch) -> bool:
    """Tell whether a second place, with whichever line endings, overlaps the only one."""
    around = snapshot.data[match.start : 3 * match.end - 2 * match.start]
    text, wanted = (
        _with_lf_endings(snapshot, str(around, _codec_name(snapshot), "replace")),
        _CR_BREAK.sub("\n", needle),
    )
    return text.find(wanted, 1, 2 * len(wanted) - 1) >= 0


def _find_by_characters(snapshot: Snapshot, needle: str) -> QuoteMatches | None:
    """Find the same characters in an encoding that has two spellings of some, as Shift-JIS does, or wide line endings."""
    if snapshot.encoding.width > 1:
        found = (
            _find_in_folded(_FoldedText(snapshot), _CR_BREAK.sub("\n", needle), "line_endings")
            if _BREAK_CHARACTER.search(needle)
            else QuoteMatches()
        )
        return found if found.count else None
    if needle.isascii() or snapshot.encoding.is_raw or _ONE_SPELLING.match(snapshot.encoding.name):
        return None
    found = _find_in_folded(_FoldedText(snapshot), _CR_BREAK.sub("\n", needle), "exact")
    return found if found.count else None


def _find_by_quotes(snapshot: Snapshot, needle: str) -> QuoteMatches:
    plain = _CR_BREAK.sub("\n", needle)
    wanted = straighten_quotes(plain)
    if len(wanted) < _MIN_QUOTED_CHARS or not wanted.strip("'\" \t\n") or not _STRAIGHT_QUOTE.search(wanted):
        return QuoteMatches()
    if wanted == plain and not _has_curly_quotes(snapshot):
        return QuoteMatches()
    return _find_in_folded(_FoldedText(snapshot, straighten_quotes), wanted, "quotes")


def _find_in_folded(page: "_FoldedText", wanted: str, tier: QuoteTier) -> QuoteMatches:
    matches, first = list[TextMatch](), page.text.find(wanted)
    at = first
    while at >= 0:
        matches.append(page.byte_match(at, at + len(wanted)))
        at = page.text.find(wanted, at + len(wanted))
    again = len(matches) == 1 and page.text.find(wanted, first + 1, first + 2 * len(wanted) - 1) >= 0
    return QuoteMatches(tier=tier, matches=tuple(matches), count=len(matches) + again, encoded_alike=False)


def _has_curly_quotes(snapshot: Snapshot) -> bool:
    """Tell whether the bytes of a curly quote are anywhere: a quick look that spares most files the rest."""
    encoding = snapshot.encoding
    held = [encoding.encode(sign) for sign in SINGLE_QUOTES + DOUBLE_QUOTES if encoding.can_encode(sign)]
    return any(sign in snapshot.data for sign in held)


def _codec_name(snapshot: Snapshot) -> str:
    """Name the codec; a byte that fits no encoding stands for one character, so that positions stay the same."""
    return "latin-1" if snapshot.encoding.is_raw else snapshot.encoding.name


def _with_lf_endings(snapshot: Snapshot, text: str) -> str:
    """Return a text of a file with LF endings."""
    return text.replace("\r", "\n") if snapshot.lines.style == "cr" else text.replace("\r\n", "\n")


class _FoldedText:
    """A file's text with LF endings, each character changed by `fold`, and the way from its characters to the bytes."""

    def __init__(self, snapshot: Snapshot, fold: Callable[[str], str] = str) -> None:
        self._snapshot, self._codec = snapshot, _codec_name(snapshot)
        body = str(memoryview(snapshot.data)[len(snapshot.encoding.bom) :], self._codec)
        self.text = fold(_with_lf_endings(snapshot, body))
        self._position = self._line = self._in_row = 0

    def byte_match(self, start: int, end: int) -> TextMatch:
        """Return the bytes of some characters."""
        return TextMatch(self._byte_offset(start), self._byte_offset(end))

    def _byte_offset(self, position: int) -> int:
        """Return the byte of a character; positions grow, so that every character is looked at once."""
        new_line = self.text.rfind("\n", self._position, position) + 1
        if new_line:
            self._line += self.text.count("\n", self._position, position)
            self._position, self._in_row = new_line, 0
        lines = self._snapshot.lines
        if self._line >= len(lines):
            return self._snapshot.size
        row = lines.contents[self._line]
        self._in_row = _advance_characters(row, self._in_row, position - self._position, self._codec)
        self._position = position
        return lines.starts[self._line] + self._in_row


def _advance_characters(row: bytes, at: int, characters: int, codec: str) -> int:
    """Return the offset that lies some characters behind another one: by large steps, then byte by byte."""
    if codec not in _WIDE_ENCODINGS and row[at : at + characters].isascii():
        return at + characters
    decoder, done = codecs.getincrementaldecoder(codec)(), 0
    while characters - done >= _DECODE_STEP_BYTES:  # so many bytes are never more characters
        done += len(decoder.decode(row[at : at + _DECODE_STEP_BYTES]))
        at += _DECODE_STEP_BYTES
    while done < characters:
        done += len(decoder.decode(row[at : at + 1]))
        at += 1
    return at - len(decoder.getstate()[0])

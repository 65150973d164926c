"""Where a quoted text occurs in a file's bytes, by the first tier that finds it anywhere. Never by similarity.

1. Tiers: exactly these bytes; the same text with the file's own line endings; then, for a haystack that allows it, the
   same text with curly and straight quotes taken for each other. The last tier needs at least four characters that are
   not only blanks and quotes.
2. A match begins and ends between characters, and never between the CR and the LF of one terminator.
3. The exact tier searches in bytes; the others in the decoded text, from whose characters they find back to the bytes.
4. Where quotes are allowed, a text that the file's encoding cannot represent is not in the file; the same text with
   straight quotes may be. Elsewhere it is refused.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from surehold.errors import NotEncodable
from surehold.text.snapshot import Snapshot

MatchTier = Literal["exact", "line_endings", "quotes"]

SINGLE_QUOTES = "\u2018\u2019\u201a\u201b"
DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f"
_SELF_SYNCHRONISING = re.compile(r"utf-8|ascii|bytes|latin|iso8859|cp125\d|cp4|cp7|cp8[56]|koi8|mac|tis")
_ONE_SPELLING = re.compile(r"utf|ascii|bytes|latin|iso8859|cp125\d|koi8|mac|gb")
_WIDE_ENCODINGS = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
_CR_BREAK = re.compile(r"\r\n|\r")
_STRAIGHT_QUOTE = re.compile("['\"]")
_MIN_QUOTED_CHARS = 4
_DECODE_STEP_BYTES = 4096


TextMatch = tuple[int, int]
"""Bytes `start` to `end`; a plain tuple, since there may be a million of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatches:
    """Every place where a text occurs, found by one tier."""

    tier: MatchTier = "exact"
    found: tuple[TextMatch, ...] = ()
    count: int = 0
    """How often it occurs; two places that overlap count as two, as `aa` in `aaa`."""
    encoded_alike: bool = True
    """Encoding the text again gives these very bytes; some codecs have two spellings of a character."""


def straighten_quotes(text: str) -> str:
    if text.isascii():
        return text
    for sign in SINGLE_QUOTES:  # faster than a table, by far
        text = text.replace(sign, "'")
    for sign in DOUBLE_QUOTES:
        text = text.replace(sign, '"')
    return text


def differs_in_breaks_alone(old: str, new: str) -> bool:
    """Tell whether line endings are all that an edit changes: then they are its purpose, and are written as sent."""
    return _CR_BREAK.sub("\n", old) == _CR_BREAK.sub("\n", new)


class Haystack:
    """A file to search in; what several searches need is computed once."""

    def __init__(self, snapshot: Snapshot, *, quotes: bool = False) -> None:
        self.snapshot = snapshot
        self._quotes = quotes
        self._data, self._encoding = snapshot.data, snapshot.encoding
        self._begin, self._crlf = len(snapshot.encoding.bom), snapshot.encoding.encode_newline("\r\n")
        self._starts, self._ends = _CharacterBoundaries(snapshot), _CharacterBoundaries(snapshot)

    def find(self, needle: str) -> TextMatches:
        """Find every place of a text that is not empty, by the first tier that finds any."""
        try:
            encoded = self._encoding.encode(needle)
        except NotEncodable:
            if not self._quotes:
                raise
            return self._find_by_quotes(needle)
        if found := tuple(self._find_exact(encoded)):
            overlap = len(found) == 1 and self._overlaps_itself(encoded, found[0])
            return TextMatches(found=found, count=len(found) + overlap)
        matches = self._find_any_ending(needle)
        if not matches.count and self._quotes:
            matches = self._find_other_spelling(needle)
        return self._find_by_quotes(needle) if not matches.count and self._quotes else matches

    def _find_exact(self, needle: bytes) -> Iterator[TextMatch]:
        at = self._data.find(needle, self._begin)
        if at >= 0 and self._is_always_whole(needle):
            end = at + len(needle)
            yield at, end
            if (at := self._data.find(needle, end)) >= 0:  # a pattern is worth compiling only for many places
                found = re.compile(re.escape(needle)).finditer(self._data, at)
                yield from map(re.Match[bytes].span, found)
            return
        while at >= 0:
            if self._is_whole(at, at + len(needle)):
                yield at, at + len(needle)
                at = self._data.find(needle, at + len(needle))
            else:
                at = self._data.find(needle, at + 1)

    def _overlaps_itself(self, needle: bytes, match: TextMatch) -> bool:
        at, end = match[0], match[1] + len(needle) - 1
        while (at := self._data.find(needle, at + 1, end)) >= 0:
            if self._is_whole(at, at + len(needle)):
                return True
        return False

    def _is_always_whole(self, needle: bytes) -> bool:
        """Tell whether every place of these bytes is a whole one: they split neither a character nor a CRLF."""
        one_byte = self._encoding.width == 1 and _SELF_SYNCHRONISING.match(self._encoding.name) is not None
        return one_byte and needle[:1] != b"\n" and needle[-1:] != b"\r"

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether both ends lie between characters and outside a CRLF."""
        width = self._encoding.width
        if any(self._data[max(at - width, self._begin) : at + width] == self._crlf for at in (start, end)):
            return False
        if width > 1:
            return (start - self._begin) % width == 0
        if _SELF_SYNCHRONISING.match(self._encoding.name):
            return True
        return self._starts.is_boundary(start) and self._ends.is_boundary(end)

    def _find_any_ending(self, needle: str) -> TextMatches:
        """Search with every kind of line ending taken as the same."""
        if "\n" not in needle and "\r" not in needle:
            return TextMatches(tier="line_endings")
        plain = _CR_BREAK.sub("\n", needle)
        matches = self._lf_text.find(plain, "line_endings")
        if self._encoding.width > 1 or _ONE_SPELLING.match(self._encoding.name):
            return matches
        wanted = self._encoding.encode(plain)
        ending = b"\r" if self.snapshot.lines.breaker == b"\r" else b"\r\n"
        there = (self._data[start:end].replace(ending, b"\n") for start, end in matches.found)
        return matches if all(data == wanted for data in there) else TextMatches(tier="line_endings")

    def _find_other_spelling(self, needle: str) -> TextMatches:
        """Find the same characters in an encoding that has two spellings of some, as Shift-JIS does."""
        if needle.isascii() or _ONE_SPELLING.match(self._encoding.name):
            return TextMatches()
        return self._lf_text.find(_CR_BREAK.sub("\n", needle), "exact")

    def _find_by_quotes(self, needle: str) -> TextMatches:
        plain = _CR_BREAK.sub("\n", needle)
        wanted = straighten_quotes(plain)
        if len(wanted) < _MIN_QUOTED_CHARS or not wanted.strip("'\" \t\n") or not _STRAIGHT_QUOTE.search(wanted):
            return TextMatches()
        if wanted == plain and not self._has_curly_quotes:
            return TextMatches()
        return self._straight_text.find(wanted, "quotes")

    @cached_property
    def _has_curly_quotes(self) -> bool:
        """Whether the bytes of a curly quote are anywhere: a quick look that spares most files the rest."""
        encoding = self._encoding
        held = [encoding.encode(sign) for sign in SINGLE_QUOTES + DOUBLE_QUOTES if encoding.can_encode(sign)]
        return any(sign in self._data for sign in held)

    @cached_property
    def _lf_text(self) -> "_FoldedText":
        return _FoldedText(self.snapshot)

    @cached_property
    def _straight_text(self) -> "_FoldedText":
        return _FoldedText(self.snapshot, straighten_quotes)


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


class _FoldedText:
    """A file's text with LF endings, each character changed by `fold`, and the way from its characters to the bytes."""

    def __init__(self, snapshot: Snapshot, fold: Callable[[str], str] = str) -> None:
        self._snapshot = snapshot
        # A byte that fits no encoding is one character, so that positions stay the same.
        self._codec = "latin-1" if snapshot.encoding.is_raw else snapshot.encoding.name
        body = str(memoryview(snapshot.data)[len(snapshot.encoding.bom) :], self._codec)
        text = body.replace("\r", "\n") if snapshot.lines.style == "cr" else body.replace("\r\n", "\n")
        self._text = fold(text)
        self._position = self._line = self._in_row = 0

    def find(self, wanted: str, tier: MatchTier) -> TextMatches:
        matches, first = list[TextMatch](), self._text.find(wanted)
        at = first
        while at >= 0:
            matches.append((self._byte_offset(at), self._byte_offset(at + len(wanted))))
            at = self._text.find(wanted, at + len(wanted))
        again = len(matches) == 1 and self._text.find(wanted, first + 1, first + 2 * len(wanted) - 1) >= 0
        return TextMatches(tier=tier, found=tuple(matches), count=len(matches) + again, encoded_alike=False)

    def _byte_offset(self, position: int) -> int:
        """Return the byte of a character; while positions grow, every character is looked at once."""
        if position < self._position:
            self._position = self._line = self._in_row = 0
        new_line = self._text.rfind("\n", self._position, position) + 1
        if new_line:
            self._line += self._text.count("\n", self._position, position)
            self._position, self._in_row = new_line, 0
        lines = self._snapshot.lines
        if self._line >= len(lines):
            return self._snapshot.size
        row = lines.contents[self._line]
        self._in_row = _advance_characters(row, self._in_row, position - self._position, self._codec)
        self._position = position
        return lines.starts[self._line] + self._in_row


def _advance_characters(row: bytes, at: int, characters: int, codec: str) -> int:
    """Return the offset that lies some characters after another one: by large steps, then byte by byte."""
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

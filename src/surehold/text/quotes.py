"""Where a text stands in a file, by the first of three tiers that finds it anywhere. Never similarity.

1. Exactly these bytes. 2. The same text with the file's own line endings. 3. The same with curly and straight quotes taken
   for each other, which wants a text that says something: four characters, not only blanks and quotes.
A text that the file's encoding cannot hold is not in the file; its straight quotes may be.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from surehold.errors import NotEncodable
from surehold.text.matching import Haystack, Match
from surehold.text.snapshot import Snapshot

Tier = Literal["exact", "line_endings", "quotes"]

SINGLE = "\u2018\u2019\u201a\u201b"
DOUBLE = "\u201c\u201d\u201e\u201f"
_BREAK = re.compile(r"\r\n|\r")
_BREAKS = re.compile(r"[\r\n]")
_QUOTE = re.compile("['\"]")
_SHORTEST = 4
_ONE_SPELLING = re.compile(r"utf|ascii|latin|iso8859|cp125\d|koi8|mac|gb")
_STEP = 4096
_WIDE = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Every place where a text stands, found by one tier."""

    tier: Tier = "exact"
    matches: tuple[Match, ...] = ()
    count: int = 0
    """How often it stands there; two places that overlap count as two."""
    encoded_alike: bool = True
    """Encoding the text again gives these very bytes; some codecs have two spellings of a character."""


def straight(text: str) -> str:
    """Return a text with straight quotes only."""
    if text.isascii():
        return text
    for sign in SINGLE:  # faster than a table, by far
        text = text.replace(sign, "'")
    for sign in DOUBLE:
        text = text.replace(sign, '"')
    return text


def places_of(snapshot: Snapshot, needle: str, *, haystack: Haystack | None = None) -> Places:
    """Find every place of a text that is not empty, by the first tier that finds any."""
    try:
        found = (haystack or Haystack(snapshot)).find(needle)
    except NotEncodable:
        pass
    else:
        if found.found and (found.tier == "exact" or snapshot.encoding.width == 1):
            again = found.tier == "line_endings" and len(found.found) == 1 and _again(snapshot, needle, found.found[0])
            return Places(tier=found.tier, matches=found.found, count=max(found.count, 1 + again))
    return _by_characters(snapshot, needle) or _by_quotes(snapshot, needle)


def _again(snapshot: Snapshot, needle: str, match: Match) -> bool:
    """Tell whether a second place, with whichever line endings, overlaps the only one."""
    around = snapshot.data[match.start : 3 * match.end - 2 * match.start]
    text, wanted = _broken(snapshot, str(around, _codec(snapshot), "replace")), _BREAK.sub("\n", needle)
    return text.find(wanted, 1, 2 * len(wanted) - 1) >= 0


def _by_characters(snapshot: Snapshot, needle: str) -> Places | None:
    """Find the same characters in an encoding that has two spellings of some, as Shift-JIS does, or wide line endings."""
    if snapshot.encoding.width > 1:
        found = (
            _found(_Page(snapshot), _BREAK.sub("\n", needle), "line_endings") if _BREAKS.search(needle) else Places()
        )
        return found if found.count else None
    if needle.isascii() or snapshot.encoding.is_raw or _ONE_SPELLING.match(snapshot.encoding.name):
        return None
    found = _found(_Page(snapshot), _BREAK.sub("\n", needle), "exact")
    return found if found.count else None


def _by_quotes(snapshot: Snapshot, needle: str) -> Places:
    plain = _BREAK.sub("\n", needle)
    wanted = straight(plain)
    if len(wanted) < _SHORTEST or not wanted.strip("'\" \t\n") or not _QUOTE.search(wanted):
        return Places()
    if wanted == plain and not _has_curly(snapshot):
        return Places()
    return _found(_Page(snapshot, straight), wanted, "quotes")


def _found(page: "_Page", wanted: str, tier: Tier) -> Places:
    matches, first = list[Match](), page.text.find(wanted)
    at = first
    while at >= 0:
        matches.append(page.match(at, at + len(wanted)))
        at = page.text.find(wanted, at + len(wanted))
    again = len(matches) == 1 and page.text.find(wanted, first + 1, first + 2 * len(wanted) - 1) >= 0
    return Places(tier=tier, matches=tuple(matches), count=len(matches) + again, encoded_alike=False)


def _has_curly(snapshot: Snapshot) -> bool:
    """Tell whether the bytes of a curly quote are anywhere: a quick look that spares most files the rest."""
    encoding = snapshot.encoding
    held = [encoding.encode(sign) for sign in SINGLE + DOUBLE if encoding.can_hold(sign)]
    return any(sign in snapshot.data for sign in held)


def _codec(snapshot: Snapshot) -> str:
    """Name the codec; a byte that fits no encoding stands for one character, so that positions stay the same."""
    return "latin-1" if snapshot.encoding.is_raw else snapshot.encoding.name


def _broken(snapshot: Snapshot, text: str) -> str:
    """Return a text of a file with LF endings."""
    return text.replace("\r", "\n") if snapshot.lines.style == "cr" else text.replace("\r\n", "\n")


class _Page:
    """A file's text with LF endings, each character changed by `fold`, and the way from its characters to the bytes."""

    def __init__(self, snapshot: Snapshot, fold: Callable[[str], str] = str) -> None:
        self._snapshot, self._codec = snapshot, _codec(snapshot)
        body = str(memoryview(snapshot.data)[len(snapshot.encoding.bom) :], self._codec)
        self.text = fold(_broken(snapshot, body))
        self._position = self._line = self._in_row = 0

    def match(self, start: int, end: int) -> Match:
        """Return the bytes of some characters."""
        return Match(self._offset(start), self._offset(end))

    def _offset(self, position: int) -> int:
        """Return the byte of a character; positions grow, so that every character is looked at once."""
        new_line = self.text.rfind("\n", self._position, position) + 1
        if new_line:
            self._line += self.text.count("\n", self._position, position)
            self._position, self._in_row = new_line, 0
        lines = self._snapshot.lines
        if self._line >= len(lines):
            return self._snapshot.size
        row = lines.contents[self._line]
        self._in_row = _bytes_further(row, self._in_row, position - self._position, self._codec)
        self._position = position
        return lines.starts[self._line] + self._in_row


def _bytes_further(row: bytes, at: int, characters: int, codec: str) -> int:
    """Return the offset that lies some characters behind another one: by large steps, then byte by byte."""
    if codec not in _WIDE and row[at : at + characters].isascii():
        return at + characters
    decoder, done = codecs.getincrementaldecoder(codec)(), 0
    while characters - done >= _STEP:  # so many bytes are never more characters
        done += len(decoder.decode(row[at : at + _STEP]))
        at += _STEP
    while done < characters:
        done += len(decoder.decode(row[at : at + 1]))
        at += 1
    return at - len(decoder.getstate()[0])

"""Where a piece of text stands in a file's bytes.

1. A match begins and ends between characters, and never between the CR and the LF of one terminator.
2. Two tiers: exactly these bytes; then the same text with the file's own line endings. Never similarity.
3. The search runs on bytes. Only positions are decoded, never the file.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from surehold.text.snapshot import Snapshot

Tier = Literal["exact", "line_endings"]

_SELF_SYNCHRONISING = re.compile(r"utf-8|ascii|bytes|latin|iso8859|cp125\d|cp4|cp7|cp8[56]|koi8|mac|tis")


@dataclass(frozen=True, slots=True)
class Match:
    """Bytes `start` to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Every place where a needle stands, found by one tier."""

    tier: Tier
    found: tuple[Match, ...]
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
        self._starts, self._ends = _Boundaries(snapshot), _Boundaries(snapshot)

    def find(self, needle: str) -> Matches:
        """Find every place of the needle, by the first tier that finds any."""
        encoded = self._encoding.encode(needle)
        found = tuple(self._exact(encoded))
        if found:
            overlap = len(found) == 1 and self._overlaps_itself(encoded, found[0])
            return Matches("exact", found, overlap)
        if "\n" in needle or "\r" in needle:
            found = tuple(self._any_ending(needle))
        return Matches("line_endings", found, len(found) == 1 and self._breaks_again(needle, found[0]))

    def _exact(self, needle: bytes) -> Iterator[Match]:
        at = self._data.find(needle, self._begin)
        while at >= 0:
            if self._is_whole(at, at + len(needle)):
                yield Match(at, at + len(needle))
                at = self._data.find(needle, at + len(needle))
            else:
                at = self._data.find(needle, at + 1)

    def _overlaps_itself(self, needle: bytes, match: Match) -> bool:
        at, end = match.start, match.end + len(needle) - 1
        while (at := self._data.find(needle, at + 1, end)) >= 0:
            if self._is_whole(at, at + len(needle)):
                return True
        return False

    def _breaks_again(self, needle: str, match: Match) -> bool:
        """Tell whether a second place, with whichever line endings, overlaps the only one."""
        codec = "latin-1" if self._encoding.is_raw else self._encoding.name
        around = str(self._data[match.start : 3 * match.end - 2 * match.start], codec, "replace")
        text, wanted = re.sub(r"\r\n|\r", "\n", around), re.sub(r"\r\n|\r", "\n", needle)
        return text.find(wanted, 1, 2 * len(wanted) - 1) >= 0

    def _any_ending(self, needle: str) -> Iterator[Match]:
        """Search with every kind of line ending taken as the same."""
        if self._encoding.width > 1:
            yield from self._any_ending_wide(needle)
            return
        wanted = self._encoding.encode(re.sub(r"\r\n|\r", "\n", needle))
        text, keys = self._with_lf
        at = text.find(wanted, self._begin)
        while at >= 0:
            end = at + len(wanted)
            start_byte, end_byte = at + bisect_left(keys, at), end + bisect_left(keys, end)
            if self._is_whole(start_byte, end_byte):
                yield Match(start_byte, end_byte)
            at = text.find(wanted, end)

    def _any_ending_wide(self, needle: str) -> Iterator[Match]:
        pieces = [re.escape(self._encoding.encode(piece)) for piece in re.split(r"\r\n|\n|\r", needle)]
        ends = b"|".join(re.escape(self._encoding.newline(sign)) for sign in ("\r\n", "\n", "\r"))
        for match in re.finditer((b"(?>" + ends + b")").join(pieces), self._data[self._begin :], re.DOTALL):
            start, end = match.start() + self._begin, match.end() + self._begin
            if self._is_whole(start, end):
                yield Match(start, end)

    @cached_property
    def _with_lf(self) -> tuple[bytes, list[int]]:
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
        return self._starts.has(start) and self._ends.has(end)

    def _splits_crlf_wide(self, start: int, end: int) -> bool:
        width, crlf = self._encoding.width, self._encoding.newline("\r\n")
        return any(self._data[max(at - width, self._begin) : at + width] == crlf for at in (start, end))


class _Boundaries:
    """Which offsets lie between characters: while they grow, no byte is decoded twice."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._at = self._begin = len(snapshot.encoding.bom)

    def has(self, offset: int) -> bool:
        """Decode on to the offset: inside of a character, bytes are left over."""
        data, breaker = self._snapshot.data, self._snapshot.lines.breaker
        if offset < self._at:
            self._at = self._begin
            self._decoder.reset()
        line = data.rfind(breaker, self._at, offset) + 1
        if line:  # no character reaches over the end of a line
            self._at = line
            self._decoder.reset()
        self._decoder.decode(data[self._at : offset])
        self._at = offset
        return not self._decoder.getstate()[0]

    @cached_property
    def _decoder(self) -> codecs.IncrementalDecoder:
        return codecs.getincrementaldecoder(self._snapshot.encoding.name)("replace")

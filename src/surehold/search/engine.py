"""What an engine is: it finds places in files, and shows nothing.

1. A place is an offset in the bytes as they are searched: without a byte order mark, UTF-16 as UTF-8 (see `searched`).
2. What a caller gets to see is read by us, through the disk, after the engine is done. An engine that is led astray can
   at most point at a place where nothing is.
3. A file that rules deny is not read by an engine.
"""

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from surehold.disk.base import Reader, Target
from surehold.search.budget import Budget
from surehold.search.glob import Filter
from surehold.search.values import EngineName, Search, Want
from surehold.search.walk import Allowed
from surehold.text.encoding import RAW, UTF8
from surehold.text.snapshot import Snapshot

MAX_PLACES = 500_000
"""More are not collected."""
TOO_MANY = "There are more matches than can be collected; narrow the search."
_KNOWN = frozenset({UTF8.name, RAW.name, "ascii"})
_UTF16 = 2
Parts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where an engine looks."""

    disk: Reader
    directory: Target
    search: Search
    allowed: Allowed | None = None
    """None when no rule can deny anything."""
    max_file_bytes: int = 1 << 28

    @cached_property
    def filter(self) -> Filter:
        """The globs of the search."""
        return Filter(self.search.include, self.search.exclude)

    def takes(self, parts: Parts) -> bool:
        """Tell whether a file is asked for; this decides, whatever an engine thinks."""
        if not self.search.hidden and any(name[0] == "." for name in parts):
            return False
        if self.search.closed and not set(self.search.closed).isdisjoint(parts[:-1]):
            return False
        return ".git" not in parts and self.filter.takes(parts)


@dataclass(kw_only=True)
class Found:
    """What an engine found."""

    places: dict[Parts, list[int]] = field(default_factory=dict[Parts, list[int]])
    """For each file, by its names below the directory, where the matches begin."""
    marks: dict[Parts, int] = field(default_factory=dict[Parts, int])
    """What the bytes were in which an engine of ours found them; empty for others."""
    scanned: int = 0
    denied: int = 0
    too_large: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    """By their paths below the directory."""
    complete: bool = True


Span = tuple[int, int]
"""Where a match begins and ends."""
Place = tuple[int, int]
"""A line, and how many bytes of it stand before its first match."""


class Matching(NamedTuple):
    """What matches in one file."""

    places: list[Place]
    matches: int
    complete: bool = True
    """Whether this is all."""


@dataclass(kw_only=True)
class Swept:
    """What an engine found out about the files of a tree, by their paths below the directory."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Every file with matches: how many, or how many matching lines, or 1 when nobody counted."""
    places: dict[str, bytes | list[Place]] = field(default_factory=dict[str, bytes | list[Place]])
    """Where the matching lines are; as the engine said it, until it is asked for."""
    marks: dict[str, int] = field(default_factory=dict[str, int])
    """What the bytes were in which an engine of ours found them; empty for others."""
    doubtful: list[str] = field(default_factory=list[str])
    """Files of text with zero bytes somewhere: what was found there must be found again."""
    matches: int | None = 0
    """All matches, when places were wanted; None when nobody knows."""
    scanned: int | None = 0
    binary: list[str] = field(default_factory=list[str])
    """Files with matches that are not text."""
    denied: int = 0
    too_large: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    overflowed: bool = False
    timed_out: bool = False


class Engine(Protocol):
    """Finds places in files."""

    @property
    def name(self) -> EngineName:
        """How results call it."""
        ...

    def find(self, scope: Scope, budget: Budget) -> Found:
        """Find all places below a directory."""
        ...

    def find_in(self, search: Search, data: bytes, budget: Budget) -> tuple[list[int], bool]:
        """Find the places in these bytes of a file, and tell whether these are all."""
        ...

    def sweep(self, scope: Scope, want: Want, budget: Budget) -> Swept:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        ...

    def lines_in(self, search: Search, data: bytes, budget: Budget) -> Matching:
        """Find the matching lines in these bytes of a file."""
        ...

    def spans(self, search: Search, data: bytes, budget: Budget) -> list[Span]:
        """Find the matches in a few lines of text."""
        ...


def searched(data: bytes) -> bytes:
    """Return a file's bytes as engines search them."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        little = data.startswith(codecs.BOM_UTF16_LE)
        return data[2:].decode("utf-16-le" if little else "utf-16-be", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def searchable(snapshot: Snapshot) -> Snapshot:
    """Return a file of text as engines can search it: they know UTF-8, and UTF-16 by its byte order mark."""
    encoding = snapshot.encoding
    if encoding.name in _KNOWN or (encoding.bom and encoding.width == _UTF16):
        return snapshot
    return Snapshot(snapshot.text.encode("utf-8", "replace"), encoding=UTF8)


def matching_in(data: bytes, spans: Sequence[Span], *, complete: bool = True) -> Matching:
    """Return the lines that matches in a file's bytes touch; without any line feed, a carriage return ends a line."""
    text = searched(data)
    return Matching(
        places_of(text if b"\n" in data else text.replace(b"\r", b"\n"), spans), len(spans), complete=complete
    )


def places_of(text: bytes, spans: Iterable[Span]) -> list[Place]:
    """Return the lines that matches touch, in order; a line ends at a line feed."""
    found = list[Place]()
    number, begin, end = 1, 0, _line_end(text, 0)
    for start, stop in spans:
        if start > end:
            number, begin = number + text.count(b"\n", end, start), text.rfind(b"\n", 0, start) + 1
            end = _line_end(text, begin)
        if not found or found[-1][0] < number:
            found.append((number, start - begin))
        while stop - 1 > end:  # it goes on in the next line
            number, begin = number + 1, end + 1
            end = _line_end(text, begin)
            found.append((number, 0))
    return found


def _line_end(text: bytes, begin: int) -> int:
    end = text.find(b"\n", begin)
    return len(text) if end < 0 else end

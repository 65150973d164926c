"""The interface of a search engine: it reports where files match, and never returns file content.

1. A position is an offset in the bytes as they are searched: without a byte order mark, UTF-16 as UTF-8 (see
   `searched_bytes`).
2. What a caller sees is read by us, through the disk, after the engine is done. A misled engine can at most report a
   position that has no match.
3. A file that rules deny is not read by an engine.
4. `UnchangedFiles` tells whether a file that is read now still has the bytes that the engine searched.
"""

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from surehold.disk.base import DiskReader, EntryStat, Target
from surehold.errors import SureholdError
from surehold.search.deadline import Deadline
from surehold.search.glob import GlobFilter
from surehold.search.query import EngineName, Search, Want
from surehold.search.walk import Allowed
from surehold.text.encoding import RAW, UTF8
from surehold.text.snapshot import Snapshot

MAX_PLACES = 500_000
"""More are not collected."""
TOO_MANY_MATCHES = "There are more matches than can be collected; narrow the search."
_SEARCHABLE_ENCODINGS = frozenset({UTF8.name, RAW.name, "ascii"})
_UTF16_WIDTH_BYTES = 2
Parts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where an engine looks."""

    disk: DiskReader
    directory: Target
    search: Search
    allowed: Allowed | None = None
    """None when no rule can deny anything."""
    max_file_bytes: int = 1 << 28

    @cached_property
    def glob_filter(self) -> GlobFilter:
        """The globs of the search."""
        return GlobFilter(self.search.include, self.search.exclude)

    def accepts_file(self, parts: Parts) -> bool:
        """Tell whether a file is asked for; this decides, whatever an engine thinks."""
        if not self.search.hidden and any(name[0] == "." for name in parts):
            return False
        if self.search.closed and not set(self.search.closed).isdisjoint(parts[:-1]):
            return False
        return ".git" not in parts and self.glob_filter.accepts_file(parts)


@dataclass(kw_only=True)
class TreeOffsets:
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
MatchPosition = tuple[int, int]
"""A line, and how many bytes of it stand before its first match."""


class FileMatches(NamedTuple):
    """What matches in one file."""

    places: list[MatchPosition]
    matches: int
    complete: bool = True
    """Whether this is all."""


@dataclass(kw_only=True)
class TreeMatches:
    """What an engine found out about the files of a tree, by their paths below the directory."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Every file with matches: how many, or how many matching lines, or 1 when nobody counted."""
    places: dict[str, bytes | list[MatchPosition]] = field(default_factory=dict[str, bytes | list[MatchPosition]])
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

    def find(self, scope: Scope, budget: Deadline) -> TreeOffsets:
        """Find all places below a directory."""
        ...

    def find_in(self, search: Search, data: bytes, budget: Deadline) -> tuple[list[int], bool]:
        """Find the places in these bytes of a file, and tell whether these are all."""
        ...

    def search_tree(self, scope: Scope, want: Want, budget: Deadline) -> TreeMatches:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        ...

    def match_lines(self, search: Search, data: bytes, budget: Deadline) -> FileMatches:
        """Find the matching lines in these bytes of a file."""
        ...

    def match_spans(self, search: Search, data: bytes, budget: Deadline) -> list[Span]:
        """Find the matches in a few lines of text."""
        ...


def searched_bytes(data: bytes) -> bytes:
    """Return a file's bytes as engines search them."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        little = data.startswith(codecs.BOM_UTF16_LE)
        return data[2:].decode("utf-16-le" if little else "utf-16-be", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def to_searchable(snapshot: Snapshot) -> Snapshot:
    """Return a file of text as engines can search it: they know UTF-8, and UTF-16 by its byte order mark."""
    encoding = snapshot.encoding
    if encoding.name in _SEARCHABLE_ENCODINGS or (encoding.bom and encoding.width == _UTF16_WIDTH_BYTES):
        return snapshot
    return Snapshot(snapshot.text.encode("utf-8", "replace"), encoding=UTF8)


def matches_by_line(data: bytes, spans: Sequence[Span], *, complete: bool = True) -> FileMatches:
    """Return the lines that matches in a file's bytes touch; without any line feed, a carriage return ends a line."""
    text = searched_bytes(data)
    return FileMatches(
        positions_of_spans(text if b"\n" in data else text.replace(b"\r", b"\n"), spans), len(spans), complete=complete
    )


def positions_of_spans(text: bytes, spans: Iterable[Span]) -> list[MatchPosition]:
    """Return the lines that matches touch, in order; a line ends at a line feed."""
    found = list[MatchPosition]()
    number, begin, end = 1, 0, _find_line_end(text, 0)
    for start, stop in spans:
        if start > end:
            number, begin = number + text.count(b"\n", end, start), text.rfind(b"\n", 0, start) + 1
            end = _find_line_end(text, begin)
        if not found or found[-1][0] < number:
            found.append((number, start - begin))
        while stop - 1 > end:  # it goes on in the next line
            number, begin = number + 1, end + 1
            end = _find_line_end(text, begin)
            found.append((number, 0))
    return found


def _find_line_end(text: bytes, begin: int) -> int:
    end = text.find(b"\n", begin)
    return len(text) if end < 0 else end


_MARGIN_NS = 50_000_000
"""How much older than the search a file must be to count as unchanged: clocks of file systems are coarse."""


@dataclass(kw_only=True)
class UnchangedFiles:
    """Tells of files below a directory whether they have rested since before a moment, and the way to them too."""

    disk: DiskReader
    directory: Target
    began: int
    """The moment, in nanoseconds."""
    older: dict[Parts, bool] = field(default_factory=dict[Parts, bool])
    """Which directories have not changed since."""

    def __call__(self, target: Target) -> bool:
        """Tell whether a file that was just read has not changed, nor the way to it."""
        return self.check_each(replace(target, parts=target.parts[:-1], key=""), target.parts[-1:])[0]

    def check_each(self, directory: Target, names: Sequence[str]) -> list[bool]:
        """Tell the same of several files of one directory, all of them just read."""
        depths = range(len(self.directory.parts), len(directory.parts) + 1)
        if not self.disk.is_coherent or not all(self._is_older_directory(directory, depth) for depth in depths):
            return [False] * len(names)
        return self._are_older(directory, names)

    def _is_older_directory(self, below: Target, depth: int) -> bool:
        """Tell whether no name in a directory has changed: a link, or another directory, could have been there."""
        parts = below.parts[:depth]
        older = self.older.get(parts)
        if older is None:
            older = self.older[parts] = self._are_older(replace(below, parts=parts, key=""), (".",))[0]
        return older

    def _are_older(self, directory: Target, names: Sequence[str]) -> list[bool]:
        try:
            looks = self.disk.stat_entries(directory, names)
        except SureholdError:  # the whole directory is gone
            return [False] * len(names)
        return [look is not None and self._is_old(look) for look in looks]

    def _is_old(self, look: EntryStat) -> bool:
        return max(look.ctime_ns, look.mtime_ns) < self.began - _MARGIN_NS

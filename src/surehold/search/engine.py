"""The interface of a search engine: it reports where files match, and never returns file content.

1. A position is a line, and an offset in the bytes of that line as they are searched: without a byte order mark, UTF-16 as
   UTF-8 (see `searched_bytes`).
2. What a caller sees is read by us, through the disk, after the engine is done. A misled engine can at most report a
   position that has no match.
3. A file that rules deny is not read by an engine.
"""

import codecs
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, NoReturn, Protocol

from surehold.disk.base import DiskReader, Target
from surehold.errors import Cancelled, SearchTimeout
from surehold.search.glob import GlobFilter
from surehold.search.query import EngineName, Search, Want
from surehold.search.walk import Allowed
from surehold.text.encoding import RAW, UTF8
from surehold.text.snapshot import Snapshot

Progress = Callable[[float, float | None, str], None]
"""Receives the seconds that a search has taken, which always rise, its limit, and what was found until now."""
DEFAULT_SECONDS = 20.0
_PROGRESS_SECONDS = 0.5


class Deadline:
    """The time of one call; `check` is called often, and raises when no time is left."""

    def __init__(
        self,
        seconds: float = DEFAULT_SECONDS,
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.seconds, self._progress, self._cancelled = seconds, progress, cancelled
        self._began = self._reported = time.monotonic()
        self._end = self._began + seconds

    @property
    def seconds_left(self) -> float:
        """The remaining time; negative when it is up."""
        return self._end - time.monotonic()

    def with_more_time(self, seconds: float) -> "Deadline":
        """Return a later deadline of the same call; messages still name the original limit."""
        more = Deadline(seconds, progress=self._progress, cancelled=self._cancelled)
        more.seconds, more._began, more._reported = self.seconds, self._began, self._reported
        return more

    def check(self, done: int, total: int | None, message: str) -> None:
        """Raise `Cancelled` or `SearchTimeout` when it is time to stop; report progress now and then."""
        now = time.monotonic()
        if self._cancelled and self._cancelled():
            raise Cancelled("The search was cancelled.")
        if now > self._end:
            self.raise_timeout(done, message)
        self.report(done, total, message)

    def report(self, done: int, total: int | None, message: str) -> None:
        """Report progress now and then, also when no time is left."""
        now = time.monotonic()
        if self._progress and now - self._reported >= _PROGRESS_SECONDS:
            self._reported = now
            elapsed = round(now - self._began, 1)
            found = f"{done} of {total} {message}" if total else f"{done} {message}"
            self._progress(elapsed, max(self.seconds, elapsed), found)

    def raise_timeout(self, done: int, message: str) -> NoReturn:
        """Report that time is up, and how much was done."""
        raise SearchTimeout(
            f"The search took longer than {self.seconds:g} s; {done} {message}.",
            reason="scan_budget",
            seconds=self.seconds,
            done=done,
        )


_SEARCHABLE_ENCODINGS = frozenset({UTF8.name, RAW.name, "ascii"})
_UTF16_WIDTH_BYTES = 2
Parts = tuple[str, ...]
Span = tuple[int, int]
"""Where a match begins and ends."""
MatchPosition = tuple[int, int]
"""A line, and how many bytes of it precede the match."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    disk: DiskReader
    directory: Target
    search: Search
    allowed: Allowed | None = None
    """None if no rule can deny anything."""
    max_file_bytes: int = 1 << 28

    @cached_property
    def glob_filter(self) -> GlobFilter:
        return GlobFilter(self.search.include, self.search.exclude)


class FileMatches(NamedTuple):
    places: list[MatchPosition]
    """The first match of each matching line, or every match."""
    matches: int
    complete: bool = True
    """Whether this is everything."""

    def count(self, want: Want) -> int:
        return {"files": 1, "counts": self.matches}.get(want, len(self.places))


@dataclass(kw_only=True)
class TreeMatches:
    """What an engine found in the files of a tree, by their paths below the directory."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Every file with matches: how many, or how many matching lines, or 1 if they are not counted."""
    places: dict[str, bytes | list[MatchPosition]] = field(default_factory=dict[str, bytes | list[MatchPosition]])
    """The positions in each file; in the engine's own format until they are needed."""
    parse: Callable[[bytes], list[MatchPosition]] = lambda _: []
    """Reads the engine's own format."""
    marks: dict[str, int] = field(default_factory=dict[str, int])
    """A hash of the bytes that were searched, if the engine read them through our disk."""
    doubtful: list[str] = field(default_factory=list[str])
    """Text files with NUL bytes somewhere: they must be searched again."""
    matches: int | None = 0
    """All matches, if lines were wanted; None if unknown."""
    scanned: int | None = 0
    binary: list[str] = field(default_factory=list[str])
    """Files with matches that are not text."""
    denied: int = 0
    too_large: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    overflowed: bool = False
    timed_out: bool = False

    def positions_in(self, name: str) -> list[MatchPosition]:
        places = self.places[name]
        return places if isinstance(places, list) else self.parse(places)


class Engine(Protocol):
    @property
    def name(self) -> EngineName:
        """Its name in results."""
        ...

    def search_tree(self, scope: Scope, want: Want, deadline: Deadline) -> TreeMatches:
        """Search all files below a directory; when time is up, return what was found until then."""
        ...

    def search_bytes(self, search: Search, data: bytes, want: Want, deadline: Deadline) -> FileMatches:
        """Search the bytes of one file."""
        ...

    def match_spans(self, search: Search, data: bytes, deadline: Deadline) -> list[Span]:
        """Find the matches in a few lines of text."""
        ...


def searched_bytes(data: bytes) -> bytes:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def to_searchable(snapshot: Snapshot) -> Snapshot:
    """Return a text file as engines can search it: they know UTF-8, and UTF-16 by its byte order mark."""
    encoding = snapshot.encoding
    if encoding.name in _SEARCHABLE_ENCODINGS or (encoding.bom and encoding.width == _UTF16_WIDTH_BYTES):
        return snapshot
    return Snapshot(snapshot.text.encode("utf-8", "replace"), encoding=UTF8)


def matches_of_spans(data: bytes, spans: Sequence[Span], want: Want, *, complete: bool = True) -> FileMatches:
    """Return the positions of matches in a file's bytes; without any line feed, a carriage return ends a line."""
    text = searched_bytes(data)
    text = text if b"\n" in data else text.replace(b"\r", b"\n")
    if want == "matches":
        places = positions_of_matches(text, spans)
        return FileMatches(places, len(places), complete=complete)
    return FileMatches(positions_of_lines(text, spans), len(spans), complete=complete)


def positions_of_lines(text: bytes, spans: Iterable[Span]) -> list[MatchPosition]:
    """Return the lines that matches touch, in order; a line ends at a line feed."""
    found = list[MatchPosition]()
    for number, begin, end, (start, stop) in _with_lines(text, spans):
        if not found or found[-1][0] < number:
            found.append((number, start - begin))
        while stop - 1 > end:  # the match continues in the next line
            number, end = number + 1, _find_line_end(text, end + 1)  # noqa: PLW2901 - from line to line
            found.append((number, 0))
    return found


def positions_of_matches(text: bytes, spans: Iterable[Span]) -> list[MatchPosition]:
    matches = _with_lines(text, spans)
    return drop_empty_matches((line, start - begin, start == stop) for line, begin, _, (start, stop) in matches)


def drop_empty_matches(matches: Iterable[tuple[int, int, bool]]) -> list[MatchPosition]:
    """Return the matches that count: an empty one only if its line has no other."""
    found = list[MatchPosition]()
    last_line, last_empty = -1, False
    for line, begin, empty in matches:
        if line == last_line and empty:
            continue
        if line == last_line and last_empty:
            found.pop()
        found.append((line, begin))
        last_line, last_empty = line, empty
    return found


def _with_lines(text: bytes, spans: Iterable[Span]) -> Iterator[tuple[int, int, int, Span]]:
    """Yield each match with the number, the beginning and the end of its line."""
    number, begin, end = 1, 0, _find_line_end(text, 0)
    for start, stop in spans:
        if start > end:
            number, begin = number + text.count(b"\n", end, start), text.rfind(b"\n", 0, start) + 1
            end = _find_line_end(text, begin)
        yield number, begin, end, (start, stop)


def _find_line_end(text: bytes, begin: int) -> int:
    end = text.find(b"\n", begin)
    return len(text) if end < 0 else end

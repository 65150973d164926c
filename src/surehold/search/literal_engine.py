"""The search engine for machines without ripgrep: slower, with the same answers."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from surehold.disk.base import Target
from surehold.errors import FileTooLarge, NotFound, OutsideWorkspace, SearchTimeout, SureholdError
from surehold.search.deadline import Deadline
from surehold.search.engine import (
    MAX_PLACES,
    FileMatches,
    Scope,
    Span,
    TreeMatches,
    TreeOffsets,
    matches_by_line,
    positions_of_spans,
    searched_bytes,
)
from surehold.search.file_types import type_globs
from surehold.search.glob import GlobFilter
from surehold.search.query import EngineName, Search, Want
from surehold.search.regex_child import offsets, spans
from surehold.search.walk import ExcludingGuide, SkipTally, TreeWalk
from surehold.text.encoding import SNIFF_BYTES

FindIn = Callable[[bytes], list[int]]


@dataclass(frozen=True, kw_only=True)
class LiteralEngine:
    """Walks, reads and searches in this process; regular expressions run in a child that can be killed."""

    @property
    def name(self) -> EngineName:
        """How results call it."""
        return "python"

    def find(self, scope: Scope, budget: Deadline) -> TreeOffsets:
        """Find all places below a directory."""
        found, tally, places = TreeOffsets(), SkipTally(), 0
        with _open_finder(scope.search, budget) as find_in:
            for parts, target in _walk_files(scope, tally):
                budget.check(found.scanned, None, "files searched")
                data = _read_file(scope, target, found)
                if data is None:
                    continue
                found.scanned += 1
                if here := find_in(data):
                    found.places[parts], found.marks[parts] = here, hash(data)
                    places += len(here)
                if places > MAX_PLACES:
                    found.complete = False
                    break
        found.denied = tally.denied
        found.unreadable = _relative_names(scope, found.unreadable + tally.unreadable)
        return found

    def find_in(self, search: Search, data: bytes, budget: Deadline) -> tuple[list[int], bool]:
        """Find all places in these bytes of a file."""
        with _open_finder(search, budget) as find_in:
            return find_in(data), True

    def search_tree(self, scope: Scope, want: Want, budget: Deadline) -> TreeMatches:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        swept, tally, found = TreeMatches(), SkipTally(), TreeOffsets()
        try:
            with _open_span_finder(scope.search, budget) as spans_in:
                for parts, target in _walk_files(scope, tally):
                    budget.check(found.scanned, None, "files searched")
                    data = _read_file(scope, target, found)
                    if data is None:
                        continue
                    found.scanned += 1
                    if here := spans_in(data):
                        _add_file_matches(swept, "/".join(parts), data, here, want)
        except SearchTimeout as error:
            if error.reason == "regex_budget":  # one file took all the time: that is not a matter of how many there are
                raise
            swept.timed_out = True
        swept.scanned = None if swept.timed_out else found.scanned
        swept.denied, swept.too_large = tally.denied, found.too_large
        swept.unreadable = _relative_names(scope, found.unreadable + tally.unreadable)
        return swept

    def match_lines(self, search: Search, data: bytes, budget: Deadline) -> FileMatches:
        """Find the matching lines in these bytes of a file."""
        return matches_by_line(data, self.match_spans(search, data, budget))

    def match_spans(self, search: Search, data: bytes, budget: Deadline) -> list[Span]:
        """Find all matches in these bytes of a file, as they are searched."""
        with _open_span_finder(search, budget) as spans_in:
            return spans_in(data)


def _add_file_matches(swept: TreeMatches, path: str, data: bytes, found: list[Span], want: Want) -> None:
    text = searched_bytes(data)
    if b"\0" in text[:SNIFF_BYTES]:
        swept.binary.append(path)
        return
    if want == "lines":
        swept.places[path] = lines = positions_of_spans(text, found)
        swept.counts[path], swept.marks[path] = len(lines), hash(data)
        swept.matches = (swept.matches or 0) + len(found)
    else:
        swept.counts[path] = len(found) if want == "counts" else 1


def _walk_files(scope: Scope, tally: SkipTally) -> Iterator[tuple[tuple[str, ...], Target]]:
    search = scope.search
    types = GlobFilter(type_globs(search.types), ())
    walk = TreeWalk(
        disk=scope.disk,
        start=scope.directory,
        allowed=scope.allowed,
        hidden=search.hidden,
        ignore=search.ignore,
        guide=ExcludingGuide(scope.glob_filter, search.closed),
        tally=tally,
    )
    for room in walk.visit_directories():
        for name, kind in room.entries:
            parts = (*room.parents, name)
            if kind == "file" and scope.accepts_file(parts) and types.accepts_file((name,)):
                yield parts, scope.disk.target_below(room.directory, (name,))


def _relative_names(scope: Scope, names: list[str]) -> list[str]:
    """Return names as they read from the directory that is searched."""
    return [name.removeprefix(f"{scope.directory.key}/") for name in names]


def _read_file(scope: Scope, target: Target, found: TreeOffsets) -> bytes | None:
    try:
        stored = scope.disk.read(target, limit=scope.max_file_bytes)
    except FileTooLarge:
        found.too_large += 1
    except (NotFound, OutsideWorkspace):  # gone meanwhile, or a link by now
        pass
    except SureholdError:
        found.unreadable.append(target.key)
    else:
        return stored.data if stored else None
    return None


@contextmanager
def _open_finder(search: Search, budget: Deadline) -> Generator[FindIn]:
    """Yield what finds the places in one file."""
    if search.mode == "regex":
        from surehold.search.regex_worker import RegexWorker

        with RegexWorker(search, budget) as worker:
            yield worker.find
    elif search.case_sensitive:
        needle = search.query.encode()
        yield lambda data: _literal_offsets(needle, searched_bytes(data))
    else:  # a plain text, so there is nothing to try twice: no child is needed
        pattern = re.compile(re.escape(search.query), re.IGNORECASE)
        yield lambda data: offsets(pattern, searched_bytes(data))


@contextmanager
def _open_span_finder(search: Search, budget: Deadline) -> Generator[Callable[[bytes], list[Span]]]:
    """Yield what finds the matches in one file, with their ends."""
    if search.mode == "regex":
        from surehold.search.regex_worker import RegexWorker

        with RegexWorker(search, budget, whole=True) as worker:
            yield worker.spans
    elif search.case_sensitive:
        needle = search.query.encode()
        yield lambda data: [(at, at + len(needle)) for at in _literal_offsets(needle, searched_bytes(data))]
    else:
        pattern = re.compile(re.escape(search.query), re.IGNORECASE)
        yield lambda data: spans(pattern, searched_bytes(data))


def _literal_offsets(needle: bytes, text: bytes) -> list[int]:
    found, at = list[int](), text.find(needle)
    while at >= 0:
        found.append(at)
        at = text.find(needle, at + len(needle))
    return found

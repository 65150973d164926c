"""The engine without ripgrep: slower, the same answers."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from surehold.disk.base import Target
from surehold.errors import FileTooLarge, NotFound, OutsideWorkspace, SearchTimeout, SureholdError
from surehold.search.budget import Budget
from surehold.search.engine import MAX_PLACES, Found, Matching, Scope, Span, Swept, matching_in, places_of, searched
from surehold.search.glob import Filter
from surehold.search.regex_child import offsets, spans
from surehold.search.types import globs
from surehold.search.values import EngineName, Search, Want
from surehold.search.walk import Excluding, Tally, Walk
from surehold.text.encoding import SNIFF

FindIn = Callable[[bytes], list[int]]


@dataclass(frozen=True, kw_only=True)
class PythonEngine:
    """Walks, reads and searches in this process; regular expressions run in a child that can be killed."""

    @property
    def name(self) -> EngineName:
        """How results call it."""
        return "python"

    def find(self, scope: Scope, budget: Budget) -> Found:
        """Find all places below a directory."""
        found, tally, places = Found(), Tally(), 0
        with _finder(scope.search, budget) as find_in:
            for parts, target in _files(scope, tally):
                budget.check(found.scanned, None, "files searched")
                data = _read(scope, target, found)
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
        found.unreadable = _below(scope, found.unreadable + tally.unreadable)
        return found

    def find_in(self, search: Search, data: bytes, budget: Budget) -> tuple[list[int], bool]:
        """Find all places in these bytes of a file."""
        with _finder(search, budget) as find_in:
            return find_in(data), True

    def sweep(self, scope: Scope, want: Want, budget: Budget) -> Swept:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        swept, tally, found = Swept(), Tally(), Found()
        try:
            with _spanner(scope.search, budget) as spans_in:
                for parts, target in _files(scope, tally):
                    budget.check(found.scanned, None, "files searched")
                    data = _read(scope, target, found)
                    if data is None:
                        continue
                    found.scanned += 1
                    if here := spans_in(data):
                        _add(swept, "/".join(parts), data, here, want)
        except SearchTimeout as error:
            if error.reason == "regex_budget":  # one file took all the time: that is not a matter of how many there are
                raise
            swept.timed_out = True
        swept.scanned = None if swept.timed_out else found.scanned
        swept.denied, swept.too_large = tally.denied, found.too_large
        swept.unreadable = _below(scope, found.unreadable + tally.unreadable)
        return swept

    def lines_in(self, search: Search, data: bytes, budget: Budget) -> Matching:
        """Find the matching lines in these bytes of a file."""
        return matching_in(data, self.spans(search, data, budget))

    def spans(self, search: Search, data: bytes, budget: Budget) -> list[Span]:
        """Find all matches in these bytes of a file, as they are searched."""
        with _spanner(search, budget) as spans_in:
            return spans_in(data)


def _add(swept: Swept, path: str, data: bytes, found: list[Span], want: Want) -> None:
    text = searched(data)
    if b"\0" in text[:SNIFF]:
        swept.binary.append(path)
        return
    if want == "lines":
        swept.places[path] = lines = places_of(text, found)
        swept.counts[path], swept.marks[path] = len(lines), hash(data)
        swept.matches = (swept.matches or 0) + len(found)
    else:
        swept.counts[path] = len(found) if want == "counts" else 1


def _files(scope: Scope, tally: Tally) -> Iterator[tuple[tuple[str, ...], Target]]:
    search = scope.search
    types = Filter(globs(search.types), ())
    walk = Walk(
        disk=scope.disk,
        start=scope.directory,
        allowed=scope.allowed,
        hidden=search.hidden,
        ignore=search.ignore,
        guide=Excluding(scope.filter, search.closed),
        tally=tally,
    )
    for room in walk.rooms():
        for name, kind in room.entries:
            parts = (*room.parents, name)
            if kind == "file" and scope.takes(parts) and types.takes((name,)):
                yield parts, scope.disk.below(room.directory, (name,))


def _below(scope: Scope, names: list[str]) -> list[str]:
    """Return names as they read from the directory that is searched."""
    return [name.removeprefix(f"{scope.directory.key}/") for name in names]


def _read(scope: Scope, target: Target, found: Found) -> bytes | None:
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
def _finder(search: Search, budget: Budget) -> Generator[FindIn]:
    """Yield what finds the places in one file."""
    if search.mode == "regex":
        from surehold.search.regex_worker import RegexWorker

        with RegexWorker(search, budget) as worker:
            yield worker.find
    elif search.case_sensitive:
        needle = search.query.encode()
        yield lambda data: _literal(needle, searched(data))
    else:  # a plain text, so there is nothing to try twice: no child is needed
        pattern = re.compile(re.escape(search.query), re.IGNORECASE)
        yield lambda data: offsets(pattern, searched(data))


@contextmanager
def _spanner(search: Search, budget: Budget) -> Generator[Callable[[bytes], list[Span]]]:
    """Yield what finds the matches in one file, with their ends."""
    if search.mode == "regex":
        from surehold.search.regex_worker import RegexWorker

        with RegexWorker(search, budget, whole=True) as worker:
            yield worker.spans
    elif search.case_sensitive:
        needle = search.query.encode()
        yield lambda data: [(at, at + len(needle)) for at in _literal(needle, searched(data))]
    else:
        pattern = re.compile(re.escape(search.query), re.IGNORECASE)
        yield lambda data: spans(pattern, searched(data))


def _literal(needle: bytes, text: bytes) -> list[int]:
    found, at = list[int](), text.find(needle)
    while at >= 0:
        found.append(at)
        at = text.find(needle, at + len(needle))
    return found

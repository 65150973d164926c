"""Searching: an engine finds the places, and what is shown of them is read anew, by us.

1. The order is path, line, column, over all pages.
2. A file is shown in one version: its lines, its columns, its sha256 belong together. If it may have changed since the engine
   saw it, those very bytes are searched again.
3. Binary files, denied files and files that cannot be read contain nothing, for the totals too.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

from surehold.disk.base import StoredFile, Target
from surehold.errors import Cancelled, FileTooLarge, NotFound, OutsideWorkspace, SearchTimeout, StaleFile, SureholdError
from surehold.search.deadline import Deadline
from surehold.search.engine import TOO_MANY_MATCHES, Engine, Parts, Scope, TreeOffsets, UnchangedFiles, to_searchable
from surehold.search.query import FileHits, Hit, Search, SearchResult, Skipped
from surehold.search.result_page import SearchedFile, decode_cursor, encode_cursor
from surehold.text.encoding import SNIFF_BYTES
from surehold.text.snapshot import Snapshot

_SHOWN = 3
SnapshotOf = Callable[[Target, StoredFile], Snapshot]


def search_text(
    scope: Scope, engine: Engine, *, snapshot_of: SnapshotOf, limit: int, after: str, budget: Deadline
) -> SearchResult:
    """Return one page of matches."""
    question = (scope.search, scope.directory.key)
    passed = _passed(decode_cursor(question, after)) if after else None
    began = time.time_ns()
    found = engine.find(scope, budget)
    pages = _Pages(scope, engine, snapshot_of, began, limit, passed, budget)
    pages.turn(found)
    notes, counts = pages.notes(found), pages.counts
    if not counts and (scope.search.ignore or not scope.search.hidden):
        notes += _elsewhere(scope, engine, snapshot_of, budget)
    return SearchResult(
        matches=tuple(pages.hits),
        files=tuple(pages.files),
        files_scanned=found.scanned,
        engine=engine.name,
        skipped=pages.skipped(found),
        truncated=pages.further,
        next=encode_cursor(question, *pages.last) if pages.further and pages.last else "",
        total_matches=sum(count for _, count in counts),
        counts=tuple(counts),
        complete=found.complete,
        notes=tuple(notes),
    )


def _passed(found: list[object]) -> tuple[Parts, int]:
    *names, offset = found
    return tuple(str(name) for name in names), int(str(offset))


@dataclass
class _Pages:
    """Goes through all files with matches, in order, and keeps one page of them."""

    scope: Scope
    engine: Engine
    snapshot_of: SnapshotOf
    began: int
    limit: int
    passed: tuple[Parts, int] | None
    budget: Deadline
    hits: list[Hit] = field(default_factory=list[Hit])
    files: list[FileHits] = field(default_factory=list[FileHits])
    counted: list[tuple[Parts, str, int]] = field(default_factory=list[tuple[Parts, str, int]])
    last: tuple[object, ...] = ()
    further: bool = False
    binary: int = 0
    too_large: int = 0
    changed: int = 0
    unreadable: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._unchanged = UnchangedFiles(disk=self.scope.disk, directory=self.scope.directory, began=self.began)

    def turn(self, found: TreeOffsets) -> None:
        """Look at every file: those of the page closely, the others just enough to count them."""
        others = list[Parts]()
        for number, parts in enumerate(sorted(parts for parts in found.places if self.scope.accepts_file(parts))):
            if not self._may_see(parts):
                continue
            if self._on_page(parts):
                target = self.scope.disk.target_below(self.scope.directory, parts)
                self.budget.check(number, len(found.places), "files with matches looked at")
                with self._noting(target):
                    self._file(parts, target, found)
            else:
                others.append(parts)
        for above, group in groupby(others, key=lambda parts: parts[:-1]):
            self.budget.check(len(self.counted), len(found.places), "files with matches looked at")
            self._count(above, [parts[-1] for parts in group], found)

    def _may_see(self, parts: Parts) -> bool:
        allowed = self.scope.allowed
        return allowed is None or allowed(self.scope.disk.target_below(self.scope.directory, parts), False)  # noqa: FBT003 - a file

    @contextmanager
    def _noting(self, target: Target) -> Generator[None]:
        """Count what goes wrong with one file, and go on."""
        try:
            yield
        except (NotFound, OutsideWorkspace):  # gone meanwhile, or a link by now
            pass
        except FileTooLarge:
            self.too_large += 1
        except StaleFile:
            self.changed += 1
        except (Cancelled, SearchTimeout):
            raise
        except SureholdError:
            self.unreadable.append(target.key)

    def _file(self, parts: Parts, target: Target, found: TreeOffsets) -> None:
        snapshot = self._read(target)
        if not snapshot.is_text:
            self.binary += 1
            return
        offsets = self._offsets(parts, target, snapshot, found)
        self._show(parts, target, snapshot, offsets)
        if offsets:
            self.counted.append((parts, target.key, len(offsets)))

    def _count(self, above: Parts, names: list[str], found: TreeOffsets) -> None:
        """Count the matches of some files in one directory; their beginning shows whether they are text."""
        directory = self.scope.disk.target_below(self.scope.directory, above)
        base = "" if directory.key == "." else directory.key + "/"
        with self._noting(directory):
            for name, head in zip(names, self.scope.disk.read_heads(directory, names, SNIFF_BYTES), strict=True):
                parts = (*above, name)
                if head is not None and (b"\0" not in head or self._is_text(directory, name)):
                    self.counted.append((parts, base + name, len(found.places[parts])))
                    self.further = self.further or not self.passed or parts > self.passed[0]

    def _is_text(self, directory: Target, name: str) -> bool:
        """Look closely: there are zero bytes, but it may be UTF-16."""
        target = self.scope.disk.target_below(directory, (name,))
        with self._noting(target):
            if self._read(target).is_text:
                return True
            self.binary += 1
        return False

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Every file with matches, and how many, in order."""
        return [(key, count) for _, key, count in sorted(self.counted)]

    def _on_page(self, parts: Parts) -> bool:
        return len(self.hits) < self.limit and (self.passed is None or parts >= self.passed[0])

    def _show(self, parts: Parts, target: Target, snapshot: Snapshot, offsets: list[int]) -> None:
        behind = self.passed[1] if self.passed and parts == self.passed[0] else -1
        wanted = [offset for offset in offsets if offset > behind]
        shown = wanted[: self.limit - len(self.hits)]
        if not shown:
            return
        self.hits += SearchedFile(target.key, snapshot).build_hits(shown, self.scope.search.context)
        self.files.append(
            FileHits(path=target.key, sha256=snapshot.sha256, match_count=len(offsets), snapshot=snapshot)
        )
        self.last = (*parts, shown[-1])
        self.further = len(shown) < len(wanted)

    def _read(self, target: Target) -> Snapshot:
        stored = self.scope.disk.read(target, limit=self.scope.max_file_bytes)
        if stored is None:
            raise NotFound(f"`{target}` is gone.", path=target.key)
        return self.snapshot_of(target, stored)

    def _offsets(self, parts: Parts, target: Target, snapshot: Snapshot, found: TreeOffsets) -> list[int]:
        """Return where the matches are in just these bytes."""
        mark = found.marks.get(parts)
        same = mark == hash(snapshot.data) if mark is not None else self._unchanged(target)
        if same:
            return sorted(set(found.places[parts]))
        offsets, complete = self.engine.find_in(self.scope.search, snapshot.data, self.budget)
        found.complete &= complete
        return sorted(set(offsets))

    def skipped(self, found: TreeOffsets) -> Skipped:
        """Count what is not in the answer."""
        return Skipped(
            binary=self.binary,
            too_large=self.too_large + found.too_large,
            denied=found.denied,
            unreadable=len(found.unreadable) + len(self.unreadable),
            changed=self.changed,
        )

    def notes(self, found: TreeOffsets) -> list[str]:
        """Say what the numbers alone do not say."""
        notes = list[str]()
        directory = self.scope.directory.key
        base = "" if directory == "." else directory + "/"
        if unreadable := [*(base + name for name in found.unreadable), *self.unreadable]:
            notes.append(f"Could not be read: {_some(unreadable)}.")
        if not found.complete:
            notes.append(TOO_MANY_MATCHES)
        return notes


def _elsewhere(scope: Scope, engine: Engine, snapshot_of: SnapshotOf, budget: Deadline) -> list[str]:
    """Say whether files that were left out have matches: nothing found there is not nothing there."""
    wider = replace(scope, search=replace(scope.search, ignore=False, hidden=True))
    with suppress(SearchTimeout):  # then there is nothing to add
        found = engine.find(wider, budget)
        pages = _Pages(wider, engine, snapshot_of, 0, 0, None, budget)
        pages.turn(found)
        if counts := pages.counts:
            total = sum(count for _, count in counts)
            names = _some([name for name, _ in counts])
            return [f"0 matches; {total} in files that are ignored or hidden: {names}."]
    return []


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def search_one(
    search: Search,
    engine: Engine,
    *,
    target: Target,
    snapshot: Snapshot,
    limit: int,
    after: str,
    budget: Deadline,
) -> SearchResult:
    """Return one page of matches in one file."""
    question = (search, target.key)
    behind = _passed(decode_cursor(question, after))[1] if after else -1
    if not snapshot.is_text:
        return SearchResult(matches=(), files=(), files_scanned=1, engine=engine.name, skipped=Skipped(binary=1))
    text = to_searchable(snapshot)
    found, complete = engine.find_in(search, text.data, budget)
    offsets = sorted(set(found))
    wanted = [offset for offset in offsets if offset > behind]
    shown = wanted[:limit]
    hits = FileHits(path=target.key, sha256=snapshot.sha256, match_count=len(offsets), snapshot=snapshot)
    further = len(shown) < len(wanted)
    return SearchResult(
        matches=tuple(SearchedFile(target.key, text).build_hits(shown, search.context)),
        files=(hits,) if shown else (),
        files_scanned=1,
        engine=engine.name,
        truncated=further,
        next=encode_cursor(question, shown[-1]) if further else "",
        total_matches=len(offsets),
        counts=((target.key, len(offsets)),) if offsets else (),
        complete=complete,
        notes=() if complete else (TOO_MANY_MATCHES,),
    )

"""Content search of a tree or a file: which files match, how often, on which lines, or every match.

1. Results are ordered by path, name by name, even if files change between calls: a page continues where the previous ended.
2. Totals cover the whole tree. Only what is shown is checked by us: a name must be a file inside the roots, and lines are
   read again and belong to one version of their file. If it may have changed since the engine read it, it is searched again.
3. If nothing matches, the ignored and hidden files are searched too, and their matches are mentioned.
4. If time runs out, the files, lines and matches found so far are returned and marked as incomplete. If nothing can be
   shown, it is an error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from surehold.disk.base import DiskReader, StoredFile, Target
from surehold.errors import BinaryFile, Cancelled, FileTooLarge, InvalidPattern, SearchTimeout, StaleFile, SureholdError
from surehold.search.engine import Deadline, Engine, FileMatches, MatchPosition, Scope, TreeMatches, to_searchable
from surehold.search.query import FileHits, ResultWindow, Search, SearchResult, Skipped, name_some
from surehold.search.result_page import ResultPage, left_out_note, path_sort_key
from surehold.search.walk import VANISHED_ERRORS, key_prefix
from surehold.text.snapshot import Snapshot

_GRACE_SECONDS = 2.0
"""Seconds to show what was found when time was up."""
_BATCH_FILES = 64
_BATCH_BYTES = 1 << 22
_MAX_SNAPSHOT_BYTES = 1 << 28
"""Bytes of files of which lines are shown; a page with more of them ends."""
_LEFT_OUT = ("binary files", "UTF-16 without a byte order mark")
"""Ripgrep ends at a zero byte, and does not say in how many files it did; one that is named is decoded by us."""
_TOO_MANY_MATCHES = "There are more matches than can be collected; narrow the search."
SnapshotOf = Callable[[Target, StoredFile], Snapshot]


def search_tree(
    scope: Scope, engine: Engine, window: ResultWindow, *, snapshot_of: SnapshotOf, deadline: Deadline
) -> SearchResult:
    search = _TreeSearch(scope, engine, window, snapshot_of, deadline)
    search.find_matches()
    names, total = sorted(search.found.counts, key=path_sort_key), sum(search.found.counts.values())
    if window.want in {"lines", "matches"}:
        search.take_files(names)
    else:
        search.take_names(names)
    if search.found.timed_out and (not names or (window.want == "matches" and not search.page.hits)):
        deadline.raise_timeout(total, "matches were found so far")
    elsewhere, note = search.count_left_out() if not search.found.counts else (None, "")
    return replace(
        _build_result(engine, window, search.found, search.page),
        counts=search.counts_on_page(),
        files=tuple(search.files),
        skipped=search.count_skipped(),
        elsewhere=elsewhere,
        left_out=_LEFT_OUT,
        look_around=scope.search.look_around,
        notes=(*search.page.notes, *search.build_notes(), *((note,) if note else ())),
    )


def search_file(
    search: Search, engine: Engine, window: ResultWindow, *, target: Target, snapshot: Snapshot, deadline: Deadline
) -> SearchResult:
    page, found, name = ResultPage(window, (search, target.key)), TreeMatches(scanned=1), target.key
    if not snapshot.is_text and window.want == "matches":
        return replace(_build_result(engine, window, found, page), skipped=Skipped(binary=1))
    if not snapshot.is_text:
        raise BinaryFile(f"`{target}` is not text.", path=name, action="Search text files, or a directory.")
    text = to_searchable(snapshot)
    matches = engine.search_bytes(search, text.data, window.want, deadline)
    found.matches, found.overflowed = matches.matches, not matches.complete
    if matches.places:
        found.counts[name] = matches.count(window.want)
    elif not matches.complete:  # not even one match could be kept
        raise InvalidPattern("The pattern matches more than can be collected.", reason="too_many_matches")
    if matches.places and window.want in {"lines", "matches"}:
        page.take_file(name, name, text, matches.places)
    elif matches.places:
        page.take_name(name)
    hits = FileHits(path=name, sha256=snapshot.sha256, match_count=matches.matches, snapshot=snapshot)
    is_shown = bool(page.rows or page.hits)
    return replace(
        _build_result(engine, window, found, page),
        counts=tuple(found.counts.items()) if page.names or is_shown else (),
        files=(hits,) if is_shown else (),
        look_around=search.look_around,
        notes=(*page.notes, *(() if matches.complete else (_TOO_MANY_MATCHES,))),
    )


def _build_result(engine: Engine, window: ResultWindow, found: TreeMatches, page: ResultPage) -> SearchResult:
    total = sum(found.counts.values())
    matches = {"files": None, "lines": found.matches}
    return SearchResult(
        want=window.want,
        engine=engine.name,
        matches=tuple(page.hits),
        rows=tuple(page.rows),
        truncated=page.further,
        next=page.next,
        total_files=len(found.counts),
        total_lines=total if window.want == "lines" else None,
        total_matches=matches.get(window.want, total),
        files_scanned=found.scanned,
        complete=not (found.timed_out or found.overflowed),
    )


@dataclass
class _TreeSearch:
    """One search of one tree, and what could not be searched."""

    scope: Scope
    engine: Engine
    window: ResultWindow
    snapshot_of: SnapshotOf
    deadline: Deadline
    found: TreeMatches = field(default_factory=TreeMatches)
    shown: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The files of the page: their paths in the workspace, and below the directory."""
    files: list[FileHits] = field(default_factory=list[FileHits])
    binary: int = 0
    too_large: list[str] = field(default_factory=list[str])
    changed: int = 0
    unreadable: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        directory = self.scope.directory
        self.page = ResultPage(self.window, (self.scope.search, directory.key))
        self._unchanged = UnchangedFiles(disk=self.scope.disk, directory=directory, began=time.time_ns())

    def find_matches(self) -> None:
        """Let the engine search, and settle what it could not decide."""
        found = self.found = self.engine.search_tree(self.scope, self.window.want, self.deadline)
        self._grant_grace()
        if self.scope.allowed is not None:
            found.counts = {name: count for name, count in found.counts.items() if self._may_see(name)}
        for name in found.doubtful:
            snapshot = self._read_snapshot(name) if self._may_see(name) else None
            if snapshot is not None:
                matches = self._search_again(name, snapshot)
                found.places[name], found.marks[name] = matches.places, hash(snapshot.data)
                found.matches = None if found.matches is None else found.matches + matches.matches

    def _grant_grace(self) -> None:
        """Leave time to show what was found, however late that was."""
        if self.deadline.seconds_left < _GRACE_SECONDS:
            self.deadline = self.deadline.with_more_time(_GRACE_SECONDS)

    def _search_again(self, name: str, snapshot: Snapshot) -> FileMatches:
        matches = self.engine.search_bytes(self.scope.search, snapshot.data, self.window.want, self.deadline)
        self.found.overflowed |= not matches.complete
        if matches.places:
            self.found.counts[name] = matches.count(self.window.want)
        else:
            self.found.counts.pop(name, None)
        return matches

    def take_names(self, names: list[str]) -> None:
        """Fill the page with names; those that are not files any more are left out."""
        page = self.page
        for name in names:
            if not page.take_name(name):
                break
        for above, group in groupby(page.names, key=lambda name: name.rpartition("/")[0]):
            inside, directory = list(group), self._directory_of(above)
            try:
                looks = self.scope.disk.stat_entries(directory, [name.rpartition("/")[2] for name in inside])
            except SureholdError:  # it was removed, or replaced by a link
                continue
            base = key_prefix(directory)
            self.shown += [
                (base + name.rpartition("/")[2], name)
                for name, look in zip(inside, looks, strict=True)
                if look and look.type == "file"
            ]

    def take_files(self, names: list[str]) -> None:
        """Fill the page with lines or matches; what there was no time to show is left for the next page."""
        page = self.page
        self._grant_grace()
        try:
            at = 0
            while at < len(names):
                self.deadline.check(at, len(names), "files with matches looked at")
                if page.skip_file(names[at], self.found.counts[names[at]]):
                    at += 1
                    continue
                batch = self._read_batch(names, at)
                if not batch or not self._take_batch(batch):
                    page.further = True
                    break
                at += len(batch)
        except SearchTimeout:
            if not page.rows and not page.hits:
                raise
            page.further = True
        page.further |= self.found.timed_out and self.window.want == "matches"

    def _read_batch(self, names: list[str], begin: int) -> dict[str, Snapshot | None]:
        """Read the next files of one directory, as many as the page needs and memory easily holds."""
        files, wanted = dict[str, Snapshot | None](), self.page.rows_wanted
        if wanted is None:
            wanted = _BATCH_FILES
        elif sum(file.snapshot.size for file in self.files) > _MAX_SNAPSHOT_BYTES:
            wanted = 0
        room, above = _BATCH_BYTES, names[begin].rpartition("/")[0]
        for name in names[begin : begin + _BATCH_FILES]:
            if wanted <= 0 or room <= 0 or name.rpartition("/")[0] != above:
                break
            snapshot = files[name] = self._read_snapshot(name)
            wanted -= self.found.counts[name]
            room -= snapshot.size if snapshot else 0
        return files

    def _take_batch(self, batch: dict[str, Snapshot | None]) -> bool:
        """Take the matches of some files of one directory; False if the page is full."""
        files = {name: snapshot for name, snapshot in batch.items() if snapshot is not None}
        if self.window.want == "matches":
            for name in batch.keys() - files.keys():  # what cannot be shown is not counted either
                del self.found.counts[name]
        for (name, snapshot), same in zip(files.items(), self._check_unchanged(files), strict=True):
            places, path = self._find_positions(name, snapshot, same=same), self._target_of(name).key
            before = len(self.page.rows) + len(self.page.hits)
            goes_on = self.page.take_file(path, name, snapshot, places)
            if len(self.page.rows) + len(self.page.hits) > before:
                self.shown.append((path, name))
                count = self.found.counts[name]
                self.files.append(FileHits(path=path, sha256=snapshot.sha256, match_count=count, snapshot=snapshot))
            if not goes_on:
                return False
        return True

    def _check_unchanged(self, files: dict[str, Snapshot]) -> list[bool]:
        marks = self.found.marks
        marked = {name: marks[name] == hash(files[name].data) for name in files if name in marks}
        if len(marked) == len(files):
            return list(marked.values())
        directory = self._directory_of(next(iter(files)).rpartition("/")[0])
        rested = self._unchanged.check_each(directory, [name.rpartition("/")[2] for name in files])
        return [marked.get(name, has_rested) for name, has_rested in zip(files, rested, strict=True)]

    def _find_positions(self, name: str, snapshot: Snapshot, *, same: bool) -> list[MatchPosition]:
        if same and b"\n" in snapshot.data:  # without one, lines may end in a way that only we know
            places = self.found.positions_in(name)
            if not places or places[-1][0] <= snapshot.line_count:
                return places
        return self._search_again(name, snapshot).places

    def _read_snapshot(self, name: str) -> Snapshot | None:
        """Read a text file; count what goes wrong with it."""
        target = self._target_of(name)
        try:
            stored = self.scope.disk.read(target, limit=self.scope.max_file_bytes)
            snapshot = self.snapshot_of(target, stored) if stored else None
        except VANISHED_ERRORS:
            return None
        except FileTooLarge:
            self.too_large.append(target.key)
        except StaleFile:
            self.changed += 1
        except (Cancelled, SearchTimeout):
            raise
        except SureholdError:
            self.unreadable.append(target.key)
        else:
            if snapshot is None or snapshot.is_text:
                return snapshot
            self.binary += 1
        return None

    def _may_see(self, name: str) -> bool:
        allowed = self.scope.allowed
        return allowed is None or allowed(self._target_of(name), False)  # noqa: FBT003 - a file

    def _target_of(self, name: str) -> Target:
        return self.scope.disk.target_below(self.scope.directory, name.split("/"))

    def _directory_of(self, name: str) -> Target:
        return self._target_of(name) if name else self.scope.directory

    def counts_on_page(self) -> tuple[tuple[str, int], ...]:
        return tuple((path, self.found.counts[name]) for path, name in self.shown)

    def count_left_out(self) -> tuple[int | None, str]:
        """Count the files with matches that were left out, and name some."""
        search = self.scope.search
        version_control = tuple(name for name in search.closed if name[0] == ".")  # stays closed
        wider = replace(self.scope, search=replace(search, ignore=False, hidden=True, closed=version_control))
        if wider.search == search:
            return None, ""
        try:
            found = self.engine.search_tree(wider, "files", self.deadline)
        except SearchTimeout:
            return None, ""
        names = sorted(self._target_of(name).key for name in found.counts if self._may_see(name))
        if not names:
            return (None if found.timed_out else 0), ""
        build = ["build-directory"] if version_control != search.closed else []
        kinds = ["ignored", *([] if search.hidden else ["hidden"]), *build]
        return len(names), left_out_note(len(names), kinds, ("file", "files"), names)

    def count_skipped(self) -> Skipped:
        found = self.found
        return Skipped(
            binary=self.binary + len(found.binary),
            too_large=len(self.too_large) + found.too_large,
            denied=found.denied,
            unreadable=len(found.unreadable) + len(self.unreadable),
            changed=self.changed,
        )

    def build_notes(self) -> Iterator[str]:
        """Yield what the numbers alone do not show."""
        if self.found.timed_out:
            seconds = self.deadline.seconds
            yield f"Time was up after {seconds:g} s: this is what was found until then, not all there is."
        if unreadable := [*(self._target_of(name).key for name in self.found.unreadable), *self.unreadable]:
            yield f"Could not be read: {name_some(sorted(unreadable))}."
        if self.too_large:
            yield f"Too large to be shown: {name_some(self.too_large)}."
        if self.found.overflowed:
            yield _TOO_MANY_MATCHES
        if self.scope.search.look_around:
            yield "The pattern needs look-around or backreferences: it was matched with PCRE2."


_MARGIN_NS = 50_000_000
"""How much older than the search a file must be to count as unchanged: clocks of file systems are coarse."""


@dataclass(kw_only=True)
class UnchangedFiles:
    """Tells which files below a directory have not changed since a moment, nor the directories on the way to them."""

    disk: DiskReader
    directory: Target
    began: int
    """The moment, in nanoseconds."""
    older: dict[tuple[str, ...], bool] = field(default_factory=dict[tuple[str, ...], bool])
    """Which directories have not changed since."""

    def check_each(self, directory: Target, names: Sequence[str]) -> list[bool]:
        """Tell it of several files of one directory, all of them just read."""
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
        latest = self.began - _MARGIN_NS
        return [look is not None and max(look.ctime_ns, look.mtime_ns) < latest for look in looks]

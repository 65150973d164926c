"""Content search of a tree or a file: which files match, how often, or on which lines.

1. Results are ordered by path, name by name, even if files change between calls: a page continues where the previous ended.
2. Totals cover the whole tree. Only what is shown is checked by us: a name must be a file inside the roots, and lines are
   read again and belong to one version of their file.
3. If nothing matches, the ignored and hidden files are searched too, and their matches are mentioned.
4. If time runs out, the matches found so far are returned and marked as incomplete. If there are none, it is an error.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from surehold.disk.base import StoredFile, Target
from surehold.errors import (
    BinaryFile,
    Cancelled,
    FileTooLarge,
    InvalidPattern,
    NotFound,
    OutsideWorkspace,
    SearchTimeout,
    StaleFile,
    SureholdError,
)
from surehold.search.deadline import Deadline
from surehold.search.engine import (
    TOO_MANY_MATCHES,
    Engine,
    FileMatches,
    MatchPosition,
    Scope,
    TreeMatches,
    UnchangedFiles,
    to_searchable,
)
from surehold.search.query import FileHits, GrepResult, ResultWindow, Search, Skipped
from surehold.search.result_page import ResultPage, SearchedFile
from surehold.search.ripgrep import output_format
from surehold.text.snapshot import Snapshot

_MAX_NAMES_IN_NOTE = 3
_GRACE_SECONDS = 2.0
"""Seconds to show what was found when time was up."""
_BATCH_FILES = 64
_BATCH_BYTES = 1 << 22
_MAX_SNAPSHOT_BYTES = 1 << 28
"""Bytes of files of which lines are shown; a page with more of them ends."""
SnapshotOf = Callable[[Target, StoredFile], Snapshot]


def grep_tree(
    scope: Scope, engine: Engine, sought: ResultWindow, *, snapshot_of: SnapshotOf, budget: Deadline
) -> GrepResult:
    """Return one page of what matches below a directory."""
    sweep = _TreeSearch(scope, engine, sought, snapshot_of, budget, began=time.time_ns())
    swept = sweep.find_matches()
    names = sorted(swept.counts, key=_path_sort_key)
    if not names and swept.timed_out:
        budget.raise_timeout(0, "matches were found so far")
    page = sweep.build_line_page(names, swept) if sought.want == "lines" else sweep.build_file_page(names)
    elsewhere, note = sweep.count_left_out() if not names else (None, "")
    return replace(
        _build_result(engine, sought, swept, page),
        counts=sweep.counts_on_page(page, swept),
        files=tuple(sweep.files.values()),
        further=page.further,
        skipped=sweep.count_skipped(swept),
        elsewhere=elsewhere,
        look_around=scope.search.look_around,
        notes=(*sweep.build_notes(swept), *((note,) if note else ())),
    )


def grep_file(
    search: Search, engine: Engine, sought: ResultWindow, *, target: Target, snapshot: Snapshot, budget: Deadline
) -> GrepResult:
    """Return one page of what matches in one file."""
    if not snapshot.is_text:
        raise BinaryFile(f"`{target}` is not text.", path=target.key, action="Search text files, or a directory.")
    text = to_searchable(snapshot)
    found = engine.match_lines(search, text.data, budget)
    swept, page = TreeMatches(scanned=1, matches=found.matches, overflowed=not found.complete), ResultPage(sought)
    if found.places:
        swept.counts[target.key] = _count_for_window(found, sought)
    elif not found.complete:  # not even one line of what matches could be kept
        raise InvalidPattern("The pattern matches more than can be collected.", reason="too_many_matches")
    files = tuple[FileHits, ...]()
    if found.places and sought.want != "lines":
        page.take_name(target.key)
    elif found.places:
        _take_rows(page, target.key, text, found.places, sought)
        hits = FileHits(path=target.key, sha256=snapshot.sha256, match_count=found.matches, snapshot=snapshot)
        files = (hits,) if page.rows else ()
    return replace(
        _build_result(engine, sought, swept, page),
        counts=tuple(swept.counts.items()) if page.names or page.rows else (),
        files=files,
        look_around=search.look_around,
        notes=() if found.complete else (TOO_MANY_MATCHES,),
    )


def _count_for_window(found: FileMatches, sought: ResultWindow) -> int:
    return {"files": 1, "counts": found.matches, "lines": len(found.places)}[sought.want]


def _build_result(engine: Engine, sought: ResultWindow, swept: TreeMatches, page: ResultPage) -> GrepResult:
    total = sum(swept.counts.values())
    return GrepResult(
        want=sought.want,
        engine=engine.name,
        rows=tuple(page.rows),
        further=page.further,
        total_files=len(swept.counts),
        total_lines=total if sought.want == "lines" else None,
        total_matches=total if sought.want == "counts" else swept.matches if sought.want == "lines" else None,
        files_scanned=swept.scanned,
        complete=not (swept.timed_out or swept.overflowed),
    )


@dataclass
class _TreeSearch:
    """One sweep of one tree, and what it could not look at."""

    scope: Scope
    engine: Engine
    sought: ResultWindow
    snapshot_of: SnapshotOf
    budget: Deadline
    began: int
    files: dict[str, FileHits] = field(default_factory=dict[str, FileHits])
    binary: int = 0
    too_large: list[str] = field(default_factory=list[str])
    changed: int = 0
    unreadable: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        directory = self.scope.directory.key
        self._base = "" if directory == "." else directory + "/"
        self._unchanged = UnchangedFiles(disk=self.scope.disk, directory=self.scope.directory, began=self.began)

    def find_matches(self) -> TreeMatches:
        """Let the engine find, and settle what it could not decide."""
        swept = self.engine.search_tree(self.scope, self.sought.want, self.budget)
        if swept.timed_out and swept.doubtful:
            self.budget = self.budget.with_more_time(_GRACE_SECONDS)
        if self.scope.allowed is not None:
            swept.counts = {name: count for name, count in swept.counts.items() if self._may_see(name)}
        for name in swept.doubtful:
            snapshot = self._read_snapshot(self._target_of(name)) if self._may_see(name) else None
            if snapshot is not None:
                self._find_again(swept, name, snapshot)
        return swept

    def _find_again(self, swept: TreeMatches, name: str, snapshot: Snapshot) -> None:
        found = self.engine.match_lines(self.scope.search, snapshot.data, self.budget)
        swept.overflowed |= not found.complete
        if not found.places:
            return
        swept.counts[name] = _count_for_window(found, self.sought)
        swept.places[name], swept.marks[name] = found.places, hash(snapshot.data)
        swept.matches = None if swept.matches is None else swept.matches + found.matches

    def build_file_page(self, names: list[str]) -> ResultPage:
        """Return the names of one page; those that are no files by now are left out."""
        page = ResultPage(self.sought)
        for name in names:
            if not page.take_name(self._base + name):
                break
        page.names = list(self._existing_files([name.removeprefix(self._base) for name in page.names]))
        return page

    def _existing_files(self, names: list[str]) -> Iterator[str]:
        for above, group in groupby(names, key=lambda name: name.rpartition("/")[0]):
            inside = [name.rpartition("/")[2] for name in group]
            directory = self._target_of(above) if above else self.scope.directory
            try:
                looks = self.scope.disk.stat_entries(directory, inside)
            except SureholdError:  # gone meanwhile, or a link by now
                continue
            prefix = self._base + (above + "/" if above else "")
            yield from (prefix + name for name, look in zip(inside, looks, strict=True) if look and look.type == "file")

    def build_line_page(self, names: list[str], swept: TreeMatches) -> ResultPage:
        """Return the rows of one page; what there was no time to show is behind it."""
        page, context = ResultPage(self.sought), self.sought.before or self.sought.after
        if swept.timed_out:
            self.budget = self.budget.with_more_time(_GRACE_SECONDS)
        try:
            at = 0
            while at < len(names):
                self.budget.check(at, len(names), "files with matches looked at")
                if not context and page.to_pass >= swept.counts[names[at]]:
                    page.to_pass -= swept.counts[names[at]]
                    at += 1
                    continue
                batch = self._read_batch(names, at, swept, page)
                if not batch or not self._take_batch_rows(batch, swept, page):
                    page.further = True
                    break
                at += len(batch)
        except SearchTimeout:
            if not page.rows:
                raise
            page.further = True
        return page

    def _read_batch(
        self, names: list[str], begin: int, swept: TreeMatches, page: ResultPage
    ) -> dict[str, Snapshot | None]:
        """Read the next files of one directory, as many as the page surely needs and memory easily holds."""
        limit, files = self.sought.limit, dict[str, Snapshot | None]()
        wanted = _BATCH_FILES if limit is None else page.to_pass + limit - len(page.rows)
        if limit is not None and sum(file.snapshot.size for file in self.files.values()) > _MAX_SNAPSHOT_BYTES:
            wanted = 0
        room, above = _BATCH_BYTES, names[begin].rpartition("/")[0]
        for name in names[begin : begin + _BATCH_FILES]:
            if wanted <= 0 or room <= 0 or name.rpartition("/")[0] != above:
                break
            snapshot = files[name] = self._read_snapshot(self._target_of(name))
            wanted -= swept.counts[name]
            room -= snapshot.size if snapshot else 0
        return files

    def _take_batch_rows(self, batch: dict[str, Snapshot | None], swept: TreeMatches, page: ResultPage) -> bool:
        """Take what matches in some files of one directory; False when the page is full."""
        files = {name: snapshot for name, snapshot in batch.items() if snapshot is not None}
        for (name, snapshot), same in zip(files.items(), self._check_unchanged(files, swept), strict=True):
            places, before = self._find_positions(name, snapshot, swept, same=same), len(page.rows)
            path = self._base + name
            goes_on = _take_rows(page, path, snapshot, places, self.sought)
            if len(page.rows) > before:
                self.files[path] = FileHits(
                    path=path, sha256=snapshot.sha256, match_count=swept.counts[name], snapshot=snapshot
                )
            if not goes_on:
                return False
        return True

    def _check_unchanged(self, files: dict[str, Snapshot], swept: TreeMatches) -> list[bool]:
        """Tell which files of one directory hold the bytes that the engine searched."""
        marked = {name: swept.marks[name] == hash(files[name].data) for name in files if name in swept.marks}
        if len(marked) == len(files):
            return list(marked.values())
        above = next(iter(files)).rpartition("/")[0]
        directory = self._target_of(above) if above else self.scope.directory
        rested = self._unchanged.check_each(directory, [name.rpartition("/")[2] for name in files])
        return [marked.get(name, has_rested) for name, has_rested in zip(files, rested, strict=True)]

    def _find_positions(self, name: str, snapshot: Snapshot, swept: TreeMatches, *, same: bool) -> list[MatchPosition]:
        """Return where the matching lines are in just these bytes."""
        said = swept.places[name]
        if same and b"\n" in snapshot.data:  # without one, lines may end in a way that only we know
            places = said if isinstance(said, list) else output_format.parse_positions(said)
            if not places or places[-1][0] <= snapshot.line_count:
                return places
        found = self.engine.match_lines(self.scope.search, snapshot.data, self.budget)
        swept.overflowed |= not found.complete
        return found.places

    def _read_snapshot(self, target: Target) -> Snapshot | None:
        """Read a file; count what goes wrong with it."""
        try:
            stored = self.scope.disk.read(target, limit=self.scope.max_file_bytes)
            snapshot = self.snapshot_of(target, stored) if stored else None
        except (NotFound, OutsideWorkspace):  # gone meanwhile, or a link by now
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

    def counts_on_page(self, page: ResultPage, swept: TreeMatches) -> tuple[tuple[str, int], ...]:
        """Return the files of the page, each with its count."""
        names = list(dict.fromkeys(row.path for row in page.rows)) if self.sought.want == "lines" else page.names
        return tuple((name, swept.counts.get(name.removeprefix(self._base), 1)) for name in names)

    def count_left_out(self) -> tuple[int | None, str]:
        """Count the files with matches that were left out, and say so."""
        search = self.scope.search
        open_again = tuple(name for name in search.closed if name[0] == ".")  # version control stays closed
        wider = replace(self.scope, search=replace(search, ignore=False, hidden=True, closed=open_again))
        if wider.search == search:
            return None, ""
        try:
            swept = self.engine.search_tree(wider, "files", self.budget)
        except SearchTimeout:
            return None, ""
        found = sorted(name for name in swept.counts if wider.allowed is None or self._may_see(name))
        if not found:
            return (None if swept.timed_out else 0), ""
        files = "1 file matches that is" if len(found) == 1 else f"{len(found)} files match that are"
        where = "ignored" if search.hidden else "ignored or hidden"
        closed = " or in a build directory" if open_again != search.closed else ""
        return len(found), f"{files} {where}{closed}: {_name_some([self._base + name for name in found])}."

    def count_skipped(self, swept: TreeMatches) -> Skipped:
        """Count what is not in the answer."""
        return Skipped(
            binary=self.binary + len(swept.binary),
            too_large=len(self.too_large) + swept.too_large,
            denied=swept.denied,
            unreadable=len(swept.unreadable) + len(self.unreadable),
            changed=self.changed,
        )

    def build_notes(self, swept: TreeMatches) -> Iterator[str]:
        """Say what the numbers alone do not say."""
        if swept.timed_out:
            yield f"Time was up after {self.budget.seconds:g} s: this is what was found until then, not all there is."
        if unreadable := [*(self._base + name for name in swept.unreadable), *self.unreadable]:
            yield f"Could not be read: {_name_some(unreadable)}."
        if self.too_large:
            yield f"Too large to be shown: {_name_some(self.too_large)}."
        if swept.overflowed:
            yield TOO_MANY_MATCHES
        if self.scope.search.look_around:
            yield "The pattern needs look-around or backreferences: it was matched with PCRE2."


def _path_sort_key(name: str) -> str:
    return name.replace("/", "\0")


def _take_rows(
    page: ResultPage, path: str, snapshot: Snapshot, places: list[MatchPosition], sought: ResultWindow
) -> bool:
    """Take the matching lines of a file and those around them, each once; False when the page is full."""
    view, matching = SearchedFile(path, snapshot), dict(places)
    for number in _line_numbers(matching, sought, view.line_count):
        if page.to_pass:  # there may be very many, so they are not even looked at
            page.to_pass -= 1
        elif not page.take_row(view.build_row(number, matching.get(number))):
            return False
    return True


def _line_numbers(matching: Iterable[int], sought: ResultWindow, count: int) -> Iterator[int]:
    if not (sought.before or sought.after):
        yield from (line for line in matching if line <= count)
        return
    shown = 0
    for line in matching:
        for number in range(max(1, line - sought.before, shown + 1), min(count, line + sought.after) + 1):
            yield number
            shown = number


def _name_some(names: list[str]) -> str:
    return ", ".join(names[:_MAX_NAMES_IN_NOTE]) + (" …" if len(names) > _MAX_NAMES_IN_NOTE else "")

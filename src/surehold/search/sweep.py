"""Sweeping a tree: which files match, how often, or on which lines.

1. The order is that of the paths, name by name, whatever changes meanwhile: a page goes on where the one before ended.
2. Totals are those of the whole tree. Only what is shown is looked at by us: a name must be a file inside the roots, and
   lines are read anew and belong to one version of their file.
3. Nothing found is not nothing there: then what was left out is searched too, and said.
4. What was found when time was up is an answer, and says so. When that is nothing, it is an error.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from surehold.disk.base import Stored, Target
from surehold.errors import (
    BinaryFile,
    Cancelled,
    FileTooLarge,
    NotFound,
    OutsideWorkspace,
    SearchTimeout,
    StaleFile,
    SureholdError,
)
from surehold.search import records
from surehold.search.budget import Budget
from surehold.search.engine import Engine, Place, Scope, Swept, places_of, searched
from surehold.search.page import Page
from surehold.search.preview import View
from surehold.search.unchanged import Unchanged
from surehold.search.values import FileHits, Row, Search, Skipped, Sought, SweepResult
from surehold.text.snapshot import Snapshot

_SHOWN = 3
_GRACE = 2.0
"""Seconds to show what was found when time was up."""
SnapshotOf = Callable[[Target, Stored], Snapshot]


def sweep_tree(scope: Scope, engine: Engine, sought: Sought, *, snapshot_of: SnapshotOf, budget: Budget) -> SweepResult:
    """Return one page of what matches below a directory."""
    sweep = _Sweep(scope, engine, sought, snapshot_of, budget, began=time.time_ns())
    swept = sweep.swept()
    names = sorted(swept.counts, key=_in_path_order)
    if not names and swept.timed_out:
        budget.over(0, "matches were found so far")
    page = sweep.page_of_lines(names, swept) if sought.want == "lines" else sweep.page_of_files(names)
    elsewhere, note = sweep.elsewhere() if not names else (None, "")
    return replace(
        _result(engine, sought, swept, page),
        counts=sweep.counts(page, swept),
        files=tuple(sweep.files.values()),
        further=page.further,
        skipped=sweep.skipped(swept),
        elsewhere=elsewhere,
        look_around=scope.search.look_around,
        notes=(*sweep.notes(swept), *((note,) if note else ())),
    )


def sweep_one(
    search: Search, engine: Engine, sought: Sought, *, target: Target, snapshot: Snapshot, budget: Budget
) -> SweepResult:
    """Return one page of what matches in one file."""
    if not snapshot.is_text:
        raise BinaryFile(f"`{target}` is not text.", path=target.key)
    spans = engine.spans(search, snapshot.data, budget)
    places = _places(snapshot, spans)
    swept, page = Swept(scanned=1, matches=len(spans)), Page(sought)
    if spans:
        swept.counts[target.key] = {"files": 1, "counts": len(spans), "lines": len(places)}[sought.want]
    files = tuple[FileHits, ...]()
    if spans and sought.want != "lines":
        page.takes_name(target.key)
    elif spans:
        all(page.takes_row(row) for row in _rows(target.key, snapshot, places, sought))
        hits = FileHits(path=target.key, sha256=snapshot.sha256, match_count=len(spans), snapshot=snapshot)
        files = (hits,) if page.rows else ()
    shown = tuple(swept.counts.items()) if page.names or page.rows else ()
    return replace(_result(engine, sought, swept, page), counts=shown, files=files, look_around=search.look_around)


def _result(engine: Engine, sought: Sought, swept: Swept, page: Page) -> SweepResult:
    total = sum(swept.counts.values())
    return SweepResult(
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
class _Sweep:
    """One sweep of one tree, and what it could not look at."""

    scope: Scope
    engine: Engine
    sought: Sought
    snapshot_of: SnapshotOf
    budget: Budget
    began: int
    files: dict[str, FileHits] = field(default_factory=dict[str, FileHits])
    binary: int = 0
    too_large: list[str] = field(default_factory=list[str])
    changed: int = 0
    unreadable: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        directory = self.scope.directory.key
        self._base = "" if directory == "." else directory + "/"
        self._unchanged = Unchanged(disk=self.scope.disk, directory=self.scope.directory, began=self.began)

    def swept(self) -> Swept:
        """Let the engine find, and settle what it could not decide."""
        swept = self.engine.sweep(self.scope, self.sought.want, self.budget)
        if swept.timed_out and swept.doubtful:
            self.budget = self.budget.extended(_GRACE)
        if self.scope.allowed is not None:
            swept.counts = {name: count for name, count in swept.counts.items() if self._may_see(name)}
        for name in swept.doubtful:
            snapshot = self._read(self._target(name)) if self._may_see(name) else None
            if snapshot is not None:
                self._find_again(swept, name, snapshot)
        return swept

    def _find_again(self, swept: Swept, name: str, snapshot: Snapshot) -> None:
        spans = self.engine.spans(self.scope.search, snapshot.data, self.budget)
        if not spans:
            return
        places = _places(snapshot, spans)
        swept.counts[name] = {"files": 1, "counts": len(spans), "lines": len(places)}[self.sought.want]
        swept.places[name], swept.marks[name] = places, hash(snapshot.data)
        swept.matches = None if swept.matches is None else swept.matches + len(spans)

    def page_of_files(self, names: list[str]) -> Page:
        """Return the names of one page; those that are no files by now are left out."""
        page = Page(self.sought)
        for name in names:
            if not page.takes_name(self._base + name):
                break
        page.names = list(self._existing([name.removeprefix(self._base) for name in page.names]))
        return page

    def _existing(self, names: list[str]) -> Iterator[str]:
        for above, group in groupby(names, key=lambda name: name.rpartition("/")[0]):
            inside = [name.rpartition("/")[2] for name in group]
            directory = self._target(above) if above else self.scope.directory
            try:
                looks = self.scope.disk.looks(directory, inside)
            except SureholdError:  # gone meanwhile, or a link by now
                continue
            prefix = self._base + (above + "/" if above else "")
            yield from (prefix + name for name, look in zip(inside, looks, strict=True) if look and look.type == "file")

    def page_of_lines(self, names: list[str], swept: Swept) -> Page:
        """Return the rows of one page; what there was no time to show is behind it."""
        page, context = Page(self.sought), self.sought.before or self.sought.after
        if swept.timed_out:
            self.budget = self.budget.extended(_GRACE)
        try:
            for number, name in enumerate(names):
                self.budget.check(number, len(names), "files with matches looked at")
                if not context and page.to_pass >= swept.counts[name]:
                    page.to_pass -= swept.counts[name]
                elif not self._takes_rows_of(name, swept, page):
                    break
        except SearchTimeout:
            if not page.rows:
                raise
            page.further = True
        return page

    def _takes_rows_of(self, name: str, swept: Swept, page: Page) -> bool:
        if self.sought.limit is not None and len(page.rows) >= self.sought.limit:
            page.further = True
            return False
        target = self._target(name)
        snapshot = self._read(target)
        if snapshot is None:
            return True
        places, before = self._places(name, target, snapshot, swept), len(page.rows)
        goes_on = all(page.takes_row(row) for row in _rows(target.key, snapshot, places, self.sought))
        if len(page.rows) > before:
            self.files[target.key] = FileHits(
                path=target.key, sha256=snapshot.sha256, match_count=swept.counts[name], snapshot=snapshot
            )
        return goes_on

    def _places(self, name: str, target: Target, snapshot: Snapshot, swept: Swept) -> list[Place]:
        """Return where the matching lines are in just these bytes."""
        said, mark = swept.places[name], swept.marks.get(name)
        same = mark == hash(snapshot.data) if mark is not None else self._unchanged(target)
        if same and b"\n" in snapshot.data:  # without one, lines may end in a way that only we know
            places = said if isinstance(said, list) else records.places(said)
            if not places or places[-1][0] <= snapshot.line_count:
                return places
        return _places(snapshot, self.engine.spans(self.scope.search, snapshot.data, self.budget))

    def _read(self, target: Target) -> Snapshot | None:
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
        return allowed is None or allowed(self._target(name), False)  # noqa: FBT003 - a file

    def _target(self, name: str) -> Target:
        return self.scope.disk.below(self.scope.directory, name.split("/"))

    def counts(self, page: Page, swept: Swept) -> tuple[tuple[str, int], ...]:
        """Return the files of the page, each with its count."""
        names = list(dict.fromkeys(row.path for row in page.rows)) if self.sought.want == "lines" else page.names
        return tuple((name, swept.counts.get(name.removeprefix(self._base), 1)) for name in names)

    def elsewhere(self) -> tuple[int | None, str]:
        """Count the files with matches that were left out, and say so."""
        search = self.scope.search
        open_again = tuple(name for name in search.closed if name[0] == ".")  # version control stays closed
        wider = replace(self.scope, search=replace(search, ignore=False, hidden=True, closed=open_again))
        if wider.search == search:
            return None, ""
        try:
            swept = self.engine.sweep(wider, "files", self.budget)
        except SearchTimeout:
            return None, ""
        found = sorted(name for name in swept.counts if wider.allowed is None or self._may_see(name))
        if not found:
            return (None if swept.timed_out else 0), ""
        files = "1 file matches that is" if len(found) == 1 else f"{len(found)} files match that are"
        where = "ignored" if search.hidden else "ignored or hidden"
        closed = " or in a build directory" if open_again != search.closed else ""
        return len(found), f"{files} {where}{closed}: {_some([self._base + name for name in found])}."

    def skipped(self, swept: Swept) -> Skipped:
        """Count what is not in the answer."""
        return Skipped(
            binary=self.binary + swept.binary,
            too_large=len(self.too_large) + swept.too_large,
            denied=swept.denied,
            unreadable=len(swept.unreadable) + len(self.unreadable),
            changed=self.changed,
        )

    def notes(self, swept: Swept) -> Iterator[str]:
        """Say what the numbers alone do not say."""
        if swept.timed_out:
            yield f"Time was up after {self.budget.seconds:g} s: this is what was found until then, not all there is."
        if unreadable := [*(self._base + name for name in swept.unreadable), *self.unreadable]:
            yield f"Could not be read: {_some(unreadable)}."
        if self.too_large:
            yield f"Too large to be shown: {_some(self.too_large)}."
        if swept.overflowed:
            yield "There are more matches than can be collected; narrow the search."
        if self.scope.search.look_around:
            yield "The pattern needs look-around or backreferences: it was matched with PCRE2."


def _in_path_order(name: str) -> str:
    return name.replace("/", "\0")


def _places(snapshot: Snapshot, spans: list[tuple[int, int]]) -> list[Place]:
    if b"\n" in snapshot.data:
        return places_of(searched(snapshot.data), spans)
    return places_of(searched(snapshot.data).replace(b"\r", b"\n"), spans)


def _rows(path: str, snapshot: Snapshot, places: list[Place], sought: Sought) -> Iterator[Row]:
    """Yield the matching lines of a file and those around them, each once."""
    view, shown = View(path, snapshot), 0
    matching = dict(places)
    for line in matching:
        for number in range(max(1, line - sought.before, shown + 1), min(view.count, line + sought.after) + 1):
            if number > line and number in matching:
                break
            yield view.row(number, matching.get(number))
            shown = number


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")

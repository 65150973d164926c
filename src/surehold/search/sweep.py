"""Sweeping a tree: which files match, how often, or on which lines.

1. The order is that of the paths, name by name, whatever changes meanwhile: a page goes on where the one before ended.
2. Totals are those of the whole tree. Only what is shown is looked at by us: a name must be a file inside the roots, and
   lines are read anew and belong to one version of their file.
3. Nothing found is not nothing there: then what was left out is searched too, and said.
4. What was found when time was up is an answer, and says so. When that is nothing, it is an error.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from surehold.disk.base import Stored, Target
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
from surehold.search import records
from surehold.search.budget import Budget
from surehold.search.engine import TOO_MANY, Engine, Matching, Place, Scope, Swept, searchable
from surehold.search.page import Page
from surehold.search.preview import View
from surehold.search.unchanged import Unchanged
from surehold.search.values import FileHits, Search, Skipped, Sought, SweepResult
from surehold.text.snapshot import Snapshot

_SHOWN = 3
_GRACE = 2.0
"""Seconds to show what was found when time was up."""
_BATCH = 64
_BATCH_BYTES = 1 << 22
_HELD = 1 << 28
"""Bytes of files of which lines are shown; a page with more of them ends."""
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
        raise BinaryFile(f"`{target}` is not text.", path=target.key, action="Search text files, or a directory.")
    text = searchable(snapshot)
    found = engine.lines_in(search, text.data, budget)
    swept, page = Swept(scanned=1, matches=found.matches, overflowed=not found.complete), Page(sought)
    if found.places:
        swept.counts[target.key] = _count(found, sought)
    elif not found.complete:  # not even one line of what matches could be kept
        raise InvalidPattern("The pattern matches more than can be collected.", reason="too_many_matches")
    files = tuple[FileHits, ...]()
    if found.places and sought.want != "lines":
        page.takes_name(target.key)
    elif found.places:
        _take_rows(page, target.key, text, found.places, sought)
        hits = FileHits(path=target.key, sha256=snapshot.sha256, match_count=found.matches, snapshot=snapshot)
        files = (hits,) if page.rows else ()
    return replace(
        _result(engine, sought, swept, page),
        counts=tuple(swept.counts.items()) if page.names or page.rows else (),
        files=files,
        look_around=search.look_around,
        notes=() if found.complete else (TOO_MANY,),
    )


def _count(found: Matching, sought: Sought) -> int:
    return {"files": 1, "counts": found.matches, "lines": len(found.places)}[sought.want]


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
        found = self.engine.lines_in(self.scope.search, snapshot.data, self.budget)
        swept.overflowed |= not found.complete
        if not found.places:
            return
        swept.counts[name] = _count(found, self.sought)
        swept.places[name], swept.marks[name] = found.places, hash(snapshot.data)
        swept.matches = None if swept.matches is None else swept.matches + found.matches

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
            at = 0
            while at < len(names):
                self.budget.check(at, len(names), "files with matches looked at")
                if not context and page.to_pass >= swept.counts[names[at]]:
                    page.to_pass -= swept.counts[names[at]]
                    at += 1
                    continue
                batch = self._batch(names, at, swept, page)
                if not batch or not self._takes_rows_of(batch, swept, page):
                    page.further = True
                    break
                at += len(batch)
        except SearchTimeout:
            if not page.rows:
                raise
            page.further = True
        return page

    def _batch(self, names: list[str], begin: int, swept: Swept, page: Page) -> dict[str, Snapshot | None]:
        """Read the next files of one directory, as many as the page surely needs and memory easily holds."""
        limit, files = self.sought.limit, dict[str, Snapshot | None]()
        wanted = _BATCH if limit is None else page.to_pass + limit - len(page.rows)
        if limit is not None and sum(file.snapshot.size for file in self.files.values()) > _HELD:
            wanted = 0
        room, above = _BATCH_BYTES, names[begin].rpartition("/")[0]
        for name in names[begin : begin + _BATCH]:
            if wanted <= 0 or room <= 0 or name.rpartition("/")[0] != above:
                break
            snapshot = files[name] = self._read(self._target(name))
            wanted -= swept.counts[name]
            room -= snapshot.size if snapshot else 0
        return files

    def _takes_rows_of(self, batch: dict[str, Snapshot | None], swept: Swept, page: Page) -> bool:
        """Take what matches in some files of one directory; False when the page is full."""
        files = {name: snapshot for name, snapshot in batch.items() if snapshot is not None}
        for (name, snapshot), same in zip(files.items(), self._are_same(files, swept), strict=True):
            places, before = self._places(name, snapshot, swept, same=same), len(page.rows)
            path = self._base + name
            goes_on = _take_rows(page, path, snapshot, places, self.sought)
            if len(page.rows) > before:
                self.files[path] = FileHits(
                    path=path, sha256=snapshot.sha256, match_count=swept.counts[name], snapshot=snapshot
                )
            if not goes_on:
                return False
        return True

    def _are_same(self, files: dict[str, Snapshot], swept: Swept) -> list[bool]:
        """Tell which files of one directory hold the bytes that the engine searched."""
        marked = {name: swept.marks[name] == hash(files[name].data) for name in files if name in swept.marks}
        if len(marked) == len(files):
            return list(marked.values())
        above = next(iter(files)).rpartition("/")[0]
        directory = self._target(above) if above else self.scope.directory
        rested = self._unchanged.each(directory, [name.rpartition("/")[2] for name in files])
        return [marked.get(name, has_rested) for name, has_rested in zip(files, rested, strict=True)]

    def _places(self, name: str, snapshot: Snapshot, swept: Swept, *, same: bool) -> list[Place]:
        """Return where the matching lines are in just these bytes."""
        said = swept.places[name]
        if same and b"\n" in snapshot.data:  # without one, lines may end in a way that only we know
            places = said if isinstance(said, list) else records.places(said)
            if not places or places[-1][0] <= snapshot.line_count:
                return places
        found = self.engine.lines_in(self.scope.search, snapshot.data, self.budget)
        swept.overflowed |= not found.complete
        return found.places

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
            binary=self.binary + len(swept.binary),
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
            yield TOO_MANY
        if self.scope.search.look_around:
            yield "The pattern needs look-around or backreferences: it was matched with PCRE2."


def _in_path_order(name: str) -> str:
    return name.replace("/", "\0")


def _take_rows(page: Page, path: str, snapshot: Snapshot, places: list[Place], sought: Sought) -> bool:
    """Take the matching lines of a file and those around them, each once; False when the page is full."""
    view, matching = View(path, snapshot), dict(places)
    for number in _numbers(matching, sought, view.count):
        if page.to_pass:  # there may be very many, so they are not even looked at
            page.to_pass -= 1
        elif not page.takes_row(view.row(number, matching.get(number))):
            return False
    return True


def _numbers(matching: Iterable[int], sought: Sought, count: int) -> Iterator[int]:
    if not (sought.before or sought.after):
        yield from (line for line in matching if line <= count)
        return
    shown = 0
    for line in matching:
        for number in range(max(1, line - sought.before, shown + 1), min(count, line + sought.after) + 1):
            yield number
            shown = number


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")

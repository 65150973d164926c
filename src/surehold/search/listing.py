"""Searches by name: list a directory, match a glob, search paths, and find the newest files."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice

from surehold.disk.base import EntryType
from surehold.errors import SearchTimeout
from surehold.search.engine import Deadline, Parts
from surehold.search.glob import Glob, GlobFilter, anchored_glob, floating_glob, is_glob
from surehold.search.query import GlobResult, Hit, Listing, NewestFile, NewestResult, ResultWindow, Search, SearchResult
from surehold.search.result_page import decode_cursor, encode_cursor, left_out_note, measure_cursor
from surehold.search.walk import TreeWalk, VisitedDirectory, WalkEntry, WalkGuide, join_stats, key_prefix, stat_steps
from surehold.text.escape import escape_text
from surehold.text.measure import ANY_SIZE, TextRoom

_LONGEST_SIZE = "  1234567890\n"
"""What may be after a name."""
_LEFT_OUT = ("ignored", "hidden")


def list_directory(
    walk: TreeWalk, *, recursive: bool, max_depth: int, limit: int, room: TextRoom, after: str
) -> Listing:
    question = ("list", walk.start.key, recursive, max_depth, walk.hidden, walk.ignore)
    passed = tuple(map(str, decode_cursor(question, after))) if after else ()
    walk = replace(walk, max_depth=max_depth if recursive else 1, after=passed)
    if recursive:
        steps = list(islice(walk, limit + 1))
        shown = steps[: _count_page([step.path_parts for step in steps], question, limit, room)]
        further = len(steps) > len(shown)
        entries, last = stat_steps(walk.disk, shown), shown[-1].path_parts if further else ()
        total = None if further or passed else len(shown)
    else:
        with closing(walk.visit_directories()) as visits:
            visited = next(visits)
            names = sorted(visited.entries)
            begin = bisect_right(names, passed[0]) if passed else 0
            left = names[begin : begin + limit + 1]
            page = left[: _count_page([(name,) for name in left], question, limit, room)]
            further, total = begin + len(page) < len(names), len(names)
            entries, last = join_stats(walk.start, (), page, visited.listing.stat_entries(page)), page[-1:]
    return Listing(
        directory=walk.start.key,
        entries=tuple(entries),
        truncated=further,
        next=encode_cursor(question, *last) if further else "",
        total=total,
        skipped=walk.tally.count_skipped(),
        notes=walk.tally.build_notes(),
    )


def _count_page(found: Sequence[Parts], question: object, limit: int | None, room: TextRoom, base: str = "") -> int:
    """Return how many entries fit, with a size after each and the cursor after the last of them; at least one."""
    most = len(found) if limit is None else min(limit, len(found))
    if room is ANY_SIZE:
        return most
    reserved = 0
    while True:
        rows = (escape_text(base + "/".join(parts)) for parts in islice(found, most))
        count = max(room.less(reserved).count_fitting(rows, end=_LONGEST_SIZE), 1)
        cursor = encode_cursor(question, *found[count - 1]) if count < len(found) else ""
        needed = measure_cursor(room, cursor)
        if needed <= reserved or count == 1:
            return count
        reserved = needed


def find_glob(walk: TreeWalk, pattern: str, *, exclude: Sequence[str], limit: int, deadline: Deadline) -> GlobResult:
    """Return what a pattern matches, directories too, in path order."""
    glob, filters = anchored_glob(pattern), GlobFilter((), exclude)
    matching = _match_entries(walk, glob, filters, deadline)
    notes = list(walk.tally.build_notes())
    if not matching:
        if wider := walk.widened():
            notes += _explain_no_entries([s.path_parts for s in _match_entries(wider, glob, filters, deadline)])
        if "/" not in pattern:
            notes.append(f"`{pattern}` looks only in the directory itself; `**/{pattern}` looks below it too.")
    return GlobResult(
        directory=walk.start.key,
        matches=tuple(stat_steps(walk.disk, matching[:limit])),
        truncated=len(matching) > limit,
        total=len(matching),
        skipped=walk.tally.count_skipped(),
        notes=tuple(notes),
    )


def _match_entries(walk: TreeWalk, glob: Glob, filters: GlobFilter, deadline: Deadline) -> list[WalkEntry]:
    found = [
        WalkEntry(visited.directory, visited.parents, name, kind)
        for visited in _visit_matching(walk, GlobGuide(glob, filters, hidden=walk.hidden), deadline)
        for name, kind in visited.entries.items()
        if filters.enters_directory((*visited.parents, name))
    ]
    found.sort(key=lambda step: step.path_parts)
    return found


class GlobGuide(WalkGuide):
    """Leads a walk only to where a pattern can match. A hidden name matches only a pattern that begins with a dot too."""

    def __init__(
        self, glob: Glob, filters: GlobFilter | None = None, *, hidden: bool, closed: Sequence[str] = ()
    ) -> None:
        super().__init__(filters, closed)
        self._glob, self._hidden = glob, hidden
        self._matcher = cache(glob.entry_matcher)  # most directories of a walk are in the same state

    def initial_states(self) -> tuple[int, ...]:
        return self._glob.start_states

    def enter_directory(self, states: tuple[int, ...], parts: Parts) -> tuple[int, ...] | None:
        name = parts[-1]
        stepped = self._glob.step_states(self._dotted(states) if name[0] == "." else states, name)
        return super().enter_directory(stepped, parts) if self._glob.can_match_below(stepped) else None

    def shows_hidden(self, states: tuple[int, ...]) -> bool:
        return any(self._glob.dotted_states(states))

    def matching_entries(self, visited: VisitedDirectory) -> dict[str, EntryType]:
        plain, entries = self._matcher(visited.states), visited.entries.items()
        if self._hidden:
            return {name: kind for name, kind in entries if plain(name)}
        dotted = self._matcher(self._dotted(visited.states))
        return {name: kind for name, kind in entries if (dotted if name[0] == "." else plain)(name)}

    def _dotted(self, states: tuple[int, ...]) -> tuple[int, ...]:
        return states if self._hidden else self._glob.dotted_states(states)


def _visit_matching(walk: TreeWalk, guide: GlobGuide, deadline: Deadline) -> Iterator[VisitedDirectory]:
    """Yield the directories that have matching entries, with no other entries."""
    number = 0
    for visited in replace(walk, guide=guide).visit_directories():
        deadline.check(number, None, "entries looked at")
        number += len(visited.entries)
        if entries := guide.matching_entries(visited):
            yield visited._replace(entries=entries)


def _explain_no_entries(found: Sequence[Parts]) -> list[str]:
    names = ["/".join(parts) for parts in found]
    return [left_out_note(len(names), _LEFT_OUT, ("entry", "entries"), names)] if names else []


def search_paths(walk: TreeWalk, search: Search, window: ResultWindow, *, deadline: Deadline) -> SearchResult:
    question = (search, walk.start.key)
    passed = tuple(map(str, decode_cursor(question, window.cursor))) if window.cursor else ()
    filters, matches = GlobFilter(search.include, search.exclude), _path_matcher(search)
    walk = replace(walk, guide=WalkGuide(filters))
    found, scanned = _match_paths(walk, matches, filters, deadline)
    wanted = [parts for parts in found if parts > passed]
    base = key_prefix(walk.start)
    count = _count_page(wanted, question, window.limit, window.room, base)
    shown = [Hit(path=base + "/".join(parts), preview="/".join(parts)) for parts in wanted[:count]]
    further = len(shown) < len(wanted)
    notes = list(walk.tally.build_notes())
    if not found and (wider := walk.widened()):
        notes += _explain_no_entries(_match_paths(wider, matches, filters, deadline)[0])
    return SearchResult(
        want="matches",
        engine="python",
        matches=tuple(shown),
        files_scanned=scanned,
        skipped=walk.tally.count_skipped(),
        truncated=further,
        next=encode_cursor(question, *wanted[len(shown) - 1]) if further else "",
        total_matches=len(found),
        notes=tuple(notes),
    )


def _path_matcher(search: Search) -> Callable[[Parts], bool]:
    fold: Callable[[str], str] = str if search.case_sensitive else str.casefold
    query = fold(search.query)
    if not is_glob(search.query):
        return lambda parts: query in fold("/".join(parts))
    glob = floating_glob(query)
    return lambda parts: glob.matches_path([fold(name) for name in parts])


def _match_paths(
    walk: TreeWalk, matches: Callable[[Parts], bool], filters: GlobFilter, deadline: Deadline
) -> tuple[list[Parts], int]:
    found, number = list[Parts](), 0
    for visited in walk.visit_directories():
        deadline.check(number, None, "entries looked at")
        number += len(visited.entries)
        parts = ((*visited.parents, name) for name in visited.entries)
        found += [each for each in parts if matches(each) and filters.accepts_file(each)]
    return sorted(found), number


def find_newest(walk: TreeWalk, pattern: str, *, closed: Sequence[str], limit: int, deadline: Deadline) -> NewestResult:
    """Return the files that a pattern matches, newest first, those of the same time by path.

    When time is up, what was found until then is returned; if that is nothing, it is an error.
    """
    glob = anchored_glob(pattern)
    found, complete = _match_files_by_age(walk, glob, closed, deadline)
    total = found.total
    if not total and not complete:
        deadline.raise_timeout(0, "files were found so far")
    elsewhere = below = None
    skipped, notes = walk.tally.count_skipped(), list(walk.tally.build_notes())
    if not complete:
        notes.append(f"Time was up after {deadline.seconds:g} s: this is what was found until then, not all there is.")
    if not total and (wider := walk.widened()):
        elsewhere = _count_matching(wider, glob, closed, deadline)
        notes += [left_out_note(elsewhere, _LEFT_OUT, ("file", "files"), ())] if elsewhere else []
    if not total and "/" not in pattern:
        below = _count_matching(walk, anchored_glob(f"**/{pattern}"), closed, deadline)
        if below is not None:
            notes.append(f"`{pattern}` looks only in the directory itself; `**/{pattern}` matches {below}.")
    return NewestResult(
        directory=walk.start.key,
        files=tuple(found.take_newest(limit)),
        total=total,
        complete=complete,
        skipped=skipped,
        elsewhere=elsewhere,
        below=below,
        notes=tuple(notes),
    )


@dataclass
class _FilesByAge:
    """Files with the times of their last change: one row for each directory, since there may be very many files."""

    rows: list[tuple[str, list[str], list[int]]] = field(default_factory=list[tuple[str, list[str], list[int]]])
    """What precedes the names of a directory's files in their keys; the names; and the times."""

    @property
    def total(self) -> int:
        return sum(len(names) for _, names, _ in self.rows)

    def add_directory(self, base: str, names: list[str], times: list[int | None]) -> None:
        """Add the files of a directory; those that are gone have no time, and are left out."""
        if None in times:
            names = [name for name, time in zip(names, times, strict=True) if time is not None]
        self.rows.append((base, names, [time for time in times if time is not None]))

    def take_newest(self, limit: int) -> list[NewestFile]:
        """Return the newest files, those of the same time by path. Only those that can be among them are sorted by path."""
        times = sorted(chain.from_iterable(times for _, _, times in self.rows), reverse=True)
        oldest = times[min(limit, len(times)) - 1] if times else 0
        found = [
            (-time, base + name)
            for base, names, times in self.rows
            for name, time in zip(names, times, strict=True)
            if time >= oldest
        ]
        return [NewestFile(-time, key) for time, key in sorted(found)[:limit]]


def _count_matching(walk: TreeWalk, glob: Glob, closed: Sequence[str], deadline: Deadline) -> int | None:
    """Return how many files match; None if there is no time to count them."""
    found, complete = _match_files_by_age(walk, glob, closed, deadline)
    return found.total if complete else None


def _match_files_by_age(
    walk: TreeWalk, glob: Glob, closed: Sequence[str], deadline: Deadline
) -> tuple[_FilesByAge, bool]:
    """Return the files that match, and whether there was time for all of them."""
    guide, found = GlobGuide(glob, hidden=walk.hidden, closed=closed), _FilesByAge()
    try:
        for visited in _visit_matching(walk, guide, deadline):
            if names := [name for name, kind in visited.entries.items() if kind == "file"]:
                found.add_directory(key_prefix(visited.directory), names, visited.listing.modified_times(names))
    except SearchTimeout:
        return found, False
    return found, True

"""Listing and globbing: the walk, cut into pages."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from surehold.disk.base import Reader, Target
from surehold.search.budget import Budget
from surehold.search.cursor import cursor, place
from surehold.search.glob import Filter, Glob, anchored
from surehold.search.values import GlobResult, Listing
from surehold.search.walk import Allowed, Guide, Step, Tally, Walk, facts, looked_at

_SHOWN = 3
_SIZE = 8
"""Characters for the size behind a name."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to look, and who may see it."""

    disk: Reader
    directory: Target
    allowed: Allowed | None = None


def list_directory(
    where: Place, *, recursive: bool, max_depth: int, hidden: bool, ignore: bool, limit: int, room: int, after: str
) -> Listing:
    """Return one page of a directory's entries."""
    question = ("list", where.directory.key, recursive, max_depth, hidden, ignore)
    passed = _parts(place(question, after)) if after else ()
    walk = Walk(
        disk=where.disk,
        start=where.directory,
        allowed=where.allowed,
        hidden=hidden,
        ignore=ignore,
        max_depth=max_depth if recursive else 1,
        after=passed,
    )
    if not recursive:
        return _one_directory(walk, question, limit, room, passed)
    steps = iter(walk)
    found = list(islice(steps, limit + 1))
    count = min(limit, _fitting((sum(map(len, step.parts)) + len(step.parts) for step in found), room))
    further = len(found) > count
    found = found[:count]
    return Listing(
        directory=where.directory.key,
        entries=tuple(looked_at(where.disk, found)),
        truncated=further,
        next=cursor(question, *found[-1].parts) if further else "",
        total=None if further or passed else len(found),
        skipped=walk.tally.skipped(),
        notes=walk.tally.notes(),
    )


def _fitting(lengths: Iterable[int], room: int) -> int:
    """Return how many names fit into some characters, with a size behind each; at least one."""
    count = 0
    for length in lengths:
        room -= length + _SIZE
        if room < 0:
            return max(count, 1)
        count += 1
    return max(count, 1)


def _one_directory(walk: Walk, question: object, limit: int, room: int, passed: tuple[str, ...]) -> Listing:
    names = [name for name, _ in next(walk.rooms()).entries]
    begin = bisect_right(names, passed[0]) if passed else 0
    shown = names[begin : begin + limit]
    shown = shown[: _fitting(map(len, shown), room)]
    further = begin + len(shown) < len(names)
    return Listing(
        directory=walk.start.key,
        entries=tuple(facts(walk.disk, walk.start, (), shown)),
        truncated=further,
        next=cursor(question, shown[-1]) if further else "",
        total=len(names),
        skipped=walk.tally.skipped(),
        notes=walk.tally.notes(),
    )


def find_glob(
    where: Place, pattern: str, *, exclude: Sequence[str], limit: int, hidden: bool, ignore: bool, budget: Budget
) -> GlobResult:
    """Return what a pattern matches, directories too, in path order."""
    glob, filters = anchored(pattern), Filter((), exclude)
    walk = Walk(
        disk=where.disk,
        start=where.directory,
        allowed=where.allowed,
        hidden=hidden,
        ignore=ignore,
    )
    matching = _matching(walk, glob, filters, budget)
    page = matching[:limit]
    notes = list(walk.tally.notes())
    if not matching:
        notes += _why_nothing(walk, pattern, glob, filters, budget)
    return GlobResult(
        directory=where.directory.key,
        matches=tuple(looked_at(where.disk, page)),
        truncated=len(matching) > limit,
        total=len(matching),
        skipped=walk.tally.skipped(),
        notes=tuple(notes),
    )


class Pruning(Guide):
    """Leads a walk only to where a pattern can match. A hidden name must be said by the pattern, dot and all."""

    def __init__(self, glob: Glob, filters: Filter, *, hidden: bool, closed: Sequence[str] = ()) -> None:
        self._glob, self._filters, self._hidden = glob, filters, hidden
        self._closed = frozenset(closed)

    def begin(self) -> tuple[int, ...]:
        """Begin at the first name of the pattern."""
        return self._glob.start

    def into(self, states: tuple[int, ...], parts: tuple[str, ...]) -> tuple[int, ...] | None:
        """Enter where the rest of the pattern can match."""
        if parts[-1] in self._closed:
            return None
        stepped = self._step(states, parts[-1])
        return stepped if self._glob.leads_on(stepped) and self._filters.enters(parts) else None

    def shows_hidden(self, states: tuple[int, ...]) -> bool:
        """Tell whether the pattern says a dot here."""
        return any(self._glob.dotted(states))

    def _step(self, states: tuple[int, ...], name: str) -> tuple[int, ...]:
        if name[0] == "." and not self._hidden:
            states = self._glob.dotted(states)
        return self._glob.step(states, name)


def _matching(walk: Walk, glob: Glob, filters: Filter, budget: Budget) -> list[Step]:
    guide = Pruning(glob, filters, hidden=walk.hidden)
    found, number = list[Step](), 0
    for room in replace(walk, guide=guide).rooms():
        budget.check(number, None, "entries looked at")
        number += len(room.entries)
        matches = glob.in_directory(room.states)
        matches_hidden = matches if walk.hidden else glob.in_directory(glob.dotted(room.states))
        found += [
            Step(room.directory, room.parents, name, kind)
            for name, kind in room.entries
            if (matches_hidden if name[0] == "." else matches)(name) and filters.enters((*room.parents, name))
        ]
    found.sort(key=_path)
    return found


def _path(step: Step) -> tuple[str, ...]:
    return (*step.parents, step.name)


def _why_nothing(walk: Walk, pattern: str, glob: Glob, filters: Filter, budget: Budget) -> list[str]:
    notes = list[str]()
    if walk.ignore or not walk.hidden:
        everything = replace(walk, ignore=False, hidden=True, tally=Tally())
        found = _matching(everything, glob, filters, budget)
        if found:
            names = ", ".join("/".join(step.parts) for step in found[:_SHOWN])
            more = " …" if len(found) > _SHOWN else ""
            notes.append(f"0 matches; {len(found)} that are ignored or hidden: {names}{more}.")
    if "/" not in pattern:
        notes.append(f"`{pattern}` looks only in the directory itself; `**/{pattern}` looks below it too.")
    return notes


def _parts(found: list[object]) -> tuple[str, ...]:
    return tuple(str(name) for name in found)

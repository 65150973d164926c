"""Files by a pattern, newest first: a walk that looks at the time of what matches, and at nothing else."""

import os
from collections.abc import Sequence
from dataclasses import replace

from surehold.errors import SearchTimeout, SureholdError
from surehold.search.budget import Budget
from surehold.search.glob import Filter, Glob, anchored
from surehold.search.listing import Place, Pruning
from surehold.search.values import Newest, NewestResult
from surehold.search.walk import Room, Tally, Walk

_NOTHING = Filter((), ())
_ANYWHERE = "**/"


def find_newest(
    where: Place,
    pattern: str,
    *,
    closed: Sequence[str] = (),
    limit: int,
    hidden: bool,
    ignore: bool,
    budget: Budget,
) -> NewestResult:
    """Return the files that a pattern matches, newest first, those of the same time by path.

    When time is up, what was found by then is the answer; when that is nothing, it is an error.
    """
    glob = anchored(pattern)
    walk = Walk(disk=where.disk, start=where.directory, allowed=where.allowed, hidden=hidden, ignore=ignore)
    found, complete = _matching(walk, glob, closed, budget)
    if not found and not complete:
        budget.over(0, "files were found so far")
    found.sort()
    elsewhere = below = None
    notes = list(walk.tally.notes())
    if not complete:
        notes.append(f"Time was up after {budget.seconds:g} s: this is what was found until then, not all there is.")
    if not found:
        elsewhere = _elsewhere(walk, glob, closed, budget)
        below = _count(walk, anchored(_ANYWHERE + pattern), closed, budget) if "/" not in pattern else None
        notes += _why_nothing(pattern, elsewhere, below)
    return NewestResult(
        directory=where.directory.key,
        files=tuple(Newest(-time, key) for time, key in found[:limit]),
        total=len(found),
        complete=complete,
        skipped=walk.tally.skipped(),
        elsewhere=elsewhere,
        below=below,
        notes=tuple(notes),
    )


def _matching(walk: Walk, glob: Glob, closed: Sequence[str], budget: Budget) -> tuple[list[tuple[int, str]], bool]:
    """Return the files that match, each with its age, and whether there was time for all."""
    guide = Pruning(glob, _NOTHING, hidden=walk.hidden, closed=closed)
    found, number = list[tuple[int, str]](), 0
    try:
        for room in replace(walk, guide=guide).rooms():
            budget.check(number, None, "entries looked at")
            number += len(room.entries)
            if names := _names(walk, glob, room):
                found += _aged(walk, room, names)
    except SearchTimeout:
        return found, False
    return found, True


def _names(walk: Walk, glob: Glob, room: Room) -> list[str]:
    matches = glob.in_directory(room.states)
    if walk.hidden:
        return [name for name, kind in room.entries if kind == "file" and matches(name)]
    dotted = glob.in_directory(glob.dotted(room.states))
    return [name for name, kind in room.entries if kind == "file" and (dotted if name[0] == "." else matches)(name)]


def _aged(walk: Walk, room: Room, names: list[str]) -> list[tuple[int, str]]:
    """Return each file with its age, so that the newest is the least; those that are gone are left out."""
    base = "" if room.directory.key == "." else room.directory.key + "/"
    found = list[tuple[int, str]]()
    look_at, add = os.stat, found.append  # one loop without calls of ours: there may be very many
    try:
        with walk.disk.held(room.directory) as fd:
            if fd is None:
                looks = walk.disk.looks(room.directory, names)
                return [(-look.mtime_ns, base + name) for name, look in zip(names, looks, strict=True) if look]
            for name in names:
                try:
                    add((-look_at(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns, base + name))
                except OSError:
                    continue
    except SureholdError:  # the whole directory is gone
        return []
    return found


def _elsewhere(walk: Walk, glob: Glob, closed: Sequence[str], budget: Budget) -> int | None:
    if not walk.ignore and walk.hidden:
        return None
    return _count(replace(walk, ignore=False, hidden=True), glob, closed, budget)


def _count(walk: Walk, glob: Glob, closed: Sequence[str], budget: Budget) -> int | None:
    """Return how many files match; None when there is no time to count them."""
    found, complete = _matching(replace(walk, tally=Tally()), glob, closed, budget)
    return len(found) if complete else None


def _why_nothing(pattern: str, elsewhere: int | None, below: int | None) -> list[str]:
    notes = list[str]()
    if elsewhere:
        files = "1 file matches that is" if elsewhere == 1 else f"{elsewhere} files match that are"
        notes.append(f"{files} ignored or hidden.")
    if below is not None:
        notes.append(f"`{pattern}` looks only in the directory itself; `{_ANYWHERE}{pattern}` matches {below}.")
    return notes

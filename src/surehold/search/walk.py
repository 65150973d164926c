"""A walk through a directory, in path order.

1. Each directory is opened from its root without following a link, so nothing outside can come into view, whatever is swapped
   meanwhile. Links are entries, never ways.
2. The order is that of the names, compared one after the other: a directory comes right before what is in it.
3. `.git` is left out, always. Hidden, ignored and denied entries are left out unless asked for, counted, and not entered.
4. What vanishes meanwhile is passed over; a directory that cannot be read is named.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from surehold.disk.base import EntryType, Listed, Reader, Target
from surehold.errors import NotFound, OutsideWorkspace, SureholdError
from surehold.search.glob import Filter
from surehold.search.ignore import Ignoring, beginning, inherited
from surehold.search.values import ListedEntry, Skipped

Allowed = Callable[[Target, bool], bool]
"""Tells whether a target may be seen; the second word says whether it is a directory."""
_BY_NAME = itemgetter(0)


@dataclass
class Tally:
    """What a walk left out."""

    denied: int = 0
    ignored: int = 0
    hidden: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])
    """Directories that lie too deep to be entered."""

    def skipped(self) -> Skipped:
        """Return the counts."""
        return Skipped(denied=self.denied, ignored=self.ignored, hidden=self.hidden, unreadable=len(self.unreadable))

    def notes(self) -> tuple[str, ...]:
        """Name what was not looked at and cannot be told from the counts."""
        reasons = (("Could not be read", self.unreadable), ("Not entered, since they lie too deep", self.closed))
        return tuple(f"{reason}: {_shown(names)}." for reason, names in reasons if names)


def _shown(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")  # noqa: PLR2004


class Step(NamedTuple):
    """One entry that a walk has come to."""

    directory: Target
    parents: tuple[str, ...]
    """The names from the start of the walk to the directory."""
    name: str
    type: EntryType

    @property
    def parts(self) -> tuple[str, ...]:
        """All names from the start of the walk."""
        return (*self.parents, self.name)


class Room(NamedTuple):
    """One directory of a walk, and what is to be seen in it."""

    directory: Target
    parents: tuple[str, ...]
    states: tuple[int, ...]
    """What the guide carried here."""
    entries: list[Listed]


class _Door(NamedTuple):
    """A directory that is to be entered, and what holds there."""

    target: Target
    parents: tuple[str, ...]
    rules: Ignoring
    states: tuple[int, ...]


class Guide:
    """Decides where a walk goes; this one goes everywhere."""

    def begin(self) -> tuple[int, ...]:
        """Return what is carried along from the start."""
        return ()

    def into(self, states: tuple[int, ...], parts: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return what is carried into a directory; None when it is not worth a look."""
        del parts
        return states

    def shows_hidden(self, states: tuple[int, ...]) -> bool:
        """Tell whether hidden entries of this directory may be wanted."""
        del states
        return False


class Excluding(Guide):
    """Keeps a walk out of excluded directories, and out of those with certain names."""

    def __init__(self, filters: Filter, closed: Sequence[str] = ()) -> None:
        self._filters = filters
        self._closed = frozenset(closed)

    def into(self, states: tuple[int, ...], parts: tuple[str, ...]) -> tuple[int, ...] | None:
        """Enter what no glob excludes."""
        return states if parts[-1] not in self._closed and self._filters.enters(parts) else None


@dataclass(kw_only=True)
class Walk:
    """All entries below a directory that may be seen."""

    disk: Reader
    start: Target
    allowed: Allowed | None = None
    hidden: bool = False
    ignore: bool = True
    max_depth: int | None = None
    after: tuple[str, ...] = ()
    """Begin behind this path, as if everything up to it had been walked already."""
    guide: Guide = field(default_factory=Guide)
    tally: Tally = field(default_factory=Tally)

    def __iter__(self) -> Iterator[Step]:
        """Walk entry by entry, in path order; what is not asked for is not looked at."""
        stack = [self._entries(door) for door in self._front_door()]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, Step):
                yield step
            else:
                stack.append(self._entries(step))

    def rooms(self) -> Iterator[Room]:
        """Walk directory by directory, each with all its entries: quicker, when all are wanted anyway."""
        doors = self._front_door()
        while doors:
            door = doors.pop()
            visible, rules = self._visible(door)
            yield Room(door.target, door.parents, door.states, visible)
            for name, kind in reversed(visible):
                if kind == "directory":
                    doors += self._into(door, rules, name)

    def _front_door(self) -> list[_Door]:
        rules = beginning(inherited(self.disk, self.start) if self.ignore else ())
        return [_Door(self.start, (), rules, self.guide.begin())]

    def _entries(self, door: _Door) -> Iterator[Step | _Door]:
        """Yield what is to be seen in a directory, and after each directory that is to be entered the way into it."""
        visible, rules = self._visible(door)
        depth = len(door.parents)
        is_on_the_way = len(self.after) > depth and self.after[:depth] == door.parents
        passed = self.after[depth] if is_on_the_way else ""
        for name, kind in visible:
            if passed and name < passed:
                continue
            if name != passed:
                yield Step(door.target, door.parents, name, kind)
            if kind == "directory":
                yield from self._into(door, rules, name)

    def _into(self, door: _Door, rules: Ignoring, name: str) -> Iterator[_Door]:
        """Yield the way into a directory, if there is one."""
        parts = (*door.parents, name)
        if self.max_depth is not None and len(parts) >= self.max_depth:
            if self.max_depth > 1:
                self.tally.closed.append("/".join(parts))
            return
        states = self.guide.into(door.states, parts)
        if states is not None:
            yield _Door(self.disk.below(door.target, (name,)), parts, rules.below(name), states)

    def _visible(self, door: _Door) -> tuple[list[Listed], Ignoring]:
        """Return what is to be seen in a directory, sorted, and the rules that hold in it."""
        visible = self._found_in(door)
        dotted = [
            entry[0] for entry in visible if entry[0][0] == "."
        ]  # few as a rule, and all that is special is there
        rules = door.rules
        if self.ignore and dotted:
            rules = rules.with_files_of(self.disk, door.target, dotted)
        if dotted and (self.hidden or self.guide.shows_hidden(door.states)):
            visible = [entry for entry in visible if entry[0] != ".git"]
        elif dotted:
            visible = [entry for entry in visible if entry[0][0] != "."]
            self.tally.hidden += len(dotted) - (".git" in dotted)
        if self.ignore and rules.say_something:
            seen = [entry for entry in visible if not rules.ignores(entry[0], directory=entry[1] == "directory")]
            self.tally.ignored += len(visible) - len(seen)
            visible = seen
        if self.allowed:
            seen = [entry for entry in visible if self._may_see(door.target, entry)]
            self.tally.denied += len(visible) - len(seen)
            visible = seen
        visible.sort(key=_BY_NAME)
        return visible, rules

    def _may_see(self, directory: Target, entry: Listed) -> bool:
        assert self.allowed is not None
        return self.allowed(self.disk.below(directory, (entry.name,)), entry.type == "directory")

    def _found_in(self, door: _Door) -> list[Listed]:
        try:
            return self.disk.entries(door.target)
        except SureholdError as error:
            if not door.parents:
                raise
            if not isinstance(error, NotFound | OutsideWorkspace):  # not just gone meanwhile, or a link by now
                self.tally.unreadable.append(door.target.key)
            return []


def looked_at(disk: Reader, steps: Sequence[Step]) -> list[ListedEntry]:
    """Add the facts to the entries of a walk; what is gone by now is left out."""
    found = list[ListedEntry]()
    at = 0
    while at < len(steps):
        end = at + 1
        directory = steps[at].directory
        while end < len(steps) and steps[end].directory is directory:
            end += 1
        found += facts(disk, directory, steps[at].parents, [step.name for step in steps[at:end]])
        at = end
    return found


def facts(disk: Reader, directory: Target, parents: tuple[str, ...], names: Sequence[str]) -> list[ListedEntry]:
    """Return the facts about some entries of one directory."""
    try:
        looks = disk.looks(directory, names)
    except SureholdError:  # the whole directory is gone
        return []
    prefix = "/".join(parents) + "/" if parents else ""
    base = "" if directory.key == "." else directory.key + "/"
    depth = len(parents) + 1
    return [
        ListedEntry(name, base + name, prefix + name, look[0], look[1], look[2], depth)
        for name, look in zip(names, looks, strict=True)
        if look is not None
    ]

"""A walk through a directory tree, in path order.

1. Each directory is opened from its root without following a link, so nothing outside the root can be listed, even if
   entries are replaced during the walk. Links are listed, never followed.
2. The order compares paths name by name: a directory comes right before its content.
3. `.git` is always left out. Hidden, ignored and denied entries are left out unless requested, counted, and not entered.
4. Entries that disappear during the walk are skipped; a directory that cannot be read is reported.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple, Self

from surehold.disk.base import DiskReader, EntryStat, EntryType, OpenListing, Target
from surehold.errors import NotFound, OutsideWorkspace, SureholdError
from surehold.search.glob import GlobFilter
from surehold.search.ignore import IgnoreStack, inherited_rules, initial_rules
from surehold.search.query import ListedEntry, Skipped, name_some

Allowed = Callable[[Target, bool], bool]
"""Tells whether a target may be seen; the second argument tells whether it is a directory."""
_make_listed: Callable[[tuple[str, str, str, EntryType, int, int, int]], ListedEntry] = partial(
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
    ListedEntry,
)
"""Makes an entry of a tuple, without a call of ours: a directory may be large."""
VANISHED_ERRORS = (NotFound, OutsideWorkspace)
"""What the disk raises for an entry that was removed, or replaced by a link, since it was listed."""


@dataclass
class SkipTally:
    denied: int = 0
    ignored: int = 0
    hidden: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])
    """Directories that are too deep to be entered."""

    def count_skipped(self) -> Skipped:
        return Skipped(denied=self.denied, ignored=self.ignored, hidden=self.hidden, unreadable=len(self.unreadable))

    def build_notes(self) -> tuple[str, ...]:
        """Name what was not entered or could not be read."""
        reasons = (("Could not be read", self.unreadable), ("Not entered, since they are too deep", self.closed))
        return tuple(f"{reason}: {name_some(sorted(names))}." for reason, names in reasons if names)


class WalkEntry(NamedTuple):
    directory: Target
    parents: tuple[str, ...]
    """The names from the start of the walk to the directory."""
    name: str
    type: EntryType

    @property
    def path_parts(self) -> tuple[str, ...]:
        return (*self.parents, self.name)


class VisitedDirectory(NamedTuple):
    """One directory of a walk, with its visible entries."""

    directory: Target
    parents: tuple[str, ...]
    states: tuple[int, ...]
    """The state of the guide."""
    entries: dict[str, EntryType]
    """In no order."""
    listing: OpenListing
    """Answers until the next directory is visited."""


class _PendingDirectory(NamedTuple):
    """A directory to enter, with the rules and the guide's state for it."""

    target: Target
    parents: tuple[str, ...]
    rules: IgnoreStack
    states: tuple[int, ...]


class WalkGuide:
    """Decides where a walk goes: everywhere but into excluded directories, and into those with certain names."""

    def __init__(self, filters: GlobFilter | None = None, closed: Sequence[str] = ()) -> None:
        self._filters, self._closed = filters or GlobFilter((), ()), frozenset(closed)

    def initial_states(self) -> tuple[int, ...]:
        return ()

    def enter_directory(self, states: tuple[int, ...], parts: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the state in a directory; None if it is not entered."""
        return states if parts[-1] not in self._closed and self._filters.enters_directory(parts) else None

    def shows_hidden(self, states: tuple[int, ...]) -> bool:
        del states
        return False


@dataclass(kw_only=True)
class TreeWalk:
    """The visible entries below a directory."""

    disk: DiskReader
    start: Target
    allowed: Allowed | None = None
    hidden: bool = False
    ignore: bool = True
    max_depth: int | None = None
    after: tuple[str, ...] = ()
    """Begin after this path."""
    guide: WalkGuide = field(default_factory=WalkGuide)
    tally: SkipTally = field(default_factory=SkipTally)

    def __iter__(self) -> Iterator[WalkEntry]:
        """Walk entry by entry, in path order; directories are listed only when their turn comes."""
        stack = [self._walk_entries(visit) for visit in self._pending_start()]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, WalkEntry):
                yield step
            else:
                stack.append(self._walk_entries(step))

    def visit_directories(self) -> Generator[VisitedDirectory]:
        """Walk directory by directory, each with all its entries: faster if all of them are wanted."""
        pending = self._pending_start()
        while pending:
            visit = pending.pop()
            with self._open_listing(visit) as listing:
                visible, rules = self._visible_entries(visit, listing)
                yield VisitedDirectory(visit.target, visit.parents, visit.states, visible, listing)
            inner = [name for name, kind in visible.items() if kind == "directory"]
            for name in sorted(inner, reverse=True):
                pending += self._pending_below(visit, rules, name)

    def widened(self) -> "TreeWalk | None":
        """Return the same walk through ignored and hidden entries too; None if it leaves out none of them."""
        leaves_out = self.ignore or not self.hidden
        return replace(self, ignore=False, hidden=True, tally=SkipTally()) if leaves_out else None

    def _pending_start(self) -> list[_PendingDirectory]:
        rules = initial_rules(inherited_rules(self.disk, self.start) if self.ignore else ())
        return [_PendingDirectory(self.start, (), rules, self.guide.initial_states())]

    def _walk_entries(self, visit: _PendingDirectory) -> Iterator[WalkEntry | _PendingDirectory]:
        """Yield the visible entries of a directory, and after each directory that is entered its pending visit."""
        with self._open_listing(visit) as listing:
            visible, rules = self._visible_entries(visit, listing)
        depth = len(visit.parents)
        is_on_the_way = len(self.after) > depth and self.after[:depth] == visit.parents
        passed = self.after[depth] if is_on_the_way else ""
        for name in sorted(visible):
            if passed and name < passed:
                continue
            if name != passed:
                yield WalkEntry(visit.target, visit.parents, name, visible[name])
            if visible[name] == "directory":
                yield from self._pending_below(visit, rules, name)

    def _pending_below(self, visit: _PendingDirectory, rules: IgnoreStack, name: str) -> Iterator[_PendingDirectory]:
        parts = (*visit.parents, name)
        if self.max_depth is not None and len(parts) >= self.max_depth:
            if self.max_depth > 1:
                self.tally.closed.append("/".join(parts))
            return
        states = self.guide.enter_directory(visit.states, parts)
        if states is not None:
            target = self.disk.target_below(visit.target, (name,))
            yield _PendingDirectory(target, parts, rules.for_subdirectory(name), states)

    def _visible_entries(
        self, visit: _PendingDirectory, listing: OpenListing
    ) -> tuple[dict[str, EntryType], IgnoreStack]:
        """Return the visible entries of a directory, and the ignore rules in it."""
        visible: dict[str, EntryType] = listing.entries
        rules = visit.rules
        dotted = [name for name in visible if name[0] == "."]  # few, and the ignore files are among them
        if self.ignore and dotted:
            rules = rules.with_rules_from(self.disk, visit.target, dotted)
        if dotted and (self.hidden or self.guide.shows_hidden(visit.states)):
            visible = {name: kind for name, kind in visible.items() if name != ".git"}
        elif dotted:
            visible = {name: kind for name, kind in visible.items() if name[0] != "."}
            self.tally.hidden += len(dotted) - (".git" in dotted)
        if self.ignore and rules.has_rules:
            count = len(visible)
            visible = {
                name: kind
                for name, kind in visible.items()
                if not rules.ignores_entry(name, directory=kind == "directory")
            }
            self.tally.ignored += count - len(visible)
        if self.allowed:
            may_see, below, here = self.allowed, self.disk.target_below, visit.target
            count = len(visible)
            visible = {
                name: kind for name, kind in visible.items() if may_see(below(here, (name,)), kind == "directory")
            }
            self.tally.denied += count - len(visible)
        return visible, rules

    def _open_listing(self, visit: _PendingDirectory) -> OpenListing:
        """Return what is in a directory: nothing, if it is gone or cannot be read."""
        try:
            return self.disk.open_listing(visit.target)
        except SureholdError as error:
            if not visit.parents:
                raise
            if not isinstance(error, VANISHED_ERRORS):
                self.tally.unreadable.append(visit.target.key)
            return _EmptyListing()


class _EmptyListing:
    """What is known of a directory that could not be opened."""

    def __init__(self) -> None:
        self.entries = dict[str, EntryType]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Have nothing to close."""

    def stat_entries(self, names: Sequence[str]) -> list[EntryStat | None]:
        return [None] * len(names)

    def modified_times(self, names: Sequence[str]) -> list[int | None]:
        return [None] * len(names)


def key_prefix(directory: Target) -> str:
    return "" if directory.key == "." else directory.key + "/"


def stat_steps(disk: DiskReader, steps: Iterable[WalkEntry]) -> list[ListedEntry]:
    """Return the entries of a walk with size and time; those that are gone are left out."""
    groups = groupby(steps, key=lambda step: (step.directory, step.parents))
    return [
        entry
        for (directory, parents), group in groups
        for entry in stat_names(disk, directory, parents, [step.name for step in group])
    ]


def stat_names(disk: DiskReader, directory: Target, parents: tuple[str, ...], names: list[str]) -> list[ListedEntry]:
    try:
        looks = disk.stat_entries(directory, names)
    except SureholdError:  # the whole directory is gone
        return []
    return join_stats(directory, parents, names, looks)


def join_stats(
    directory: Target, parents: tuple[str, ...], names: list[str], looks: list[EntryStat | None]
) -> list[ListedEntry]:
    """Return the entries of one directory; those without metadata are gone, and left out."""
    prefix = "/".join(parents) + "/" if parents else ""
    base = key_prefix(directory)
    depth = len(parents) + 1
    return [
        _make_listed((name, base + name, prefix + name, look[0], look[1], look[2], depth))
        for name, look in zip(names, looks, strict=True)
        if look is not None
    ]

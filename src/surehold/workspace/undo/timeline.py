"""Follows files through the ledger: which steps each of them took, under which names, and which steps are in effect.

An entry of a change is in effect or not, and undoing or redoing it only switches that. What the files are follows from the
entries in effect, replayed in the order of the ledger. So it does not matter in which order changes are undone, and after
the last one every file is what it was before the first.

A file is the same file under another name. Where a change found it is what it was called at that time.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from surehold.errors import NotFound
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.ledger_entries import switched_changes
from surehold.text.snapshot import Version

OUTSIDE = ""
"""The id of an outside edit that the ledger does not have yet: it is in effect, and cannot be switched."""
_PAGE_ENTRIES = 1000
_MAX_CHANGE_ENTRIES = 10_000_000
_KEPT_DIFF_CHARS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """One change that happened, with all of its entries."""

    id: str
    entries: tuple[Entry, ...]

    @property
    def undoes(self) -> str:
        return self.entries[0].call.undoes

    @property
    def switched_entries(self) -> frozenset[str]:
        """The entries of several changes that it takes back or makes again."""
        return frozenset(name for entry in self.entries for name in entry.change.undoes)

    @property
    def undone_ids(self) -> set[str]:
        """Every change that it takes back or makes again, in whole or in part."""
        several = {name for entry in self.entries for name in switched_changes(entry.change)}
        return several | {self.undoes} if self.undoes else several

    @property
    def is_outside(self) -> bool:
        return self.entries[0].call.operation == "external"

    @property
    def seq(self) -> int:
        return self.entries[0].seq

    @property
    def keys(self) -> set[str]:
        """Every name that it touched."""
        return {key for entry in self.entries for key, _, _ in entry.change.transitions()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """What one change did to one file; a name is empty when there was no file, or is none any more."""

    change_id: str
    entry_name: str
    """The entry that says so, as `CHANGE#INDEX`."""
    key: str
    to_key: str
    before: Version | None
    after: Version | None
    outside: bool = False
    """Another program did it."""
    diff: str = ""
    """What it did, if that is told in few words; empty if only the bytes tell."""


@dataclass(eq=False, slots=True, kw_only=True)
class FileTrail:
    """One file, from the first of some changes on: what it was before, and its steps."""

    key: str
    version: Version | None
    steps: list[FileStep] = field(default_factory=list[FileStep])
    place: str = ""
    """The name that it has after the changes followed so far."""

    def list_steps(self, active: frozenset[str]) -> Iterator[FileStep]:
        """Yield the steps in effect; what other programs did in a row is one step, and none if it left no trace."""
        run: FileStep | None = None
        for step in self.steps:
            if step.entry_name not in active:
                continue
            if run and step.outside:
                run = replace(run, change_id=step.change_id, to_key=step.to_key, after=step.after)
                continue
            if run and _leaves_trace(run):
                yield run
            run = step if step.outside else None
            if not step.outside:
                yield step
        if run and _leaves_trace(run):
            yield run

    def find_key(self, active: AbstractSet[str]) -> str:
        """Return the name that the file has with these changes in effect; empty if there is none."""
        key = self.key
        for step in self.steps:
            if step.entry_name in active and step.key != step.to_key:
                key = step.to_key
        return key


def outside_step(key: str, to_key: str, before: Version, after: Version | None) -> FileStep:
    """Return what another program did that the ledger does not have yet."""
    return FileStep(
        change_id=OUTSIDE, entry_name=OUTSIDE, key=key, to_key=to_key, before=before, after=after, outside=True
    )


def name_entry(entry: Entry) -> str:
    """Return how undoing names an entry of a change."""
    return f"{entry.change_id}#{entry.index}"


def _leaves_trace(step: FileStep) -> bool:
    one, other = step.before, step.after
    same = one == other or (one and other and (one.sha256, one.mode) == (other.sha256, other.mode))
    return step.key != step.to_key or not same


class Timeline:
    """Some changes in the order of the ledger, and the files that they were about."""

    def __init__(self, changes: Sequence[RecordedChange], *, switching: bool = True) -> None:
        """Follow the files; without switching, an undo counts as a change of its own, beside the one it undid."""
        self.changes = changes
        self._positions = {change.id: index for index, change in enumerate(changes)}
        self._on = {OUTSIDE}
        self.files = list[FileTrail]()
        self.found: dict[str, FileTrail] = {}
        """Which file has which name now."""
        self.heads: dict[str, Version | None] = {}
        """What the ledger last knew of each name."""
        self.placed_by: dict[str, str] = {}
        """The change whose switching gave a file the name that it has now."""
        self._lost: dict[str, FileTrail] = {}
        """What other programs removed, by the names that it had."""
        self._files_of_entry: dict[str, list[FileTrail]] = {}
        self._switches: dict[str, frozenset[str]] = {OUTSIDE: frozenset([OUTSIDE])}
        self._turned_on: dict[str, frozenset[str]] = {}
        """What each change that undid or redid others turned on; it turned the rest of its entries off."""
        self._switching = switching
        self._undone = {change.id: change.undoes for change in changes if change.undoes and switching}
        for change in changes:
            self._follow_change(change)
        self.active = frozenset(self._on)
        """The entries that are in effect."""

    def root_of(self, change_id: str) -> str:
        """Return the change that is switched by this one: itself, unless it undoes or redoes another."""
        while self._undone.get(change_id):
            change_id = self._undone[change_id]
        return change_id

    @property
    def own_entries(self) -> frozenset[str]:
        """The entries that did something by themselves, and did not only undo or redo others."""
        return frozenset(self._files_of_entry)

    def entries_of(self, *roots: str) -> frozenset[str]:
        """Return the entries that switching these changes switches."""
        return frozenset[str]().union(*(self._switches[root] for root in roots))

    def undo_switches(self, change_ids: Iterable[str], own: frozenset[str]) -> frozenset[str]:
        """Return the entries to switch so that these changes did nothing: neither their own nor what they undid or redid."""
        wanted: dict[str, bool] = dict.fromkeys(own, False)
        for change_id in change_ids:
            for name in self._switches[change_id] if change_id in self._turned_on else ():
                wanted.setdefault(name, name not in self._turned_on[change_id])
        return frozenset(name for name, is_on in wanted.items() if (name in self.active) != is_on)

    def files_of(self, entries: Iterable[str]) -> list[FileTrail]:
        """Return every file that one of these entries was about, each once."""
        return list({id(file): file for name in entries for file in self._files_of_entry.get(name, ())}.values())

    def position_of(self, change_id: str) -> int:
        return self._positions[change_id]

    def is_outside(self, change_id: str) -> bool:
        """Tell whether a change was made by another program."""
        if change_id == OUTSIDE:
            return True
        return self.changes[self.position_of(change_id)].is_outside

    def is_run(self, change_id: str) -> bool:
        """Tell whether the entries of a change may be of any kind: a command made it, or it brought such entries back."""
        entries = self.changes[self.position_of(change_id)].entries
        return entries[0].call.operation == "run" or any(entry.change.whole for entry in entries)

    def switched_since(self, change_id: str) -> list[str]:
        """List what must be switched back, newest first, to get to right after a change; what cancels out is left out."""
        switched, seen = list[str](), [frozenset[str]()]
        for change in self.changes[self.position_of(change_id) + 1 :]:
            root = self.root_of(change.id)
            state = seen[-1] ^ {root}
            if state in seen:
                del switched[seen.index(state) :], seen[seen.index(state) + 1 :]
            else:
                switched.append(root)
                seen.append(state)
        return switched[::-1]

    def _follow_change(self, change: RecordedChange) -> None:
        switched = self._switched_by(change)
        if switched is None:
            self._switches[change.id] = frozenset(map(name_entry, change.entries))
            self._on |= self._switches[change.id]
            for entry in change.entries:
                self._take_steps(change, entry)
        else:
            self._switches[change.id] = switched
            self._on ^= switched
            self._turned_on[change.id] = switched & self._on
            self._move_files(switched, self.root_of(change.id))
        for entry in change.entries:
            self.heads |= {key: after for key, _, after in entry.change.transitions()}

    def _switched_by(self, change: RecordedChange) -> frozenset[str] | None:
        """Return the entries that a change switched; None if it is a change of its own."""
        if not self._switching:
            return None
        if several := change.switched_entries:
            return several
        return self._switches.get(change.undoes) if change.undoes else None

    def _take_steps(self, by: RecordedChange, entry: Entry) -> None:
        change = entry.change
        to_key = change.to_path or change.path
        if change.to_path and change.displaced:
            self._add_step(entry, self._file_at(to_key, change.displaced), "", change.displaced, None)
        if change.before is None:
            file = self._new_file(change.path, outside=by.is_outside)
        else:
            file = self._file_at(change.path, change.before)
        self._add_step(entry, file, to_key if change.after else "", change.before, change.after)
        if change.after is None and by.is_outside:
            self._lost[change.path] = file

    def _new_file(self, key: str, *, outside: bool) -> FileTrail:
        """Return a file that was created; what other programs removed and brought back is the same file."""
        lost = self._lost.pop(key, None)
        if lost and outside:
            return lost
        self.files.append(FileTrail(key="", version=None))
        return self.files[-1]

    def _file_at(self, key: str, version: Version) -> FileTrail:
        """Return the file of a name; one that no earlier change was about has been there from the beginning."""
        if key not in self.found:
            self.found[key] = FileTrail(key=key, version=version, place=key)
            self.files.append(self.found[key])
        return self.found[key]

    def _add_step(
        self, entry: Entry, file: FileTrail, to_key: str, before: Version | None, after: Version | None
    ) -> None:
        key, name, outside = file.place, name_entry(entry), entry.call.operation == "external"
        known = self.heads.get(key)
        if known and before and known.sha256 == before.sha256 and known.mode != before.mode:
            file.steps.append(outside_step(key, key, known, before))
        step = FileStep(
            change_id=entry.change_id,
            entry_name=name,
            key=key,
            to_key=to_key,
            before=before,
            after=after,
            outside=outside,
            diff="" if outside else entry.change.diff,
        )
        file.steps.append(step)
        self._files_of_entry.setdefault(name, []).append(file)
        self._place_file(file, key, to_key, entry.change_id)

    def _move_files(self, switched: frozenset[str], root: str) -> None:
        """Give the files of entries that were switched the names that they have now."""
        places = [(file, file.place, file.find_key(self._on)) for file in self.files_of(switched)]
        for file, key, _ in places:
            self._place_file(file, key, "", root)
        for file, key, to_key in places:
            self._place_file(file, key, to_key, root)

    def _place_file(self, file: FileTrail, key: str, to_key: str, root: str) -> None:
        file.place = to_key
        if self.found.get(key) is file:
            del self.found[key]
        if to_key:
            self.found[to_key] = file
        if to_key and to_key != key:
            self.placed_by[to_key] = root


def load_changes(store: Store, change_id: str) -> list[RecordedChange]:
    """Return a change with all later ones that touch the same files, and every change that one of them undoes."""
    return load_since(store, [change_id], _read_change(store, change_id).seq)


def load_since(store: Store, wanted: Iterable[str], start: int) -> list[RecordedChange]:
    """Return some changes, of which this entry is the first, with all later ones that touch the same files."""
    names, rows = set(wanted), list[Entry]()
    while True:
        rows = [*_entries_between(store, start, rows[0].seq if rows else 0), *rows]
        changes = _group_entries(rows)
        related = _related_changes(changes, names)
        known = {change.id for change in changes}
        missing = {name for change in related for name in change.undone_ids} - known
        if not missing:
            return related
        start = min(_read_change(store, name).seq for name in missing)


def _read_change(store: Store, change_id: str) -> RecordedChange:
    rows = store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=_MAX_CHANGE_ENTRIES))
    if not rows:
        raise NotFound(f"No change is called `{change_id}`.", reason="no_such_change")
    return RecordedChange(id=change_id, entries=rows[::-1])


def _entries_between(store: Store, start: int, end: int) -> list[Entry]:
    """Return what happened from one entry on and before another, oldest first, without long or cut diffs."""
    found, before = list[Entry](), end
    query = LedgerQuery(after_seq=start - 1, ok_only=True, limit=_PAGE_ENTRIES)
    while rows := store.list_entries(replace(query, before_seq=before)):
        found += (_without_long_diff(row) for row in rows if row.call.operation != "gc")
        before = rows[-1].seq
        if len(rows) < _PAGE_ENTRIES:
            break
    return found[::-1]


def _without_long_diff(entry: Entry) -> Entry:
    change = entry.change
    is_short = len(change.diff) <= _KEPT_DIFF_CHARS and not change.diff_truncated
    return entry if is_short else replace(entry, change=replace(change, diff=""))


def _group_entries(rows: Sequence[Entry]) -> list[RecordedChange]:
    groups: dict[str, list[Entry]] = {}
    for row in rows:
        groups.setdefault(row.change_id, []).append(row)
    return [RecordedChange(id=name, entries=tuple(entries)) for name, entries in groups.items()]


def _related_changes(changes: Sequence[RecordedChange], wanted: set[str]) -> list[RecordedChange]:
    """Return the changes that have a file in common with the wanted ones, directly or through others."""
    keys, size = set[str](), -1
    names = {*wanted}
    while size != len(names) + len(keys):
        size = len(names) + len(keys)
        for change in changes:
            if change.id in names or keys & change.keys:
                names |= {change.id, *change.undone_ids}
                keys |= change.keys
    return [change for change in changes if change.id in names]

"""Follows files through the ledger: which steps each of them took, under which names, and which steps are in effect.

A change is in effect or not, and undoing or redoing it only switches that. What the files are follows from the changes in
effect, replayed in the order of the ledger. So it does not matter in which order changes are undone, and after the last
one every file is what it was before the first.

A file is the same file under another name. Where a change found it is what it was called at that time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from surehold.errors import NotFound
from surehold.stores.base import Change, Entry, LedgerQuery, Store
from surehold.text.snapshot import Version

OUTSIDE = ""
"""The id of an outside edit that the ledger does not have yet: it is in effect, and cannot be switched."""
_PAGE_ENTRIES = 1000
_MAX_CHANGE_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """One change that happened, with all of its entries."""

    id: str
    entries: tuple[Entry, ...]

    @property
    def undoes(self) -> str:
        return self.entries[0].call.undoes

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
    key: str
    to_key: str
    before: Version | None
    after: Version | None
    outside: bool = False
    """Another program did it."""


@dataclass(eq=False, slots=True, kw_only=True)
class FileTrail:
    """One file, from the first of some changes on: what it was before, and its steps."""

    key: str
    version: Version | None
    steps: list[FileStep] = field(default_factory=list[FileStep])

    def list_steps(self, active: frozenset[str]) -> Iterator[FileStep]:
        """Yield the steps in effect; what other programs did in a row is one step, and none if it left no trace."""
        run: FileStep | None = None
        for step in self.steps:
            if step.change_id not in active:
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

    def find_key(self, active: frozenset[str]) -> str:
        """Return the name that the file has with these changes in effect; empty if there is none."""
        key = self.key
        for step in self.steps:
            if step.change_id in active and step.key != step.to_key:
                key = step.to_key
        return key


def outside_step(key: str, to_key: str, before: Version, after: Version | None) -> FileStep:
    """Return what another program did that the ledger does not have yet."""
    return FileStep(change_id=OUTSIDE, key=key, to_key=to_key, before=before, after=after, outside=True)


def _leaves_trace(step: FileStep) -> bool:
    one, other = step.before, step.after
    same = one == other or (one and other and (one.sha256, one.mode) == (other.sha256, other.mode))
    return step.key != step.to_key or not same


class Timeline:
    """Some changes in the order of the ledger, and the files that they were about."""

    def __init__(self, changes: Sequence[RecordedChange], *, switching: bool = True) -> None:
        """Follow the files; without switching, an undo counts as a change of its own, beside the one it undid."""
        self.changes = changes
        self.active = frozenset([OUTSIDE])
        """The changes that are in effect."""
        self.files = list[FileTrail]()
        self.found: dict[str, FileTrail] = {}
        """Which file has which name now."""
        self.heads: dict[str, Version | None] = {}
        """What the ledger last knew of each name."""
        self.placed_by: dict[str, str] = {}
        """The change whose switching gave a file the name that it has now."""
        self._lost: dict[str, FileTrail] = {}
        """What other programs removed, by the names that it had."""
        self._files_of_root: dict[str, list[FileTrail]] = {}
        self._undone = {change.id: change.undoes for change in changes if change.undoes and switching}
        for change in changes:
            self._follow_change(change)

    def root_of(self, change_id: str) -> str:
        """Return the change that is switched by this one: itself, unless it undoes or redoes another."""
        while self._undone.get(change_id):
            change_id = self._undone[change_id]
        return change_id

    def files_of(self, roots: Iterable[str]) -> list[FileTrail]:
        """Return every file that one of these changes was about, each once."""
        return list({id(file): file for root in roots for file in self._files_of_root.get(root, ())}.values())

    def position_of(self, change_id: str) -> int:
        return next(index for index, change in enumerate(self.changes) if change.id == change_id)

    def is_outside(self, change_id: str) -> bool:
        """Tell whether a change was made by another program."""
        if change_id == OUTSIDE:
            return True
        return self.changes[self.position_of(change_id)].is_outside

    def is_run(self, change_id: str) -> bool:
        """Tell whether a command made the change, whose entries may be of any kind."""
        return self.changes[self.position_of(change_id)].entries[0].call.operation == "run"

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
        root = self.root_of(change.id)
        self.active ^= {root}
        if root == change.id:
            for entry in change.entries:
                self._take_steps(change, entry.change)
        else:
            self._move_files(root)
        for entry in change.entries:
            self.heads |= {key: after for key, _, after in entry.change.transitions()}

    def _take_steps(self, by: RecordedChange, change: Change) -> None:
        to_key = change.to_path or change.path
        if change.to_path and change.displaced:
            self._add_step(by, self._file_at(to_key, change.displaced), "", change.displaced, None)
        if change.before is None:
            file = self._new_file(change.path, outside=by.is_outside)
        else:
            file = self._file_at(change.path, change.before)
        self._add_step(by, file, to_key if change.after else "", change.before, change.after)
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
            self.found[key] = FileTrail(key=key, version=version)
            self.files.append(self.found[key])
        return self.found[key]

    def _add_step(
        self, by: RecordedChange, file: FileTrail, to_key: str, before: Version | None, after: Version | None
    ) -> None:
        key = file.find_key(self.active)
        known = self.heads.get(key)
        if known and before and known.sha256 == before.sha256 and known.mode != before.mode:
            file.steps.append(outside_step(key, key, known, before))
        step = FileStep(change_id=by.id, key=key, to_key=to_key, before=before, after=after, outside=by.is_outside)
        file.steps.append(step)
        self._files_of_root.setdefault(by.id, []).append(file)
        self._place_file(file, key, to_key, by.id)

    def _move_files(self, root: str) -> None:
        """Give the files of a change that was switched the names that they have now."""
        places = [(f, f.find_key(self.active ^ {root}), f.find_key(self.active)) for f in self.files_of([root])]
        for file, key, _ in places:
            self._place_file(file, key, "", root)
        for file, key, to_key in places:
            self._place_file(file, key, to_key, root)

    def _place_file(self, file: FileTrail, key: str, to_key: str, root: str) -> None:
        if self.found.get(key) is file:
            del self.found[key]
        if to_key:
            self.found[to_key] = file
        if to_key and to_key != key:
            self.placed_by[to_key] = root


def load_changes(store: Store, change_id: str) -> list[RecordedChange]:
    """Return a change with all later ones that touch the same files, and every change that one of them undoes."""
    wanted = _read_change(store, change_id)
    start, rows = wanted.seq, list[Entry]()
    while True:
        rows = [*_entries_between(store, start, rows[0].seq if rows else 0), *rows]
        changes = _group_entries(rows)
        related = _related_changes(changes, change_id)
        known = {change.id for change in changes}
        missing = {change.undoes for change in related if change.undoes and change.undoes not in known}
        if not missing:
            return related
        start = min(_read_change(store, name).seq for name in missing)


def _read_change(store: Store, change_id: str) -> RecordedChange:
    rows = store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=_MAX_CHANGE_ENTRIES))
    if not rows:
        raise NotFound(f"No change is called `{change_id}`.", reason="no_such_change")
    return RecordedChange(id=change_id, entries=rows[::-1])


def _entries_between(store: Store, start: int, end: int) -> list[Entry]:
    """Return what happened from one entry on and before another, oldest first, without the diffs."""
    found, before = list[Entry](), end
    query = LedgerQuery(after_seq=start - 1, ok_only=True, limit=_PAGE_ENTRIES)
    while rows := store.list_entries(replace(query, before_seq=before)):
        found += (replace(row, change=replace(row.change, diff="")) for row in rows if row.call.operation != "gc")
        before = rows[-1].seq
        if len(rows) < _PAGE_ENTRIES:
            break
    return found[::-1]


def _group_entries(rows: Sequence[Entry]) -> list[RecordedChange]:
    groups: dict[str, list[Entry]] = {}
    for row in rows:
        groups.setdefault(row.change_id, []).append(row)
    return [RecordedChange(id=name, entries=tuple(entries)) for name, entries in groups.items()]


def _related_changes(changes: Sequence[RecordedChange], change_id: str) -> list[RecordedChange]:
    """Return the changes that have a file in common with one, directly or through others."""
    keys, size = set[str](), -1
    names = {change_id}
    while size != len(names) + len(keys):
        size = len(names) + len(keys)
        for change in changes:
            if change.id in names or keys & change.keys:
                names |= {change.id, change.undoes}
                keys |= change.keys
    return [change for change in changes if change.id in names]

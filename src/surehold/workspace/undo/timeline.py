"""Follows files through the ledger: which steps each of them took, under which names, and which steps are in effect.

An entry of a change is in effect or not, and undoing or redoing it only switches that. What the files are follows from the
entries in effect, replayed in the order of the ledger. So it does not matter in which order changes are undone, and after
the last one every file is what it was before the first.

A file is the same file under another name. Where a change found it is what it was called at that time.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from surehold.stores.base import Entry
from surehold.text.snapshot import Version
from surehold.workspace.undo.recorded_changes import RecordedChange, name_entry

OUTSIDE = ""
"""The id of an outside edit that the ledger does not have yet: it is in effect, and cannot be switched."""


class FileStep(NamedTuple):
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
    returns: bool = False
    """It brought back what had been removed."""

    @property
    def is_outside_mode(self) -> bool:
        """Tell whether another program changed the mode alone, which the ledger has no entry of."""
        before, after = self.before, self.after
        return self.change_id == OUTSIDE and bool(before and after and before.sha256 == after.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedEntries:
    """The entries in effect after some were switched; made at once, however many there are."""

    active: frozenset[str]
    switched: frozenset[str]

    def __contains__(self, name: str) -> bool:
        return (name in self.active) != (name in self.switched)


ActiveEntries = AbstractSet[str] | SwitchedEntries
"""The entries in effect, or those that would be."""


@dataclass(eq=False, slots=True, kw_only=True)
class FileTrail:
    """One file, from the first of some changes on: what it was before, and its steps."""

    key: str
    version: Version | None
    steps: list[FileStep] = field(default_factory=list[FileStep])
    place: str = ""
    """The name that it has after the changes followed so far."""

    def own_of(self, active: ActiveEntries) -> frozenset[str]:
        """Return the entries in effect that were about this file: what it is follows from them alone."""
        return frozenset(step.entry_name for step in self.steps if step.entry_name in active)

    def list_steps(self, active: ActiveEntries) -> Iterator[FileStep]:
        """Yield the steps in effect, without those that left no trace together.

        What other programs did in a row is one step, or none if they took it back. If a person brought back what was there
        before that, or before the file was removed, both are none, or a move if it came back elsewhere.
        """
        held: FileStep | None = None
        for step in self.steps:
            if step.entry_name not in active:
                continue
            if held and held.outside and step.outside:
                held = _join_steps(held, step)
                continue
            if held and _leaves_trace(held):
                both = _join_steps(held, step)
                joins = step.returns and (held.after is None or not _leaves_trace(both))
                if joins and _leaves_trace(both):
                    yield both
                if joins:
                    held = None
                    continue
                yield held
            held = step if step.outside or step.after is None else None
            if not held:
                yield step
        if held and _leaves_trace(held):
            yield held

    def learn_mode(self, found: Version) -> None:
        """Note the mode that the next change found, where the last one did not choose it: a new file has the usual one."""
        last = self.steps[-1] if self.steps else None
        if last and last.after and last.after.meta is None and last.after.sha256 == found.sha256:
            self.steps[-1] = last._replace(after=found)

    def find_key(self, active: ActiveEntries) -> str:
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


def _join_steps(one: FileStep, other: FileStep) -> FileStep:
    return one._replace(change_id=other.change_id, to_key=other.to_key, after=other.after, diff="")


def _leaves_trace(step: FileStep) -> bool:
    one, other = step.before, step.after
    same = one == other or (one and other and (one.sha256, one.mode) == (other.sha256, other.mode))
    return step.key != step.to_key or not same


class _Removal(NamedTuple):
    file: FileTrail
    version: Version
    outside: bool

    def is_brought_back(self, entry: Entry) -> bool:
        """Tell whether an entry that creates a file brings this one back."""
        if entry.call.operation == "external":
            return self.outside
        return entry.call.operation == "restore" and self.version.sha256 == (
            entry.change.after.sha256 if entry.change.after else ""
        )


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
        self._removed: dict[str, _Removal] = {}
        """What was removed, by the names that it had and by its ids in the trash."""
        self._files_of_entry: dict[str, list[FileTrail]] = {}
        self._switches: dict[str, frozenset[str]] = {OUTSIDE: frozenset([OUTSIDE])}
        """What each change switches that is not one of its own entries."""
        self._turned_on: dict[str, frozenset[str]] = {}
        """What each change that undid or redid others turned on; it turned the rest of its entries off."""
        self._runs = set[str]()
        """The changes of commands, or those that brought such entries back."""
        self._switching = switching
        self._undone = {one.id: one.undoes for one in changes} if switching else {}
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
        return frozenset[str]().union(*map(self._entries_switched, roots))

    def _entries_switched(self, change_id: str) -> frozenset[str]:
        """Return the entries that a change switched, or else its own, which undoing it switches."""
        if change_id in self._switches:
            return self._switches[change_id]
        return frozenset(map(name_entry, self.changes[self._positions[change_id]].entries))

    def undo_switches(
        self, change_ids: Iterable[str], own: frozenset[str], keys: AbstractSet[str] | None = None
    ) -> frozenset[str]:
        """Return the entries to switch so that these changes did nothing: neither their own nor what they undid or redid.

        With keys only what they undid or redid of the files that were called so then counts.
        """
        wanted: dict[str, bool] = dict.fromkeys(own, False)
        for change_id in sorted(self._turned_on.keys() & change_ids, key=self.position_of):
            names = self._switches[change_id] if keys is None else self._switched_at(change_id, keys)
            for name in names:
                wanted.setdefault(name, name not in self._turned_on[change_id])
        return frozenset(name for name, is_on in wanted.items() if (name in self.active) != is_on)

    def _switched_at(self, change_id: str, keys: AbstractSet[str]) -> Iterator[str]:
        """Yield the entries that a change switched of the files that had these names before or after it."""
        before = self.active_before(change_id)
        after = before ^ self._switches[change_id]
        for name in self._switches[change_id]:
            files = self._files_of_entry.get(name, ())
            if any(file.find_key(active) in keys for file in files for active in (before, after)):
                yield name

    def files_of(self, entries: Iterable[str]) -> list[FileTrail]:
        """Return every file that one of these entries was about, each once."""
        return list({id(file): file for name in entries for file in self._files_of_entry.get(name, ())}.values())

    def has_other_at(self, key: str, file: FileTrail, active: ActiveEntries) -> bool:
        """Tell whether another file has a name, with these entries in effect."""
        return any(other is not file and other.find_key(active) == key for other in self._files_by_name.get(key, ()))

    @cached_property
    def _files_by_name(self) -> dict[str, list[FileTrail]]:
        """Which files have ever had a name."""
        found = dict[str, list[FileTrail]]()
        for file in self.files:
            for key in {file.key, *(step.to_key for step in file.steps)}:
                found.setdefault(key, []).append(file)
        return found

    def position_of(self, change_id: str) -> int:
        return self._positions[change_id]

    def is_outside(self, change_id: str) -> bool:
        """Tell whether a change was made by another program."""
        if change_id == OUTSIDE:
            return True
        return self.changes[self.position_of(change_id)].is_outside

    def has_runs(self, change_ids: Iterable[str]) -> bool:
        """Tell whether entries of some changes may be of any kind: commands made them, or such entries were brought back."""
        return not self._runs.isdisjoint(change_ids)

    def began(self, change_id: str) -> str:
        """Return when a change was made."""
        return min(entry.timestamp for entry in self.changes[self.position_of(change_id)].entries)

    def undone_since(self, entries: frozenset[str]) -> str:
        """Return since when one of these entries has not been in effect."""
        left, since = set(entries), ""
        for change in reversed(self.changes):
            if change.id in self._turned_on and left & self._switches[change.id]:
                left -= self._switches[change.id]
                since = self.began(change.id)
        return since

    def active_before(self, change_id: str) -> frozenset[str]:
        """Return the entries that were in effect before a change, of those that are known."""
        later = self.changes[self.position_of(change_id) :]
        own = frozenset(name_entry(entry) for change in later if not change.is_outside for entry in change.entries)
        return self.active ^ self.undo_switches([change.id for change in later], own & self.own_entries)

    def switch_change(self, active: frozenset[str], root: str) -> tuple[Literal["undo", "redo", ""], frozenset[str]]:
        """Return the command that switches a change, and what is in effect after it; no command if there is none."""
        entries = self._entries_switched(root)
        if root not in self._turned_on:
            return ("undo", active - entries) if entries & active else ("redo", active | entries)
        later = self.changes[self.position_of(root) + 1 :]
        again = frozenset[str]().union(*(self._switches[one.id] for one in later if one.id in self._turned_on))
        turned_on = self._turned_on[root]
        return ("" if entries <= again else "undo"), (active - turned_on) | (entries - turned_on)

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
            for entry in change.entries:
                self._take_steps(entry)
        else:
            self._switches[change.id] = switched
            self._on ^= switched
            self._turned_on[change.id] = switched & self._on
            self._move_files(switched, self.root_of(change.id))
        for entry in change.entries:
            if entry.change.whole or entry.call.operation == "run":
                self._runs.add(change.id)
            for key, _, after in entry.change.transitions():
                self.heads[key] = after

    def _switched_by(self, change: RecordedChange) -> frozenset[str] | None:
        """Return the entries that a change switched; None if it is a change of its own."""
        if not self._switching:
            return None
        if several := change.switched_entries:
            return several
        followed = self._positions.get(change.undoes, len(self.changes)) < self._positions[change.id]
        return self._entries_switched(change.undoes) if followed else None

    def _take_steps(self, entry: Entry) -> None:
        change = entry.change
        to_key = change.to_path or change.path
        if change.displaced:
            self._add_step(entry, self._file_at(to_key, change.displaced), "", change.displaced, None)
        file = self._new_file(entry) if change.before is None else self._file_at(change.path, change.before)
        self._add_step(entry, file, to_key if change.after else "", change.before, change.after)

    def _new_file(self, entry: Entry) -> FileTrail:
        """Return a file that was created; one that was removed and brought back is the same file."""
        change, call = entry.change, entry.call
        named, trashed = self._removed.pop(change.path, None), self._removed.pop(call.restores, None)
        for one in (trashed, named):
            if one and not one.file.place and one.is_brought_back(entry):
                return one.file
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
        if before:
            file.learn_mode(before)
        if known and before and known.sha256 == before.sha256 and known.mode not in (None, before.mode):
            file.steps.append(outside_step(key, key, known, before))
        self._on.add(name)
        step = FileStep(
            change_id=entry.change_id,
            entry_name=name,
            key=key,
            to_key=to_key,
            before=before,
            after=after,
            outside=outside,
            diff="" if outside else entry.change.diff,
            returns=entry.call.operation == "restore",
        )
        if before and after is None:
            removal = _Removal(file, before, outside)
            self._removed |= {one: removal for one in (key, entry.change.trash_id) if one}
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
            if key == to_key:
                return
            del self.found[key]
        if to_key:
            self.found[to_key] = file
        if to_key and to_key != key:
            self.placed_by[to_key] = root

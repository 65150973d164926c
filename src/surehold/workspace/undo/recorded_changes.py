"""Reads changes from the ledger: some, with all later ones that their files went through."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from surehold.errors import NotFound
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.ledger_entries import switched_changes

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
        return {key for entry in self.entries for key in _keys_of(entry)}


def name_entry(entry: Entry) -> str:
    """Return how undoing names an entry of a change."""
    return f"{entry.change_id}#{entry.index}"


def _keys_of(entry: Entry) -> set[str]:
    return {key for key, _, _ in entry.change.transitions()}


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
        # What a selection switched may be about files that it did not write, since they were not there.
        several = (change for change in changes if change.switched_entries)
        missing = {name for change in (*related, *several) for name in change.undone_ids} - known
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
    keys_of_entry = {name_entry(one): _keys_of(one) for change in changes for one in change.entries}
    touched = {
        change.id: change.keys.union(*(keys_of_entry.get(name, ()) for name in change.switched_entries))
        for change in changes
    }
    keys, size = set[str](), -1
    names = {*wanted}
    while size != len(names) + len(keys):
        size = len(names) + len(keys)
        for change in changes:
            if change.id in names or keys & touched[change.id]:
                names |= {change.id, *change.undone_ids}
                keys |= touched[change.id]
    return [change for change in changes if change.id in names]

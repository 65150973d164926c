"""Reads changes from the ledger: some, with all later ones that their files went through."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple, Self

from surehold.errors import NotFound, SureholdError
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.ledger_rules import switched_changes
from surehold.text.diff_rows import count_rows
from surehold.text.snapshot import ABSENT, Snapshot

_PAGE_ENTRIES = 1000
_MAX_CHANGE_ENTRIES = 10_000_000
_KEPT_DIFF_CHARS = 2048
_MAX_COUNTED_BYTES = 256 * 1024
"""Of larger versions lines are not counted: a log has many."""
_NONE = frozenset[str]()
_MAX_GAPS = 20
"""How many gaps between known entries are read one by one; with more, everything is read."""


class RecordedChange(NamedTuple):
    """One change that happened, with all of its entries, and what they say all together."""

    id: str
    entries: Sequence[Entry]
    switched_entries: frozenset[str]
    """The entries of several changes that it takes back or makes again."""
    undone_ids: frozenset[str]
    """Every change that it takes back or makes again, in whole or in part."""
    keys: tuple[str, ...]
    """Every name that it touched, some more than once."""

    @classmethod
    def from_entries(cls, change_id: str, entries: Sequence[Entry]) -> Self:
        keys = _keys_of(entries[0]) if len(entries) == 1 else tuple(chain.from_iterable(map(_keys_of, entries)))
        switched = [name for entry in entries for name in entry.change.undoes]
        undone = [name.partition("#")[0] for name in switched]
        if entries[0].call.undoes:
            undone.append(entries[0].call.undoes)
        return cls(
            id=change_id,
            entries=entries,
            switched_entries=frozenset(switched) if switched else _NONE,
            undone_ids=frozenset(undone) if undone else _NONE,
            keys=keys,
        )

    @property
    def undoes(self) -> str:
        return self.entries[0].call.undoes

    @property
    def is_outside(self) -> bool:
        return self.entries[0].call.operation == "external"

    @property
    def seq(self) -> int:
        return self.entries[0].seq


def count_lines(entry: Entry) -> tuple[int, int]:
    """Return how many lines an entry added and removed, also where its diff is cut."""
    change = entry.change
    return (change.added, change.removed) if change.added or change.removed else count_rows(change.diff)


def with_line_counts(store: Store, entry: Entry) -> Entry:
    """Return an entry of an outside edit with its numbers of lines, which are counted when they are asked for.

    Where a version is not kept, or is large, they stay zero.
    """
    change = entry.change
    if entry.call.operation != "external":
        return entry
    versions = (change.before, change.after)
    known = [one for one in versions if one]
    if any(one.kind != "file" or one.size > _MAX_COUNTED_BYTES or not store.has_blob(one.sha256) for one in known):
        return entry
    try:
        before, after = (ABSENT if one is None else Snapshot(store.read_blob(one.sha256)) for one in versions)
    except SureholdError:  # `verify` tells what is wrong with it
        return entry
    from surehold.text.plan import diff_between

    diff = diff_between(before, after, from_name=change.path, to_name=change.path)
    return replace(entry, change=replace(change, added=diff.added, removed=diff.removed))


def changes_undone_by(entry: Entry) -> list[str]:
    """List the changes that an entry takes back or makes again, in whole or in part."""
    return sorted(switched_changes(entry.change)) or [name for name in (entry.call.undoes,) if name]


def name_entry(entry: Entry) -> str:
    """Return how undoing names an entry of a change."""
    return f"{entry.change_id}#{entry.index}"


def _keys_of(entry: Entry) -> tuple[str, ...]:
    change = entry.change
    return (change.path, change.to_path) if change.to_path else (change.path,)


def _trash_ids(change: RecordedChange) -> list[str]:
    """Return the ids in the trash of what a change removed or brought back: it is the same file, whatever its name."""
    removed = (entry.change.trash_id for entry in change.entries)
    return [one for one in (*removed, change.entries[0].call.restores) if one]


def load_changes(store: Store, change_id: str) -> list[RecordedChange]:
    """Return a change with all later ones that touch the same files, and every change that one of them undoes."""
    return load_related(store, _read_change(store, change_id).entries)


def load_related(store: Store, wanted: Sequence[Entry]) -> list[RecordedChange]:
    """Return the changes of some entries with all later ones that touch the same files; what is known is not read again."""
    names, rows = {entry.change_id for entry in wanted}, _entries_since(store, wanted)
    while True:
        changes = _group_entries(rows)
        known = {change.id for change in changes}
        related = changes if known <= names else _related_changes(changes, names)
        # What a selection switched may be about files that it did not write, since they were not there.
        several = (change for change in changes if change.switched_entries)
        missing = {name for change in (*related, *several) for name in change.undone_ids} - known
        if not missing:
            return related
        rows = _read_back(store, missing, rows)


def _entries_since(store: Store, known: Sequence[Entry]) -> list[Entry]:
    """Return what happened from the first of some entries on, oldest first."""
    ordered = sorted(known, key=lambda one: one.seq)
    gaps = [(one.seq + 1, other.seq) for one, other in pairwise(ordered) if other.seq - one.seq > 1]
    if not ordered or len(gaps) > _MAX_GAPS:
        return _entries_between(store, ordered[0].seq, 0) if ordered else []
    found = [_without_long_diff(one) for one in ordered if one.ok and one.call.operation != "gc"]
    for start, end in (*gaps, (ordered[-1].seq + 1, 0)):
        found += _entries_between(store, start, end)
    return sorted(found, key=lambda one: one.seq)


def _read_back(store: Store, missing: set[str], rows: list[Entry]) -> list[Entry]:
    """Return entries with all earlier ones from the first of some changes on."""
    while missing:
        first = _read_change(store, min(missing))  # ids begin with their time: most often that is the earliest
        rows = [*_entries_between(store, first.seq, rows[0].seq), *rows]
        missing = missing - {row.change_id for row in rows}
    return rows


def _read_change(store: Store, change_id: str) -> RecordedChange:
    rows = store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=_MAX_CHANGE_ENTRIES))
    if not rows:
        raise NotFound(f"No change is called `{change_id}`.", reason="no_such_change")
    return RecordedChange.from_entries(change_id, rows[::-1])


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
    return [RecordedChange.from_entries(name, entries) for name, entries in groups.items()]


def _related_changes(changes: Sequence[RecordedChange], wanted: set[str]) -> list[RecordedChange]:
    """Return the changes that have a file in common with the wanted ones, directly or through others."""
    touched: dict[str, Collection[str]] = {change.id: {*change.keys, *_trash_ids(change)} for change in changes}
    if several := [change for change in changes if change.switched_entries]:
        keys_of_entry = {name_entry(one): _keys_of(one) for change in changes for one in change.entries}
        for change in several:
            others = (keys_of_entry.get(name, ()) for name in change.switched_entries)
            touched[change.id] = {*touched[change.id], *chain.from_iterable(others)}
    keys, size = set[str](), -1
    names = {*wanted}
    while size != len(names) + len(keys):
        size = len(names) + len(keys)
        for change in changes:
            if change.id in names or not keys.isdisjoint(touched[change.id]):
                names.add(change.id)
                names.update(change.undone_ids)
                keys.update(touched[change.id])
    return [change for change in changes if change.id in names]

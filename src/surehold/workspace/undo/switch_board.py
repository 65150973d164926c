"""Which entries of the ledger are in effect, told from the changes that undid and redid others.

A change that undoes or redoes another one switches all of its entries; one that undoes several names the entries it
switches. An entry that was switched an odd number of times is not in effect.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.workspace.undo.recorded_changes import name_entry

_PAGE_ENTRIES = 1000
_MAX_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One change: its entries, and what became of it."""

    id: str
    entries: tuple[Entry, ...]
    undone_by: str = ""
    """The change that took it back and was not undone itself; empty when there is none."""
    partly_undone: bool = False


class SwitchBoard:
    """Says what became of changes."""

    def __init__(self, switching: Iterable[Entry]) -> None:
        """Take the entries of changes that undid or redid others, in any order."""
        self._by: dict[str, list[str]] = {}
        """The changes that switched a whole change, or one entry, oldest first."""
        self._switched: dict[str, frozenset[str]] = {}
        """What each of them switched."""
        self._order: dict[str, int] = {}
        for entry in sorted(switching, key=lambda one: one.seq):
            self._order.setdefault(entry.change_id, entry.seq)
            for name in self._names_switched(entry):
                by = self._by.setdefault(name, [])
                if entry.change_id not in by:
                    by.append(entry.change_id)
                self._switched[entry.change_id] = self._switched.get(entry.change_id, frozenset()) | {name}

    def _names_switched(self, entry: Entry) -> Iterable[str]:
        if entry.change.undoes:
            return entry.change.undoes
        if not entry.call.undoes:
            return ()
        return self._switched.get(entry.call.undoes) or (entry.call.undoes,)

    def _switched_by(self, name: str) -> list[str]:
        both = {*self._by.get(name, ()), *self._by.get(name.partition("#")[0], ())}
        return sorted(both, key=self._order.__getitem__)

    def is_on(self, entry: Entry) -> bool:
        """Tell whether an entry is in effect."""
        if entry.change_id in self._switched:
            return not self._undone_switch(entry.change_id)
        return len(self._switched_by(name_entry(entry))) % 2 == 0

    def undone_by(self, change_id: str, entries: Sequence[Entry]) -> str:
        """Return the change that took all of a change back, and was not undone itself; empty when there is none."""
        if change_id in self._switched:
            return self._undone_switch(change_id)
        by = [self._switched_by(name_entry(entry)) for entry in entries if entry.ok]
        return max((one[-1] for one in by), key=self._order.__getitem__) if by and all(len(o) % 2 for o in by) else ""

    def _undone_switch(self, change_id: str) -> str:
        """Return the change that first switched everything again that an undo or a redo had switched."""
        own = self._order[change_id]
        later = [
            [one for one in self._switched_by(name) if self._order[one] > own] for name in self._switched[change_id]
        ]
        return max((one[0] for one in later), key=self._order.__getitem__) if later and all(later) else ""

    def is_partly_undone(self, entries: Sequence[Entry]) -> bool:
        """Tell whether some entries of a change are in effect and others are not."""
        return len({self.is_on(entry) for entry in entries if entry.ok}) > 1


def load_board(store: Store) -> SwitchBoard:
    """Return the state of every change."""
    return SwitchBoard(entry for word in ("undo", "redo") for entry in _read_all(store, word))


def load_board_of(store: Store, change_id: str) -> SwitchBoard:
    """Return the state of one change, without reading about others."""
    found, pending, seen = dict[int, Entry](), [change_id], set[str]()
    own = store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=_MAX_ENTRIES))
    for entry in own:
        if entry.call.operation in {"undo", "redo"}:
            found[entry.seq] = entry
            pending += [entry.call.undoes, *(name.partition("#")[0] for name in entry.change.undoes)]
    while pending:
        name = pending.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        everything = LedgerQuery(ok_only=True, limit=_MAX_ENTRIES)
        for query in (replace(everything, undoes=name), replace(everything, change_id=name)):
            for entry in store.list_entries(query):
                if entry.call.operation in {"undo", "redo"} and entry.seq not in found:
                    found[entry.seq] = entry
                    pending += [entry.change_id, entry.call.undoes]
    return SwitchBoard(found.values())


def _read_all(store: Store, operation: str) -> Iterable[Entry]:
    before = 0
    while rows := store.list_entries(
        LedgerQuery(operation=operation, ok_only=True, before_seq=before, limit=_PAGE_ENTRIES)
    ):
        yield from rows
        if len(rows) < _PAGE_ENTRIES:
            return
        before = rows[-1].seq


def group_changes(store: Store, entries: Iterable[Entry]) -> Iterator[ChangeView]:
    """Yield the changes that entries belong to, in their order; the entries come newest first."""
    board: SwitchBoard | None = None
    for change_id, group in groupby(entries, key=lambda entry: entry.change_id):
        board = board or load_board(store)
        rows = tuple(group)[::-1]
        undone_by = board.undone_by(change_id, rows) if rows[0].ok else ""
        partly = rows[0].ok and not undone_by and board.is_partly_undone(rows)
        yield ChangeView(id=change_id, entries=rows, undone_by=undone_by, partly_undone=partly)

"""Which entries of the ledger are in effect, told from the changes that undid and redid others.

A change that undoes or redoes another one switches all of its entries; one that undoes several names the entries it
switches. An entry that was switched an odd number of times is not in effect.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from surehold.errors import InvalidArgument, redo_command, spell, undo_command
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.workspace.past.selectors import OUTSIDE_AGENT, SWITCHING
from surehold.workspace.undo.recorded_changes import changes_undone_by, count_lines, name_entry, with_line_counts

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

    @property
    def change_id(self) -> str:
        """Its name, under the word that results have for it."""
        return self.id

    @property
    def agent(self) -> str:
        """Who made it; `outside` for another program."""
        call = self.entries[0].call
        return OUTSIDE_AGENT if call.operation == "external" else call.agent

    @property
    def timestamp(self) -> str:
        """When it was made: ISO 8601, in UTC."""
        return self.entries[0].timestamp

    @property
    def reason(self) -> str:
        return self.entries[0].call.reason

    @property
    def paths(self) -> tuple[str, ...]:
        """What it touched, each once; of a move the new name. Directories of which only the times changed do not count."""
        changes = [entry.change for entry in self.entries]
        counted = [change for change in changes if not change.sets_times_only] or changes
        return tuple(dict.fromkeys(change.to_path or change.path for change in counted))

    @property
    def added(self) -> int:
        """How many lines it added, in all files together."""
        return sum(count_lines(entry)[0] for entry in self.entries)

    @property
    def removed(self) -> int:
        """How many lines it removed, in all files together."""
        return sum(count_lines(entry)[1] for entry in self.entries)

    @property
    def undoes(self) -> tuple[str, ...]:
        """Every change that it takes back or makes again, in whole or in part."""
        return tuple(sorted({name for entry in self.entries for name in changes_undone_by(entry)}))


class SwitchBoard:
    """Says what became of changes."""

    def __init__(self, switching: Iterable[Entry]) -> None:
        """Take the entries of changes that undid or redid others, in any order."""
        self._by: dict[str, list[str]] = {}
        """The changes that switched a whole change, or one entry, oldest first."""
        self._switched: dict[str, set[str]] = {}
        """What each of them switched."""
        self._order: dict[str, int] = {}
        for entry in sorted(switching, key=lambda one: one.seq):
            self._order.setdefault(entry.change_id, entry.seq)
            names = self._names_switched(entry)
            for name in names:
                by = self._by.setdefault(name, [])
                if entry.change_id not in by:
                    by.append(entry.change_id)
            if names:
                self._switched.setdefault(entry.change_id, set()).update(names)

    def _names_switched(self, entry: Entry) -> Collection[str]:
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
    return SwitchBoard(entry for word in SWITCHING for entry in _read_all(store, word))


def load_board_of(store: Store, change_id: str) -> SwitchBoard:
    """Return the state of one change, without reading about others."""
    own = store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=_MAX_ENTRIES))
    if any(entry.change.undoes for entry in own):
        return _load_board_since(store, own)
    found, pending, seen = dict[int, Entry](), [change_id, *(entry.call.undoes for entry in own)], set[str]()
    while pending:
        name = pending.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        everything = LedgerQuery(ok_only=True, limit=_MAX_ENTRIES)
        for query in (replace(everything, undoes=name), replace(everything, change_id=name)):
            for entry in store.list_entries(query):
                if entry.call.operation in SWITCHING:
                    found[entry.seq] = entry
                    pending += [entry.change_id, entry.call.undoes]
    return SwitchBoard(found.values())


def _load_board_since(store: Store, own: Sequence[Entry]) -> SwitchBoard:
    """Return the state of a change that switched several: only later changes can have switched one of them again."""
    found = {entry.seq: entry for entry in own}
    for word in SWITCHING:
        found |= {entry.seq: entry for entry in _read_all(store, word, after_seq=min(entry.seq for entry in own))}
    known = {entry.change_id for entry in found.values()}
    pending = {entry.call.undoes for entry in found.values()}
    while pending := pending - known - {""}:  # what a later one undoes may be an earlier undo
        known |= pending
        query = LedgerQuery(ok_only=True, limit=_MAX_ENTRIES)
        rows = [row for name in pending for row in store.list_entries(replace(query, change_id=name))]
        found |= {row.seq: row for row in rows if row.call.operation in SWITCHING}
        pending = {row.call.undoes for row in rows}
    return SwitchBoard(found.values())


def _read_all(store: Store, operation: str, *, after_seq: int = 0) -> Iterable[Entry]:
    query, before = LedgerQuery(operation=operation, ok_only=True, after_seq=after_seq, limit=_PAGE_ENTRIES), 0
    while rows := store.list_entries(replace(query, before_seq=before)):
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
        shown = tuple(with_line_counts(store, row) for row in rows)
        yield ChangeView(id=change_id, entries=shown, undone_by=undone_by, partly_undone=partly)


def refuse_undone(view: ChangeView) -> None:
    """Refuse a change that cannot be undone once more, and name what is possible."""
    if view.undone_by:
        raise InvalidArgument(
            f"Change {view.id} was undone already, by {view.undone_by}.",
            reason="already_undone",
            action=spell("To make it again: {}", redo_command(view.id)),
        )


def require_undone(view: ChangeView) -> None:
    """Refuse a change that cannot be redone, and name what can: of an undo, the change that it took back."""
    if view.undone_by:
        return
    message, undone = f"Change {view.id} was not undone.", view.undoes
    action = spell("It is in effect already. To take it back: {}", undo_command(view.id))
    if not any(entry.ok for entry in view.entries):
        action = "It was refused, so there is nothing to redo; the agent has to make it again."
    if view.entries[0].call.operation == "undo" and undone:
        message = f"Change {view.id} is an undo, and was not undone itself."
        action = spell("To make again what it took back: {}", redo_command(undone[0]))
    raise InvalidArgument(message, reason="not_undone", action=action)

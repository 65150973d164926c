"""What happened in a workspace, as the store has it: changes, deleted files and earlier versions; nothing is changed."""

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from typing import Self

from surehold.errors import LOG, InvalidArgument, NotFound, spell
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.store_errors import trash_entry_missing_error
from surehold.stores.upkeep import ALL_TRASH, LedgerCheck, TrashItem, TrashQuery
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.past.recorded import find_trash_item
from surehold.workspace.past.selectors import (
    MIN_END_CHARS,
    ChangeSelection,
    RecordedPlace,
    Selectors,
    matches_id,
    refuse_unrecorded,
    resolve_selectors,
)
from surehold.workspace.undo.recorded_changes import with_line_counts
from surehold.workspace.undo.switch_board import ChangeView, SwitchBoard, group_changes, load_board, load_board_of

MAX_SCANNED_ENTRIES = 100_000
"""How far back a change is looked for by a part of its id."""


class HistoryReader:
    """What happened in a workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def log(self, query: LedgerQuery | None = None) -> tuple[Entry, ...]:
        """List entries, newest first."""
        return self._store.list_entries(query or LedgerQuery())

    def show(self, reference: str) -> ChangeView:
        """Return one change by its id, or by a unique beginning or end of it."""
        change_id = self._resolve_reference(reference)
        rows = self._store.list_entries(LedgerQuery(change_id=change_id, limit=MAX_SCANNED_ENTRIES))
        entries = tuple(with_line_counts(self._store, row) for row in reversed(rows))
        return ChangeView(id=change_id, entries=entries, undone_by=self.undone_by(change_id))

    def undone_by(self, change_id: str) -> str:
        """Return the change that took this one back, if it is still undone; empty when it is in effect."""
        entries = self._store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=MAX_SCANNED_ENTRIES))
        return load_board_of(self._store, change_id).undone_by(change_id, entries)

    def select(self, words: Selectors, *, now: datetime, zone: tzinfo | None = None) -> ChangeSelection:
        """Look up what selectors name, but for paths: where those lead is known to a workspace alone."""
        return resolve_selectors(words, self._store, now=now, zone=zone, locate=self._locate_path)

    def _locate_path(self, word: str) -> RecordedPlace | None:
        raise InvalidArgument(f"A history alone does not know where `{word}` leads.", reason="no_workspace")

    def iterate(self, selection: ChangeSelection, *, ok_only: bool = True, outside: bool = False) -> Iterator[Entry]:
        """Yield the entries that a selection names, newest first."""
        return selection.iterate(self._store, ok_only=ok_only, outside=outside)

    def group_changes(self, entries: Iterable[Entry]) -> Iterator[ChangeView]:
        """Yield the changes that entries belong to, in their order; the entries come newest first."""
        return group_changes(self._store, entries)

    def load_board(self) -> SwitchBoard:
        """Return what became of every change."""
        return load_board(self._store)

    def trash(self, query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        """List one page of deleted files that can come back, newest first."""
        if query.after and self._store.trash_item(query.after) is None:
            raise trash_entry_missing_error(query.after)
        return self._store.list_trash(query)

    def count_trash(self) -> int:
        """Return how many deleted files can come back."""
        return self._store.count_trash()

    def trash_item(self, reference: str) -> TrashItem:
        """Return one deleted file by its id, or by a unique end of it."""
        return find_trash_item(self._store, reference)

    def read_version(self, version: Version | None) -> Snapshot:
        """Return the bytes of a version that the history names; None is an absent file."""
        return self._recorded_snapshot(version)

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        """Check that neither the ledger nor the kept bytes were altered."""
        return self._store.verify(blobs=blobs)

    def _recorded_snapshot(self, version: Version | None) -> Snapshot:
        if version is None:
            return ABSENT
        return Snapshot(self._store.read_blob(version.sha256), meta=version.meta)

    def _resolve_reference(self, reference: str) -> str:
        if not reference:
            message, action = "An empty reference names no change.", spell("Look its id up with {}.", LOG)
            raise InvalidArgument(message, reason="empty_reference", action=action)
        if self._store.list_entries(LedgerQuery(change_id=reference, limit=1)):
            return reference
        if self._store.is_open(reference):
            refuse_unrecorded(self._store, reference, f"change {reference}")
            message, action = f"Change {reference} still runs.", "Wait until its last process has ended."
            raise InvalidArgument(message, reason="still_running", action=action)
        name = reference.lower()
        if len(name) >= MIN_END_CHARS:
            ids = {entry.change_id for entry in self._store.list_entries(LedgerQuery(limit=MAX_SCANNED_ENTRIES))}
            found = sorted(one for one in ids if matches_id(one, name))
            if len(found) == 1:
                return found[0]
            if found:
                raise InvalidArgument(
                    f"`{reference}` names {len(found)} changes.", reason="ambiguous_change", candidates=found[:10]
                )
        raise NotFound(
            f"No change is called `{reference}`.", reason="no_such_change", action=spell("Look it up with {}.", LOG)
        )

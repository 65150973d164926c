"""The history of a workspace: show it, undo, redo and restore. Everything that changes a file ends in `write`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Self

from surehold.errors import LOG, InvalidArgument, NotFound, StaleFile, SureholdError, UndoConflict, spell, undo_command
from surehold.stores.base import Call, Entry, Intent, LedgerQuery, Store
from surehold.stores.ledger_entries import normalize_timestamp
from surehold.stores.ledger_rules import switched_changes
from surehold.stores.store_errors import trash_entry_missing_error
from surehold.stores.upkeep import ALL_TRASH, LedgerCheck, Pruned, TrashItem, TrashQuery, iterate_trash
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.access.permission import Permission
from surehold.workspace.past.net_diff import proposed_diff, single_diff
from surehold.workspace.past.overview import SessionSummary, SessionTallies, summarize_entries
from surehold.workspace.past.recorded import find_trash_item, no_history_error, recorded_key
from surehold.workspace.past.selectors import (
    MIN_END_CHARS,
    SWITCHING,
    ChangeSelection,
    RecordedPlace,
    Selectors,
    find_earlier_names,
    matches_id,
    refuse_empty,
    refuse_unrecorded,
    resolve_selectors,
)
from surehold.workspace.proposal import NO_AUTHOR, Absent, CallAuthor, Proposal, Receipt
from surehold.workspace.undo.made_directories import remove_made_directories
from surehold.workspace.undo.planner import UndoOperation, propose_undo
from surehold.workspace.undo.recorded_changes import with_line_counts
from surehold.workspace.undo.selection import SelectionSwitch, no_such_change_error, nothing_to_switch_error
from surehold.workspace.undo.switch_board import (
    ChangeView,
    SwitchBoard,
    group_changes,
    load_board,
    load_board_of,
    refuse_undone,
    require_undone,
)
from surehold.workspace.workspace import Workspace

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


_MAX_ATTEMPTS = 5
_TRIED_CHANGES = 20
_NOT_UNDOABLE = (*SWITCHING, "external", "gc")


class History(HistoryReader):
    """What happened in a workspace, and the way back."""

    def __init__(self, workspace: Workspace, *, permission: Permission | None = None) -> None:
        super().__init__(workspace.store)
        self._workspace, self._permission = workspace, permission

    def diff(self, reference: str) -> str:
        """Return the whole difference that a change made, also where the ledger keeps only its beginning."""
        return "".join(single_diff(self._workspace, entry) for entry in self.show(reference).entries)

    def proposed_diff(self, reference: str) -> str:
        """Return what the agent had proposed, where the person who was asked wrote something else; empty elsewhere."""
        entries = self.show(reference).entries
        names = {entry.call.approval.left_out for entry in entries if entry.call.approval} - {""}
        left_out = [row for name in sorted(names) for row in self.show(name).entries]
        return proposed_diff(self._workspace, [*entries, *left_out])

    def undo(self, reference: str = "", *, author: CallAuthor = NO_AUTHOR, dry_run: bool = False) -> Receipt:
        """Take back one change, by default the newest that is not undone; later changes stay."""
        if reference:
            return self._take_back(self.show(reference), "undo", author=author, dry_run=dry_run)
        changes = self._undoable_changes()
        newest = next(changes, "")
        self._refuse_open_run(newest)
        if not newest:
            raise no_such_change_error("No change can be undone.")
        try:
            return self._take_back(self.show(newest), "undo", author=author, dry_run=dry_run)
        except UndoConflict as refused:
            self._name_next(refused, changes)
            raise

    def redo(self, reference: str = "", *, author: CallAuthor = NO_AUTHOR, dry_run: bool = False) -> Receipt:
        """Make a change again that was undone, by default the one undone last."""
        if not reference:
            return self._take_back(self._last_undone(), "redo", author=author, dry_run=dry_run)
        view = self.show(reference)
        require_undone(view)
        if len(self._switched_with(view)) == 1:
            return self._take_back(self.show(view.undone_by), "redo", author=author, dry_run=dry_run)
        return self.switch_entries(view.entries, "redo", author=author, dry_run=dry_run, offers_part=False)

    def _switched_with(self, view: ChangeView) -> set[str]:
        """Return the changes that were undone together with one."""
        entries = self._store.list_entries(LedgerQuery(change_id=view.undone_by, limit=MAX_SCANNED_ENTRIES))
        return {name for entry in entries for name in switched_changes(entry.change)} or {view.id}

    def undo_selected(
        self, words: Selectors, *, author: CallAuthor = NO_AUTHOR, partial: bool = False, dry_run: bool = False
    ) -> Receipt:
        """Take back everything that the selectors name, as one change; later work stays."""
        return self.switch_entries(self.select_done(words), "undo", author=author, partial=partial, dry_run=dry_run)

    def redo_selected(
        self, words: Selectors, *, author: CallAuthor = NO_AUTHOR, partial: bool = False, dry_run: bool = False
    ) -> Receipt:
        """Make everything again that the selectors name and that is undone, as one change."""
        return self.switch_entries(self.select_done(words), "redo", author=author, partial=partial, dry_run=dry_run)

    def switch_entries(
        self,
        entries: Sequence[Entry],
        operation: UndoOperation,
        *,
        author: CallAuthor,
        partial: bool = False,
        dry_run: bool = False,
        recorded_as: UndoOperation | None = None,
        offers_part: bool = True,
    ) -> Receipt:
        """Undo or redo some entries of the ledger as one change; a refusal offers a part of it if that can be asked for."""
        call = author.make_call(recorded_as or operation, recorded_as or operation)
        for attempt in range(_MAX_ATTEMPTS):
            try:
                switch = SelectionSwitch(self._workspace, entries, operation, offers_part=offers_part)
                if not switch.wanted:
                    raise nothing_to_switch_error(operation)
                proposals = switch.propose(partial=partial)
                if not proposals:
                    nothing = Receipt(change_id="", files=(), dry_run=dry_run, already_applied=True)
                    return replace(nothing, left_out=switch.left_out)
                return replace(self._write_switch(proposals, call, entries, dry_run), left_out=switch.left_out)
            except StaleFile:  # the file was written between our look and the lock: look again
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def last_turn(self) -> list[Entry]:
        """Return what the newest turn of a session did that is still in effect, newest first; empty if there is none."""
        found = list[Entry]()
        for entry in self._effective_entries():
            call = entry.call
            if not call.session or call.operation in _NOT_UNDOABLE:
                continue
            if found and (call.session, call.turn) != (found[0].call.session, found[0].call.turn):
                if call.session == found[0].call.session:
                    break
                continue
            found.append(entry)
        return found

    def iterate(self, selection: ChangeSelection, *, ok_only: bool = True, outside: bool = False) -> Iterator[Entry]:
        """Yield the entries that a selection names, newest first."""
        return selection.iterate(self._store, ok_only=ok_only, outside=outside)

    def sessions(self, words: Selectors | None = None) -> Iterator[SessionSummary]:
        """Yield what each session did, or what of it selectors name, the one that did something last first."""
        if not words:
            return SessionTallies(self._store).summarize()
        return summarize_entries(self._store, self.select(words).iterate(self._store))

    def select(self, words: Selectors, *, now: datetime | None = None, zone: tzinfo | None = None) -> ChangeSelection:
        """Look up what selectors name; refuse what names nothing, or several."""
        return resolve_selectors(
            words, self._store, now=now or self._workspace.clock(), zone=zone, locate=self._locate_path
        )

    def _locate_path(self, path: str) -> RecordedPlace | None:
        if recorded_key(self._workspace, path.rstrip("/") or "/") in {"", "."}:
            return None
        key = recorded_key(self._workspace, path.rstrip("/"))
        is_directory = bool(self._store.list_entries(LedgerQuery(under=key, limit=1)))
        if not is_directory and not self._store.list_entries(LedgerQuery(path=key, limit=1)):
            raise no_history_error(path)
        return RecordedPlace(
            key=key, is_directory=is_directory, earlier=() if is_directory else find_earlier_names(self._store, key)
        )

    def select_done(self, words: Selectors) -> list[Entry]:
        """Return the entries that happened and that selectors name, newest first; at least one."""
        selection = self.select(words)
        found = [entry for entry in selection.iterate(self._store) if entry.call.operation != "gc"]
        if not found:
            raise refuse_empty(selection, words, self.open_runs(selection))
        return found

    def open_runs(self, selection: ChangeSelection) -> list[Intent]:
        """Return the commands that still run and may do what is selected."""
        return selection.find_open_runs(self._store)

    def restore(
        self,
        trash_id: str,
        *,
        to_path: str = "",
        author: CallAuthor = NO_AUTHOR,
        tool: str = "restore",
        reason: str = "",
        dry_run: bool = False,
    ) -> Receipt:
        """Bring a deleted file back, with its mode and times, never over an existing file."""
        item = self.trash_item(trash_id)
        # What may not be read may not come back under another name.
        self._workspace.reader.names.check_recorded_path(item.path)
        snapshot = self._recorded_snapshot(item.version)
        proposal = Proposal(path=to_path or item.path, edit=WriteBytes(snapshot.data), proof=Absent(), restore=snapshot)
        call = author.make_call(tool, "restore", reason=reason, restores=item.id)
        permission = self._permission if to_path else self._undo_permission
        return self._workspace.write(proposal, call=call, dry_run=dry_run, permission=permission)

    def empty_trash(self, trash_ids: Sequence[str] = ()) -> int:
        """Give up deleted files for good: all, or the named ones. Their bytes go with the next `gc`."""
        if trash_ids:
            return self._store.empty_trash([self.trash_item(name).id for name in trash_ids])
        return sum(self._store.empty_trash([item.id for item in page]) for page in iterate_trash(self._store))

    def gc(self, *, keep: timedelta, dry_run: bool = False) -> Pruned:
        """Drop bytes that only changes older than `keep` need."""
        return self._store.prune(before=(self._workspace.clock() - keep).isoformat(), dry_run=dry_run)

    @property
    def _undo_permission(self) -> Permission:
        """Whom an earlier state needs: outside of a conversation a person decides, also about protected paths."""
        return self._permission or Permission("bypassPermissions")

    def _take_back(self, view: ChangeView, operation: UndoOperation, *, author: CallAuthor, dry_run: bool) -> Receipt:
        if not any(entry.ok and entry.call.operation != "gc" for entry in view.entries):
            action = spell("It was refused, or only pruned the history: there is nothing to undo. See {}.", LOG)
            raise InvalidArgument(f"Change {view.id} changed nothing.", reason="nothing_to_undo", action=action)
        call = author.make_call(operation, operation, undoes=view.id)
        undid_several = any(entry.change.undoes for entry in view.entries)
        if undid_several or load_board_of(self._store, view.id).is_partly_undone(view.entries):
            refuse_undone(view)
            return self.switch_entries(
                view.entries, "undo", author=author, dry_run=dry_run, recorded_as=operation, offers_part=False
            )
        for attempt in range(_MAX_ATTEMPTS):
            refuse_undone(view)
            try:
                proposals = propose_undo(self._workspace, view.id, operation)
                return self._write_switch(proposals, call, view.entries, dry_run)
            except StaleFile:  # the file was written between our look and the lock: look again
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
            view = self.show(view.id)
        raise AssertionError

    def _write_switch(self, proposals: Iterable[Proposal], call: Call, old: Sequence[Entry], dry_run: bool) -> Receipt:
        receipt = self._workspace.write(*proposals, call=call, dry_run=dry_run, permission=self._undo_permission)
        return remove_made_directories(self._workspace, old, receipt)

    def _name_next(self, refused: UndoConflict, changes: Iterator[str]) -> None:
        """Say which change is the newest that can be undone as things are."""
        for change_id in islice(changes, _TRIED_CHANGES):
            with suppress(SureholdError):
                propose_undo(self._workspace, change_id, "undo")
                refused.details["candidate"] = change_id
                newest = undo_command(change_id)
                refused.action = spell("{} The newest change that can be undone now: {}", refused.action, newest)
                return

    def _undoable_changes(self) -> Iterator[str]:
        """Yield the changes that are not undone, newest first; undoing, redoing and outside edits do not count."""
        last = ""
        for entry in self._effective_entries():
            if entry.call.operation not in _NOT_UNDOABLE and entry.change_id != last:
                last = entry.change_id
                yield last

    def _refuse_open_run(self, newest: str) -> None:
        """Refuse when the newest change is one of a command that still runs: an older one is not what is meant."""
        entry = self._first_entry(newest) if newest else None
        for busy in self._store.open_intents():
            call, began = busy.intent.call, normalize_timestamp(busy.intent.began)
            if call.operation == "run" and (entry is None or began > entry.timestamp):
                refuse_unrecorded(self._store, busy.intent.id, f"`{' '.join(call.argv)}`")
                raise InvalidArgument(
                    f"The newest change is that of `{' '.join(call.argv)}`, which still runs.",
                    reason="still_running",
                    action=spell("Wait until its last process has ended, then: {}", undo_command(busy.intent.id)),
                )

    def _last_undone(self) -> ChangeView:
        """Return the undo that was made last and is in effect, so that redoing goes the way of undoing back."""
        for entry in self._effective_entries():
            if entry.call.operation == "undo":
                undone = self._first_entry(entry.call.undoes) if entry.call.undoes else None
                if undone is None or undone.call.operation not in SWITCHING:
                    return self.show(entry.change_id)
        raise no_such_change_error("No change was undone.")

    def _first_entry(self, change_id: str) -> Entry | None:
        return next(iter(self._store.list_entries(LedgerQuery(change_id=change_id, ok_only=True, limit=1))), None)

    def _effective_entries(self) -> Iterator[Entry]:
        """Yield everything that was done and is not undone, newest first."""
        board, before = self.load_board(), 0
        while rows := self._store.list_entries(LedgerQuery(ok_only=True, before_seq=before, limit=100)):
            yield from (entry for entry in rows if board.is_on(entry))
            before = rows[-1].seq

"""The history of a workspace: show it, undo, redo and restore. Everything that changes a file ends in `write`.

What changes files is loaded on first use, because most commands only look.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import TYPE_CHECKING

from surehold.errors import LOG, InvalidArgument, StaleFile, SureholdError, UndoConflict, spell, undo_command
from surehold.stores.base import Call, Entry, Intent, LedgerQuery
from surehold.stores.ledger_entries import normalize_timestamp
from surehold.stores.upkeep import Pruned, iterate_trash
from surehold.workspace.past.history_reader import MAX_SCANNED_ENTRIES, HistoryReader
from surehold.workspace.past.recorded import no_history_error, recorded_key
from surehold.workspace.past.selectors import (
    SWITCHING,
    ChangeSelection,
    RecordedPlace,
    Selectors,
    find_earlier_names,
    refuse_empty,
    refuse_unrecorded,
)
from surehold.workspace.undo.recorded_changes import name_entry
from surehold.workspace.undo.switch_board import ChangeView, load_board_of, refuse_undone, require_undone

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Permission
    from surehold.workspace.past.overview import SessionSummary
    from surehold.workspace.proposal import CallAuthor, Proposal, Receipt
    from surehold.workspace.undo.planner import UndoOperation
    from surehold.workspace.workspace import Workspace

_MAX_ATTEMPTS = 5
_TRIED_CHANGES = 20
_NOT_UNDOABLE = (*SWITCHING, "external", "gc")


class History(HistoryReader):
    """What happened in a workspace, and the way back."""

    def __init__(self, workspace: "Workspace", *, permission: "Permission | None" = None) -> None:
        super().__init__(workspace.store)
        self._workspace, self._permission = workspace, permission

    def diff(self, reference: str) -> str:
        """Return the whole difference that a change made, also where the ledger keeps only its beginning."""
        from surehold.workspace.past.net_diff import single_diff

        return "".join(single_diff(self._workspace, entry) for entry in self.show(reference).entries)

    def proposed_diff(self, reference: str) -> str:
        """Return what the agent had proposed, where the person who was asked wrote something else; empty elsewhere."""
        from surehold.workspace.past.net_diff import proposed_diff

        entries = self.show(reference).entries
        names = {entry.call.approval.left_out for entry in entries if entry.call.approval} - {""}
        left_out = [row for name in sorted(names) for row in self.show(name).entries]
        return proposed_diff(self._workspace, [*entries, *left_out])

    def undo(self, reference: str = "", *, author: "CallAuthor | None" = None, dry_run: bool = False) -> "Receipt":
        """Take back one change, by default the newest that is not undone; later changes stay."""
        from surehold.workspace.undo.selection import no_such_change_error

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

    def redo(self, reference: str = "", *, author: "CallAuthor | None" = None, dry_run: bool = False) -> "Receipt":
        """Make a change again that was undone, by default the one undone last."""
        if not reference:
            return self._take_back(self._last_undone(), "redo", author=author, dry_run=dry_run)
        view = self.show(reference)
        if not self._is_partly_undone(view):
            require_undone(view)
        if view.undone_by and self._was_undone_alone(view):
            return self._take_back(self.show(view.undone_by), "redo", author=author, dry_run=dry_run)
        return self.switch_entries(view.entries, "redo", author=author, dry_run=dry_run, offers_part=False)

    def _is_partly_undone(self, view: ChangeView) -> bool:
        return not view.undone_by and load_board_of(self._store, view.id).is_partly_undone(view.entries)

    def _was_undone_alone(self, view: ChangeView) -> bool:
        """Tell whether one change undid all of a change, and nothing else."""
        entries = self._store.list_entries(LedgerQuery(change_id=view.undone_by, limit=MAX_SCANNED_ENTRIES))
        switched = {name for entry in entries for name in entry.change.undoes}
        own = {name_entry(entry) for entry in view.entries if entry.ok}
        return not switched or switched == own

    def undo_selected(
        self, words: Selectors, *, author: "CallAuthor | None" = None, partial: bool = False, dry_run: bool = False
    ) -> "Receipt":
        """Take back everything that the selectors name, as one change; later work stays."""
        return self.switch_entries(self.select_done(words), "undo", author=author, partial=partial, dry_run=dry_run)

    def redo_selected(
        self, words: Selectors, *, author: "CallAuthor | None" = None, partial: bool = False, dry_run: bool = False
    ) -> "Receipt":
        """Make everything again that the selectors name and that is undone, as one change."""
        return self.switch_entries(self.select_done(words), "redo", author=author, partial=partial, dry_run=dry_run)

    def switch_entries(
        self,
        entries: Sequence[Entry],
        operation: "UndoOperation",
        *,
        author: "CallAuthor | None",
        partial: bool = False,
        dry_run: bool = False,
        recorded_as: "UndoOperation | None" = None,
        offers_part: bool = True,
    ) -> "Receipt":
        """Undo or redo some entries of the ledger as one change; a refusal offers a part of it if that can be asked for."""
        from surehold.workspace.proposal import Receipt
        from surehold.workspace.undo.selection import SelectionSwitch, nothing_to_switch_error

        call = _author_of(author).make_call(recorded_as or operation, recorded_as or operation)
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

    def sessions(self, words: Selectors | None = None) -> "Iterator[SessionSummary]":
        """Yield what each session did, or what of it selectors name, the one that did something last first."""
        from surehold.workspace.past.overview import SessionTallies, summarize_entries

        if not words:
            return SessionTallies(self._store).summarize()
        return summarize_entries(self._store, self.select(words).iterate(self._store))

    def select(self, words: Selectors, *, now: datetime | None = None, zone: tzinfo | None = None) -> ChangeSelection:
        """Look up what selectors name; refuse what names nothing, or several."""
        return super().select(words, now=now or self._workspace.clock(), zone=zone)

    def _locate_path(self, word: str) -> RecordedPlace | None:
        if recorded_key(self._workspace, word.rstrip("/") or "/") in {"", "."}:
            return None
        key = recorded_key(self._workspace, word.rstrip("/"))
        is_directory = bool(self._store.list_entries(LedgerQuery(under=key, limit=1)))
        if not is_directory and not self._store.list_entries(LedgerQuery(path=key, limit=1)):
            raise no_history_error(word)
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
        author: "CallAuthor | None" = None,
        tool: str = "restore",
        reason: str = "",
        dry_run: bool = False,
    ) -> "Receipt":
        """Bring a deleted file back, with its mode and times, never over an existing file."""
        from surehold.text.rewrite import WriteBytes
        from surehold.workspace.proposal import Absent, Proposal

        item = self.trash_item(trash_id)
        # What may not be read may not come back under another name.
        self._workspace.reader.names.check_recorded_path(item.path)
        snapshot = self._recorded_snapshot(item.version)
        proposal = Proposal(path=to_path or item.path, edit=WriteBytes(snapshot.data), proof=Absent(), restore=snapshot)
        call = _author_of(author).make_call(tool, "restore", reason=reason, restores=item.id)
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
    def _undo_permission(self) -> "Permission":
        """Whom an earlier state needs: outside of a conversation a person decides, also about protected paths."""
        from surehold.workspace.access.permission import Permission

        return self._permission or Permission("bypassPermissions")

    def _take_back(
        self, view: ChangeView, operation: "UndoOperation", *, author: "CallAuthor | None", dry_run: bool
    ) -> "Receipt":
        from surehold.workspace.undo.planner import propose_undo

        if not any(entry.ok and entry.call.operation != "gc" for entry in view.entries):
            action = spell("It was refused, or only pruned the history: there is nothing to undo. See {}.", LOG)
            raise InvalidArgument(f"Change {view.id} changed nothing.", reason="nothing_to_undo", action=action)
        call = _author_of(author).make_call(operation, operation, undoes=view.id)
        undid_several = any(entry.change.undoes for entry in view.entries)
        if undid_several or self._is_partly_undone(view):
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

    def _write_switch(
        self, proposals: "Iterable[Proposal]", call: Call, old: Sequence[Entry], dry_run: bool
    ) -> "Receipt":
        from surehold.workspace.undo.made_directories import remove_made_directories

        receipt = self._workspace.write(*proposals, call=call, dry_run=dry_run, permission=self._undo_permission)
        return remove_made_directories(self._workspace, old, receipt)

    def _name_next(self, refused: UndoConflict, changes: Iterator[str]) -> None:
        """Say which change is the newest that can be undone as things are."""
        from surehold.workspace.undo.planner import propose_undo

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
        from surehold.workspace.undo.selection import no_such_change_error

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


def _author_of(author: "CallAuthor | None") -> "CallAuthor":
    from surehold.workspace.proposal import NO_AUTHOR

    return author or NO_AUTHOR

"""The history of a workspace: show it, undo, redo and restore. Everything that changes a file ends in `write`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from surehold.errors import InvalidArgument, NotFound, StaleFile, UndoConflict
from surehold.stores.base import Call, Change, Entry, LedgerCheck, LedgerQuery, Operation, Pruned, Store, TrashItem
from surehold.text.plan import Delete, Edit, EditPlan, Keep, SpliceSpans, diff_between, spans_between
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.access.permission import Permission
from surehold.workspace.proposal import Absent, Proposal, Receipt, Sha256
from surehold.workspace.workspace import Workspace

MAX_SCANNED_ENTRIES = 100_000
"""How far back a change is looked for by a part of its id."""
_MIN_REFERENCE_CHARS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One change: its entries, and what became of it."""

    id: str
    entries: tuple[Entry, ...]
    undone_by: str = ""
    """The change that took it back and was not undone itself; empty when there is none."""


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
        entries = tuple(reversed(self._store.list_entries(LedgerQuery(change_id=change_id, limit=MAX_SCANNED_ENTRIES))))
        return ChangeView(id=change_id, entries=entries, undone_by=self.undone_by(change_id))

    def undone_by(self, change_id: str) -> str:
        """Return the change that took this one back and was not undone itself; empty when there is none."""
        for entry in self._store.list_entries(LedgerQuery(undoes=change_id, ok_only=True, limit=MAX_SCANNED_ENTRIES)):
            if not self.undone_by(entry.change_id):
                return entry.change_id
        return ""

    def trash(self) -> tuple[TrashItem, ...]:
        """List deleted files that can come back, newest first."""
        return self._store.list_trash()

    def trash_item(self, reference: str) -> TrashItem:
        """Return one deleted file by its id, or by a unique end of it."""
        item = self._store.trash_item(reference)
        if item is None and len(reference) >= _MIN_REFERENCE_CHARS:
            found = [one for one in self._store.list_trash() if one.id.endswith(reference.lower())]
            item = found[0] if len(found) == 1 else None
        if item is None or item.state == "emptied":
            raise NotFound(
                f"Nothing in the trash is called `{reference[:80]}`.",
                reason="trash_entry_missing",
                action="Look at `surehold trash list`.",
            )
        return item

    def last_recorded(self, key: str) -> Snapshot | None:
        """Return the file as its last recorded change left it; None for a path that is not in the history."""
        head = self._store.head_of(key)
        return None if head is None else self._recorded_snapshot(head.version)

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        """Check that neither the ledger nor the kept bytes were altered."""
        return self._store.verify(blobs=blobs)

    def _recorded_snapshot(self, version: Version | None) -> Snapshot:
        if version is None:
            return ABSENT
        return Snapshot(self._store.read_blob(version.sha256), meta=version.meta)

    def _resolve_reference(self, reference: str) -> str:
        if not reference:
            message, action = "An empty reference names no change.", "Look its id up with `surehold log`."
            raise InvalidArgument(message, reason="empty_reference", action=action)
        if self._store.list_entries(LedgerQuery(change_id=reference, limit=1)):
            return reference
        name = reference.lower()
        if len(name) >= _MIN_REFERENCE_CHARS:
            ids = {entry.change_id for entry in self._store.list_entries(LedgerQuery(limit=MAX_SCANNED_ENTRIES))}
            found = sorted(i for i in ids if i.startswith(name) or i.endswith(name))
            if len(found) == 1:
                return found[0]
            if found:
                raise InvalidArgument(
                    f"`{reference}` names {len(found)} changes.", reason="ambiguous_change", candidates=found[:10]
                )
        raise NotFound(
            f"No change is called `{reference}`.", reason="no_such_change", action="Look it up with `surehold log`."
        )


_MAX_ATTEMPTS = 5
_UNDO_OPERATIONS = ("undo", "redo")
_NOT_UNDOABLE = (*_UNDO_OPERATIONS, "external", "gc")


class History(HistoryReader):
    """What happened in a workspace, and the way back."""

    def __init__(self, workspace: Workspace, *, permission: Permission | None = None) -> None:
        super().__init__(workspace.store)
        self._workspace, self._permission = workspace, permission

    def diff(self, reference: str) -> str:
        """Return the whole difference that a change made, also where the ledger keeps only its beginning."""
        parts = list[str]()
        for entry in self.show(reference).entries:
            change = entry.change
            if not change.diff_truncated:
                parts.append(change.diff)
                continue
            before, after = self._recorded_snapshot(change.before), self._recorded_snapshot(change.after)
            parts.append(diff_between(before, after, from_name=change.path, to_name=change.to_path or change.path).text)
        return "".join(parts)

    def undo(self, reference: str = "", *, agent: str = "", session: str = "", dry_run: bool = False) -> Receipt:
        """Take back one change, by default the newest that is not undone; later changes stay."""
        view = self.show(reference) if reference else self._newest_undoable()
        return self._take_back(view, "undo", agent=agent, session=session, dry_run=dry_run)

    def redo(self, reference: str = "", *, agent: str = "", session: str = "", dry_run: bool = False) -> Receipt:
        """Make a change again that was undone, by default the one undone last."""
        view = self.show(reference) if reference else self._last_undone()
        if not view.undone_by:
            raise InvalidArgument(f"Change {view.id} was not undone.", reason="not_undone")
        return self._take_back(self.show(view.undone_by), "redo", agent=agent, session=session, dry_run=dry_run)

    def restore(
        self,
        trash_id: str,
        *,
        to_path: str = "",
        agent: str = "",
        session: str = "",
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
        call = Call(
            tool=tool, operation="restore", writer=tool, agent=agent, session=session, reason=reason, restores=item.id
        )
        permission = self._permission if to_path else self._undo_permission
        return self._workspace.write(proposal, call=call, dry_run=dry_run, permission=permission)

    def empty_trash(self, trash_ids: Sequence[str] = ()) -> int:
        """Give up deleted files for good: all, or the named ones. Their bytes go with the next `gc`."""
        ids = [self.trash_item(name).id for name in trash_ids] or [item.id for item in self._store.list_trash()]
        return self._store.empty_trash(ids)

    def gc(self, *, keep: timedelta, dry_run: bool = False) -> Pruned:
        """Drop bytes that only changes older than `keep` need."""
        return self._store.prune(before=(self._workspace.clock() - keep).isoformat(), dry_run=dry_run)

    @property
    def _undo_permission(self) -> Permission:
        """Whom an earlier state needs: outside of a conversation a person decides, also about protected paths."""
        return self._permission or Permission("bypassPermissions")

    def _take_back(self, view: ChangeView, operation: Operation, *, agent: str, session: str, dry_run: bool) -> Receipt:
        changes = [entry.change for entry in view.entries if entry.ok and entry.call.operation != "gc"]
        if not changes:
            raise InvalidArgument(f"Change {view.id} changed nothing.", reason="nothing_to_undo")
        if view.undone_by:
            raise InvalidArgument(
                f"Change {view.id} was undone already, by {view.undone_by}.",
                reason="already_undone",
                action=f"To make it again: surehold redo {view.id}",
            )
        call = Call(tool=operation, operation=operation, writer=operation, agent=agent, session=session, undoes=view.id)
        for attempt in range(_MAX_ATTEMPTS):
            proposals = [proposal for change in reversed(changes) for proposal in self._inverse_proposals(change)]
            try:
                return self._workspace.write(*proposals, call=call, dry_run=dry_run, permission=self._undo_permission)
            except StaleFile:  # the file was written between our look and the lock: look again
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _inverse_proposals(self, change: Change) -> list[Proposal]:
        if change.to_path and change.displaced:
            moved = self._undo_removal(change)
            return [moved, self._undo_rewrite(change.to_path, before=change.displaced, after=change.after)]
        if change.to_path:
            return [self._undo_move(change)]
        if change.before is None:
            return [self._undo_creation(change)]
        if change.after is None:
            return [self._undo_removal(change)]
        return [self._undo_rewrite(change.path, before=change.before, after=change.after)]

    def _undo_creation(self, change: Change) -> Proposal:
        current = self._read_current(change.path)
        if change.after is None or current.sha256 != change.after.sha256:
            raise _undo_conflict(change.path, "it was changed after it was created" if current.exists else "it is gone")
        return Proposal(path=change.path, edit=Delete(), proof=Sha256(current.sha256))

    def _undo_removal(self, change: Change) -> Proposal:
        if self._read_current(change.path).exists:
            raise _undo_conflict(change.path, "something else is there now")
        snapshot = self._recorded_snapshot(change.before)
        return Proposal(path=change.path, edit=WriteBytes(snapshot.data), proof=Absent(), restore=snapshot)

    def _undo_move(self, change: Change) -> Proposal:
        current = self._read_current(change.to_path)
        if not current.exists:
            raise _undo_conflict(change.to_path, "it is gone")
        if self._read_current(change.path).exists:
            raise _undo_conflict(change.path, "something else is there now")
        edit: Edit = Keep()
        if change.before and change.after and change.before.sha256 != change.after.sha256:
            edit = self._inverse_edit(change.to_path, change.before, change.after, current)
        mode = _mode_to_restore(change.before, change.after)
        return Proposal(path=change.to_path, to_path=change.path, edit=edit, proof=Sha256(current.sha256), mode=mode)

    def _undo_rewrite(self, path: str, *, before: Version | None, after: Version | None) -> Proposal:
        current = self._read_current(path)
        if before is None or after is None or not current.exists:
            raise _undo_conflict(path, "it is gone")
        edit = self._inverse_edit(path, before, after, current)
        return Proposal(path=path, edit=edit, proof=Sha256(current.sha256), mode=_mode_to_restore(before, after))

    def _inverse_edit(self, path: str, before: Version, after: Version, current: Snapshot) -> Edit:
        """Return the old bytes where nothing happened since; else carry the inverse over the later changes."""
        from surehold.text.relocate import rebase_plan

        old = self._recorded_snapshot(before)
        if current.sha256 == after.sha256:
            return WriteBytes(old.data)
        new = Snapshot(self._store.read_blob(after.sha256), meta=after.meta, encoding=current.encoding)
        inverse = EditPlan(before=new, after=old, spans=spans_between(new, old))
        match rebase_plan(inverse, current):
            case EditPlan(spans=spans):
                return SpliceSpans(spans)
            case conflicts:
                lines = [c.line for c in conflicts]
                why = f"later changes touch the same lines ({', '.join(map(str, lines))})"
                raise _undo_conflict(path, why, lines=lines)

    def _read_current(self, path: str) -> Snapshot:
        try:
            return self._workspace.read(path)
        except NotFound:
            return ABSENT

    def _newest_undoable(self) -> ChangeView:
        """Return the newest change that is not undone; undoing and redoing do not count."""
        for entry in self._effective_entries():
            if entry.call.operation not in _NOT_UNDOABLE:
                return self.show(entry.change_id)
        raise _no_such_change("No change can be undone.")

    def _last_undone(self) -> ChangeView:
        """Return the change that was undone last and is undone still, so that redoing goes the way of undoing back."""
        for entry in self._effective_entries():
            if entry.call.operation == "undo":
                view = self.show(entry.call.undoes)
                if view.entries[0].call.operation not in _UNDO_OPERATIONS:
                    return view
        raise _no_such_change("No change was undone.")

    def _effective_entries(self) -> Iterator[Entry]:
        """Yield everything that was done and is not undone, newest first: what undoes is newer than what is undone."""
        undone, before = set[str](), 0
        while rows := self._store.list_entries(LedgerQuery(ok_only=True, before_seq=before, limit=100)):
            for entry in rows:
                if entry.change_id not in undone:
                    undone.add(entry.call.undoes)
                    yield entry
            before = rows[-1].seq


def _mode_to_restore(before: Version | None, after: Version | None) -> int | None:
    """Return the mode to bring back; None when the change left it alone."""
    one, other = (version.meta.mode if version and version.meta else None for version in (before, after))
    return one if one != other else None


def _no_such_change(message: str) -> NotFound:
    return NotFound(message, reason="no_such_change", action="Look at `surehold log`.")


def _undo_conflict(path: str, why: str, **details: Any) -> UndoConflict:
    return UndoConflict(f"`{path}` cannot be taken back: {why}.", path=path, **details)

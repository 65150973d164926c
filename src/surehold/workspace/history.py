"""The past of a workspace: look at it, take it back, bring it back. Everything that changes a file ends in `write`."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from surehold.errors import InvalidArgument, NotFound, StaleFile, UndoConflict
from surehold.stores.base import Call, Change, Entry, Operation, Pruned, Query
from surehold.text.plan import Delete, Edit, EditPlan, Keep, Splices
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.text.version import Version
from surehold.workspace.past import ChangeView, Past
from surehold.workspace.permission import Permission
from surehold.workspace.proposal import Absent, Proposal, Sha256
from surehold.workspace.receipt import Receipt
from surehold.workspace.write_path import WritePath

_ATTEMPTS = 5
_WAYS_BACK = ("undo", "redo")
_NOT_A_CALLERS = (*_WAYS_BACK, "external", "gc")


class History(Past):
    """What happened in a workspace, and the way back."""

    def __init__(self, workspace: WritePath, *, permission: Permission | None = None) -> None:
        super().__init__(workspace.store)
        self._workspace = workspace
        self._permission = permission

    def diff(self, reference: str) -> str:
        """Return the whole difference that a change made, also where the ledger keeps only its beginning."""
        from surehold.text.plan_diff import diff_between

        parts = list[str]()
        for entry in self.show(reference).entries:
            change = entry.change
            if not change.diff_truncated:
                parts.append(change.diff)
                continue
            before, after = self._snapshot(change.before), self._snapshot(change.after)
            parts.append(diff_between(before, after, from_name=change.path, to_name=change.to_path or change.path).text)
        return "".join(parts)

    def undo(self, reference: str = "", *, agent: str = "", session: str = "", dry_run: bool = False) -> Receipt:
        """Take back one change, by default the newest that stands; later changes stay."""
        view = self.show(reference) if reference else self._newest()
        return self._take_back(view, "undo", agent=agent, session=session, dry_run=dry_run)

    def redo(self, reference: str = "", *, agent: str = "", session: str = "", dry_run: bool = False) -> Receipt:
        """Make a change again that was undone, by default the one undone last."""
        view = self.show(reference) if reference else self._undone_last()
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
        self._workspace.names.check_recorded(item.path)  # what may not be read may not come back under another name
        snapshot = self._snapshot(item.version)
        proposal = Proposal(path=to_path or item.path, edit=WriteBytes(snapshot.data), proof=Absent(), restore=snapshot)
        call = Call(
            tool=tool,
            operation="restore",
            writer=tool,
            agent=agent,
            session=session,
            reason=reason,
            restores=item.id,
        )
        permission = self._permission if to_path else self._way_back
        return self._workspace.write(proposal, call=call, dry_run=dry_run, permission=permission)

    def empty_trash(self, trash_ids: Sequence[str] = ()) -> int:
        """Give up deleted files for good: all, or the named ones. Their bytes go with the next `gc`."""
        ids = [self.trash_item(name).id for name in trash_ids] or [item.id for item in self._store.trash()]
        return self._store.empty_trash(ids)

    def gc(self, *, keep: timedelta, dry_run: bool = False) -> Pruned:
        """Drop bytes that only changes older than `keep` need."""
        before: datetime = self._workspace.clock() - keep
        return self._store.prune(before=before.isoformat(), dry_run=dry_run)

    @property
    def _way_back(self) -> Permission:
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
        for attempt in range(_ATTEMPTS):
            proposals = [proposal for change in reversed(changes) for proposal in self._inverse(change)]
            try:
                return self._workspace.write(*proposals, call=call, dry_run=dry_run, permission=self._way_back)
            except StaleFile:  # somebody wrote between our look and the lock: look again
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _inverse(self, change: Change) -> list[Proposal]:
        if change.to_path and change.displaced:
            return [self._recreate(change), self._rewrite(change.to_path, before=change.displaced, after=change.after)]
        if change.to_path:
            return [self._move_back(change)]
        if change.before is None:
            return [self._remove(change)]
        if change.after is None:
            return [self._recreate(change)]
        return [self._rewrite(change.path, before=change.before, after=change.after)]

    def _remove(self, change: Change) -> Proposal:
        current = self._current(change.path)
        if change.after is None or current.sha256 != change.after.sha256:
            raise _conflict(change.path, "it was changed after it was created" if current.exists else "it is gone")
        return Proposal(path=change.path, edit=Delete(), proof=Sha256(current.sha256))

    def _recreate(self, change: Change) -> Proposal:
        if self._current(change.path).exists:
            raise _conflict(change.path, "something else is there now")
        snapshot = self._snapshot(change.before)
        return Proposal(path=change.path, edit=WriteBytes(snapshot.data), proof=Absent(), restore=snapshot)

    def _move_back(self, change: Change) -> Proposal:
        current = self._current(change.to_path)
        if not current.exists:
            raise _conflict(change.to_path, "it is gone")
        if self._current(change.path).exists:
            raise _conflict(change.path, "something else is there now")
        edit: Edit = Keep()
        if change.before and change.after and change.before.sha256 != change.after.sha256:
            edit = self._inverse_edit(change.to_path, change.before, change.after, current)
        mode = _mode_back(change.before, change.after)
        return Proposal(path=change.to_path, to_path=change.path, edit=edit, proof=Sha256(current.sha256), mode=mode)

    def _rewrite(self, path: str, *, before: Version | None, after: Version | None) -> Proposal:
        current = self._current(path)
        if before is None or after is None or not current.exists:
            raise _conflict(path, "it is gone")
        edit = self._inverse_edit(path, before, after, current)
        return Proposal(path=path, edit=edit, proof=Sha256(current.sha256), mode=_mode_back(before, after))

    def _inverse_edit(self, path: str, before: Version, after: Version, current: Snapshot) -> Edit:
        """Return the old bytes where nothing happened since; else carry the inverse over the later changes."""
        from surehold.text.plan_diff import spans_between
        from surehold.text.rebase import Rebased, rebase

        old = self._snapshot(before)
        if current.sha256 == after.sha256:
            return WriteBytes(old.data)
        new = replace_encoding(self._snapshot(after), current)
        inverse = EditPlan(before=new, after=old, spans=spans_between(new, old))
        match rebase(inverse, current):
            case Rebased(plan=plan):
                return Splices(plan.spans)
            case conflicts:
                lines = [c.line for c in conflicts]
                shown = ", ".join(map(str, lines))
                raise _conflict(path, f"later changes touch the same lines ({shown})", lines=lines)

    def _current(self, path: str) -> Snapshot:
        try:
            return self._workspace.read(path)
        except NotFound:
            return ABSENT

    def _snapshot(self, version: Version | None) -> Snapshot:
        if version is None:
            return ABSENT
        return Snapshot(self._store.blob(version.sha256), meta=version.meta)

    def _newest(self) -> ChangeView:
        """Return the newest change that stands; undoing and redoing do not count."""
        for entry in self._standing():
            if entry.call.operation not in _NOT_A_CALLERS:
                return self.show(entry.change_id)
        raise _no_such_change("No change can be undone.")

    def _undone_last(self) -> ChangeView:
        """Return the change that was undone last and is undone still, so that redoing goes the way of undoing back."""
        for entry in self._standing():
            if entry.call.operation == "undo":
                view = self.show(entry.call.undoes)
                if view.entries[0].call.operation not in _WAYS_BACK:
                    return view
        raise _no_such_change("No change was undone.")

    def _standing(self) -> Iterator[Entry]:
        """Yield everything that was done and is not undone, newest first: what undoes is newer than what is undone."""
        undone = set[str]()
        for entry in self._done():
            if entry.change_id in undone:
                continue
            if entry.call.undoes:
                undone.add(entry.call.undoes)
            yield entry

    def _done(self) -> Iterator[Entry]:
        """Yield everything that was done, newest first."""
        before = 0
        while rows := self._store.entries(Query(ok_only=True, before_seq=before, limit=100)):
            yield from rows
            before = rows[-1].seq


def replace_encoding(snapshot: Snapshot, like: Snapshot) -> Snapshot:
    """Return the same bytes, read in the encoding of another version of the file."""
    return Snapshot(snapshot.data, meta=snapshot.meta, encoding=like.encoding)


def _mode_back(before: Version | None, after: Version | None) -> int | None:
    """Return the mode to bring back; None when the change left it alone."""
    one, other = (version.meta.mode if version and version.meta else None for version in (before, after))
    return one if one != other else None


def _no_such_change(message: str) -> NotFound:
    return NotFound(message, reason="no_such_change", action="Look at `surehold log`.")


def _conflict(path: str, why: str, **details: Any) -> UndoConflict:
    return UndoConflict(f"`{path}` cannot be taken back: {why}.", path=path, **details)

"""Writes refused calls into the ledger: those that a person or a rule refused, and those that no one answered."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from surehold.errors import PermissionDenied, SureholdError
from surehold.stores.base import Blob, Call, Change, Store
from surehold.workspace.access.permission import AnsweredProposals
from surehold.workspace.paths import PathResolver
from surehold.workspace.proposal import FileReceipt


class RefusalLog:
    """Records what did not happen, once per call. It never fails: the refusal itself is what the caller must hear about."""

    def __init__(self, store: Store, names: PathResolver) -> None:
        self._store, self._names = store, names

    def record_paths(self, paths: Sequence[tuple[str, str]], call: Call, change_id: str, error: SureholdError) -> None:
        """Record a refused call by the paths it named, unless closing its intent did that, or will."""
        with suppress(SureholdError):
            error.recorded = True
            named = [(self._names.recorded_name(path), self._names.recorded_name(to_path)) for path, to_path in paths]
            changes = [Change(path=path, to_path=to_path, before=None, after=None) for path, to_path in named]
            self._record_changes(changes, call, change_id, error)

    def record_rehearsal(self, files: Sequence[FileReceipt], call: Call, change_id: str, error: SureholdError) -> None:
        """Record a refused change with its diff and both versions, so that it can be looked at later."""
        with suppress(SureholdError):
            changed = [one for one in files if one.changed]
            for version in (version for one in changed for version in (one.plan.before, one.plan.after)):
                if version.exists:
                    self._store.keep_blob(Blob(data=version.data, sha256=version.sha256))
            self._record_changes([replace(one.change, trash_id="") for one in changed], call, change_id, error)

    def keep_left_out(
        self, answered: AnsweredProposals, files: Sequence[FileReceipt], call: Call, new_id: Callable[[], str]
    ) -> Call:
        """Return the call with its answer. Files that the person left out are recorded first, as refused, which it names."""
        call = replace(call, approval=answered.record)
        if not answered.left_out:
            return call
        refused, change_id = PermissionDenied("The person left this out, and allowed the rest of the change."), new_id()
        self.record_rehearsal([one for one in files if one.path in answered.left_out], call, change_id, refused)
        return replace(call, approval=replace(answered.record, left_out=change_id))

    def _record_changes(self, changes: Sequence[Change], call: Call, change_id: str, error: SureholdError) -> None:
        kind, message = error.kind, error.message
        self._store.record_refusal(call, changes, change_id=change_id, error_kind=kind, message=message)

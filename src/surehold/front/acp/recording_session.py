"""A session that records one call: it reports when no approval is required, and keeps every receipt."""

from collections.abc import Callable, Sequence
from typing import Any

from surehold.stores.base import Operation
from surehold.workspace.access.permission import Approver, Permission
from surehold.workspace.access.policy import PathRules
from surehold.workspace.history import History
from surehold.workspace.proposal import Proposal
from surehold.workspace.receipt import FileReceipt, Receipt
from surehold.workspace.session import Session


class RecordingSession(Session):
    """The same conversation as another session: it asks somebody else, tells when it is free, and keeps every receipt."""

    def __init__(self, session: Session, approver: Approver, *, on_free: Callable[[], None]) -> None:
        vars(self).update(vars(session.with_approver(approver)))
        self.permission = _RecordingPermission(self.permission, on_free)
        self.receipts = list[Receipt]()
        self.history = _RecordingHistory(self)

    def submit(
        self, *proposals: Proposal, tool: str, operation: Operation, reason: str = "", dry_run: bool = False
    ) -> Receipt:
        """Make proposals happen, and keep the receipt."""
        receipt = super().submit(*proposals, tool=tool, operation=operation, reason=reason, dry_run=dry_run)
        self.receipts.append(receipt)
        return receipt

    @property
    def files(self) -> tuple[FileReceipt, ...]:
        """What became of every path."""
        return tuple(one for receipt in self.receipts for one in receipt.files)

    @property
    def change_id(self) -> str:
        """The name of the last change; empty when there was none."""
        return next((one.change_id for one in reversed(self.receipts) if one.change_id and not one.dry_run), "")


class _RecordingPermission(Permission):
    """The same permission, which tells when nobody must be asked."""

    def __init__(self, permission: Permission, on_free: Callable[[], None]) -> None:
        vars(self).update(vars(permission))
        self._on_free = on_free

    def reason_to_ask(self, standings: Sequence[PathRules], *, dry_run: bool = False) -> str:
        """Say why somebody must be asked; nothing when nobody must."""
        why = super().reason_to_ask(standings, dry_run=dry_run)
        if not why:
            self._on_free()
        return why


class _RecordingHistory(History):
    """Brings files back, and keeps the receipt."""

    def __init__(self, witness: RecordingSession) -> None:
        super().__init__(witness.workspace, permission=witness.permission)
        self._receipts = witness.receipts

    def restore(self, trash_id: str, **facts: Any) -> Receipt:
        """Bring a deleted file back."""
        receipt = super().restore(trash_id, **facts)
        self._receipts.append(receipt)
        return receipt

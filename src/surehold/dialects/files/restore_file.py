"""`restore_file`: a deleted file comes back."""

from typing import ClassVar

from surehold.dialects.files.trash_name import trash_id_of
from surehold.dialects.shared.changes import SHORT_DIFF, ChangeParams, ChangeResult, common
from surehold.dialects.shared.wire import WIRE
from surehold.errors import InvalidArgument, NotFound
from surehold.stores.base import TrashItem
from surehold.text.visible import safe
from surehold.tools.context import Context
from surehold.tools.spec import Hints, tool
from surehold.workspace.session import Session


class RestoreParams(ChangeParams):
    """What to restore."""

    ALIASES: ClassVar = {"trashedTo": "trashedPath", "path": "targetPath"}

    trash_id: str | None = None
    """From delete_file."""
    trashed_path: str | None = None
    """Or its trashedTo."""
    target_path: str | None = None
    """Another place than where it was."""


class RestoreResult(ChangeResult):
    """The file that is back."""

    restored: bool
    path: str
    sha256: str

    def headline(self) -> str:
        """Say what was done."""
        return f"{safe(self.path)} is back."

    def facts(self) -> tuple[tuple[str, str | None], ...]:
        """List what the next call needs."""
        return (("sha256", self.sha256),)


@tool("restore_file", hints=Hints(kind="edit", title="Restore a deleted file", operation="restore"), wire=WIRE)
def restore_file(context: Context, params: RestoreParams) -> RestoreResult:
    """Bring a deleted file back, with mode and times; never over an existing file."""
    reference = params.trash_id or params.trashed_path
    if not reference:
        raise InvalidArgument(
            "Neither `trashId` nor `trashedPath` was sent.",
            reason="no_trash_id",
            action="Send the trashId that delete_file returned.",
        )
    session = context.session
    item = _item(session, trash_id_of(reference))
    receipt = session.history.restore(
        item.id,
        to_path=params.target_path or "",
        agent=session.agent,
        session=session.id,
        tool="restore_file",
        reason=params.reason,
        dry_run=params.dry_run,
    )
    one = receipt.files[0]
    return RestoreResult(
        **common(receipt, diff_room=SHORT_DIFF),
        restored=not receipt.dry_run,
        path=one.path,
        sha256=one.after_sha256 or "",
    )


def _item(session: Session, reference: str) -> TrashItem:
    try:
        return session.history.trash_item(reference)
    except NotFound as error:
        error.action = "Send the trashId that delete_file returned, or ask a person to look at the trash."
        raise

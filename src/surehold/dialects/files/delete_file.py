"""`delete_file`: away, and back again if wanted."""

from typing import ClassVar

from surehold.dialects.files.trash_name import trash_name
from surehold.dialects.shared.changes import SHORT_DIFF, ChangeResult, CheckedParams, common, proof
from surehold.dialects.shared.wire import WIRE
from surehold.text.plan import Delete
from surehold.text.visible import safe
from surehold.tools.context import Context
from surehold.tools.spec import Hints, tool
from surehold.workspace.proposal import Proposal


class DeleteParams(CheckedParams):
    """What to delete."""

    ALIASES: ClassVar = {"file_path": "path", "filePath": "path"}

    path: str
    permanent: bool = False
    """Do not offer it in the trash."""


class DeleteResult(ChangeResult):
    """The deleted file, and how to get it back."""

    deleted: bool
    path: str
    before_sha256: str
    trash_id: str | None = None
    trashed_to: str | None = None

    def headline(self) -> str:
        """Say what was done."""
        return f"{safe(self.path)} {'moved to the trash' if self.trash_id else 'deleted'}."

    def facts(self) -> tuple[tuple[str, str | None], ...]:
        """List what the next call needs."""
        return (("trashId", self.trash_id), ("beforeSha256", self.before_sha256))


@tool("delete_file", hints=Hints(kind="delete", title="Delete a file", destructive=True, operation="delete"), wire=WIRE)
def delete_file(context: Context, params: DeleteParams) -> DeleteResult:
    """Delete a file; it goes to the trash, from where restore_file brings it back. Directories are refused."""
    evidence = proof(context, params.expected_sha256, path=params.path)
    receipt = context.session.submit(
        Proposal(path=params.path, edit=Delete(), proof=evidence, permanent=params.permanent),
        tool="delete_file",
        operation="delete",
        reason=params.reason,
        dry_run=params.dry_run,
    )
    one = receipt.files[0]
    trash_id = one.change.trash_id if receipt.change_id else ""
    return DeleteResult(
        **common(receipt, diff_room=SHORT_DIFF),
        deleted=not receipt.dry_run,
        path=one.path,
        before_sha256=one.before_sha256 or "",
        trash_id=trash_id or None,
        trashed_to=trash_name(trash_id) if trash_id else None,
    )

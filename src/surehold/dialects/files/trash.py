"""`delete_file` and `restore_file`: move a file to the trash and bring it back.

A deleted file is named `trash:<id>`.
"""

from typing import ClassVar

from surehold.dialects.shared.params import (
    PATH_ALIASES,
    SHORT_DIFF_CHARS,
    ChangeParams,
    ChangeResult,
    CheckedParams,
    file_fields,
    required_proof,
    submit_change,
)
from surehold.dialects.shared.wire import WIRE
from surehold.errors import InvalidArgument, NotFound, argument, spell
from surehold.text.escape import escape_text
from surehold.text.plan import Delete
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import OptionalSubjectPath, SubjectPath, TrashedName
from surehold.tools.spec import tool
from surehold.workspace.proposal import FileReceipt, Proposal, Receipt

_TRASH_PREFIX = "trash:"
_TRASH_ID = argument("trashId")


def trash_name(receipt: Receipt, one: FileReceipt) -> str | None:
    """Return where a deleted file is, as a caller gets it; None when nothing went to the trash."""
    return _TRASH_PREFIX + one.change.trash_id if receipt.change_id and one.change.trash_id else None


class DeleteParams(CheckedParams):
    ALIASES: ClassVar = PATH_ALIASES

    path: SubjectPath
    permanent: bool = False
    """Do not offer it in the trash."""


class DeleteResult(ChangeResult):
    deleted: bool
    path: str
    before_sha256: str
    trash_id: str | None = None
    trashed_to: str | None = None

    @property
    def sha256(self) -> str:
        """Name of the bytes that were deleted."""
        return self.before_sha256

    def headline(self) -> str:
        return f"{escape_text(self.path)} {'moved to the trash' if self.trash_id else 'deleted'}."


@tool("delete_file", hints=Hints(kind="delete", title="Delete a file", destructive=True, operation="delete"), wire=WIRE)
def delete_file(context: CallContext, params: DeleteParams) -> DeleteResult:
    """Delete a file; it goes to the trash, from where restore_file brings it back. Directories are refused."""
    evidence = required_proof(context, params.expected_sha256, path=params.path)
    proposal = Proposal(path=params.path, edit=Delete(), proof=evidence, permanent=params.permanent)
    receipt = submit_change(context, params, proposal, tool="delete_file", operation="delete")
    trashed_to = trash_name(receipt, receipt.files[0])
    return DeleteResult(
        **file_fields(receipt, diff_room=SHORT_DIFF_CHARS),
        deleted=not receipt.dry_run,
        trash_id=trashed_to and trashed_to.removeprefix(_TRASH_PREFIX),
        trashed_to=trashed_to,
    )


class RestoreParams(ChangeParams):
    ALIASES: ClassVar = {"trashedTo": "trashedPath", "path": "targetPath"}
    POSITIONAL: ClassVar = ("trash_id",)

    trash_id: TrashedName = None
    """From delete_file."""
    trashed_path: TrashedName = None
    """Or its trashedTo."""
    target_path: OptionalSubjectPath = None
    """Another place than where it was."""


class RestoreResult(ChangeResult):
    restored: bool
    path: str
    sha256: str

    def headline(self) -> str:
        return f"{escape_text(self.path)} is back."


@tool(
    "restore_file",
    hints=Hints(kind="edit", title="Restore a deleted file", verb="Restore", operation="restore"),
    wire=WIRE,
)
def restore_file(context: CallContext, params: RestoreParams) -> RestoreResult:
    """Bring a deleted file back, with mode and times; never over an existing file."""
    names = [name.removeprefix(_TRASH_PREFIX) for name in (params.trash_id, params.trashed_path) if name]
    if len(set(names)) > 1:
        message = spell("`{}` and `{}` name different files.", _TRASH_ID, argument("trashedPath"))
        raise InvalidArgument(message, reason="two_trash_ids", action="Send one of them.")
    if not names:
        action = spell("Send the {} that delete_file returned.", _TRASH_ID)
        message = spell("Neither `{}` nor `{}` was sent.", _TRASH_ID, argument("trashedPath"))
        raise InvalidArgument(message, reason="no_trash_id", action=action)
    session = context.session
    try:
        receipt = session.history.restore(
            names[0],
            to_path=params.target_path or "",
            author=session.author,
            tool="restore_file",
            reason=params.reason,
            dry_run=params.dry_run,
        )
    except NotFound as error:
        if error.reason == "trash_entry_missing":
            error.action = spell(
                "Send the {} that delete_file returned, or ask a person to look at the trash.", _TRASH_ID
            )
        raise
    return RestoreResult(**file_fields(receipt, diff_room=SHORT_DIFF_CHARS), restored=not receipt.dry_run)

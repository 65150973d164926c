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
    receipt_fields,
    required_proof,
    submit_change,
)
from surehold.dialects.shared.wire import WIRE
from surehold.errors import InvalidArgument, NotFound
from surehold.stores.base import TrashItem
from surehold.text.escape import escape_text
from surehold.text.plan import Delete
from surehold.tools.call import CallContext, OptionalSubjectPath, SubjectPath, TrashedName
from surehold.tools.spec import Hints, tool
from surehold.workspace.proposal import Proposal
from surehold.workspace.session import Session

_TRASH_PREFIX = "trash:"


def trash_name(trash_id: str) -> str:
    """Return where a deleted file is, as a caller gets it."""
    return _TRASH_PREFIX + trash_id


def trash_id_of(name: str) -> str:
    """Return the id in such a name; an id alone is understood too."""
    return name.removeprefix(_TRASH_PREFIX)


class DeleteParams(CheckedParams):
    """What to delete."""

    ALIASES: ClassVar = PATH_ALIASES

    path: SubjectPath
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
        return f"{escape_text(self.path)} {'moved to the trash' if self.trash_id else 'deleted'}."

    def next_call_facts(self) -> tuple[tuple[str, str | None], ...]:
        return (("trashId", self.trash_id), ("beforeSha256", self.before_sha256))


@tool("delete_file", hints=Hints(kind="delete", title="Delete a file", destructive=True, operation="delete"), wire=WIRE)
def delete_file(context: CallContext, params: DeleteParams) -> DeleteResult:
    """Delete a file; it goes to the trash, from where restore_file brings it back. Directories are refused."""
    evidence = required_proof(context, params.expected_sha256, path=params.path)
    receipt = submit_change(
        context,
        params,
        Proposal(path=params.path, edit=Delete(), proof=evidence, permanent=params.permanent),
        tool="delete_file",
        operation="delete",
    )
    one = receipt.files[0]
    trash_id = one.change.trash_id if receipt.change_id else ""
    return DeleteResult(
        **receipt_fields(receipt, diff_room=SHORT_DIFF_CHARS),
        deleted=not receipt.dry_run,
        path=one.path,
        before_sha256=one.before_sha256 or "",
        trash_id=trash_id or None,
        trashed_to=trash_name(trash_id) if trash_id else None,
    )


class RestoreParams(ChangeParams):
    """What to restore."""

    ALIASES: ClassVar = {"trashedTo": "trashedPath", "path": "targetPath"}
    POSITIONAL: ClassVar = ("trash_id",)

    trash_id: TrashedName = None
    """From delete_file."""
    trashed_path: TrashedName = None
    """Or its trashedTo."""
    target_path: OptionalSubjectPath = None
    """Another place than where it was."""


class RestoreResult(ChangeResult):
    """The file that is back."""

    restored: bool
    path: str
    sha256: str

    def headline(self) -> str:
        return f"{escape_text(self.path)} is back."

    def next_call_facts(self) -> tuple[tuple[str, str | None], ...]:
        return (("sha256", self.sha256),)


@tool(
    "restore_file",
    hints=Hints(kind="edit", title="Restore a deleted file", verb="Restore", operation="restore"),
    wire=WIRE,
)
def restore_file(context: CallContext, params: RestoreParams) -> RestoreResult:
    """Bring a deleted file back, with mode and times; never over an existing file."""
    reference = params.trash_id or params.trashed_path
    if not reference:
        raise InvalidArgument(
            "Neither `trashId` nor `trashedPath` was sent.",
            reason="no_trash_id",
            action="Send the trashId that delete_file returned.",
        )
    session = context.session
    item = _find_trash_item(session, trash_id_of(reference))
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
        **receipt_fields(receipt, diff_room=SHORT_DIFF_CHARS),
        restored=not receipt.dry_run,
        path=one.path,
        sha256=one.after_sha256 or "",
    )


def _find_trash_item(session: Session, reference: str) -> TrashItem:
    try:
        return session.history.trash_item(reference)
    except NotFound as error:
        error.action = "Send the trashId that delete_file returned, or ask a person to look at the trash."
        raise

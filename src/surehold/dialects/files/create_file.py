"""`create_file`: create a file that does not exist yet."""

from typing import ClassVar

from surehold.dialects.shared.params import (
    CONTENT_ALIASES,
    PATH_ALIASES,
    SHORT_DIFF_CHARS,
    ChangeParams,
    ChangeResult,
    check_text,
    file_fields,
    submit_change,
)
from surehold.dialects.shared.wire import WIRE
from surehold.text.escape import escape_text
from surehold.text.rewrite import WriteText
from surehold.tools.call import CallContext, SubjectPath
from surehold.tools.spec import Hints, tool
from surehold.workspace.proposal import Absent, Proposal


class CreateParams(ChangeParams):
    """What to create."""

    ALIASES: ClassVar = {**PATH_ALIASES, **CONTENT_ALIASES, "createParents": "createParentDirectories"}

    path: SubjectPath
    content: str
    create_parent_directories: bool = True
    """Make missing directories."""


class CreateResult(ChangeResult):
    """The new file."""

    created: bool
    path: str
    sha256: str
    size_bytes: int

    def headline(self) -> str:
        return f"{escape_text(self.path)} created, {self.size_bytes} bytes."


@tool("create_file", hints=Hints(kind="edit", title="Create a file", verb="Create", operation="create"), wire=WIRE)
def create_file(context: CallContext, params: CreateParams) -> CreateResult:
    """Create a new file; one that exists is never overwritten (already_exists)."""
    check_text(params.content, "content", path=params.path)
    proposal = Proposal(
        path=params.path, edit=WriteText(params.content), proof=Absent(), parents=params.create_parent_directories
    )
    receipt = submit_change(context, params, proposal, tool="create_file", operation="create")
    return CreateResult(**file_fields(receipt, diff_room=SHORT_DIFF_CHARS), created=not receipt.dry_run)

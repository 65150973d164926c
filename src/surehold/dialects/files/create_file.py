"""`create_file`: a file where nothing is."""

from typing import ClassVar

from surehold.dialects.shared.changes import SHORT_DIFF, ChangeParams, ChangeResult, check_text, common
from surehold.dialects.shared.wire import WIRE
from surehold.text.rewrite import WriteText
from surehold.text.visible import safe
from surehold.tools.context import Context
from surehold.tools.spec import Hints, tool
from surehold.workspace.proposal import Absent, Proposal


class CreateParams(ChangeParams):
    """What to create."""

    ALIASES: ClassVar = {
        "file_path": "path",
        "filePath": "path",
        "file_text": "content",
        "text": "content",
        "createParents": "createParentDirectories",
    }

    path: str
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
        """Say what was done."""
        return f"{safe(self.path)} created, {self.size_bytes} bytes."

    def facts(self) -> tuple[tuple[str, str | None], ...]:
        """List what the next call needs."""
        return (("sha256", self.sha256),)


@tool("create_file", hints=Hints(kind="edit", title="Create a file", operation="create"), wire=WIRE)
def create_file(context: Context, params: CreateParams) -> CreateResult:
    """Create a new file; one that exists is never overwritten (already_exists)."""
    check_text(params.content, "content", path=params.path)
    proposal = Proposal(
        path=params.path, edit=WriteText(params.content), proof=Absent(), parents=params.create_parent_directories
    )
    receipt = context.session.submit(
        proposal, tool="create_file", operation="create", reason=params.reason, dry_run=params.dry_run
    )
    one = receipt.files[0]
    return CreateResult(
        **common(receipt, diff_room=SHORT_DIFF),
        created=not receipt.dry_run,
        path=one.path,
        sha256=one.after_sha256 or "",
        size_bytes=one.plan.after.size,
    )

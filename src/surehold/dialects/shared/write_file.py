"""`create_file` and `write_file`: the whole content of a new file, or of an existing one."""

from typing import ClassVar

from surehold.dialects.shared.params import (
    CONTENT_ALIASES,
    PATH_ALIASES,
    SHORT_DIFF_CHARS,
    ChangeParams,
    ChangeResult,
    CheckedParams,
    check_text,
    file_fields,
    required_proof,
    submit_change,
)
from surehold.dialects.shared.wire import WIRE
from surehold.text.escape import escape_text
from surehold.text.rewrite import WriteText
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool
from surehold.workspace.proposal import Absent, Proposal


class CreateParams(ChangeParams):
    ALIASES: ClassVar = {**PATH_ALIASES, **CONTENT_ALIASES, "createParents": "createParentDirectories"}

    path: SubjectPath
    content: str
    create_parent_directories: bool = True
    """Make missing directories."""


class CreateResult(ChangeResult):
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
    parents = params.create_parent_directories
    proposal = Proposal(path=params.path, edit=WriteText(params.content), proof=Absent(), parents=parents)
    receipt = submit_change(context, params, proposal, tool="create_file", operation="create")
    return CreateResult(**file_fields(receipt, diff_room=SHORT_DIFF_CHARS), created=not receipt.dry_run)


class WriteParams(CheckedParams):
    ALIASES: ClassVar = {**PATH_ALIASES, **CONTENT_ALIASES}

    path: SubjectPath
    content: str
    """The whole new text."""


class WriteResult(ChangeResult):
    path: str
    before_sha256: str
    after_sha256: str
    size_bytes: int
    unchanged: bool

    @property
    def sha256(self) -> str:
        """Name of the bytes as they are now."""
        return self.after_sha256

    def headline(self) -> str:
        return f"{escape_text(self.path)} {'is unchanged' if self.unchanged else 'written'}, {self.size_bytes} bytes."


@tool(
    "write_file",
    hints=Hints(
        kind="edit", title="Overwrite a file", verb="Write", destructive=True, idempotent=True, operation="write"
    ),
    wire=WIRE,
)
def write_file(context: CallContext, params: WriteParams) -> WriteResult:
    """Overwrite an existing file; encoding, byte order mark and line endings stay as they are.

    A wrong expectedSha256 is refused as stale_file and says what changed. New files: create_file.
    """
    check_text(params.content, "content", path=params.path)
    evidence = required_proof(context, params.expected_sha256, path=params.path)
    proposal = Proposal(path=params.path, edit=WriteText(params.content), proof=evidence)
    receipt = submit_change(context, params, proposal, tool="write_file", operation="write")
    return WriteResult(**file_fields(receipt), unchanged=not receipt.files[0].changed)

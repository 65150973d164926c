"""`write_text_file`: create a file, or replace the content of one that was read."""

from dataclasses import dataclass
from typing import ClassVar

from surehold.dialects.multi_edit.change_result import TextChangeParams, TextChangeResult, meta_of, proof_of
from surehold.dialects.multi_edit.wire import WIRE, ContractMessages
from surehold.dialects.shared.params import CONTENT_ALIASES, check_text
from surehold.text.rewrite import WriteText
from surehold.tools.context import CallContext
from surehold.tools.spec import Hints, SubjectPath, tool
from surehold.workspace.access.known_file import KnownFile
from surehold.workspace.proposal import Proposal, Seen, Unproven


@dataclass(frozen=True, slots=True)
class _NewOrSeen:
    """Nothing is there, or this session was shown all of it."""

    def check(self, file: KnownFile) -> None:
        """Refuse to overwrite what was not seen."""
        if file.current.exists:
            Seen(whole=True).check(file)


class WriteTextParams(TextChangeParams):
    """What to write."""

    ALIASES: ClassVar = {**TextChangeParams.ALIASES, **CONTENT_ALIASES}

    path: SubjectPath
    """Absolute path to the file."""
    content: str
    """The whole text of the file."""


class WriteTextResult(TextChangeResult):
    """What was written."""

    bytes_written: int
    created: bool

    def headline(self) -> str:
        return f"{'Created' if self.created else 'Written'}, {self.bytes_written} bytes."


@tool(
    "write_text_file",
    hints=Hints(kind="edit", title="Write a file", verb="Write", destructive=True, idempotent=True, operation="write"),
    wire=WIRE,
)
def write_text_file(context: CallContext, params: WriteTextParams) -> WriteTextResult:
    """Write the complete content of a text file: a new one, or one that read_text_file showed completely.

    A file that changed since it was read is not overwritten, unless expected_sha256 names what is there now. Encoding and
    line endings of an existing file stay. path is absolute, and its directory must exist.
    """
    size = len(params.content.encode("utf-8", "surrogatepass"))
    with ContractMessages(path=params.path, verb="write", size=size).translate_errors():
        check_text(params.content, "content", path=params.path)
        unasked = Unproven() if context.unchecked else _NewOrSeen()
        proposal = Proposal(
            path=params.path,
            edit=WriteText(params.content),
            proof=proof_of(params.expected_sha256, unasked),
            parents=False,
        )
        receipt = context.session.submit(proposal, tool="write_text_file", operation="write")
    plan = receipt.files[0].plan
    return WriteTextResult(bytes_written=plan.after.size, created=not plan.before.exists, meta=meta_of(receipt))

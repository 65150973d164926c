"""`edit_text_file`: replace one text in one file."""

from typing import ClassVar

from surehold.dialects.multi_edit.change_result import (
    OLD_AND_NEW_ALIASES,
    TextChangeParams,
    TextDiffResult,
    diff_by_name,
    meta_of,
    proof_of,
)
from surehold.dialects.multi_edit.wire import WIRE, ContractMessages
from surehold.dialects.shared.params import check_text
from surehold.errors import InvalidArgument
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.tools.context import CallContext
from surehold.tools.spec import Hints, ResultPart, SubjectPath, tool
from surehold.workspace.proposal import Proposal
from surehold.workspace.receipt import Receipt


class EditTextParams(TextChangeParams):
    """What to edit."""

    ALIASES: ClassVar = {**TextChangeParams.ALIASES, **OLD_AND_NEW_ALIASES}

    path: SubjectPath
    """Absolute path to the file."""
    old_string: str
    """Exact text to replace; must occur exactly once."""
    new_string: str
    """Replacement."""


class ReplacedLines(ResultPart):
    """Lines from 1, inclusive."""

    start: int
    end: int


class EditTextResult(TextDiffResult):
    """The edit, and its diff."""

    line_range: ReplacedLines

    def headline(self) -> str:
        lines = self.line_range
        where = f"line {lines.start}" if lines.start == lines.end else f"lines {lines.start} to {lines.end}"
        return f"1 edit applied: {where}."


@tool(
    "edit_text_file",
    hints=Hints(kind="edit", title="Edit a file", destructive=True, operation="edit"),
    wire=WIRE,
)
def edit_text_file(context: CallContext, params: EditTextParams) -> EditTextResult:
    """Replace one text that occurs exactly once in a file; everything else stays as it is, byte by byte.

    path is absolute. multi_edit_text_file makes several edits of a file at once.
    """
    with ContractMessages(path=params.path, verb="edit", old_strings=[params.old_string]).translate_errors():
        if params.old_string == params.new_string:  # needs no file to be said
            raise InvalidArgument("There is nothing to change.", reason="same_text")
        check_text(params.new_string, "new_string", path=params.path)
        edit = StringEdit(old=params.old_string, new=params.new_string)
        receipt = context.session.submit(
            Proposal(path=params.path, edit=SnapshotEdits((edit,)), proof=proof_of(params.expected_sha256)),
            tool="edit_text_file",
            operation="edit",
        )
    return EditTextResult(
        diff=diff_by_name(receipt, params.path), line_range=_replaced_lines(receipt), meta=meta_of(receipt)
    )


def _replaced_lines(receipt: Receipt) -> ReplacedLines:
    """Return the lines that were replaced; a person who was asked may have changed others than the edit would."""
    plan = receipt.files[0].plan
    spans = [span for one in plan.applied for span in one.ranges] or plan.line_spans()
    return ReplacedLines(start=spans[0].start_line, end=spans[-1].end_line) if spans else ReplacedLines(start=0, end=0)

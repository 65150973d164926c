"""`multi_edit_text_file`: apply many replacements to one file in order, and write it once."""

from typing import ClassVar, Self

from pydantic import Field

from surehold.dialects.multi_edit.change_result import QUOTE_ALIASES, TextChangeParams, TextDiffResult, diff_fields
from surehold.dialects.multi_edit.wire import BRIEF, GUIDE, WIRE, ContractMessages
from surehold.dialects.shared.params import check_text
from surehold.errors import InvalidArgument
from surehold.text.quoted.edits import SequentialEdits, StringEdit
from surehold.tools.call import AnswerBudget, CallContext, Json
from surehold.tools.listing import Hints
from surehold.tools.params import NestedParams, SubjectPath
from surehold.tools.spec import ResultPart, tool
from surehold.workspace.proposal import Proposal, proof_of


class EditOp(NestedParams):
    ALIASES: ClassVar = QUOTE_ALIASES

    old_string: str
    """Exact text to replace; must occur exactly once when its turn comes."""
    new_string: str
    """Replacement."""

    @staticmethod
    def from_python(edit: tuple[str, str]) -> Json:
        old, new = edit
        return {"old_string": old, "new_string": new}


class MultiEditParams(TextChangeParams):
    path: SubjectPath
    """Absolute path to the file."""
    edits: list[EditOp] = Field(max_length=10_000)
    """Applied one after the other; at most 10,000."""


class EditedLines(ResultPart):
    """Which lines an edit replaced, in the text as it was just before that edit: from 1, inclusive."""

    edit_index: int
    start: int
    end: int


_UNITS_PER_RANGE = 300
"""So much of an answer for each range, where the diff takes all it may."""


class MultiEditResult(TextDiffResult):
    applied_count: int
    line_ranges: tuple[EditedLines, ...]

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        """Return it with as many ranges as fit beside the diff, which says so."""
        fitted = super().cut_to_budget(budget)
        rows = [one.model_dump() for one in self.line_ranges]
        most = max(budget.answer // _UNITS_PER_RANGE, budget.count_rows_beside(fitted.diff, rows))
        if len(self.line_ranges) <= most:
            return fitted
        note, shown = f"[line_ranges of {len(self.line_ranges) - most} more edits are left out]\n", fitted.diff
        at = len(shown) if shown == self.diff else shown.rfind("\n[") + 1  # after the hunks
        return fitted.model_copy(
            update={"line_ranges": self.line_ranges[:most], "diff": shown[:at] + note + shown[at:]}
        )

    def headline(self) -> str:
        if not self.applied_count and self.change_id:
            return "Written as the person who allowed it wanted."
        return f"{self.applied_count} {'edit' if self.applied_count == 1 else 'edits'} applied."


@tool(
    "multi_edit_text_file",
    hints=Hints(
        kind="edit",
        title="Edit a file many times",
        verb="multi_edit_text_file",  # its title is part of the contract
        title_names_path=False,
        destructive=True,
        operation="edit",
    ),
    wire=WIRE,
    guide=GUIDE,
    brief=BRIEF,
)
def multi_edit_text_file(context: CallContext, params: MultiEditParams) -> MultiEditResult:
    """Apply many string replacements to one file in order: all of them or none, with one cumulative diff.

    Each edit sees the text that the ones before it left; its old_string must occur there exactly once. Encoding and line
    endings stay as they are. path is absolute.
    """
    old_strings = [edit.old_string for edit in params.edits]
    with ContractMessages(path=params.path, verb="edit", old_strings=old_strings, numbered=True).translate_errors():
        if not params.edits:
            raise InvalidArgument("There is no edit.", reason="no_edits", action="Send at least one edit.")
        for number, edit in enumerate(params.edits):
            check_text(edit.new_string, f"edits.{number}.new_string", path=params.path)
        edits = tuple(StringEdit(old=edit.old_string, new=edit.new_string) for edit in params.edits)
        receipt = context.session.submit(
            Proposal(path=params.path, edit=SequentialEdits(edits), proof=proof_of(params.expected_sha256)),
            tool="multi_edit_text_file",
            operation="edit",
            reason=params.reason,
            dry_run=params.dry_run,
        )
    applied = receipt.files[0].plan.applied
    return MultiEditResult(
        applied_count=len(applied),
        line_ranges=tuple(
            EditedLines(edit_index=one.index, start=one.ranges[0].start_line, end=one.ranges[0].end_line)
            for one in applied
        ),
        **diff_fields(receipt, params.path),
    )

"""`edit_file`: exact-string edits that are all matched against the same version of the file."""

from dataclasses import asdict
from typing import ClassVar

from pydantic import Field

from surehold.dialects.shared.params import (
    PATH_ALIASES,
    CamelPart,
    CamelResultPart,
    ChangeResult,
    CheckedParams,
    check_text,
    file_fields,
    quote_aliases,
    required_proof,
    submit_change,
)
from surehold.dialects.shared.wire import WIRE
from surehold.text.escape import escape_text
from surehold.text.plan import EditOutcome
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.tools.call import CallContext, Json
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool
from surehold.workspace.proposal import Proposal

_MAX_RANGES = 100


class TextEdit(CamelPart):
    ALIASES: ClassVar = quote_aliases("oldText", "newText")

    old_text: str
    """Copied exactly; must occur once."""
    new_text: str
    replace_all: bool = False
    expected_occurrences: int | None = Field(default=None, ge=1)
    """Replace all, if there are exactly so many."""

    @staticmethod
    def from_python(edit: StringEdit | tuple[str, str]) -> Json:
        if not isinstance(edit, StringEdit):
            old, new = edit
            edit = StringEdit(old=old, new=new)
        facts = asdict(edit)
        return {"oldText": facts.pop("old"), "newText": facts.pop("new"), **facts}

    def to_string_edit(self) -> StringEdit:
        facts = self.model_dump()
        return StringEdit(old=facts.pop("old_text"), new=facts.pop("new_text"), **facts)


class EditParams(CheckedParams):
    ALIASES: ClassVar = PATH_ALIASES

    path: SubjectPath
    edits: list[TextEdit] = Field(max_length=2_000)
    """At most 2,000."""


class EditedRange(CamelResultPart):
    """Where a text was, and where its replacement is: lines, from 1, inclusive."""

    start_line: int
    end_line: int
    new_start_line: int
    new_end_line: int


class AppliedTextEdit(CamelResultPart):
    edit_index: int
    occurrences: int
    ranges: tuple[EditedRange, ...]


class EditResult(ChangeResult):
    path: str
    before_sha256: str
    after_sha256: str
    applied_edits: tuple[AppliedTextEdit, ...]

    @property
    def sha256(self) -> str:
        """Name of the bytes as they are now."""
        return self.after_sha256

    def headline(self) -> str:
        places = sum(edit.occurrences for edit in self.applied_edits)
        count = len(self.applied_edits)
        if not count and self.change_id:
            return f"{escape_text(self.path)}: written as the person who allowed it wanted."
        return f"{escape_text(self.path)}: {count} {'edit' if count == 1 else 'edits'} applied in {places} " + (
            "place." if places == 1 else "places."
        )


@tool(
    "edit_file",
    hints=Hints(kind="edit", title="Edit a file", always_loaded=True, destructive=True, operation="edit"),
    wire=WIRE,
)
def edit_file(context: CallContext, params: EditParams) -> EditResult:
    """Replace exact texts in a file: all edits or none, all matched against the file as it is now.

    oldText must occur exactly once, unless replaceAll or expectedOccurrences. Untouched bytes stay as they are.
    A wrong expectedSha256 is refused as stale_file and says whether the edits still apply, and with which sha256.
    """
    for number, edit in enumerate(params.edits):
        check_text(edit.new_text, f"edits.{number}.newText", path=params.path)
    evidence = required_proof(context, params.expected_sha256, path=params.path)
    edits = tuple(edit.to_string_edit() for edit in params.edits)
    proposal = Proposal(path=params.path, edit=SnapshotEdits(edits), proof=evidence)
    receipt = submit_change(context, params, proposal, tool="edit_file", operation="edit")
    applied = tuple(map(_applied_edit, receipt.files[0].plan.applied))
    return EditResult(**file_fields(receipt), applied_edits=applied)


def _applied_edit(edit: EditOutcome) -> AppliedTextEdit:
    # a text may occur in many places; the number says how many
    ranges = tuple(EditedRange(**span._asdict()) for span in edit.ranges[:_MAX_RANGES])
    return AppliedTextEdit(edit_index=edit.index, occurrences=edit.occurrences, ranges=ranges)

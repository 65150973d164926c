"""`Edit`: replace one quoted text by another."""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from surehold.dialects.claude.change_result import FILE_PATH_ALIASES, FileChangeResult, change_fields, lines_in_patch
from surehold.dialects.claude.gate import GatedParams, submit_gated
from surehold.dialects.claude.located_file import locate_file
from surehold.dialects.claude.wire import BRIEF, GUIDE, WIRE
from surehold.dialects.shared.params import check_text, quote_aliases
from surehold.errors import UseNotebookEdit
from surehold.text.plan import EditPlan
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool

_TIER_NOTES = {
    "line_endings": "The file's own line endings were kept.",
    "quotes": "Curly and straight quotes were taken for each other; the file's own were kept where the text is the same.",
}
_MAX_LISTED_LINES = 10


class FileEditParams(GatedParams):
    ALIASES: ClassVar = {**FILE_PATH_ALIASES, **quote_aliases("old_string", "new_string"), "replaceAll": "replace_all"}

    old_string: str
    """Exactly as it is in the file, without the line numbers of Read."""
    new_string: str
    replace_all: bool = False
    file_path: SubjectPath
    """Absolute, or relative to the first root."""


class FileEditResult(FileChangeResult):
    REPEATED: ClassVar = ("old_string", "new_string")

    old_string: str
    """As it was in the file."""
    new_string: str
    """As it was written."""
    replace_all: bool
    replacements: int
    match_tier: Literal["exact", "line_endings", "quotes"] = "exact"
    lines: tuple[int, ...] = ()
    """Where the replacements begin, in the file as it is now."""

    def headline(self) -> str:
        if self.unchanged:
            return f"{self.display_path} already has this change; nothing was written."
        if not self.replacements and self.user_modified:
            return f"Edited {self.display_path} as the person who allowed it wanted."
        count = f"{self.replacements} {'replacement' if self.replacements == 1 else 'replacements'}"
        where = f" at line {', '.join(map(str, self.lines))}" if self.lines else ""
        more = " and more" if self.lines and len(self.lines) < self.replacements else ""
        return f"Edited {self.display_path}: {count}{where}{more}."

    def extra_notes(self) -> Iterator[str]:
        if note := _TIER_NOTES.get(self.match_tier):
            yield note


@tool(
    "Edit",
    hints=Hints(kind="edit", title="Edit a file", loaded_when_alone=True, destructive=True, operation="edit"),
    wire=WIRE,
    method="claude_edit",
    guide=GUIDE,
    brief=BRIEF,
)
def edit(context: CallContext, params: FileEditParams) -> FileEditResult:
    """Replace old_string by new_string in an existing file, exactly and literally.

    old_string must occur exactly once in the file, unless replace_all. Curly and straight quotes, and line endings, match
    each other when nothing matches exactly. The lines must have been shown in this session (Read, Grep, earlier results), and
    the file must not have changed since. Untouched bytes stay as they are. Notebooks (.ipynb): NotebookEdit.
    """
    wanted = StyledEdit(old=params.old_string, new=params.new_string, replace_all=params.replace_all)
    check_text(params.new_string, "new_string", path=params.file_path)
    place = locate_file(context.session, params.file_path, head=0)
    if place.target.key.lower().endswith(".ipynb"):
        raise UseNotebookEdit(f"`{params.file_path}` is a notebook.", path=params.file_path)
    shows = partial(lines_in_patch, context.budget)
    receipt = submit_gated(context, place, wanted, params, needs="lines", tool="Edit", operation="edit", shows=shows)
    return FileEditResult(**_edit_fields(params, receipt.files[0].plan), **change_fields(context, place, receipt))


def _edit_fields(params: FileEditParams, plan: EditPlan) -> dict[str, Any]:
    """Return what was found and written; what was sent, where a person wrote something else."""
    sent = {"old_string": params.old_string, "new_string": params.new_string, "replace_all": params.replace_all}
    if not plan.applied or not plan.spans:
        return {**sent, "replacements": 0}
    (applied,), first, decode = plan.applied, plan.spans[0], plan.before.encoding.decode
    return {
        **sent,
        "old_string": decode(plan.before.data[first.start : first.end]),
        "new_string": plan.after.encoding.decode(first.new),
        "replacements": applied.occurrences,
        "match_tier": applied.tier,
        "lines": tuple(row.new_start_line for row in applied.ranges[:_MAX_LISTED_LINES]),
    }

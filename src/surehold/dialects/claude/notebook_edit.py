"""`NotebookEdit`: change one cell of a notebook and no other byte of its file."""

import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import Field

from surehold.dialects.claude.change_result import values_to_tell
from surehold.dialects.claude.gate import GatedParams, submit_gated
from surehold.dialects.claude.located_file import LocatedFile, locate_file
from surehold.dialects.claude.wire import WIRE
from surehold.dialects.shared.params import heading_of
from surehold.errors import InvalidArgument, NotebookInvalid, SureholdError
from surehold.text.diff import UnifiedDiff
from surehold.text.encoding import UTF8
from surehold.text.escape import escape_lines, escape_text
from surehold.text.notebook.edit import CellChange, CellEdit, CellKind, CellRequest, EditMode, InsertPosition
from surehold.text.notebook.model import read_notebook
from surehold.text.plan import EditPlan, diff_between
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import Result, tool
from surehold.workspace.proposal import Receipt

_MAX_RETURNED_FILE_BYTES = 20 * 1024
"""Files up to this size are sent back; of larger ones only the hash."""
_FIELDS_KNOWN_TO_CALLER = ("original_file", "updated_file", "old_source", "new_source")
_DIFF_CHARS = 4 * 1024
_MAX_LISTED_RENAMES = 20
"""So many new names are told to a model one by one."""


class NotebookEditParams(GatedParams):
    ALIASES: ClassVar = {"file_path": "notebook_path", "path": "notebook_path", "filePath": "notebook_path"}
    POSITIONAL: ClassVar = ("new_source",)

    notebook_path: SubjectPath
    """Absolute path of the .ipynb file."""
    new_source: str | None = None
    """The whole new source of the cell; not needed for delete."""
    edit_mode: EditMode = "replace"
    cell_id: str | None = None
    """The cell's id, or cell-N: its place, from 0. An insert goes after it."""
    cell_type: CellKind | None = None
    """Of a new cell, by default code. With replace the cell becomes this type."""
    position: InsertPosition | None = None
    """Of an insert: before or after cell_id, or the start or end of the notebook."""


class NotebookEditResult(Result):
    notebook_path: str
    cell_id: str
    """How the cell is called now."""
    edit_mode: EditMode
    cell_type: str
    language: str
    index: int
    """Its place, from 0."""
    old_source: str | None
    new_source: str | None
    original_file: str | None
    """The whole file before; null above 20 KB, where only its sha256 is given."""
    updated_file: str | None
    """The whole file now; null above 20 KB."""
    original_file_sha256: str
    sha256: str
    """Of the file now."""
    diff: str
    """Of the cell's source; of the whole file where a person changed more than that."""
    user_modified: bool
    """A person changed the content before it was written."""
    change_id: str
    """For `surehold undo`; empty when nothing had to be written."""
    diff_truncated: bool = False
    outputs_cleared: bool = False
    unchanged: bool = False
    """The cell already had this content; the file was not touched."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Cells without an id that have another name now: the old one and the new one."""
    dry_run: bool = False
    warnings: tuple[str, ...] = ()

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        """Return it without long texts that the caller knows, and with as much of the rest as fits."""
        values = values_to_tell(self, _FIELDS_KNOWN_TO_CALLER, budget)
        shown = budget.change_room.cut_lines(self.diff)
        if shown != self.diff:
            values |= {"diff": shown, "diff_truncated": True}
        if len(self.renamed) > _MAX_LISTED_RENAMES:
            values["renamed"] = dict(list(self.renamed.items())[:_MAX_LISTED_RENAMES])
        return self.model_construct(set(values), **values)

    def text(self, budget: AnswerBudget) -> str:
        shown = self.cut_to_budget(budget)
        rest = f": surehold show {self.change_id}" if self.change_id else ""
        rows = [
            heading_of(self._headline_text(), dry_run=self.dry_run),
            self._renamed_row(),
            "A person changed the content before it was written." * self.user_modified,
            f"sha256: {self.sha256}",
            f"change_id: {self.change_id}" * bool(self.change_id),
            *(f"Warning: {warning}" for warning in self.warnings),
            shown.diff.rstrip("\n"),
            f"[the difference goes on{rest}]" * shown.diff_truncated,
        ]
        return "\n".join(row for row in rows if row)

    def _headline_text(self) -> str:
        cell = f"{escape_text(self.notebook_path)}: {self.cell_type} cell `{escape_text(self.cell_id)}` (index {self.index})"
        if self.unchanged:
            return f"{cell} already has this content; nothing was written."
        done = {"replace": "replaced", "insert": "inserted", "delete": "deleted"}[self.edit_mode]
        return f"{cell} {done}{', its outputs cleared' * self.outputs_cleared}."

    def _renamed_row(self) -> str:
        """Tell the new names; those of all later cells move alike, so the first ones show it."""
        told = [f"{escape_text(old)} is now {escape_text(new)}" for old, new in self.renamed.items()]
        if len(told) > _MAX_LISTED_RENAMES:
            told[_MAX_LISTED_RENAMES:] = [f"{len(told) - _MAX_LISTED_RENAMES} more moved in the same way"]
        return f"Cells without an id have new names: {', '.join(told)}." if told else ""


@tool(
    "NotebookEdit",
    hints=Hints(kind="edit", title="Edit a notebook cell", destructive=True, operation="edit"),
    wire=WIRE,
    method="claude_notebook_edit",
)
def notebook_edit(context: CallContext, params: NotebookEditParams) -> NotebookEditResult:
    """Replace, insert or delete one cell of a Jupyter notebook (.ipynb); no other byte of the file changes.

    The notebook must have been read with Read in this session, and that cell shown. new_source is the whole new source.
    Replacing a code cell clears its outputs and execution_count, if the source changed. Insert puts a new cell after
    cell_id; without cell_id at the start, or where position says (before, start, end). Ids of new cells are made where the
    notebook has ids. cell-0, cell-1 and so on name cells by place; the result tells the new names of cells without an id.
    """
    edit = CellEdit(_cell_request(params))
    place = locate_file(context.session, params.notebook_path, head=0)
    receipt = submit_gated(context, place, edit, params, needs="lines", tool="NotebookEdit", operation="edit")
    return _build_result(place, edit, receipt)


def _cell_request(params: NotebookEditParams) -> CellRequest:
    if params.new_source is None and params.edit_mode != "delete":
        raise InvalidArgument(
            f"`new_source` is missing: {params.edit_mode} needs it.",
            path=params.notebook_path,
            reason="no_source",
            action="Send the whole new source of the cell; an empty one is ''.",
        )
    # ids of new cells begin with it: the same call means the same bytes, so that an approval of it holds
    asked = repr((params.notebook_path, params.cell_id, params.position, params.new_source))
    seed = int.from_bytes(hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()[:4])
    return CellRequest(
        mode=params.edit_mode,
        name=params.cell_id or "",
        source=params.new_source or "",
        kind=params.cell_type,
        position=params.position,
        seed=seed,
    )


def _build_result(place: LocatedFile, edit: CellEdit, receipt: Receipt) -> NotebookEditResult:
    plan = receipt.files[0].plan
    change = edit.change_for(plan.before)
    new_source = _source_as_approved(plan.after, change) if receipt.user_modified else change.new_source
    more = receipt.user_modified and not _changed_only_source(edit, plan, new_source)
    diff = _diff_named(place.path, plan.before, plan.after) if more else _source_diff(change, new_source)
    extras: dict[str, Any] = {
        "diff_truncated": diff.truncated,
        "outputs_cleared": change.cleared and not more,
        "unchanged": not plan.changes_bytes,
        "renamed": {} if more else dict(change.renamed),
        "dry_run": receipt.dry_run,
        "warnings": tuple(dict.fromkeys(filter(None, (place.notice, *receipt.files[0].warnings)))),
    }
    return NotebookEditResult(
        notebook_path=place.absolute_path,
        cell_id=change.name,
        edit_mode=change.mode,
        cell_type=change.kind,
        language=change.language,
        index=change.index,
        old_source=change.old_source,
        new_source=new_source,
        original_file=_text_if_small(plan.before),
        updated_file=_text_if_small(plan.after),
        original_file_sha256=plan.before.sha256,
        sha256=plan.after.sha256,
        diff=escape_lines(diff.text),
        user_modified=receipt.user_modified,
        change_id=receipt.change_id,
        **{name: value for name, value in extras.items() if value},
    )


def _text_if_small(snapshot: Snapshot) -> str | None:
    return snapshot.data.decode(errors="replace") if snapshot.size <= _MAX_RETURNED_FILE_BYTES else None


def _source_diff(change: CellChange, new_source: str | None) -> UnifiedDiff:
    """Return the difference of the source: that of the file would be full of outputs that went away."""
    ended = any(source and source.endswith("\n") for source in (change.old_source, new_source))
    old, new = (_source_snapshot(source, "" if ended else "\n") for source in (change.old_source, new_source))
    return _diff_named(escape_text(change.name), old, new)


def _diff_named(name: str, before: Snapshot, after: Snapshot) -> UnifiedDiff:
    return diff_between(before, after, from_name=name, to_name=name, limit=_DIFF_CHARS)


def _source_snapshot(source: str | None, end: str) -> Snapshot:
    """Return a source as a file; most sources end without a line end, which is not worth a word."""
    return Snapshot((source + end).encode(errors="backslashreplace"), encoding=UTF8) if source is not None else ABSENT


def _source_as_approved(after: Snapshot, change: CellChange) -> str | None:
    """Return the source that the person who allowed the change made of it; None when that cell is not there."""
    try:
        cells = read_notebook(after.data).cells
    except NotebookInvalid:
        return None
    return next((cell.source for cell in cells if cell.name == change.name), None) if change.mode != "delete" else None


def _changed_only_source(edit: CellEdit, plan: EditPlan, new_source: str | None) -> bool:
    if new_source is None:
        return False
    with suppress(SureholdError):  # a person may write what no call could
        return CellEdit(replace(edit.request, source=new_source)).plan(plan.before).after == plan.after
    return False

"""`edit`: operations on lines that are named by the hash of their content."""

from contextlib import suppress
from dataclasses import MISSING, asdict, fields, replace
from functools import partial
from itertools import zip_longest
from typing import ClassVar, Literal, Self, get_args

from pydantic import Field

from surehold.dialects.anchored.wire import GUIDE, WIRE
from surehold.disk.base import Target
from surehold.errors import SchemaInvalid, SureholdError
from surehold.syntax.languages import parsers_for
from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.lines import AnchoredDiff, ShownVersion, anchored_diff
from surehold.text.anchored.operations import Operation
from surehold.text.escape import escape_lines, escape_text
from surehold.text.plan import EditPlan
from surehold.text.sanity.check import SanityCheck, SanityReport
from surehold.text.snapshot import LineRanges, merge_ranges
from surehold.tools.call import AnswerBudget, CallContext, Json
from surehold.tools.listing import Hints
from surehold.tools.params import NestedParams, Params, SubjectPath
from surehold.tools.spec import Result, tool
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import Proposal, Receipt, proof_of

_OPERATION_CLASSES: dict[str, type[Operation]] = {kind.op: kind for kind in get_args(Operation)}
_FIELD_TO_USE_INSTEAD = {
    "start_hash": "hash",
    "end_hash": "hash",
    "hash": "start_hash and end_hash",
    "start_line": "line",
    "end_line": "line",
    "line": "start_line and end_line",
    "occurrence": "the copied anchor with its `.K`, such as `118#5da3f1.7`",
    "content": "no content: it only deletes",
}


class LineOperation(NestedParams):
    ALIASES: ClassVar = {"operation": "op", "text": "content", "new_content": "content", "anchor": "hash"}

    op: Literal["replace_line", "insert_after", "insert_before", "delete_line", "replace_range", "delete_range"]
    hash: str | None = None
    occurrence: int | None = None
    line: int | None = None
    start_hash: str | None = None
    end_hash: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    content: str | None = None
    """New lines, without anchors."""

    @staticmethod
    def from_python(operation: Operation) -> Json:
        return operation.as_sent()

    def to_operation(self, index: int) -> Operation:
        """Return it as the text core takes it; refuse fields that belong to another kind of operation."""
        kind = _OPERATION_CLASSES[self.op]
        own = {each.name: each.default is MISSING for each in fields(kind)}
        sent = self.model_dump(exclude={"op"}, exclude_none=True)

        def refuse(name: str, message: str, reason: str) -> SchemaInvalid:
            return SchemaInvalid(message, reason=reason, operation_index=index, op=self.op, field=name)

        for name in sent:
            if name not in own:
                instead = _FIELD_TO_USE_INSTEAD[name]
                raise refuse(name, f"Operation {index}: `{self.op}` takes no `{name}`; use {instead}.", "foreign_field")
        for name, required in own.items():
            if required and name not in sent:
                raise refuse(name, f"Operation {index}: `{self.op}` needs `{name}`.", "missing_field")
        if "\0" in sent.get("content", ""):
            raise refuse("content", f"Operation {index}: `content` contains a NUL byte.", "zero_byte")
        return kind(**sent)


_DIFF_UNITS = 128 * 1024
"""How much of a diff programs are given, as text and as data."""
_MAX_ROWS = 100
"""More anchors and operations are for programs alone."""
_UNITS_PER_ROW = 800
"""So much of an answer for each of them, so that the diff fits too."""


class LineEditParams(Params):
    DEPRECATED: ClassVar = {"file_path": "path"}

    path: SubjectPath
    operations: list[LineOperation] = Field(max_length=5_000)
    """At most 5,000."""
    expected_sha256: str = ""
    """Refuse unless the file is exactly this version."""
    safety_check: Literal["strict", "warn", "off"] = "strict"
    dry_run: bool = False
    strict_order: bool = False
    """Refuse a reversed range instead of turning it around."""
    reason: str = Field(default="", max_length=2_000)
    """For the audit log."""


class LineEditResult(Result):
    """What the edit did, and which anchors still hold."""

    path: str
    operations_applied: int
    lines_before: int
    lines_after: int
    net_line_change: int
    anchors_valid_through: int
    must_refresh_from_line: int
    line_shift: int
    """How far the lines after the last change moved."""
    diff: str
    diff_truncated: bool = False
    new_anchors: tuple[str, ...]
    operations: tuple[Json, ...]
    """Per operation: which lines it found, and how."""
    baseline_continuity: Literal["clean", "mixed"]
    writer_type: Literal["edit"] = "edit"
    writers: tuple[str, ...]
    safety_status: Literal["clean", "suspicious", "off"]
    safety_warnings: tuple[Json, ...] = ()
    auto_corrections: tuple[Json, ...] = ()
    warnings: tuple[str, ...] = ()
    cross_version: bool
    sha256: str
    change_id: str
    dry_run: bool | None = None

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        diff, count = budget.change_room.cut_lines(self.diff), max(len(self.new_anchors), len(self.operations))
        rows = list(zip_longest(self.operations[:_MAX_ROWS], self.new_anchors[:_MAX_ROWS]))
        most = min(_MAX_ROWS, max(budget.answer // _UNITS_PER_ROW, budget.count_rows_beside(diff, rows)))
        if diff == self.diff and count <= most:
            return self
        anchors, operations = self.new_anchors[:most], self.operations[:most]
        truncated = self.diff_truncated or diff != self.diff
        update = {
            "diff": diff.removesuffix("\n"),
            "diff_truncated": truncated,
            "new_anchors": anchors,
            "operations": operations,
        }
        if count > most:
            update["warnings"] = (*self.warnings, f"`operations` and `new_anchors` show the first {most}.")
        return self.model_copy(update=update)

    def text(self, budget: AnswerBudget) -> str:
        shown = self.cut_to_budget(budget)
        count = self.operations_applied
        done = f"{count} {'operation' if count == 1 else 'operations'} {'would be ' if self.dry_run else ''}applied"
        wanted = "" if count or not self.change_id else ", as the person who allowed it wanted"
        lines = f"{self.lines_before} -> {self.lines_after} lines ({self.net_line_change:+d})"
        rows = [
            f"{'Written' if wanted else done} to {escape_text(self.path)}{wanted}: {lines}.",
            "Dry run, nothing was written." if self.dry_run else "",
            f"Anchors hold through line {self.anchors_valid_through}; from line {self.must_refresh_from_line} on use these.",
            f"sha256: {self.sha256}",
            f"change_id: {self.change_id}" if self.change_id else "",
            "The file had moved on since it was read; the operations were carried over." if self.cross_version else "",
            "Not only `edit` wrote this file since you first saw it." if self.baseline_continuity == "mixed" else "",
            *(f"Corrected: {row['detail']}" for row in self.auto_corrections),
            *(f"Warning: {warning}" for warning in self.warnings),
            shown.diff,
            f"[the diff goes on; read_file with hashes from line {self.must_refresh_from_line}]" * shown.diff_truncated,
        ]
        return "\n".join(row for row in rows if row)


@tool(
    "edit",
    hints=Hints(kind="edit", title="Edit lines by anchor", always_loaded=True, destructive=True, operation="edit"),
    wire=WIRE,
    method="edit_lines",  # `Session.edit` replaces quoted texts
    guide=GUIDE,
)
def edit(context: CallContext, params: LineEditParams) -> LineEditResult:
    """Change lines by the anchors `N#HASH` of read_file(hashes: true). The number is advisory (a snapshot position), the hash is the authoritative identity.
    Edit right after reading, one file after the other, all operations on a file in one call. Anchor on unique lines, not blanks, braces or
    boilerplate; repeated lines: replace_range around them, or occurrence with line. One line: replace_line, delete_line, insert_after,
    insert_before take hash; a block: replace_range, delete_range take start_hash, end_hash; mixing is refused. `path` names the
    file; `file_path` is deprecated and will be rejected.

    Freshness: after read_file with hashes, edit that file in the same response turn or the next one. Do not read A, then B, and edit A later: its
    anchors would be stale. Process one file completely before you read anchors of another: read A, edit A, read B, edit B. The operations of one
    call are atomic, against the same snapshot.
    Anchors: prefer unique, distinctive content; avoid empty lines, closing braces, boilerplate (`display: flex;`, `</div>`); `!` marks bad anchors,
    `~` middling ones. Where content repeats, use replace_range between two distinctive lines: both ends must be unique. To tell equal lines apart,
    copy the anchor with its .K, or send occurrence (from 1) together with line.
    | situation | operation |
    |---|---|
    | change one unique line | replace_line |
    | change a block of lines | replace_range (both ends inclusive) |
    | new lines between two lines | insert_after, insert_before (also BOF, EOF) |
    | remove one unique line | delete_line |
    | remove a block of lines | delete_range |
    | the line repeats (empty, `}`, boilerplate) | replace_range around it, between unique neighbours |
    Mixing, such as start_hash with a replace_line, fails. The answer shows the changed lines with fresh anchors: go on from those.
    """  # noqa: D205 - the first paragraph is the lean form, several sentences long
    session = context.session
    target = session.workspace.reader.target(params.path)
    call = _AnchoredEditCall(context, params, target)
    proposal = Proposal(
        path=target,
        edit=call,
        proof=proof_of(params.expected_sha256),
        checks=(call.check_sanity,),
        shows=call.shown_lines,
        shows_anchors=True,
    )
    receipt = session.submit(proposal, tool="edit", operation="edit", reason=params.reason, dry_run=params.dry_run)
    return _build_result(receipt, call)


class _AnchoredEditCall:
    """One call: its edit is made when the file is known, under the lock; what the answer tells is kept from then."""

    def __init__(self, context: CallContext, params: LineEditParams, target: Target) -> None:
        self.report = SanityReport(status="off")
        self.continuity: Literal["clean", "mixed"] = "clean"
        self.writers: tuple[str, ...] = ()
        self._operations = tuple(one.to_operation(index) for index, one in enumerate(params.operations))
        self._params = params
        self._sanity = SanityCheck(path=target.key, mode=params.safety_check, parse=parsers_for)
        self._room = context.budget.change_room
        self._diff: tuple[EditPlan, AnchoredDiff] | None = None

    def edit_for(self, file: KnownFile) -> AnchoredEdits:
        """Return the edit, with the versions that this session was shown; one without a hash was seen to be gone."""
        with suppress(SureholdError):  # writing says what is wrong with the history
            self.continuity, self.writers = file.baseline_continuity, file.writers
        return AnchoredEdits(
            operations=self._operations,
            shown=tuple(
                ShownVersion(
                    sha256=one.sha256,
                    load=partial(file.load_version, one.sha256),
                    spans=one.spans,
                    anchored=one.anchored,
                )
                for one in file.seen
                if one.sha256
            ),
            strict_order=self._params.strict_order,
            allow_rebase=not self._params.expected_sha256,
            refusal_room=self._room,
        )

    def check_sanity(self, plan: EditPlan) -> tuple[str, ...]:
        self.report = self._sanity.report_on(plan)
        return self._sanity.judge_report(self.report)

    def diff_of(self, plan: EditPlan) -> AnchoredDiff:
        """Return the changed lines with their new anchors, as far as they reach the caller."""
        if self._diff is None or self._diff[0] is not plan:
            self._diff = plan, anchored_diff(plan, room=replace(self._room, size=min(_DIFF_UNITS, self._room.size)))
        return self._diff[1]

    def shown_lines(self, plan: EditPlan) -> LineRanges:
        """Return the lines that the answer shows; what does not reach the caller was not shown."""
        return merge_ranges([(number, number) for number in self.diff_of(plan).shown])


def _build_result(receipt: Receipt, call: _AnchoredEditCall) -> LineEditResult:
    (one,) = receipt.files
    plan = one.plan
    diff = call.diff_of(plan)
    horizon = plan.horizon
    before, after = plan.before.line_count, plan.after.line_count
    return LineEditResult(
        path=one.path,
        operations_applied=len(plan.resolutions),
        lines_before=before,
        lines_after=after,
        net_line_change=after - before,
        anchors_valid_through=horizon.anchors_valid_through if horizon else after,
        must_refresh_from_line=horizon.must_refresh_from_line if horizon else after + 1,
        line_shift=after - before,
        diff=escape_lines(diff.text),
        diff_truncated=diff.truncated,
        new_anchors=tuple(row.anchor for row in diff.new),
        operations=tuple(
            {name: value for name, value in asdict(each).items() if value is not None} for each in plan.resolutions
        ),
        baseline_continuity=call.continuity,
        writers=call.writers,
        safety_status=call.report.status,
        safety_warnings=tuple(finding.as_dict() for finding in call.report.findings),
        auto_corrections=tuple(asdict(correction) for correction in plan.corrections),
        warnings=tuple(dict.fromkeys(receipt.warnings)),
        cross_version=any(operation.cross_version for operation in plan.resolutions),
        sha256=one.after_sha256 or "",
        change_id=receipt.change_id,
        dry_run=True if receipt.dry_run else None,
    )

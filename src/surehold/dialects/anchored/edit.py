"""`edit`: change lines that are identified by the hash of their content."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self, cast

from pydantic import Field

from surehold.dialects.anchored.operations import LineOperation
from surehold.dialects.anchored.wire import BRIEF, GUIDE, WIRE
from surehold.errors import LineEditError, SureholdError
from surehold.stores.base import Sighting
from surehold.syntax.languages import parsers_for
from surehold.text.anchored.diff import anchored_diff
from surehold.text.anchored.edits import AnchoredEdits, ShownVersion, UnstoredVersion
from surehold.text.escape import escape_lines, escape_text
from surehold.text.line_ranges import merge_ranges
from surehold.text.plan import EditPlan
from surehold.text.sanity.check import SanityCheck, SanityReport
from surehold.text.snapshot import Snapshot
from surehold.tools.context import AnswerBudget, CallContext
from surehold.tools.spec import Hints, Json, Params, Result, SubjectPath, tool
from surehold.workspace.proposal import Exact, Proposal, Sha256
from surehold.workspace.receipt import Receipt
from surehold.workspace.session import Session

_DIFF_CHARS = 64 * 1024
_MAX_ROWS = 100
"""More anchors and operations are for programs alone."""


class LineEditParams(Params):
    """What to edit."""

    DEPRECATED: ClassVar = {"file_path": "path"}

    path: SubjectPath
    operations: list[LineOperation] = Field(max_length=5_000)
    """All address the file as it is now; all or none; at most 5,000."""
    expected_sha256: str = ""
    """Refuse unless the file is exactly this version."""
    safety_check: Literal["strict", "warn", "off"] = "strict"
    dry_run: bool = False
    strict_order: bool = False
    """Refuse a reversed range instead of turning it around."""
    reason: str = Field(default="", max_length=2_000)
    """Note for the audit log."""


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
    """How far the lines behind the last change moved."""
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
        """Return it with as many rows of the diff as fit into an answer."""
        room = budget.page_characters // 2
        if len(self.diff) <= room and len(self.new_anchors) <= _MAX_ROWS and len(self.operations) <= _MAX_ROWS:
            return self
        cut = self.diff[: self.diff.rfind("\n", 0, room)] if len(self.diff) > room else self.diff
        anchors, operations = self.new_anchors[:_MAX_ROWS], self.operations[:_MAX_ROWS]
        update = {"diff": cut, "diff_truncated": True, "new_anchors": anchors, "operations": operations}
        return self.model_copy(update=update)

    def text(self, budget: AnswerBudget) -> str:
        """Say what was done, then show the changed lines with their new anchors."""
        shown = self.cut_to_budget(budget)
        count = self.operations_applied
        done = f"{count} {'operation' if count == 1 else 'operations'} {'would be ' if self.dry_run else ''}applied"
        lines = f"{self.lines_before} -> {self.lines_after} lines ({self.net_line_change:+d})"
        rows = [
            f"{done} to {escape_text(self.path)}: {lines}.",
            "Dry run, nothing was written." if self.dry_run else "",
            f"Anchors hold through line {self.anchors_valid_through}; from line {self.must_refresh_from_line} on use these.",
            f"sha256: {self.sha256}",
            f"change_id: {self.change_id}" if self.change_id else "",
            "The file had moved on since it was read; the operations were carried over." if self.cross_version else "",
            "Others wrote this file since you read all of it." if self.baseline_continuity == "mixed" else "",
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
    brief=BRIEF,
)
def edit(context: CallContext, params: LineEditParams) -> LineEditResult:
    """Change lines by the anchors (`N#HASH`) that read_file shows with hashes: true. The hash is the line's identity; the number is advisory.

    Operations: replace_line, insert_after, insert_before, delete_line take hash (repeated lines: copy the anchor with its .K);
    replace_range, delete_range take start_hash and end_hash, both inclusive. Situations: one distinctive line -> replace_line; a
    block, or repeated lines such as `}` -> replace_range between distinctive lines; new lines -> insert_after or insert_before.
    Prefer distinctive lines as anchors. Edit soon after reading, one file completely after the other, all operations on a file in
    one call. The answer carries fresh anchors, so no re-read is needed.
    """
    session = context.session
    key = session.workspace.target(params.path).key
    seen = _shown_versions(session, key)
    watched = _SanityRecorder(SanityCheck(path=key, mode=params.safety_check, parse=parsers_for))
    proposal = Proposal(
        path=params.path,
        edit=AnchoredEdits(
            operations=tuple(one.to_operation(index) for index, one in enumerate(params.operations)),
            shown=tuple(one for one in seen if isinstance(one, ShownVersion)),
            unkept=tuple(one for one in seen if isinstance(one, UnstoredVersion)),
            strict_order=params.strict_order,
            allow_rebase=not params.expected_sha256,
        ),
        proof=Sha256(params.expected_sha256.strip().lower()) if params.expected_sha256 else Exact(),
        checks=(watched,),
    )
    past = _WriterHistory.read_for(session, params.path)
    try:
        receipt = session.submit(proposal, tool="edit", operation="edit", reason=params.reason, dry_run=params.dry_run)
    except LineEditError as error:
        _cut_fresh_rows(error.details, context.budget.page_characters)
        _remember_shown_rows(session, params.path, error)
        raise
    return _build_result(context, receipt, watched.report, past)


@dataclass(slots=True)
class _SanityRecorder:
    """Sanity, and what it found: the result tells that too."""

    sanity: SanityCheck
    report: SanityReport = SanityReport(status="off")  # noqa: RUF009 - a frozen value

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        self.report = self.sanity.report_on(plan)
        if self.report.status == "suspicious":
            self.sanity(plan)  # refuses, unless it was told to warn only
        return self.report.warnings


@dataclass(frozen=True, slots=True)
class _WriterHistory:
    """Who wrote the file before this edit."""

    continuity: Literal["clean", "mixed"]
    writers: tuple[str, ...]

    @classmethod
    def read_for(cls, session: Session, path: str) -> "_WriterHistory":
        from surehold.workspace.tracking import FileWriteTracker

        tracker = FileWriteTracker(session.workspace)
        try:
            return cls(tracker.baseline_continuity(path, session.id), tracker.writers_since(path, 0))
        except SureholdError:  # the write itself says what is wrong with the file
            return cls("clean", ())


def _shown_versions(session: Session, key: str) -> tuple[ShownVersion | UnstoredVersion, ...]:
    """Return the versions that this session was shown, newest first, with their bytes where those were kept."""
    sightings = session.workspace.store.list_sightings(session.id, key)
    return tuple(
        _load_shown_version(session, one) for one in sightings if one.sha256
    )  # without one it was seen to be gone


def _load_shown_version(session: Session, sighting: Sighting) -> ShownVersion | UnstoredVersion:
    try:
        data = session.workspace.store.read_blob(sighting.sha256)
    except SureholdError:
        return UnstoredVersion(sha256=sighting.sha256, spans=sighting.spans, anchored=sighting.anchored)
    return ShownVersion(snapshot=Snapshot(data), spans=sighting.spans, anchored=sighting.anchored)


def _cut_fresh_rows(details: Any, room: int) -> int:
    """Leave only as many fresh rows in a refusal as reach the caller; return the room that is left."""
    if isinstance(details, dict):
        facts = cast("Json", details)
        if "fresh_rows" in facts:
            kept = list[str]()
            for row in facts["fresh_rows"]:
                room -= len(row) + 1
                if room < 0:
                    break
                kept.append(row)
            facts["fresh_rows"] = kept
        for value in facts.values():
            room = _cut_fresh_rows(value, room)
    elif isinstance(details, list):
        for value in cast("list[Any]", details):
            room = _cut_fresh_rows(value, room)
    return room


def _remember_shown_rows(session: Session, path: str, error: LineEditError) -> None:
    """Count the lines that a refusal shows as shown, so that a plain retry works."""
    numbers = sorted({int(row.partition("#")[0]) for row in _fresh_rows_in(error.details)})  # rows and candidates alike
    if not numbers:
        return
    snapshot = session.workspace.read(path)
    if snapshot.sha256 == error.details.get("sha256"):
        session.record_shown_lines(
            path, snapshot, spans=merge_ranges([(number, number) for number in numbers]), anchored=True
        )


def _fresh_rows_in(value: Any) -> list[str]:
    """Return every fresh row in some details."""
    if isinstance(value, dict):
        facts = cast("Json", value)
        anchor = [facts["anchor"]] if "occurrence" in facts and "anchor" in facts else []
        own = [*facts.get("fresh_rows", ()), *anchor, *facts.get("neighbor_anchors", ())]
        return [*own, *(row for inner in facts.values() for row in _fresh_rows_in(inner))]
    return (
        [row for inner in cast("list[Any]", value) for row in _fresh_rows_in(inner)] if isinstance(value, list) else []
    )


def _build_result(context: CallContext, receipt: Receipt, report: SanityReport, past: _WriterHistory) -> LineEditResult:
    (one,) = receipt.files
    plan = one.plan
    diff = anchored_diff(plan, limit=min(_DIFF_CHARS, context.budget.page_characters // 2))
    if receipt.change_id:  # what does not reach the caller was not shown
        spans = merge_ranges([(number, number) for number in diff.shown])
        context.session.record_shown_lines(one.path, plan.after, spans=spans, anchored=True)
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
        operations=tuple(_resolved_operation(plan, index) for index in range(len(plan.resolutions))),
        baseline_continuity=past.continuity,
        writers=past.writers,
        safety_status=report.status,
        safety_warnings=tuple(finding.as_dict() for finding in report.findings),
        auto_corrections=tuple(asdict(correction) for correction in plan.corrections),
        warnings=tuple(dict.fromkeys(receipt.warnings)),
        cross_version=any(operation.cross_version for operation in plan.resolutions),
        sha256=one.after_sha256 or "",
        change_id=receipt.change_id,
        dry_run=True if receipt.dry_run else None,
    )


def _resolved_operation(plan: EditPlan, index: int) -> Json:
    return {name: value for name, value in asdict(plan.resolutions[index]).items() if value is not None}

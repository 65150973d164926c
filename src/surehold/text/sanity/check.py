"""Checks the text that an edit would leave, in memory, before any byte is written.

Suspicious, and refused in `strict` mode, is only what real edits hardly ever do:

1. the file could be parsed and can no longer be;
2. without a parser: its brackets were balanced and no longer are;
3. a new line repeats the unchanged line next to it;
4. a conflict marker or an anchor that was not there before.

Everything else is a warning. A file that could not be parsed before is never refused for its syntax.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from surehold.errors import SafetyCheckFailed
from surehold.text.plan import EditPlan
from surehold.text.sanity.delimiters import lexical_rules_for
from surehold.text.sanity.stray_lines import find_repeated_lines, find_repeated_neighbours, find_tool_marks
from surehold.text.sanity.subject import (
    ParserLookup,
    SanityFinding,
    SanitySubject,
    SyntaxParser,
    changed_regions,
    subject_from_plan,
)
from surehold.text.sanity.syntax import syntax_finding

SanityMode = Literal["strict", "warn", "off"]
SanityStatus = Literal["clean", "suspicious", "off"]


def no_parser(_path: str, _source: bytes, /) -> Sequence[SyntaxParser]:
    """Know no language."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityReport:
    """What the checks found."""

    status: SanityStatus
    findings: tuple[SanityFinding, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every finding as a sentence."""
        return tuple(finding.message for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityCheck:
    """The check of one file's edit."""

    path: str
    mode: SanityMode = "strict"
    parse: ParserLookup = no_parser

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        """Return warnings; refuse a suspicious plan in strict mode."""
        return self.judge_report(self.report_on(plan))

    def judge_report(self, report: SanityReport) -> tuple[str, ...]:
        """Return the warnings of a report; refuse a suspicious one in strict mode."""
        if report.status == "suspicious" and self.mode == "strict":
            raise _build_refusal(report)
        return report.warnings

    def report_on(self, plan: EditPlan) -> SanityReport:
        """Look at a plan and refuse nothing."""
        if self.mode == "off":
            return SanityReport(status="off")
        if not (plan.after.exists and plan.after.is_text and (plan.before.is_text or not plan.before.exists)):
            return SanityReport(status="clean")
        subject = subject_from_plan(plan)
        findings = tuple(_attribute_finding(finding, subject, plan) for finding in self._collect_findings(subject))
        suspicious = any(finding.suspicious for finding in findings)
        return SanityReport(status="suspicious" if suspicious else "clean", findings=findings)

    def _collect_findings(self, subject: SanitySubject) -> list[SanityFinding]:
        changed = changed_regions(subject)
        if not changed:
            return []
        lexis = lexical_rules_for(self.path)
        syntax = syntax_finding(subject, self.parse(self.path, subject.before), lexis)
        seams = list(find_repeated_neighbours(changed)) if subject.before else []
        found = [*find_tool_marks(changed, is_prose=lexis.is_prose), *seams, *([syntax] if syntax else [])]
        if not seams:
            found += find_repeated_lines(changed)
        return sorted(found, key=lambda finding: not finding.suspicious)


def _attribute_finding(finding: SanityFinding, subject: SanitySubject, plan: EditPlan) -> SanityFinding:
    """Say which operation of the caller a finding belongs to."""
    if finding.line is None:
        return finding
    span = finding.span if finding.span is not None else subject.span_at(finding.line)
    return replace(finding, span=span, operation=_operation_of(plan, span, finding.line))


def _operation_of(plan: EditPlan, span: int, line: int) -> int | None:
    """Return the operation that made a span; a plan that does not say so has one operation for each span."""
    if not plan.applied:
        return span
    if len(plan.applied) == 1:
        return plan.applied[0].index
    place = plan.line_spans()[span] if plan.spans else None
    exact = (applied.index for applied in plan.applied if place in applied.ranges)
    around = (
        applied.index
        for applied in plan.applied
        if any(r.new_start_line <= line <= r.new_end_line for r in applied.ranges)
    )
    return next(exact, next(around, None))


def _build_refusal(report: SanityReport) -> SafetyCheckFailed:
    worst = report.findings[0]
    who = "The edit" if worst.operation is None else f"Operation {worst.operation}"
    return SafetyCheckFailed(
        f"{who} looks like a mistake: {worst.fault}.",
        reason=worst.kind,
        action=_suggested_action(worst),
        safety_status=report.status,
        safety_warnings=[finding.as_dict() for finding in report.findings],
        operation=worst.operation,
        line=worst.line,
    )


def _suggested_action(worst: SanityFinding) -> str:
    wanted = 'if it is intended, send it with `safety_check: "warn"`.'
    match worst.kind:
        case "parse_error" | "unbalanced_delimiters":
            return f"Correct that operation, or send the operations that belong together in one call; {wanted}"
        case "seam_duplicate":
            return f"Leave that line out of the new text; {wanted}"
        case "anchor_prefix":
            return f"Send the text without the anchors; {wanted}"
        case _:
            return f"Send the text without the markers; {wanted}"

"""Checks the text that an edit would leave, in memory, before any byte is written.

Suspicious, and refused in `strict` mode, is only what real edits hardly ever do:

1. the file could be parsed and can no longer be;
2. without a parser: its brackets were balanced and no longer are;
3. a new line repeats the unchanged line next to it;
4. a conflict marker or an anchor that was not there before.

Everything else is a warning. A file that could not be parsed before is never refused for its syntax.

About 3: whoever replaces lines 10 to 20 and repeats line 21 in the new text leaves it doubled. So a line at the edge of the new
block is suspicious when it equals the unchanged line next to it, has content, and was not there before. One more item
of a list is intended: real edits put another `false,` under an existing one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from surehold.errors import SafetyCheckFailed
from surehold.text.anchored.lines import judge_quality
from surehold.text.escape import preview_text
from surehold.text.plan import EditPlan
from surehold.text.sanity.lexical import lexical_rules_for
from surehold.text.sanity.subject import (
    FindingKind,
    ParserLookup,
    SanityFinding,
    SanityRegion,
    SanitySubject,
    SyntaxParser,
    changed_regions,
    subject_from_plan,
)
from surehold.text.sanity.syntax import syntax_finding

_PREVIEW_CHARS = 60
_PLAIN_LINE = re.compile(
    rb"\s*(?:#\s*(?:endif|else)\b.*|(?:[-+]?\d[\w.]*|true|false|none|null|nil|undefined|void 0|\"\"|''),?)\s*",
    re.IGNORECASE,
)
"""Literals in a list, and closers of the preprocessor: they are often below each other."""
_LIST_ITEM = re.compile(rb"\s*[\w.:]+,\s*")


def find_repeated_neighbours(changed: Sequence[SanityRegion]) -> Iterator[SanityFinding]:
    for region in changed:
        if not region.new or _is_one_more_item(region):
            continue
        old, new = region.old, region.new
        if _repeats_neighbour(new[0], region.above, old[:1] or region.below):
            yield _repeat_finding(new[0], region.line, "above")
        elif _repeats_neighbour(new[-1], region.below, old[-1:] or region.above):
            yield _repeat_finding(new[-1], region.line + len(new) - 1, "below")


def find_repeated_lines(changed: Sequence[SanityRegion]) -> Iterator[SanityFinding]:
    """Mention, once, a new line that the edit writes more than once."""
    fresh = Counter(row for region in changed for row in region.new if _has_content(row))
    gone = Counter(row for region in changed for row in region.old)
    row = next((row for row, count in fresh.items() if count > max(1, gone[row])), None)
    if row is None:
        return
    lines = [r.line + i for r in changed for i, text in enumerate(r.new) if text == row]
    fault = f"lines {lines[0]} and {lines[1]} of the new text are equal: `{preview_line(row)}`"
    yield SanityFinding(kind="duplicate_lines", fault=fault, line=lines[1])


def preview_line(row: bytes) -> str:
    return preview_text(row.decode("utf-8", "replace").strip(), _PREVIEW_CHARS)


def _repeats_neighbour(row: bytes, surviving: Sequence[bytes], earlier: Sequence[bytes]) -> bool:
    """Tell whether a new line equals the surviving one that it touches, which did not touch its like before."""
    return surviving[:1] == (row,) and row not in (*earlier[:1], *surviving[1:]) and _has_content(row)


def _repeat_finding(row: bytes, line: int, side: str) -> SanityFinding:
    fault = f"line {line} repeats the line {side} it, which was already there: `{preview_line(row)}`"
    return SanityFinding(kind="seam_duplicate", fault=fault, line=line, suspicious=True)


def _is_one_more_item(region: SanityRegion) -> bool:
    """Tell whether the edit only adds a name to a list that is written one item a line."""
    return not region.old and len(region.new) == 1 and _LIST_ITEM.fullmatch(region.new[0]) is not None


def _has_content(row: bytes) -> bool:
    return judge_quality(row.decode("utf-8", "replace"), 1) != "low" and not _PLAIN_LINE.fullmatch(row)


_CONFLICT = re.compile(rb"(?:<{7}|>{7}|\|{7})(?= |$)|={7}$")
_CONFLICT_MIDDLE = b"======="
_TITLE = re.compile(rb"\w[\w .,:-]{0,6}")
_ANCHOR = re.compile(rb"\s*[+-]?\s*\d+#[0-9a-fA-F]{6,64}(?:\.\d+)?(?:[+-]\d+)?[!~]?\|")
_NUMBERED = re.compile(rb"\s*\d+(?:\.\d+)?\xe2\x86\x92")
_MARKS: tuple[tuple[FindingKind, re.Pattern[bytes], str], ...] = (
    ("conflict_marker", _CONFLICT, "is a conflict marker"),
    ("anchor_prefix", _ANCHOR, "begins with an anchor, which is not part of the file"),
)


def find_tool_marks(changed: Sequence[SanityRegion], path: str) -> Iterator[SanityFinding]:
    """Find marks that the edit introduces; one that it only moves or keeps is not new."""
    for kind, pattern, mark in _MARKS:
        for region, index in _introduced_lines(changed, pattern):
            if region.new[index] == _CONFLICT_MIDDLE and (
                _underlines_title(region, index) or lexical_rules_for(path).is_prose
            ):
                continue
            row, line = region.new[index], region.line + index
            fault = f"line {line} {mark}: `{preview_line(row)}`"
            yield SanityFinding(kind=kind, fault=fault, line=line, suspicious=True)
            break
    numbered = next(_introduced_lines(changed, _NUMBERED), None)
    if numbered is not None:
        line = numbered[0].line + numbered[1]
        fault = f"line {line} begins with a line number and an arrow, as shown by a reading tool"
        yield SanityFinding(kind="line_number_prefix", fault=fault, line=line)


def _introduced_lines(
    changed: Sequence[SanityRegion], pattern: re.Pattern[bytes]
) -> Iterator[tuple[SanityRegion, int]]:
    known = Counter(row for region in changed for row in region.old if pattern.match(row))
    for region in changed:
        for index, row in enumerate(region.new):
            if pattern.match(row):
                known[row] -= 1
                if known[row] < 0:
                    yield region, index


def _underlines_title(region: SanityRegion, index: int) -> bool:
    """Tell whether seven equals signs belong to a heading, as in the docstrings of many packages."""
    above = region.new[index - 1 : index] if index else region.above[:1]
    below = region.new[index + 1 : index + 2] or region.below[:1]
    return any(_TITLE.fullmatch(row.strip()) for row in (*above, *below))


_DIFF_SIGN = re.compile(rb"\+(?!\+|=| \S)")
"""Not an operator, and not an item of a list."""


def find_copied_habits(changed: Sequence[SanityRegion]) -> Iterator[SanityFinding]:
    """Mention, each once, what callers copy or lose by habit: the `+` of a diff, and the indentation of what they replace."""
    replacing = [
        region for region in changed if any(map(bytes.strip, region.old)) and any(map(bytes.strip, region.new))
    ]
    for region in replacing:
        filled = [row for row in region.new if row.strip()]
        if all(map(_DIFF_SIGN.match, filled)) and not any(row.lstrip().startswith(b"+") for row in region.old):
            fault = f"line {region.line} begins with `+`, as in a diff, and what it replaces does not"
            yield SanityFinding(kind="diff_sign", fault=fault, line=region.line)
            break
    for region in replacing:
        if _is_indented(region.old) and not any(row[:1] in (b" ", b"\t") for row in region.new):
            fault = f"line {region.line} is not indented, and what it replaces was"
            yield SanityFinding(kind="lost_indentation", fault=fault, line=region.line)
            break


def _is_indented(rows: Sequence[bytes]) -> bool:
    return all(row[:1] in (b" ", b"\t") for row in rows if row.strip())


SanityMode = Literal["strict", "warn", "off"]
SanityStatus = Literal["clean", "suspicious", "off"]


def no_parser(_path: str, _source: bytes, /) -> Sequence[SyntaxParser]:
    """Know no language."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityReport:
    status: SanityStatus
    findings: tuple[SanityFinding, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
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
        syntax = syntax_finding(subject, self.parse(self.path, subject.before), self.path)
        seams = list(find_repeated_neighbours(changed)) if subject.before else []
        found = [*find_tool_marks(changed, self.path), *seams, *([syntax] if syntax else [])]
        found += find_copied_habits(changed)
        if not seams:
            found += find_repeated_lines(changed)
        return sorted(found, key=lambda finding: not finding.suspicious)


def _attribute_finding(finding: SanityFinding, subject: SanitySubject, plan: EditPlan) -> SanityFinding:
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
    exact = (one.index for one in plan.applied if place in one.ranges)
    around = (one.index for one in plan.applied if any(r.new_start_line <= line <= r.new_end_line for r in one.ranges))
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

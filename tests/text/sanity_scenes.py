"""Edits to be judged."""

from surehold.syntax.languages import parsers_for
from surehold.text.plan import EditPlan, SpliceSpans, spans_between
from surehold.text.sanity.check import SanityCheck, SanityMode, SanityReport
from surehold.text.snapshot import Snapshot


def change(before: str | bytes, after: str | bytes) -> EditPlan:
    """Plan the whole-line spans that turn one text into the other."""
    old, new = (Snapshot(text.encode() if isinstance(text, str) else text) for text in (before, after))
    return SpliceSpans(spans_between(old, new)).plan(old)


def report(path: str, before: str | bytes, after: str | bytes, mode: SanityMode = "warn") -> SanityReport:
    return SanityCheck(path=path, mode=mode, parse=parsers_for).report_on(change(before, after))


def kinds(path: str, before: str | bytes, after: str | bytes) -> list[str]:
    """List what is suspicious about an edit."""
    return [finding.kind for finding in report(path, before, after).findings if finding.suspicious]

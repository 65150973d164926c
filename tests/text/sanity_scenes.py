"""Edits to be judged."""

from surehold.syntax.languages import readings
from surehold.text.plan import EditPlan, Splices
from surehold.text.plan_diff import spans_between
from surehold.text.sanity import Mode, Report, Sanity
from surehold.text.snapshot import Snapshot


def change(before: str | bytes, after: str | bytes) -> EditPlan:
    """Plan the whole-line spans that turn one text into the other."""
    old, new = (Snapshot(text.encode() if isinstance(text, str) else text) for text in (before, after))
    return Splices(spans_between(old, new)).plan(old)


def report(path: str, before: str | bytes, after: str | bytes, mode: Mode = "warn") -> Report:
    return Sanity(path=path, mode=mode, parse=readings).report(change(before, after))


def kinds(path: str, before: str | bytes, after: str | bytes) -> list[str]:
    """List what is suspicious about an edit."""
    return [finding.kind for finding in report(path, before, after).findings if finding.suspicious]

"""Edits to be judged."""

from surehold.syntax.languages import parsers_for
from surehold.text.align import find_changes
from surehold.text.plan import EditPlan, Span, splice_spans
from surehold.text.sanity.check import SanityCheck, SanityMode, SanityReport
from surehold.text.snapshot import Snapshot


def change(before: str | bytes, after: str | bytes) -> EditPlan:
    """Plan the whole-line spans that turn one text into the other."""
    old, new = (Snapshot(text.encode() if isinstance(text, str) else text) for text in (before, after))
    rows = old.lines, Snapshot(new.data, encoding=old.encoding).lines
    spans = tuple(
        Span(
            start=max(rows[0].starts[part.a], len(old.encoding.bom)),
            end=rows[0].starts[part.a_end],
            new=new.data[rows[1].starts[part.b] : rows[1].starts[part.b_end]],
        )
        for part in find_changes(rows[0].raw, rows[1].raw)
    )
    return splice_spans(old, spans)


def report(path: str, before: str | bytes, after: str | bytes, mode: SanityMode = "warn") -> SanityReport:
    return SanityCheck(path=path, mode=mode, parse=parsers_for).report_on(change(before, after))


def kinds(path: str, before: str | bytes, after: str | bytes) -> list[str]:
    """List what is suspicious about an edit."""
    return [finding.kind for finding in report(path, before, after).findings if finding.suspicious]

"""The difference between two versions of a file, as a unified diff and as spans."""

from itertools import pairwise

from surehold.text.align import EqualRun, align_lines
from surehold.text.diff import UnifiedDiff, find_hunks, quote_name, render_hunks, walk_hunks
from surehold.text.encoding import UTF8
from surehold.text.plan import EditPlan, Span, splice_spans
from surehold.text.snapshot import Snapshot

DIFF_LIMIT_BYTES = 64 * 1024
"""How many bytes of a diff are kept in the ledger and sent to a caller."""
DEV_NULL = "/dev/null"


def diff_of_plan(plan: EditPlan, *, from_name: str, to_name: str, limit: int | None = DIFF_LIMIT_BYTES) -> UnifiedDiff:
    """Return the difference that a plan makes. A plan knows its spans, so nothing is searched for."""
    before, after = plan.before, plan.after
    if not plan.changes_bytes:
        return UnifiedDiff(text="", truncated=False)
    if plan.spans and before.is_text and before.encoding.width > 1 and (narrow := _convert_to_utf8(plan)):
        return diff_of_plan(narrow, from_name=from_name, to_name=to_name, limit=limit)
    if not plan.spans or not before.is_text or before.needs_table:
        return diff_between(before, after, from_name=from_name, to_name=to_name, limit=limit)
    above = before.line_number(plan.spans[0].start) - 1
    found = walk_hunks(before.data, after.data, plan.span_offsets(), above=above)
    return render_hunks(found, from_name=from_name, to_name=to_name, decode=before.encoding.decode, limit=limit)


def diff_between(
    before: Snapshot, after: Snapshot, *, from_name: str, to_name: str, limit: int | None = None
) -> UnifiedDiff:
    """Return the difference between two versions; a missing one is `/dev/null`."""
    names = (from_name if before.exists else DEV_NULL, to_name if after.exists else DEV_NULL)
    if not (before.is_text and after.is_text):
        line = f"Binary files {quote_name(names[0])} and {quote_name(names[1])} differ\n" if before != after else ""
        return UnifiedDiff(text=line, truncated=False)
    encoding = before.encoding if before.exists else after.encoding
    wide = before.encoding.width > 1 or after.encoding.width > 1
    found = find_hunks(_diff_rows(before), _diff_rows(after))
    decode = UTF8.decode if wide else encoding.decode
    return render_hunks(found, from_name=names[0], to_name=names[1], decode=decode, limit=limit)


def spans_between(before: Snapshot, after: Snapshot) -> tuple[Span, ...]:
    """Return the whole-line spans that turn one version into another."""
    old, new = before.lines, Snapshot(after.data, encoding=before.encoding).lines
    begin = len(before.encoding.bom)
    blocks = [EqualRun(0, 0, 0), *align_lines(old.raw, new.raw), EqualRun(len(old), len(new), 0)]
    spans = list[Span]()
    for one, other in pairwise(blocks):
        start, end = old.starts[one.a + one.size], old.starts[other.a]
        fresh = after.data[new.starts[one.b + one.size] : new.starts[other.b]]
        if start != end or fresh:
            spans.append(Span(start=max(start, begin), end=end, new=fresh))
    return tuple(spans)


def _convert_to_utf8(plan: EditPlan) -> EditPlan | None:
    """Return the same plan for the same text in UTF-8, whose lines need no table; None where it would have other lines."""
    data, encoding = plan.before.data, plan.before.encoding
    at, size, pieces, spans = len(encoding.bom), 0, list[bytes](), list[Span]()
    if plan.spans[0].start < at:
        return None
    try:
        for span in plan.spans:
            parts = data[at : span.start], data[span.start : span.end], span.new
            kept, old, new = (part.decode(encoding.name).encode() for part in parts)
            spans.append(Span(start=size + len(kept), end=size + len(kept) + len(old), new=new))
            pieces += (kept, old)
            at, size = span.end, spans[-1].end
        pieces.append(data[at:].decode(encoding.name).encode())
    except UnicodeError:
        return None
    narrow = splice_spans(Snapshot(b"".join(pieces), encoding=UTF8), spans)
    return None if narrow.before.needs_table or narrow.after.needs_table else narrow


def _diff_rows(snapshot: Snapshot) -> list[bytes]:
    """Return the raw lines, the byte order mark being part of the first; wide encodings as UTF-8."""
    encoding = snapshot.encoding
    if encoding.width > 1:
        return [encoding.decode(line).encode() for line in snapshot.lines.raw]
    rows = snapshot.lines.raw
    return [encoding.bom + rows[0], *rows[1:]] if rows and encoding.bom else rows

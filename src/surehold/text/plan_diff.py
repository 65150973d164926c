"""The difference between two versions of a file, as a unified diff and as spans."""

from itertools import pairwise

from surehold.text.align import EqualRun, align_lines
from surehold.text.diff import UnifiedDiff, quote_name, render_hunks
from surehold.text.encoding import UTF8
from surehold.text.plan import EditPlan, Span
from surehold.text.snapshot import Snapshot

DIFF_LIMIT_BYTES = 64 * 1024
"""How many bytes of a diff are kept in the ledger and sent to a caller."""
DEV_NULL = "/dev/null"


def diff_of_plan(plan: EditPlan, *, from_name: str, to_name: str, limit: int | None = DIFF_LIMIT_BYTES) -> UnifiedDiff:
    """Return the difference that a plan makes; a missing version is `/dev/null`."""
    before, after = plan.before, plan.after
    if not plan.changes_bytes:
        return UnifiedDiff(text="", truncated=False)
    names = (from_name if before.exists else DEV_NULL, to_name if after.exists else DEV_NULL)
    if not (before.is_text and after.is_text):
        line = f"Binary files {quote_name(names[0])} and {quote_name(names[1])} differ\n"
        return UnifiedDiff(text=line, truncated=False)
    encoding = UTF8 if plan.is_wide else before.encoding if before.exists else after.encoding
    found = plan.hunks(with_bom=True)
    return render_hunks(found, from_name=names[0], to_name=names[1], decode=encoding.decode, limit=limit)


def diff_between(
    before: Snapshot, after: Snapshot, *, from_name: str, to_name: str, limit: int | None = None
) -> UnifiedDiff:
    """Return the difference between two versions; a missing one is `/dev/null`."""
    return diff_of_plan(EditPlan(before=before, after=after), from_name=from_name, to_name=to_name, limit=limit)


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

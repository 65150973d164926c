"""Which lines a session has seen of a file, also after it changed the file itself."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from surehold.stores.base import Sighting
from surehold.text.line_ranges import LineRanges, merge_ranges
from surehold.text.plan import EditPlan
from surehold.text.snapshot import LineCounter, Snapshot


def sighting_after_write(plan: EditPlan, *, session: str, key: str, known: Sighting | None) -> Sighting | None:
    """Carry what was seen over the session's own edit: untouched lines move, written lines count as seen."""
    if not plan.after.exists:
        return None
    is_text = plan.after.is_text and plan.before.is_text
    everything = not plan.before.exists or (known is not None and known.whole)
    if everything:
        total = plan.after.line_count if is_text else 0
        spans: LineRanges = ((1, total),) if total else ()
        return Sighting(session=session, path=key, sha256=plan.after.sha256, spans=spans, whole=True)
    if not is_text or plan.after.size <= len(plan.after.encoding.bom):
        return Sighting(session=session, path=key, sha256=plan.after.sha256, spans=(), whole=plan.after.size == 0)
    touched = _find_changed_lines(plan)
    written = [(one.new_first, one.new_last) for one in touched if one.new_first <= one.new_last]
    spans = merge_ranges([*_carry_seen_lines(touched, known.spans if known else ()), *written])
    # Counting the lines of a large file takes a while, so the first line is looked at before.
    whole = bool(spans) and spans[0][0] == 1 and spans == ((1, plan.after.line_count),)
    return Sighting(session=session, path=key, sha256=plan.after.sha256, spans=spans, whole=whole)


def subtract_spans(wanted: Sequence[tuple[int, int]], known: LineRanges) -> LineRanges:
    """Return the wanted lines that are not among the known ones; the known are sorted and disjoint."""
    out = list[tuple[int, int]]()
    for first, last in wanted:
        at = first
        for start, end in clip_spans(known, first, last):
            if start > at:
                out.append((at, start - 1))
            at = end + 1
        if at <= last:
            out.append((at, last))
    return tuple(out)


def clip_spans(known: LineRanges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of sorted and disjoint spans that lie between two lines."""
    for index in range(bisect_left(known, first, key=lambda span: span[1]), len(known)):
        start, end = known[index]
        if start > last:
            return
        yield max(start, first), min(end, last)


@dataclass(frozen=True, slots=True)
class _LineReplacement:
    """Lines `first` to `last` became lines `new_first` to `new_last`; an empty range ends before it begins."""

    first: int
    last: int
    new_first: int
    new_last: int


def _find_changed_lines(plan: EditPlan) -> list[_LineReplacement]:
    """Return which lines each span changes: whole lines that come or go leave their neighbours alone."""
    old, new = LineCounter(plan.before), LineCounter(plan.after)
    counts = not (plan.before.needs_table or plan.after.needs_table)
    rows, shift = list[_LineReplacement](), 0
    for start, end, new_start, new_end in plan.span_offsets():
        if counts:  # between the spans both are the same text, which is counted once
            new.skip_to(new_start, old.line_at(start) + shift)
        whole = (
            _begins_line(plan.before, start)
            and _begins_line(plan.before, end)
            and _begins_line(plan.after, new_start)
            and _begins_line(plan.after, new_end)
        )
        first, last = _line_range(old, plan.before, start, end, whole=whole)
        new_first, new_last = _line_range(new, plan.after, new_start, new_end, whole=whole)
        rows.append(_LineReplacement(first, last, new_first, new_last))
        shift = new.line_at(new_end) - old.line_at(end) if counts else 0
    return rows


def _line_range(counter: LineCounter, snapshot: Snapshot, start: int, end: int, *, whole: bool) -> tuple[int, int]:
    first = counter.line_at(start)
    if not whole and end < snapshot.size:
        return first, counter.line_at(end)  # the line in which the change ends is another one now
    return first, counter.line_at(end - 1) if end > start else first - whole


def _begins_line(snapshot: Snapshot, offset: int) -> bool:
    """Tell whether a line begins at this offset, or the file ends there."""
    if offset in (len(snapshot.encoding.bom), snapshot.size):
        return True
    if snapshot.needs_table:
        starts = snapshot.lines.starts
        return starts[bisect_left(starts, offset)] == offset
    return snapshot.data[offset - 1 : offset] == b"\n"


def _carry_seen_lines(touched: Sequence[_LineReplacement], seen: LineRanges) -> list[tuple[int, int]]:
    """Shift seen lines that no span touches; both come sorted, and each is walked over once."""
    out, edge, shift = list[tuple[int, int]](), 0, 0
    for span in touched:
        out += _shift_spans(seen, edge + 1, span.first - 1, shift)
        edge, shift = span.last, span.new_last - span.last
    return [*out, *_shift_spans(seen, edge + 1, seen[-1][1] if seen else 0, shift)]


def _shift_spans(seen: LineRanges, first: int, last: int, shift: int) -> Iterator[tuple[int, int]]:
    """Move the seen lines between two of them, if there are any between."""
    if first <= last:
        yield from ((a + shift, b + shift) for a, b in clip_spans(seen, first, last))

"""What a session has seen of a file after it changed it itself."""

from collections.abc import Sequence

from surehold.stores.base import Sighting
from surehold.text.plan import EditPlan, LineSpan

LineSpans = tuple[tuple[int, int], ...]


def after_write(plan: EditPlan, *, session: str, path: str, seen: Sequence[Sighting]) -> Sighting | None:
    """Carry what was seen over the session's own edit: untouched lines move, written lines count as seen."""
    if not plan.after.exists:
        return None
    known = next((s for s in seen if s.sha256 == plan.before.sha256), None)
    is_text = plan.after.is_text and plan.before.is_text
    everything = not plan.before.exists or (known is not None and known.whole)
    if everything:
        total = plan.after.line_count if is_text else 0
        spans: LineSpans = ((1, total),) if total else ()
        return Sighting(session=session, path=path, sha256=plan.after.sha256, spans=spans, whole=True)
    if not is_text or plan.after.size <= len(plan.after.encoding.bom):
        return Sighting(session=session, path=path, sha256=plan.after.sha256, spans=(), whole=plan.after.size == 0)
    touched = plan.line_spans()
    written = [(span.new_start_line, span.new_end_line) for span in touched]
    spans = merged([*_carried(touched, known.spans if known else ()), *written])
    # Counting the lines of a large file takes a while, so the first line is looked at before.
    whole = bool(spans) and spans[0][0] == 1 and spans == ((1, plan.after.line_count),)
    return Sighting(session=session, path=path, sha256=plan.after.sha256, spans=spans, whole=whole)


def merged(spans: Sequence[tuple[int, int]]) -> LineSpans:
    """Sort spans and join those that touch."""
    out = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if out and start <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return tuple(out)


def _carried(touched: Sequence[LineSpan], seen: LineSpans) -> list[tuple[int, int]]:
    """Shift seen lines that no span touches."""
    out, edge, shift = list[tuple[int, int]](), 0, 0
    for span in touched:
        out += _shifted(seen, edge + 1, span.start_line - 1, shift)
        edge, shift = span.end_line, span.new_end_line - span.end_line
    return [*out, *_shifted(seen, edge + 1, max((last for _, last in seen), default=0), shift)]


def _shifted(seen: LineSpans, first: int, last: int, shift: int) -> list[tuple[int, int]]:
    """Move the seen lines between two of them."""
    kept = [(max(a, first), min(b, last)) for a, b in seen]
    return [(a + shift, b + shift) for a, b in kept if a <= b]

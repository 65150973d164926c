"""What a session has seen of a file after it changed it itself."""

from collections.abc import Sequence

from surehold.stores.base import Sighting
from surehold.text.plan import EditPlan
from surehold.text.snapshot import LineCounter

LineSpans = tuple[tuple[int, int], ...]


def after_write(plan: EditPlan, *, session: str, path: str, seen: Sequence[Sighting]) -> Sighting | None:
    """Carry what was seen over the session's own edit: untouched lines move, written lines count as seen."""
    if not plan.after.exists:
        return None
    known = next((s for s in seen if s.sha256 == plan.before.sha256), None)
    total = plan.after.line_count if plan.after.is_text and plan.before.is_text else 0
    everything = not plan.before.exists or (known is not None and known.whole)
    if everything:
        spans: LineSpans = ((1, total),) if total else ()
        return Sighting(session=session, path=path, sha256=plan.after.sha256, spans=spans, whole=True)
    if not total:
        return Sighting(session=session, path=path, sha256=plan.after.sha256, spans=(), whole=plan.after.size == 0)
    spans = merged([*_carried(plan, known.spans if known else ()), *_written(plan)])
    whole = spans == ((1, total),)
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


def _touched(plan: EditPlan) -> list[tuple[int, int, int, int]]:
    """List every span in line numbers: old first and last, new first and last (1-based, inclusive)."""
    old, new = LineCounter(plan.before), LineCounter(plan.after)
    return [
        (old.line(start), old.line(max(start, end - 1)), new.line(new_start), new.line(max(new_start, new_end - 1)))
        for start, end, new_start, new_end in plan.offsets()
    ]


def _written(plan: EditPlan) -> list[tuple[int, int]]:
    return [(first, last) for _, _, first, last in _touched(plan)]


def _carried(plan: EditPlan, seen: LineSpans) -> list[tuple[int, int]]:
    """Shift seen lines that no span touches."""
    out, edge, shift = list[tuple[int, int]](), 0, 0
    for old_first, old_last, _, new_last in [*_touched(plan), (plan.before.line_count + 1,) * 4]:
        kept = [(max(a, edge + 1), min(b, old_first - 1)) for a, b in seen]
        out += [(a + shift, b + shift) for a, b in kept if a <= b]
        edge, shift = old_last, new_last - old_last
    return out

"""Carry a plan over to a file that has moved on.

Every span is carried alone, and only when two independent proofs agree where its lines are now (see relocate). One span
that cannot be proven makes the whole plan a conflict.
"""

from dataclasses import dataclass
from itertools import pairwise

from surehold.text.plan import EditPlan, Span, splice
from surehold.text.relocate import LineRange, Lost, Moved, relocate
from surehold.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebase:
    """Where one span of a plan went."""

    from_line: int
    to_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines of the plan that cannot be proven to be where they would have to be."""

    line: int
    """1-based, in the version that the plan was made for."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """A plan for the file as it is now."""

    plan: EditPlan
    moves: tuple[Rebase, ...]


def rebase(plan: EditPlan, onto: Snapshot) -> Rebased | tuple[Conflict, ...]:
    """Carry every span of a plan to another version of the file, or say which lines stand in the way."""
    base = plan.before
    ranges = [_line_range(base, span) for span in plan.spans]
    found = relocate(base.lines.raw, onto.lines.raw, ranges)
    conflicts, spans, moves = list[Conflict](), list[Span](), list[Rebase]()
    for span, lines, place in zip(plan.spans, ranges, found, strict=True):
        match place:
            case Lost(reason=reason):
                conflicts.append(Conflict(line=lines.start + 1, reason=reason))
            case Moved(start=start):
                shift = onto.lines.starts[start] - base.lines.starts[lines.start]
                spans.append(Span(start=span.start + shift, end=span.end + shift, new=span.new))
                moves.append(Rebase(from_line=lines.start + 1, to_line=start + 1))
    if conflicts:
        return tuple(conflicts)
    if _disordered(spans):
        return (Conflict(line=ranges[0].start + 1, reason="reordered"),)
    return Rebased(plan=splice(onto, spans), moves=tuple(moves))


def _line_range(base: Snapshot, span: Span) -> LineRange:
    """Return the lines that a span touches; a gap between lines touches none."""
    lines = base.lines
    first = lines.index_at(span.start) if len(lines) else 0
    if span.start == span.end:
        if len(lines) == 0 or span.start == lines.starts[first]:
            return LineRange(start=first, end=first)
        if span.start == base.size and lines.final_newline:
            return LineRange(start=len(lines), end=len(lines))
        return LineRange(start=first, end=first + 1)
    return LineRange(start=first, end=lines.index_at(span.end - 1) + 1)


def _disordered(spans: list[Span]) -> bool:
    return any(later.start < earlier.end for earlier, later in pairwise(spans))

"""How far the lines below an edit moved: their hashes still hold, only their numbers changed."""

from collections import Counter
from dataclasses import dataclass

from surehold.text.plan import EditPlan, ResolvedOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class LineShift:
    """Lines from `from_line` of the old file on, up to the next shift, are now `delta` lines further down."""

    from_line: int
    delta: int


def line_shifts(plan: EditPlan) -> tuple[LineShift, ...]:
    """Return the shifts that the operations of a line edit make, from top to bottom."""
    grown = Counter[int]()
    for each in plan.resolutions:
        grown[_below(each, plan)] += each.new_end_line - each.new_start_line + 1 - _removed(each)
    shifts, delta = list[LineShift](), 0
    for line in sorted(grown):
        if grown[line] and line <= len(plan.before.lines):
            delta += grown[line]
            shifts.append(LineShift(from_line=line, delta=delta))
    return tuple(shifts)


def _removed(each: ResolvedOperation) -> int:
    return 0 if each.op.startswith("insert") else each.end_line - each.start_line + 1


def _below(each: ResolvedOperation, plan: EditPlan) -> int:
    """Return the first line of the old file that stands below what the operation did."""
    if each.resolution_level == "edge":
        return 1 if each.new_start_line == 1 else len(plan.before.lines) + 1
    return each.start_line if each.op == "insert_before" else each.end_line + 1

"""Problems of a line edit, combined into one refusal from which a single retry can succeed.

1. Every problem of a call is found before the call is refused. The most serious one names the error; all are listed.
2. Rows for copying are made in one pass over the file, however many problems there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surehold.errors import (
    AnchorAmbiguous,
    AnchorContextAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    InvalidRangeOrder,
    LineEditError,
    OverlappingOperations,
    RangeUnseen,
    SchemaInvalid,
)
from surehold.text.anchored.index import IndexedVersion
from surehold.text.anchored.rows import AnchoredLine, anchor_lines_at
from surehold.text.escape import preview_text
from surehold.text.lines import merge_ranges

_RANKS: tuple[type[LineEditError], ...] = (
    SchemaInvalid,
    AnchorStale,
    RangeUnseen,
    AnchorLowEntropy,
    AnchorAmbiguous,
    InvalidRangeOrder,
    OverlappingOperations,
)
_SAME_RANK: dict[type[LineEditError], type[LineEditError]] = {AnchorContextAmbiguous: AnchorAmbiguous}
_MAX_CANDIDATES = 100
_MAX_DETAILED_PROBLEMS = 20
"""So many problems carry rows for copying; more would not be read."""
_MAX_NEIGHBOURS_PER_SIDE = 3
_MAX_NEIGHBOUR_LINES = 40
"""How far away a line may be that is offered instead of a low one."""
_MAX_ROW_CHARS = 400
PREVIEW_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationProblem:
    """Why one operation cannot be done. Lines are 0-based lines of the file as it is now."""

    error: type[LineEditError]
    message: str
    """The rest of a sentence that begins with the operation's index; without a full stop."""
    index: int = 0
    """Which operation of the call it is; the call knows."""
    op: str = ""
    reason: str | None = None
    action: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    candidates: Sequence[int] = ()
    """All lines that could be meant; occurrences count them."""
    listed: Sequence[int] | None = None
    """Those that are offered, if not all."""
    fresh: Sequence[int] = ()
    """Lines that are shown as they are now, ascending."""
    low: int | None = None
    """A low line, for which neighbours are offered."""
    operation: Mapping[str, Any] | None = None
    """The operation to send instead; a field that is None gets the anchor of the first candidate."""

    @property
    def rank(self) -> tuple[int, int]:
        """Its place among all problems: graver ones first, then in the order of the call."""
        return _RANKS.index(_SAME_RANK.get(self.error, self.error)), self.index


def build_refusal(problems: Sequence[OperationProblem], live: IndexedVersion, *, room: int) -> LineEditError:
    """Return the one error for all problems of a call, with as many fresh rows as fit into so many characters."""
    first, *others = sorted(problems, key=lambda problem: problem.rank)
    more = len(others)
    detailed = sorted(others[: _MAX_DETAILED_PROBLEMS - 1], key=lambda problem: problem.index)
    lines = {line + 1 for each in (first, *detailed) for line in _lines_to_show(each, live)}
    details = _RefusalDetails(live, anchor_lines_at(live.snapshot, lines), room)
    facts = details.collect_facts(first)
    listed = [
        _outline(first),
        *(_outline(each) | details.collect_facts(each) for each in detailed),
        *(_outline(each) for each in others[_MAX_DETAILED_PROBLEMS - 1 :]),
    ]
    also = "" if not more else " (1 more problem is listed)" if more == 1 else f" ({more} more problems are listed)"
    return first.error(
        f"Operation {first.index}: {first.message}{also}.",
        reason=first.reason,
        action=first.action,
        operation_index=first.index,
        op=first.op,
        shown=merge_ranges((line, line) for line in sorted(details.shown)) or None,
        **facts,
        problems=sorted(listed, key=lambda each: each["index"]),
        sha256=live.snapshot.sha256,
    )


def _outline(problem: OperationProblem) -> dict[str, Any]:
    return {"index": problem.index, "op": problem.op, "error": problem.error.kind, "message": problem.message}


def group_consecutive_lines(lines: Sequence[int]) -> list[list[int]]:
    """Return 0-based lines as 1-based, inclusive pairs."""
    return [[first, last] for first, last in merge_ranges((line + 1, line + 1) for line in lines)]


def _offered_lines(problem: OperationProblem) -> Sequence[int]:
    return (problem.candidates if problem.listed is None else problem.listed)[:_MAX_CANDIDATES]


def _lines_to_show(problem: OperationProblem, live: IndexedVersion) -> set[int]:
    wanted = {*_offered_lines(problem), *problem.fresh}
    if (low := problem.low) is not None:
        wanted.update(range(max(0, low - _MAX_NEIGHBOUR_LINES), min(len(live), low + _MAX_NEIGHBOUR_LINES + 1)))
    return wanted


@dataclass(slots=True)
class _RefusalDetails:
    """The facts about each problem, and which lines they show."""

    live: IndexedVersion
    rows: Mapping[int, AnchoredLine]
    """The lines that may be shown, by their 1-based numbers."""
    room: int
    """How many characters of fresh rows still fit."""
    shown: set[int] = field(default_factory=set[int])

    def collect_facts(self, problem: OperationProblem) -> dict[str, Any]:
        facts = dict(problem.facts)
        offered = [line + 1 for line in _offered_lines(problem)]
        if problem.candidates:
            facts["candidates"] = self._describe_candidates(problem, offered)
            facts["candidate_count"] = len(problem.candidates)
        if problem.fresh:
            facts["fresh_rows"] = list(self._take_fresh_rows(problem.fresh))
            facts["fresh_lines"] = group_consecutive_lines(problem.fresh)
        if problem.low is not None:
            near = _high_neighbours(problem.low + 1, self.rows)
            facts["neighbor_anchors"] = [self.rows[number].anchor for number in near]
            self.shown.update(near)
        if problem.operation is not None:
            anchor = self.rows[offered[0]].anchor if offered else None
            facts["operation"] = {name: anchor if value is None else value for name, value in problem.operation.items()}
        return facts

    def _describe_candidates(self, problem: OperationProblem, offered: Sequence[int]) -> list[dict[str, Any]]:
        nth = {line + 1: number for number, line in enumerate(problem.candidates, start=1)}
        self.shown.update(offered)
        return [
            {
                "occurrence": nth.get(number),
                "line": number,
                "anchor": self.rows[number].anchor,
                "context": self.live.context_id(number - 1),
                "preview": preview_text(self.rows[number].text, PREVIEW_CHARS),
            }
            for number in offered
        ]

    def _take_fresh_rows(self, lines: Sequence[int]) -> Iterator[str]:
        for line in lines:
            row = self.rows[line + 1]
            row = row.prefix + preview_text(row.text, _MAX_ROW_CHARS)
            self.room -= len(row) + 1
            if self.room < 0:
                return
            self.shown.add(line + 1)
            yield row


def _high_neighbours(line: int, rows: Mapping[int, AnchoredLine]) -> list[int]:
    """Return the nearest high lines, from top to bottom."""
    high = sorted(number for number, row in rows.items() if row.quality == "high")
    above = [number for number in high if line - _MAX_NEIGHBOUR_LINES <= number < line]
    below = [number for number in high if line < number <= line + _MAX_NEIGHBOUR_LINES]
    return [*above[-_MAX_NEIGHBOURS_PER_SIDE:], *below[:_MAX_NEIGHBOURS_PER_SIDE]]

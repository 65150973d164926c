"""The refusal of a line edit: all problems of a call in one error, from which a single retry can succeed.

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
from surehold.text.anchored.lines import AnchoredLine, IndexedVersion, anchor_lines_at
from surehold.text.anchored.problems import PREVIEW_CHARS, OperationProblem, group_lines
from surehold.text.escape import preview_text
from surehold.text.measure import TextRoom
from surehold.text.snapshot import merge_ranges

_RANKS: dict[type[LineEditError], int] = {
    SchemaInvalid: 0,
    AnchorStale: 1,
    RangeUnseen: 2,
    AnchorLowEntropy: 3,
    AnchorAmbiguous: 4,
    AnchorContextAmbiguous: 4,
    InvalidRangeOrder: 5,
    OverlappingOperations: 6,
}
"""Graver problems come first; those of the same rank in the order of the call."""
_MAX_CANDIDATES = 100
_MAX_DETAILED_PROBLEMS = 20
"""So many problems carry rows for copying; more would not be read."""
_MAX_NEIGHBOURS_PER_SIDE = 3
_MAX_NEIGHBOUR_LINES = 40
"""How far away a line may be that is offered instead of a low one."""
_MAX_ROW_CHARS = 400
"""A longer line is cut, and does not count as shown. The lines of a range that was not seen are shown whole."""


def build_refusal(problems: Sequence[OperationProblem], live: IndexedVersion, *, room: TextRoom) -> LineEditError:
    """Return the one error for all problems of a call, with as many fresh rows as fit."""
    first, *others = sorted(problems, key=lambda problem: (_RANKS[problem.error], problem.index))
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
    error = first.error(
        f"Operation {first.index}: {first.message}{also}.",
        reason=first.reason,
        action=first.action or details.advice_for(first),
        operation_index=first.index,
        op=first.op,
        shown=merge_ranges((line, line) for line in sorted(details.shown)) or None,
        **facts,
        problems=sorted(listed, key=lambda each: each["index"]),
        sha256=live.snapshot.sha256,
    )
    error.anchored = merge_ranges((line, line) for line in sorted(details.named))
    return error


def _outline(problem: OperationProblem) -> dict[str, Any]:
    return {"index": problem.index, "op": problem.op, "error": problem.error.kind, "message": problem.message}


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
    room: TextRoom
    """How much of fresh rows still fits."""
    shown: set[int] = field(default_factory=set[int])
    """The lines of which everything is shown."""
    named: set[int] = field(default_factory=set[int])
    """The lines whose anchors are shown."""

    def collect_facts(self, problem: OperationProblem) -> dict[str, Any]:
        facts = dict(problem.facts)
        offered = [line + 1 for line in _offered_lines(problem)]
        if problem.candidates:
            facts["candidates"] = self._describe_candidates(problem, offered)
            facts["candidate_count"] = len(problem.candidates)
        if problem.fresh:
            facts["fresh_rows"] = list(self._take_fresh_rows(problem))
            facts["fresh_lines"] = group_lines(problem.fresh)
        if problem.low is not None:
            near = _high_neighbours(problem.low + 1, self.rows)
            facts["neighbor_anchors"] = [self.rows[number].anchor for number in near]
            self.named.update(near)
        if problem.operation is not None:
            anchor = self.rows[offered[0]].anchor if offered else None
            facts["operation"] = {name: anchor if value is None else value for name, value in problem.operation.items()}
        return facts

    def _describe_candidates(self, problem: OperationProblem, offered: Sequence[int]) -> list[dict[str, Any]]:
        nth = {line + 1: number for number, line in enumerate(problem.candidates, start=1)}
        self.named.update(offered)
        candidates = list[dict[str, Any]]()
        for line in offered:
            anchor, preview = self.rows[line].anchor, self._show_text(line, PREVIEW_CHARS)
            facts = {"anchor": anchor, "context": self.live.context_id(line - 1), "preview": preview}
            candidates.append({"occurrence": nth.get(line), "line": line, **facts})
        return candidates

    def _take_fresh_rows(self, problem: OperationProblem) -> Iterator[str]:
        for count, line in enumerate(problem.fresh):
            row, chars = self.rows[line + 1], _MAX_ROW_CHARS
            if problem.error is RangeUnseen and (count or self._fits(row, len(row.text))):
                chars = len(row.text)
            if not self._fits(row, chars):
                return
            shown = row.prefix + self._show_text(line + 1, chars)
            self.room = self.room.less(self.room.measure(shown + "\n"))
            self.named.add(line + 1)
            yield shown

    def _fits(self, row: AnchoredLine, chars: int) -> bool:
        return self.room.measure(f"{row.prefix}{preview_text(row.text, chars)}\n") <= self.room.size

    def _show_text(self, line: int, chars: int) -> str:
        """Return the text of a line, or as much of its beginning; only a whole line counts as shown."""
        text = self.rows[line].text
        if len(text) <= chars:
            self.shown.add(line)
        return preview_text(text, chars)

    def advice_for(self, problem: OperationProblem) -> str | None:
        """Tell how a line is seen that has no room in a refusal; all others are shown by it, or by the next one."""
        first = problem.fresh[0] + 1 if problem.error is RangeUnseen else 0
        if first in self.shown or not first:
            return None
        return f"Line {first} is too long to be shown here: read it with hashes, then send the same edit again."


def _high_neighbours(line: int, rows: Mapping[int, AnchoredLine]) -> list[int]:
    high = sorted(number for number, row in rows.items() if row.quality == "high")
    above = [number for number in high if line - _MAX_NEIGHBOUR_LINES <= number < line]
    below = [number for number in high if line < number <= line + _MAX_NEIGHBOUR_LINES]
    return [*above[-_MAX_NEIGHBOURS_PER_SIDE:], *below[:_MAX_NEIGHBOURS_PER_SIDE]]

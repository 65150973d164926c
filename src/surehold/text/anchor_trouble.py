"""What stands in the way of a line edit, told so that one retry suffices.

Every problem of a call is found before the call is refused. The gravest one names the error; all of them are listed.
Rows for copying are made in one pass over the file, however many problems there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from surehold.text.anchor_index import IndexedVersion
from surehold.text.rows import Row, rows_at

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
_MOST_CANDIDATES = 100
_WITH_ROWS = 20
"""So many problems carry rows for copying; more would not be read."""
_NEIGHBOURS = 3
_NEAR = 40
"""How far away a line may be that is offered instead of a low one."""
_LONGEST_ROW = 400
_PREVIEW = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why one operation cannot be done. Lines are 0-based lines of the file as it is now."""

    error: type[LineEditError]
    index: int
    op: str
    message: str
    """The rest of a sentence that begins with the operation's index; without a full stop."""
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
        """Where it stands among all problems: graver ones first, then in the order of the call."""
        return _RANKS.index(_SAME_RANK.get(self.error, self.error)), self.index


def refuse(problems: Sequence[Problem], live: IndexedVersion) -> LineEditError:
    """Return the one error for all problems of a call."""
    ordered = sorted(problems, key=lambda problem: problem.rank)
    rows = rows_at(live.snapshot, {line + 1 for each in ordered[:_WITH_ROWS] for line in _wanted(each, live)})
    first, more = ordered[0], len(ordered) - 1
    brief = [{"index": p.index, "op": p.op, "error": p.error.kind, "message": p.message} for p in ordered]
    told = [_facts(problem, live, rows) for problem in ordered[:_WITH_ROWS]]
    listed = [brief[0], *(one | other for one, other in zip(brief[1:], told[1:], strict=False)), *brief[_WITH_ROWS:]]
    also = "" if not more else " (1 more problem is listed)" if more == 1 else f" ({more} more problems are listed)"
    return first.error(
        f"Operation {first.index}: {first.message}{also}.",
        reason=first.reason,
        action=first.action,
        operation_index=first.index,
        op=first.op,
        **told[0],
        problems=sorted(listed, key=lambda each: each["index"]),
        sha256=live.snapshot.sha256,
    )


def preview(text: str) -> str:
    """Return the beginning of a text, for a message."""
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"


def spans_of_lines(lines: Sequence[int]) -> list[list[int]]:
    """Return ascending 0-based lines as 1-based, inclusive pairs."""
    spans = list[list[int]]()
    for line in lines:
        if spans and spans[-1][1] == line:
            spans[-1][1] = line + 1
        else:
            spans.append([line + 1, line + 1])
    return spans


def _copyable(row: Row) -> str:
    """Return a row for copying; of a very long line only the beginning."""
    return str(row if len(row.text) <= _LONGEST_ROW else replace(row, text=row.text[: _LONGEST_ROW - 1] + "…"))


def _offered(problem: Problem) -> Sequence[int]:
    return (problem.candidates if problem.listed is None else problem.listed)[:_MOST_CANDIDATES]


def _wanted(problem: Problem, live: IndexedVersion) -> set[int]:
    wanted = {*_offered(problem), *problem.fresh}
    if problem.low is not None:
        wanted |= set(range(max(0, problem.low - _NEAR), min(len(live), problem.low + _NEAR + 1)))
    return wanted


def _facts(problem: Problem, live: IndexedVersion, rows: Mapping[int, Row]) -> dict[str, Any]:
    facts = dict(problem.facts)
    offered = _offered(problem)
    if problem.candidates:
        facts["candidates"] = _candidates(problem, offered, live, rows)
        facts["candidate_count"] = len(problem.candidates)
    if problem.fresh:
        facts["fresh_rows"] = [_copyable(rows[line + 1]) for line in problem.fresh]
        facts["fresh_lines"] = spans_of_lines(problem.fresh)
    if problem.low is not None:
        facts["neighbor_anchors"] = _neighbours(problem.low + 1, rows)
    if problem.operation is not None:
        anchor = rows[offered[0] + 1].anchor if offered else None
        facts["operation"] = {name: anchor if value is None else value for name, value in problem.operation.items()}
    return facts


def _candidates(
    problem: Problem, offered: Sequence[int], live: IndexedVersion, rows: Mapping[int, Row]
) -> list[dict[str, Any]]:
    nth = {line: number for number, line in enumerate(problem.candidates, start=1)}
    return [
        {
            "occurrence": nth.get(line),
            "line": line + 1,
            "anchor": rows[line + 1].anchor,
            "context": live.context_id(line),
            "preview": preview(rows[line + 1].text),
        }
        for line in offered
    ]


def _neighbours(line: int, rows: Mapping[int, Row]) -> list[str]:
    """Return the anchors of the nearest high lines, from top to bottom."""
    above = [number for number in range(line - 1, line - _NEAR - 1, -1) if _is_high(rows.get(number))]
    below = [number for number in range(line + 1, line + _NEAR + 1) if _is_high(rows.get(number))]
    return [rows[number].anchor for number in (*above[:_NEIGHBOURS][::-1], *below[:_NEIGHBOURS])]


def _is_high(row: Row | None) -> bool:
    return row is not None and row.quality == "high"

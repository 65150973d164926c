"""The difference that a plan makes, with new anchors on the lines of the result.

Rows: ` 12#5da3f1|unchanged`, `+13#0f9eac|new`, `-old`. Headers are those of a unified diff.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from surehold.text.anchored.rows import AnchoredLine, anchor_lines_at
from surehold.text.diff import Hunk
from surehold.text.plan import EditPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredDiff:
    """Hunks as text, and which lines of the new version they show."""

    text: str
    truncated: bool
    shown: tuple[int, ...]
    """Numbers of the lines that are shown as they are now."""
    new: tuple[AnchoredLine, ...]
    """The lines that were written."""


def anchored_diff(plan: EditPlan, *, limit: int) -> AnchoredDiff:
    """Return the hunks of a plan, as many whole ones as fit into so many characters; at least the first rows."""
    found = list(plan.hunks())
    after = plan.after
    numbers = [number for hunk in found for number in _new_numbers(hunk)]
    rows = anchor_lines_at(after, numbers) if numbers else {}
    written = {number for hunk in found for number, sign in _numbered_signs(hunk) if sign == "+"}
    lines, shown, size = list[str](), list[int](), 0
    for line, number in _render_lines(found, rows, plan):
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
        if number:
            shown.append(number)
    complete = len(lines) == sum(len(hunk.lines) + 1 for hunk in found)
    return AnchoredDiff(
        text="\n".join(lines),
        truncated=not complete,
        shown=tuple(shown),
        new=tuple(rows[number] for number in shown if number in written),
    )


def _numbered_signs(hunk: Hunk) -> Iterator[tuple[int, str]]:
    """Yield the number in the new version and the sign of every row that is there afterwards."""
    number = hunk.new_start
    for line in hunk.lines:
        sign = chr(line[0])
        if sign in " +":
            yield number, sign
            number += 1


def _new_numbers(hunk: Hunk) -> Iterator[int]:
    return (number for number, _ in _numbered_signs(hunk))


def _render_lines(found: list[Hunk], rows: dict[int, AnchoredLine], plan: EditPlan) -> Iterator[tuple[str, int]]:
    """Yield every row as text, and the number of the line that it shows; 0 for others."""
    for hunk in found:
        yield hunk.header, 0
        numbers = _numbered_signs(hunk)
        for line in hunk.lines:
            if line.startswith(b"-"):
                yield plan.decode_row(line).rstrip("\r\n"), 0
            else:
                number, sign = next(numbers)
                yield f"{sign}{rows[number]}", number

"""The one table that every bench adds rows to."""

from collections.abc import Iterable
from dataclasses import dataclass

_HEADINGS = ("what", "measured", "goal", "", "how")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure, and the goal it is held against; without a goal it is only shown."""

    name: str
    measured: float
    unit: str = "×"
    goal: float | None = None
    note: str = ""

    @property
    def mark(self) -> str:
        if self.goal is None:
            return ""
        return "ok" if self.measured <= self.goal else "above"

    @property
    def cells(self) -> tuple[str, ...]:
        goal = "" if self.goal is None else f"≤ {_figure(self.goal)} {self.unit}"
        return (self.name, f"{_figure(self.measured)} {self.unit}", goal, self.mark, self.note)


def render(rows: Iterable[Row]) -> str:
    """Return the rows as aligned text."""
    lines = [_HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    ruled = [lines[0], tuple("─" * width for width in widths), *lines[1:]]
    return "\n".join("  ".join(_padded(line, widths)).rstrip() for line in ruled)


def _padded(line: tuple[str, ...], widths: list[int]) -> list[str]:
    """Figures are right-aligned in their column, words at the left."""
    return [
        cell.rjust(width) if column in {1, 2} else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"

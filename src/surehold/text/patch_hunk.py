"""One place of a patch: the lines it names, and the lines it wants there."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Sign = Literal[" ", "-", "+"]


class Row(NamedTuple):
    """One line of a hunk."""

    sign: Sign
    text: str
    """Without the line feed; a CR before it is still there."""
    ended: bool = True
    r"""False when `\ No newline at end of file` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines that must stand in the file, which of them go, and what comes instead."""

    rows: tuple[Row, ...]
    line: int
    """Where it begins in the patch."""
    start: int | None = None
    """The line of the file that its header names; None in the envelope, which has no numbers."""
    anchors: tuple[str, ...] = ()
    """Lines that stand above it, from the outermost inwards."""
    at_end: bool = False
    """Its last line is the last of the file."""

    @property
    def old(self) -> list[Row]:
        """The lines that must be there."""
        return [row for row in self.rows if row.sign != "+"]

    @property
    def new(self) -> list[Row]:
        """The lines that are there afterwards."""
        return [row for row in self.rows if row.sign != "-"]

    @property
    def changes_nothing(self) -> bool:
        """Whether both sides are the same."""
        return [row[1:] for row in self.old] == [row[1:] for row in self.new]

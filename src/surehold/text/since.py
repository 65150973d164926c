"""What changed from one version of a file to another, cut to size, and which lines of the new one that shows."""

from dataclasses import dataclass

from surehold.text.diff import Hunk, hunks
from surehold.text.encoding import Encoding
from surehold.text.snapshot import Snapshot
from surehold.text.visible import safe

_WIDEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """Hunks as rows."""

    text: str
    truncated: bool
    shown: tuple[tuple[int, int], ...]
    """Lines of the new version that are shown completely."""


def since(old: Snapshot, new: Snapshot, *, room: int) -> Since:
    """Show the difference in as many whole rows as fit into so many characters; a row too wide is cut and not counted."""
    rows, shown = list[str](), list[tuple[int, int]]()
    # Where line endings are what changed, lines look the same without them.
    ends = "\r\n" if old.lines.style == new.lines.style else "\n"
    for hunk in hunks(old.lines.raw, new.lines.raw, context=2):
        for row, number, whole in _rows(hunk, new.encoding, ends):
            room -= len(row) + 1
            if room < 0:
                return Since(text="\n".join(rows), truncated=True, shown=tuple(shown))
            rows.append(row)
            if number and whole:
                shown.append((number, number))
    return Since(text="\n".join(rows), truncated=False, shown=tuple(shown))


def _rows(hunk: Hunk, encoding: Encoding, ends: str) -> list[tuple[str, int, bool]]:
    """Return every row, the number of the new line that it shows (0 for none), and whether it shows all of it."""
    rows, number = [(hunk.header, 0, True)], hunk.new_start
    for line in hunk.lines:
        sign, text = chr(line[0]), encoding.decode(line[1:]).rstrip(ends)
        cut = len(text) > _WIDEST
        row = f"{sign}{safe(text[:_WIDEST], keep=chr(9))}{'…' * cut}"
        rows.append((row, number if sign != "-" else 0, not cut))
        number += sign != "-"
    return rows

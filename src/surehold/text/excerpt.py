"""Lines or changes of a file as rows for a message, cut to a size, with the lines that are shown completely."""

from collections.abc import Sequence
from dataclasses import dataclass

from surehold.text.diff import Hunk
from surehold.text.escape import escape_text
from surehold.text.plan import EditPlan
from surehold.text.snapshot import Snapshot

_LINE_ROW_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LineExcerpt:
    """Rows, and which lines of the file they show completely."""

    rows: tuple[str, ...]
    shown: tuple[tuple[int, int], ...]
    complete: bool
    """Whether all lines that were asked for are shown."""

    @property
    def text(self) -> str:
        """The rows as one block."""
        return "\n".join(self.rows)


def excerpt_lines(
    snapshot: Snapshot, spans: Sequence[tuple[int, int]], *, room: int, width: int = _LINE_ROW_CHARS
) -> LineExcerpt:
    """Show lines (1-based, inclusive pairs) as far as they fit into so many characters; a long line is cut at `width`."""
    contents, decode = snapshot.lines.contents, snapshot.encoding.decode
    rows, shown, complete = list[str](), list[tuple[int, int]](), True
    for first, last in spans:
        for number in range(first, min(last, len(contents)) + 1):
            text = decode(contents[number - 1])
            row = f"{number}→{escape_text(text[:width], keep=chr(9))}{'…' * (len(text) > width)}"
            room -= len(row) + 1
            if room < 0:
                return LineExcerpt(rows=tuple(rows), shown=tuple(shown), complete=False)
            rows.append(row)
            if len(text) > width:
                complete = False
            else:
                shown.append((number, number))
    return LineExcerpt(rows=tuple(rows), shown=tuple(shown), complete=complete)


_DIFF_ROW_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffExcerpt:
    """Hunks as rows."""

    text: str
    truncated: bool
    shown: tuple[tuple[int, int], ...]
    """Lines of the new version that are shown completely."""


def excerpt_changes(old: Snapshot, new: Snapshot, *, room: int) -> DiffExcerpt:
    """Show the difference in as many whole rows as fit into so many characters; a row too wide is cut and not counted."""
    rows, shown = list[str](), list[tuple[int, int]]()
    # Where line endings are what changed, lines look the same without them.
    ends = "\r\n" if old.lines.style == new.lines.style else "\n"
    plan = EditPlan(before=old, after=new)
    for hunk in plan.hunks(context=2):
        for row, number, whole in _excerpt_rows(hunk, plan, ends):
            room -= len(row) + 1
            if room < 0:
                return DiffExcerpt(text="\n".join(rows), truncated=True, shown=tuple(shown))
            rows.append(row)
            if number and whole:
                shown.append((number, number))
    return DiffExcerpt(text="\n".join(rows), truncated=False, shown=tuple(shown))


def _excerpt_rows(hunk: Hunk, plan: EditPlan, ends: str) -> list[tuple[str, int, bool]]:
    """Return every row, the number of the new line that it shows (0 for none), and whether it shows all of it."""
    rows, number = [(hunk.header, 0, True)], hunk.new_start
    for line in hunk.lines:
        sign, text = chr(line[0]), plan.decode_row(line)[1:].rstrip(ends)
        cut = len(text) > _DIFF_ROW_CHARS
        row = f"{sign}{escape_text(text[:_DIFF_ROW_CHARS], keep=chr(9))}{'…' * cut}"
        rows.append((row, number if sign != "-" else 0, not cut))
        number += sign != "-"
    return rows

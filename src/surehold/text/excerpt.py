"""Lines or changes of a file as rows for a message, cut to a size, with the lines that are shown completely."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from surehold.text.escape import escape_text
from surehold.text.plan import EditPlan
from surehold.text.snapshot import Snapshot

_ROW_CHARS = 400

_Row = tuple[str, int, bool]
"""A row, the number of the line that it shows (0 for none), and whether it shows all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Rows, and which lines of the file they show completely."""

    rows: tuple[str, ...]
    shown: tuple[tuple[int, int], ...]
    truncated: bool
    """Whether rows were left out for want of room."""
    complete: bool
    """Whether every line is shown, and shown whole."""

    @property
    def text(self) -> str:
        return "\n".join(self.rows)


def excerpt_lines(
    snapshot: Snapshot, spans: Sequence[tuple[int, int]], *, room: int, width: int = _ROW_CHARS
) -> Excerpt:
    """Show lines (1-based, inclusive pairs) as far as they fit into so many characters; a long line is cut at `width`."""
    contents, decode = snapshot.lines.contents, snapshot.encoding.decode
    numbers = (number for first, last in spans for number in range(first, min(last, len(contents)) + 1))
    return _fit_rows((_cut_row(f"{n}→", decode(contents[n - 1]), n, width) for n in numbers), room)


def excerpt_changes(old: Snapshot, new: Snapshot, *, room: int) -> Excerpt:
    """Show the difference in as many whole rows as fit into so many characters; a row too wide is cut and not counted."""
    return _fit_rows(_changed_rows(EditPlan(before=old, after=new)), room)


def _changed_rows(plan: EditPlan) -> Iterator[_Row]:
    # Where line endings are what changed, lines look the same without them.
    ends = "\r\n" if plan.before.lines.style == plan.after.lines.style else "\n"
    for hunk in plan.hunks(context=2):
        yield hunk.header, 0, True
        number = hunk.new_start
        for line in hunk.lines:
            text = plan.decode_row(line).rstrip(ends)
            yield _cut_row(text[0], text[1:], 0 if text[0] == "-" else number, _ROW_CHARS)
            number += text[0] != "-"


def _cut_row(head: str, text: str, number: int, width: int) -> _Row:
    cut = len(text) > width
    return f"{head}{escape_text(text[:width], keep=chr(9))}{'…' * cut}", number, not cut


def _fit_rows(rows: Iterable[_Row], room: int) -> Excerpt:
    fitting, shown, truncated, complete = list[str](), list[tuple[int, int]](), False, True
    for row, number, whole in rows:
        room -= len(row) + 1
        if room < 0:
            truncated = True
            break
        fitting.append(row)
        complete = complete and whole
        if number and whole:
            shown.append((number, number))
    return Excerpt(rows=tuple(fitting), shown=tuple(shown), truncated=truncated, complete=complete and not truncated)

"""Some lines of a file as rows for a message: `12→text`, as `Read` shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from surehold.text.snapshot import Snapshot
from surehold.text.visible import safe

_WIDEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Rows, and which lines of the file they show completely."""

    rows: tuple[str, ...]
    shown: tuple[tuple[int, int], ...]
    complete: bool
    """Whether all lines that were asked for are shown."""

    @property
    def text(self) -> str:
        """The rows as one block."""
        return "\n".join(self.rows)


def excerpt(snapshot: Snapshot, spans: Sequence[tuple[int, int]], *, room: int, width: int = _WIDEST) -> Excerpt:
    """Show lines (1-based, inclusive pairs) as far as they fit into so many characters; a long line is cut at `width`."""
    contents, decode = snapshot.lines.contents, snapshot.encoding.decode
    rows, shown, complete = list[str](), list[tuple[int, int]](), True
    for first, last in spans:
        for number in range(first, min(last, len(contents)) + 1):
            text = decode(contents[number - 1])
            row = f"{number}→{safe(text[:width], keep=chr(9))}{'…' * (len(text) > width)}"
            room -= len(row) + 1
            if room < 0:
                return Excerpt(rows=tuple(rows), shown=tuple(shown), complete=False)
            rows.append(row)
            if len(text) > width:
                complete = False
            else:
                shown.append((number, number))
    return Excerpt(rows=tuple(rows), shown=tuple(shown), complete=complete)

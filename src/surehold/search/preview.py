"""How a match is shown: its line, its column, and what stands around it."""

from collections.abc import Sequence

from surehold.search.engine import searched
from surehold.search.values import Hit, Row
from surehold.text.encoding import UTF8
from surehold.text.snapshot import Snapshot

WIDTH = 500
"""A longer line is cut around the match."""
_CUT = "…"


class View:
    """One file as it is searched: offsets lead to lines and columns."""

    def __init__(self, path: str, snapshot: Snapshot) -> None:
        self._path = path
        encoding = snapshot.encoding
        # What engines search is not always what is on the disk; the lines and characters are the same.
        same = not encoding.bom
        self._text = snapshot if same else Snapshot(searched(snapshot.data), encoding=UTF8)
        self._decoded: tuple[int, str] = (-1, "")

    def hits(self, offsets: Sequence[int], context: int) -> list[Hit]:
        """Show some matches."""
        return [self._hit(offset, context) for offset in offsets]

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._text.lines)

    def row(self, line: int, begins: int | None) -> Row:
        """Show a line; where its first match begins, in bytes, if it has one."""
        text = self._line(line - 1)
        at = 0
        if begins and len(text) > WIDTH:
            at = len(self._text.encoding.decode(self._text.lines.contents[line - 1][:begins]))
        shown = window(text, at)
        return Row(path=self._path, line=line, text=shown, is_match=begins is not None, is_whole=shown == text)

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        lines = self._text.lines
        index = lines.index_at(offset)
        begin = lines.starts[index]
        return index + 1, len(self._text.encoding.decode(self._text.data[begin:offset])) + 1

    def _hit(self, offset: int, context: int) -> Hit:
        line, column = self.place(offset)
        at, count = line - 1, len(self._text.lines)
        return Hit(
            path=self._path,
            line=line,
            column=column,
            preview=window(self._line(at), column - 1),
            before=tuple(window(self._line(each), 0) for each in range(max(0, at - context), at)),
            after=tuple(window(self._line(each), 0) for each in range(at + 1, min(count, at + 1 + context))),
        )

    def _line(self, index: int) -> str:
        if self._decoded[0] != index:  # many matches may stand in one very long line
            self._decoded = index, self._text.encoding.decode(self._text.lines.contents[index])
        return self._decoded[1]


def window(text: str, at: int) -> str:
    """Return a line, or the part of it that has this place in its middle."""
    if len(text) <= WIDTH:
        return text
    begin = max(0, min(at - WIDTH // 2, len(text) - WIDTH))
    end = begin + WIDTH
    return (
        (_CUT if begin else "")
        + text[begin + bool(begin) : end - (end < len(text))]
        + (_CUT if end < len(text) else "")
    )

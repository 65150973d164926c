"""Line ends of a text that is being edited: which there are, and how many stand before a place."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from surehold.text.encoding import Encoding
from surehold.text.lines import NewlineStyle
from surehold.text.snapshot import Snapshot

_BLOCK = 1024


@dataclass(slots=True, kw_only=True)
class Ends:
    """How many line ends of each kind there are."""

    encoding: Encoding
    lf: int = 0
    """LF without CR."""
    crlf: int = 0
    cr: int = 0
    """Every CR, also those of CRLF."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Ends":
        """Count those of a text."""
        ends = cls(encoding=snapshot.encoding)
        ends.add(snapshot.data[len(snapshot.encoding.bom) :])
        return ends

    @property
    def are_lines(self) -> bool:
        """Whether LF ends the lines: where there is none, a CR does."""
        return not self.cr or self.lf + self.crlf > 0

    @property
    def style(self) -> NewlineStyle:
        """Which terminators there are."""
        if not self.are_lines:
            return "cr"
        if self.lf and self.crlf:
            return "mixed"
        return "lf" if self.lf else "crlf" if self.crlf else "none"

    @property
    def dominant(self) -> bytes:
        """The terminator that most lines have."""
        newline = self.encoding.newline
        return newline("\r") if not self.are_lines else newline("\r\n" if self.crlf > self.lf else "\n")

    def breaks(self, data: bytes) -> int:
        """Count the LF in some bytes."""
        return self._count(data, "\n")

    def stay_lines(self, old: bytes, new: bytes) -> bool:
        """Tell whether LF still ends the lines when these bytes become those."""
        if not self.are_lines:
            return False
        left = self.lf + self.crlf - self.breaks(old) + self.breaks(new)
        return left > 0 or not (self.cr or self._count(new, "\r"))

    def add(self, data: bytes, *, sign: int = 1) -> None:
        """Count what came, or with the sign turned, what went."""
        lf = self._count(data, "\n")
        cr = self._count(data, "\r") if b"\r" in data else 0
        crlf = self._count(data, "\r\n") if cr and lf else 0
        self.crlf += sign * crlf
        self.lf += sign * (lf - crlf)
        self.cr += sign * cr

    def may_be_in(self, data: bytes) -> bool:
        """Tell whether some bytes may hold a line end; where a look is not enough, they may."""
        return self.encoding.width > 1 or b"\n" in data or b"\r" in data

    def _count(self, data: bytes, end: str) -> int:
        if self.encoding.width == 1:
            return data.count(end.encode())
        return data.decode(self.encoding.name, "replace").count(end)


class LineIndex:
    """How many LF stand before any byte of a text."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._data = snapshot.data
        self._begin = len(snapshot.encoding.bom)
        self._encoding = snapshot.encoding

    def breaks(self, offset: int) -> int:
        """Count the LF before an offset."""
        block = offset // _BLOCK
        return self._sums[block] + self._count(block * _BLOCK, offset)

    def between(self, start: int, end: int) -> int:
        """Count the LF between two offsets."""
        return self._count(start, end) if end - start < _BLOCK else self.breaks(end) - self.breaks(start)

    @cached_property
    def _sums(self) -> list[int]:
        blocks = range(0, len(self._data), _BLOCK)
        return [0, *accumulate(self._count(start, start + _BLOCK) for start in blocks)]

    def _count(self, start: int, end: int) -> int:
        """Count the LF that begin between two offsets; wide ones only where a unit begins."""
        unit, width = self._encoding.newline("\n"), self._encoding.width
        if width == 1:
            return self._data.count(unit, start, end)
        found, at = 0, self._data.find(unit, start, end + width - 1)
        while at >= 0:
            found += (at - self._begin) % width == 0
            at = self._data.find(unit, at + 1, end + width - 1)
        return found

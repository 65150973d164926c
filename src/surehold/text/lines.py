"""Lines of a file: where they begin and end, their digests, and ranges of their numbers."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate, repeat
from typing import Literal

from surehold.text.encoding import Encoding

DIGEST_DIGITS = 16


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def line_digests(contents: list[bytes], encoding: Encoding) -> list[int]:
    """Return the digest of every line, in one pass over lines that have lost their terminators."""
    from xxhash import xxh3_64_intdigest

    return list(map(xxh3_64_intdigest, _without_trailing_blanks(contents, encoding)))


def digest_text(digest: int) -> str:
    """Spell a line digest as hexadecimal digits."""
    return f"{digest:016x}"


def _without_trailing_blanks(contents: list[bytes], encoding: Encoding) -> Iterable[bytes]:
    if encoding.width == 1:
        return map(bytes.rstrip, contents, repeat(b" \t"))
    codec = encoding.name, "surrogatepass"
    return (line.decode(*codec).rstrip(" \t").encode(*codec) for line in contents)


LineRanges = tuple[tuple[int, int], ...]


def merge_ranges(spans: Iterable[tuple[int, int]]) -> LineRanges:
    """Sort spans and join those that touch."""
    out = list[tuple[int, int]]()
    for first, last in sorted(spans):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


NewlineStyle = Literal["lf", "crlf", "cr", "mixed", "none"]


def newline_style(lf: int, crlf: int) -> NewlineStyle:
    if not crlf:
        return "lf" if lf else "none"
    return "mixed" if lf else "crlf"


class Lines:
    """The line table of some bytes, computed in one linear pass when it is first needed."""

    def __init__(self, data: bytes, encoding: Encoding) -> None:
        self._data, self._encoding = data, encoding
        self._lf, self._cr = b"\n", b"\r"
        if encoding.width > 1:
            self._lf, self._cr = encoding.encode_newline("\n"), encoding.encode_newline("\r")

    @cached_property
    def breaker(self) -> bytes:
        """The bytes at which lines are cut: LF, or CR in a file that has no LF."""
        if self._encoding.width > 1:
            has_lf = self._find_aligned(self._lf, 0) >= 0
            return self._cr if not has_lf and self._find_aligned(self._cr, 0) >= 0 else self._lf
        return self._cr if b"\n" not in self._data and b"\r" in self._data else self._lf

    @cached_property
    def pieces(self) -> list[bytes]:
        """Every line without its last terminator byte or unit: the CR of a CRLF is still there."""
        body = self._data[len(self._encoding.bom) :] if self._encoding.bom else self._data
        pieces = body.split(self.breaker) if self._encoding.width == 1 else self._split_aligned(body)
        if not pieces[-1]:
            pieces.pop()
        return pieces

    @cached_property
    def starts(self) -> list[int]:
        """The offset of every line, and at the end the offset after the last one."""
        step, begin = len(self.breaker), len(self._encoding.bom)
        starts = list(accumulate(map(step.__add__, map(len, self.pieces)), initial=begin))
        starts[-1] = len(self._data)  # the last line may have no terminator
        return starts

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def raw(self) -> list[bytes]:
        lines = [piece + self.breaker for piece in self.pieces]
        if lines and not self.final_newline:
            lines[-1] = self.pieces[-1]
        return lines

    @property
    def final_newline(self) -> bool:
        begin = len(self._encoding.bom)
        return len(self._data) > begin and self._data.endswith(self.breaker, begin)

    @cached_property
    def contents(self) -> list[bytes]:
        """Every line without its terminator."""
        if self.breaker == self._cr or self._cr not in self._data:
            return self.pieces
        cut = list(map(bytes.removesuffix, self.pieces, repeat(self._cr)))
        if cut and not self.final_newline:
            cut[-1] = self.pieces[-1]  # a CR at the very end of the file has no LF: it is content
        return cut

    def terminator(self, index: int) -> bytes:
        """Return the terminator of the line with this 0-based index; empty for an unterminated last line."""
        begin, end = self.starts[index], self.starts[index + 1]
        return self._data[begin + len(self.contents[index]) : end]

    def close_last_line(self, ending: bytes) -> bytes:
        """Return how an unterminated last line is ended before new lines: a CR at its end must stay content."""
        ends_in_cr = bool(self.contents) and self.contents[-1].endswith(self._cr)
        return self._cr + self._lf if ends_in_cr and ending == self._lf else ending

    def inherited_terminators(self, first: int, end: int, count: int) -> list[bytes]:
        """Return the terminators of new lines in the place of the lines `first` to `end`, or in the gap before `first`.

        Every line that is replaced passes its own one on; a further line takes that of the line before it. In a gap it is
        that of the line above, else of the line below, else the one that most lines use.
        """
        found = [stop for index in range(first, end) if (stop := self.terminator(index))]
        if not found:  # the line above may be a last one without terminator, which gets one
            around = [*range(first - 1, max(first - 3, -1), -1), *range(end, min(end + 1, len(self)))]
            found = [next((stop for index in around if (stop := self.terminator(index))), self.dominant)]
        return [*found[:count], *[found[-1]] * (count - len(found))]

    def terminator_near(self, offset: int) -> bytes:
        """Return the terminator of a line break that is put into the line at an offset."""
        after = self.index_at(offset) + 1 if len(self) else 0
        return self.inherited_terminators(after, after, 1)[0]

    def index_at(self, offset: int) -> int:
        """Return the 0-based index of the line that holds the byte at `offset`."""
        return max(0, min(bisect_right(self.starts, offset) - 1, len(self) - 1))

    @cached_property
    def style(self) -> NewlineStyle:
        if self.breaker == self._cr:
            return "cr"
        if self._encoding.width == 1 and b"\r" not in self._data:  # the usual case needs no counting
            return "lf" if b"\n" in self._data else "none"
        return newline_style(*self._terminator_counts)

    @cached_property
    def dominant(self) -> bytes:
        """The terminator that most lines use; LF in a file that has none."""
        if self.style != "mixed":
            return {"crlf": self._cr + self._lf, "cr": self._cr}.get(self.style, self._lf)
        lf, crlf = self._terminator_counts
        return self._cr + self._lf if crlf > lf else self._lf

    @cached_property
    def _terminator_counts(self) -> tuple[int, int]:
        if self._encoding.width == 1:
            crlf = self._data.count(b"\r\n")
            return self._data.count(b"\n") - crlf, crlf
        ended = self.pieces if self.final_newline else self.pieces[:-1]
        crlf = sum(piece.endswith(self._cr) for piece in ended)
        return len(ended) - crlf, crlf

    def _find_aligned(self, unit: bytes, start: int) -> int:
        width, begin = self._encoding.width, len(self._encoding.bom)
        at = self._data.find(unit, max(start, begin))
        while at >= 0 and (at - begin) % width:
            at = self._data.find(unit, at + 1)
        return at

    def _split_aligned(self, body: bytes) -> list[bytes]:
        width, unit = self._encoding.width, self.breaker
        pieces = body.split(unit)
        if not any(len(piece) % width for piece in pieces):
            return pieces  # else a cut went through a character, which is rare
        pieces = list[bytes]()
        begin = at = 0
        while (at := body.find(unit, at)) >= 0:
            if at % width:
                at += 1
                continue
            pieces.append(body[begin:at])
            begin = at = at + width
        pieces.append(body[begin:])
        return pieces

"""One file at one moment: its bytes, its lines, its metadata, and what can be computed from them."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, repeat
from typing import Literal

from surehold.errors import BinaryFile
from surehold.text.encoding import Encoding, EncodingDetector, EncodingHint, detect_encoding

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
        self._lf, self._cr = encoding.encode_newline("\n"), encoding.encode_newline("\r")

    @cached_property
    def breaker(self) -> bytes:
        """The bytes at which lines are cut: LF, or CR in a file that has no LF."""
        return self._cr if not self._has_aligned(self._lf) and self._has_aligned(self._cr) else self._lf

    @cached_property
    def pieces(self) -> list[bytes]:
        """Every line without its last terminator byte or unit: the CR of a CRLF is still there."""
        body = self._data[len(self._encoding.bom) :]
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
        return self._data.endswith(self.breaker, len(self._encoding.bom))

    @cached_property
    def contents(self) -> list[bytes]:
        """Every line without its terminator."""
        if self._cr not in self._data:
            return self.pieces
        cut = list(map(bytes.removesuffix, self.pieces, repeat(self._cr)))
        if not self.final_newline:
            cut[-1] = self.pieces[-1]  # a CR at the very end of the file has no LF: it is content
        return cut

    def terminator(self, index: int) -> bytes:
        """Return the terminator of the line with this 0-based index; empty for an unterminated last line."""
        begin, end = self.starts[index], self.starts[index + 1]
        return self._data[begin + len(self.contents[index]) : end]

    def close_last_line(self, ending: bytes) -> bytes:
        """Return how an unterminated last line is ended before new lines: a CR at its end must stay content."""
        ends_in_cr = bool(self.contents) and self.contents[-1].endswith(self._cr)
        return self._cr + self._lf if ends_in_cr else ending

    def inherited_terminators(self, first: int, end: int, count: int) -> list[bytes]:
        """Return the terminators of new lines in the place of the lines `first` to `end`, or in the gap before `first`.

        Every line that is replaced passes its own one on; a further line takes that of the line before it. In a gap it is
        that of the line above, else of the line below, else the one that most lines use.
        """
        found = [stop for index in range(first, end) if (stop := self.terminator(index))]
        if not found:  # the line above may be a last one without terminator, which gets one
            around = chain(range(first - 1, -1, -1), range(end, len(self)))
            found = [next((stop for index in around if (stop := self.terminator(index))), self.dominant)]
        return [*found[:count], *[found[-1]] * (count - len(found))]

    def terminator_near(self, offset: int) -> bytes:
        """Return the terminator of a line break that is put into the line at an offset."""
        after = self.index_at(offset) + 1 if len(self) else 0
        [ending] = self.inherited_terminators(after, after, 1)
        return ending

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

    def _has_aligned(self, unit: bytes) -> bool:
        begin = len(self._encoding.bom)
        at = self._data.find(unit, begin)
        while at >= 0 and (at - begin) % self._encoding.width:
            at = self._data.find(unit, at + 1)
        return at >= 0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The facts about a file that are not its bytes."""

    mode: int
    """Permission bits only, as in `0o644`."""
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    xattrs: tuple[tuple[str, bytes], ...] = ()
    """Extended attributes in name order; access control lists are among them."""


Kind = Literal["file", "link", "directory", "fifo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of what a path leads to: the name of its bytes, their number, and the facts around them.

    The bytes of a symbolic link are where it leads to; a directory and a FIFO have none.
    """

    sha256: str
    size: int
    meta: Meta | None = None
    kind: Kind = "file"
    links: tuple[str, ...] = ()
    """The other names of the same file, as far as they are known."""
    holes: tuple[tuple[int, int], ...] = ()
    """Where the file has no blocks on the disk, as pairs of begin and end."""

    def __hash__(self) -> int:
        return hash(self.sha256)

    @property
    def mode(self) -> int | None:
        return self.meta.mode if self.meta else None


class Snapshot:
    """One file's bytes at one moment, named by their sha256. A missing file is a Snapshot too.

    Everything but the bytes is computed when it is first asked for, and only once.
    """

    def __init__(
        self,
        data: bytes | None,
        *,
        meta: Meta | None = None,
        encoding: Encoding | str | None = None,
        configured: EncodingHint | None = None,
        detector: EncodingDetector | None = None,
        name: Callable[[], str] | None = None,
    ) -> None:
        self.data = data if data is not None else b""
        self.exists = data is not None
        self.meta = meta
        self._encoding = encoding
        self._configured = configured
        self._detector = detector
        self._name = name
        self.mark: tuple[int, int] = (0, 1)
        """An offset whose line is known already."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and (self.exists, self.data) == (other.exists, other.data)

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"Snapshot({self.sha256[:12] or 'absent'}, {len(self.data)} bytes)"

    @cached_property
    def sha256(self) -> str:
        """The name of the bytes; empty for a missing file."""
        if not self.exists:
            return ""
        return self._name() if self._name else sha256_hex(self.data)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    @cached_property
    def version(self) -> Version | None:
        """What the ledger remembers of it."""
        return Version(sha256=self.sha256, size=len(self.data), meta=self.meta) if self.exists else None

    @cached_property
    def encoding(self) -> Encoding:
        """How the bytes spell characters; `BinaryFile` when they do not."""
        if isinstance(self._encoding, Encoding):
            return self._encoding
        return detect_encoding(
            self.data, requested=self._encoding, configured=self._configured, detector=self._detector
        )

    @cached_property
    def is_text(self) -> bool:
        """Whether the bytes spell characters at all."""
        try:
            _ = self.encoding
        except BinaryFile:
            return False
        return True

    @cached_property
    def lines(self) -> Lines:
        """The line table."""
        return Lines(self.data, self.encoding)

    @cached_property
    def digests(self) -> list[int]:
        """The digest of every line."""
        return line_digests(self.lines.contents, self.encoding)

    @property
    def text(self) -> str:
        """All characters, without the byte order mark."""
        return self.encoding.decode(self.data[len(self.encoding.bom) :])

    @property
    def line_count(self) -> int:
        """How many lines there are, without building the table for it."""
        if self.needs_table or "pieces" in self.lines.__dict__:
            return len(self.lines)
        body = len(self.data) > len(self.encoding.bom)
        return self.data.count(b"\n") + (body and not self.data.endswith(b"\n"))

    def line_number(self, offset: int) -> int:
        """Return the 1-based number of the line that holds this offset, without building the table for it."""
        return LineCounter(self).line_at(offset)

    @cached_property
    def needs_table(self) -> bool:
        """Whether line numbers cannot be had by counting LF bytes."""
        return self.encoding.width > 1 or self.lines.breaker == b"\r"


class LineCounter:
    """Line numbers of growing offsets: each byte is looked at once, and no table is built."""

    def __init__(self, snapshot: Snapshot, *, at: int = 0, line: int = 1) -> None:
        self._snapshot, self._data, self._at, self._line = snapshot, snapshot.data, at, line
        self._table = snapshot.lines if snapshot.needs_table else None

    def line_at(self, offset: int) -> int:
        """Return the 1-based line of an offset that is not before the last one asked for."""
        if self._table is not None:
            return self._table.index_at(offset) + 1
        if not self._at:
            return self._count_to_first(offset)
        if offset > self._at:
            self._line += self._data.count(b"\n", self._at, offset)
            self._at = offset
        return self._line

    def _count_to_first(self, offset: int) -> int:
        """Count up to the first offset, which every counter of a version is asked for: once for all of them."""
        mark = self._snapshot.mark
        if mark[0] != offset:
            mark = self._snapshot.mark = (offset, 1 + self._data.count(b"\n", 0, offset))
        self._at, self._line = mark
        return self._line


ABSENT = Snapshot(None)

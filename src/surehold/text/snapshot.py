"""One file at one moment: its bytes, its metadata, and what can be computed from them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from surehold.errors import BinaryFile
from surehold.text.encoding import Encoding, EncodingDetector, EncodingHint, detect_encoding
from surehold.text.lines import Lines, line_digests, sha256_hex


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

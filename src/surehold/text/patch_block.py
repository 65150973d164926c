"""A hunk in the bytes of its file, and where it may stand there.

1. Lines are compared without their terminators, so that a patch with LF fits a file with CRLF.
2. A hunk that tells CRLF rows from LF rows is about terminators: then they are compared too, and written as sent.
3. A row without a newline can only be the last of the file.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surehold.text.patch_hunk import Hunk, Row, Sign
from surehold.text.snapshot import Snapshot

_LAST_CHARACTER = 0x10FFFF
_FEW = 1000
_LONGEST_START = 64
_MARK = "\ufeff"


class Piece(NamedTuple):
    """One row of a hunk in the encoding of the file."""

    sign: Sign
    content: bytes
    ended: bool
    has_cr: bool
    """The row ends in CRLF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A hunk in the encoding of the file."""

    index: int
    hunk: Hunk
    pieces: tuple[Piece, ...]
    old: list[bytes]
    new: list[bytes]
    mixes_ends: bool
    """Some rows have a CR and some do not: the patch tells terminators apart."""
    at_start: bool
    """It shows the byte order mark, so it begins with the first line."""

    @property
    def speaks_of_cr(self) -> bool:
        """Whether any row ends in CRLF: then the patch knows how the file's lines end."""
        return any(piece.has_cr for piece in self.pieces)

    @property
    def old_ended(self) -> bool:
        """Whether the last line that must be there ends in a newline, as far as the patch says."""
        return all(piece.ended for piece in self.pieces if piece.sign != "+")

    @property
    def new_ended(self) -> bool:
        """Whether the last line that is there afterwards ends in a newline, as far as the patch says."""
        return all(piece.ended for piece in self.pieces if piece.sign != "-")

    @property
    def core(self) -> tuple[int, int]:
        """From which of its old lines to which it changes something; equal for an insertion."""
        first = last = here = 0
        changed = False
        for piece in self.pieces:
            if piece.sign != " ":
                first = first if changed else here
                changed, last = True, here + (piece.sign == "-")
            here += piece.sign != "+"
        return first, last


def block_of(index: int, hunk: Hunk, before: Snapshot) -> Block:
    """Return the hunk in the encoding of the file; `NotEncodable` when that has no bytes for it."""
    rows = _without_mark(hunk) if before.encoding.bom else hunk.rows
    at_start = rows != hunk.rows
    rows = _split_at_cr(rows) if before.lines.style == "cr" else rows
    pieces = tuple(_piece(row, before) for row in rows)
    old = [piece.content for piece in pieces if piece.sign != "+"]
    new = [piece.content for piece in pieces if piece.sign != "-"]
    kinds = {(True, "\r" in row.text[-1:]) for row in hunk.rows if row.ended}
    if before.lines.style == "cr":
        kinds = {(row.ended, "\r" in row.text) for row in hunk.rows if row.ended or "\r" in row.text}
    return Block(index=index, hunk=hunk, pieces=pieces, old=old, new=new, mixes_ends=len(kinds) > 1, at_start=at_start)


def _without_mark(hunk: Hunk) -> tuple[Row, ...]:
    """Drop the byte order mark that both sides show before their first line: it is no part of that line."""
    first = (hunk.old[:1] or [None])[0], (hunk.new[:1] or [None])[0]
    if not all(row and row.text.startswith(_MARK) for row in first):
        return hunk.rows
    return tuple(
        row._replace(text=row.text.removeprefix(_MARK)) if any(row is one for one in first) else row
        for row in hunk.rows
    )


def _piece(row: Row, before: Snapshot) -> Piece:
    has_cr = row.ended and row.text.endswith("\r")
    text = row.text[:-1] if has_cr else row.text
    return Piece(row.sign, before.encoding.encode(text), row.ended, has_cr)


def _split_at_cr(rows: Sequence[Row]) -> list[Row]:
    """Read rows as those of a file whose lines end in CR, where a tool that knows LF only sees one long line."""
    split = list[Row]()
    for row in rows:
        *ended, last = row.text.split("\r")
        split += (Row(row.sign, text) for text in ended)
        if last or not ended:
            split.append(Row(row.sign, last, row.ended))
    return split


class LineIndex:
    """Finds blocks among the lines of a file.

    Every line that some block has is one character, all others are another: a block is a word in that text, and
    the search for it runs at the speed of `str.find`.
    """

    def __init__(self, before: Snapshot, blocks: Sequence[Block]) -> None:
        self.before = before
        self.contents = before.lines.contents
        known = dict.fromkeys(line for block in blocks for line in (*block.old, *block.new))
        # Were there ever more lines than characters, two lines would share one; matches are compared again.
        self._signs = {line: chr(1 + number % _LAST_CHARACTER) for number, line in enumerate(known)}
        self._text = "".join([self._signs.get(line, "\0") for line in self.contents])
        self._counts = Counter(self._text)
        self._blocks = blocks
        self._starts: dict[int, dict[str, list[int]]] = {}

    def __len__(self) -> int:
        return len(self.contents)

    def find(self, lines: list[bytes], start: int = 0) -> Iterator[int]:
        """Yield every index from `start` on at which these lines stand."""
        word = self._word(lines)
        if not word or "\0" in word:
            return
        step = self._by_rare_line if min(self._counts[sign] for sign in word) <= _FEW else self._by_start
        yield from (at for at in step(word, start) if self.contents[at : at + len(lines)] == lines)

    def lines_like(self, line: bytes) -> Iterator[int]:
        """Yield every index at which this line stands."""
        return self.find([line])

    def fits(self, block: Block, at: int) -> bool:
        """Tell whether a block may stand here."""
        end = at + len(block.old)
        return 0 <= at <= end <= len(self) and self.contents[at:end] == block.old and self.may_stand(block, at)

    def may_stand(self, block: Block, at: int) -> bool:
        """Tell whether a block whose lines stand here means this place: by the ends of lines and of the file."""
        at_end = at + len(block.old) == len(self)
        if self.misplaces_mark(block, at):
            return False
        if not at_end and (block.hunk.at_end or not block.old_ended or not block.new_ended):
            return False
        if not block.old_ended and self.before.lines.final_newline:
            return False
        return not block.mixes_ends or (self.before.lines.style != "cr" and self.is_literal(block, at))

    def misplaces_mark(self, block: Block, at: int) -> bool:
        """Tell whether a byte order mark would be expected inside of the file, or written behind the file's own."""
        mark = self.before.encoding.bom
        doubled = bool(mark) and not at and bool(block.new) and block.new[0].startswith(mark)
        return doubled or (block.at_start and at > 0)

    def is_literal(self, block: Block, at: int) -> bool:
        """Tell whether the lines here end as the rows of the block do, CRLF or not."""
        lines, crlf = self.before.lines, self.before.encoding.newline("\r\n")
        old = (piece for piece in block.pieces if piece.sign != "+")
        return all(piece.has_cr == (lines.terminator(at + k) == crlf) for k, piece in enumerate(old) if piece.ended)

    def _by_rare_line(self, word: str, start: int) -> Iterator[int]:
        """Look at every place of the word's rarest line."""
        rare = min(word, key=self._counts.__getitem__)
        offset = word.index(rare)
        at = self._text.find(rare, start + offset)
        while at >= 0:
            if self._text.startswith(word, at - offset):
                yield at - offset
            at = self._text.find(rare, at + 1)

    def _by_start(self, word: str, start: int) -> Iterator[int]:
        """Look at every place where the first lines of the word stand; all words are looked up in one pass."""
        size = _start_size(word)
        places = self._starts_of(size).get(word[:size])
        if places is not None:
            for at in places[bisect_left(places, start) :]:
                if self._text.startswith(word, at):
                    yield at
            return
        at = self._text.find(word, start)
        while at >= 0:
            yield at
            at = self._text.find(word, at + 1)

    def _starts_of(self, size: int) -> dict[str, list[int]]:
        """Return where the first lines of all words stand that are looked up by so many lines."""
        if size not in self._starts:
            words = (self._word(block.old) for block in self._blocks)
            found: dict[str, list[int]] = {word[:size]: [] for word in words if word and _start_size(word) == size}
            for at in range(len(self._text) - size + 1):
                places = found.get(self._text[at : at + size])
                if places is not None:
                    places.append(at)
            self._starts[size] = found
        return self._starts[size]

    def _word(self, lines: list[bytes]) -> str:
        return "".join([self._signs.get(line, "\0") for line in lines])


def _start_size(word: str) -> int:
    """Return by how many lines a word is looked up: a power of two, so that there are few such numbers."""
    return min(_LONGEST_START, 1 << (len(word).bit_length() - 1))

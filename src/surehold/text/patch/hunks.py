"""The hunks of a patch, their form in the bytes of a file, and the lines of that file in which they are found.

1. Lines are compared without their terminators, so that a patch with LF fits a file with CRLF.
2. A hunk with both CRLF rows and LF rows is about terminators: then they are compared too, and written as sent.
3. A row without a newline can only be the last of the file.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from surehold.text.snapshot import Snapshot

LineSign = Literal[" ", "-", "+"]
LINE_SIGNS: dict[str, LineSign] = {" ": " ", "-": "-", "+": "+"}


class PatchLine(NamedTuple):
    sign: LineSign
    text: str
    """Without the line feed; a CR before it is still there."""
    ended: bool = True
    r"""False when `\ No newline at end of file` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedHunk:
    """Lines that must be in the file, which of them go, and what comes instead."""

    rows: tuple[PatchLine, ...]
    line: int
    """Where it begins in the patch."""
    start: int | None = None
    """The line of the file that its header names; None in the envelope, which has no numbers."""
    anchors: tuple[str, ...] = ()
    """Lines above it, from the outermost inwards."""
    at_end: bool = False
    """Its last line is the last of the file."""

    @property
    def old(self) -> list[PatchLine]:
        return [row for row in self.rows if row.sign != "+"]

    @property
    def new(self) -> list[PatchLine]:
        return [row for row in self.rows if row.sign != "-"]


_LAST_CHARACTER = 0x10FFFF
_RARE_LINE_PLACES = 1000
_MAX_START_LINES = 64
_BOM = "\ufeff"


class EncodedLine(NamedTuple):
    """One row of a hunk in the encoding of the file."""

    sign: LineSign
    content: bytes
    ended: bool
    has_cr: bool
    """The row ends in CRLF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedHunk:
    index: int
    hunk: ParsedHunk
    pieces: tuple[EncodedLine, ...]
    old: list[bytes]
    new: list[bytes]
    mixes_ends: bool
    """Some rows have a CR and some do not: the patch tells terminators apart."""
    at_start: bool
    """It shows the byte order mark, so it begins with the first line."""

    @property
    def old_ended(self) -> bool:
        """Whether the last line that must be there ends in a newline, as far as the patch says."""
        return all(piece.ended for piece in self.pieces if piece.sign != "+")

    @property
    def new_ended(self) -> bool:
        """Whether the last line that is there afterwards ends in a newline, as far as the patch says."""
        return all(piece.ended for piece in self.pieces if piece.sign != "-")

    @property
    def changed_range(self) -> tuple[int, int]:
        """From which of its old lines to which it changes something; equal for an insertion."""
        first = last = here = 0
        changed = False
        for piece in self.pieces:
            if piece.sign != " ":
                first = first if changed else here
                changed, last = True, here + (piece.sign == "-")
            here += piece.sign != "+"
        return first, last


def encode_hunk(index: int, hunk: ParsedHunk, before: Snapshot) -> EncodedHunk:
    """Return the hunk in the encoding of the file; `NotEncodable` when that has no bytes for it."""
    rows = _without_bom(hunk) if before.encoding.bom else hunk.rows
    at_start = rows != hunk.rows
    rows = _split_at_cr(rows) if before.lines.style == "cr" else rows
    pieces = tuple(_encode_line(row, before) for row in rows)
    old = [piece.content for piece in pieces if piece.sign != "+"]
    new = [piece.content for piece in pieces if piece.sign != "-"]
    kinds = {(True, "\r" in row.text[-1:]) for row in hunk.rows if row.ended}
    if before.lines.style == "cr":
        kinds = {(row.ended, "\r" in row.text) for row in hunk.rows if row.ended or "\r" in row.text}
    return EncodedHunk(
        index=index, hunk=hunk, pieces=pieces, old=old, new=new, mixes_ends=len(kinds) > 1, at_start=at_start
    )


def _without_bom(hunk: ParsedHunk) -> tuple[PatchLine, ...]:
    """Drop the byte order mark that both sides show before their first line: it is not part of that line."""
    first = (hunk.old[:1] or [None])[0], (hunk.new[:1] or [None])[0]
    if not all(row and row.text.startswith(_BOM) for row in first):
        return hunk.rows
    return tuple(
        row._replace(text=row.text.removeprefix(_BOM)) if any(row is one for one in first) else row for row in hunk.rows
    )


def _encode_line(row: PatchLine, before: Snapshot) -> EncodedLine:
    has_cr = row.ended and row.text.endswith("\r")
    text = row.text[:-1] if has_cr else row.text
    return EncodedLine(row.sign, before.encoding.encode(text), row.ended, has_cr)


def _split_at_cr(rows: Sequence[PatchLine]) -> list[PatchLine]:
    """Read rows as those of a file whose lines end in CR, where a tool that knows LF only sees one long line."""
    split = list[PatchLine]()
    for row in rows:
        *ended, last = row.text.split("\r")
        split += (PatchLine(row.sign, text) for text in ended)
        if last or not ended:
            split.append(PatchLine(row.sign, last, row.ended))
    return split


class PatchLineIndex:
    """Finds blocks among the lines of a file.

    Every line that some block has is one character, all others are another: a block is a word in that text, and
    the search for it runs at the speed of `str.find`.
    """

    def __init__(self, before: Snapshot, blocks: Sequence[EncodedHunk]) -> None:
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

    def find_lines(self, lines: list[bytes], start: int = 0) -> Iterator[int]:
        """Yield every index from `start` on at which these lines are."""
        word = self._encode_word(lines)
        if not word or "\0" in word:
            return
        has_rare_line = min(self._counts[sign] for sign in word) <= _RARE_LINE_PLACES
        step = self._find_by_rare_line if has_rare_line else self._find_by_start
        yield from (at for at in step(word, start) if self.contents[at : at + len(lines)] == lines)

    def fits_at(self, block: EncodedHunk, at: int) -> bool:
        end = at + len(block.old)
        return 0 <= at <= end <= len(self) and self.contents[at:end] == block.old and self.may_apply_at(block, at)

    def may_apply_at(self, block: EncodedHunk, at: int) -> bool:
        """Tell whether a block whose lines are here means this place: by the ends of lines and of the file."""
        at_end = at + len(block.old) == len(self)
        if self.misplaces_bom(block, at):
            return False
        if not at_end and (block.hunk.at_end or not block.old_ended or not block.new_ended):
            return False
        if not block.old_ended and self.before.lines.final_newline:
            return False
        return not block.mixes_ends or (self.before.lines.style != "cr" and self.has_same_terminators(block, at))

    def misplaces_bom(self, block: EncodedHunk, at: int) -> bool:
        """Tell whether a byte order mark would be expected inside of the file, or written after the file's own."""
        mark = self.before.encoding.bom
        doubled = bool(mark) and not at and bool(block.new) and block.new[0].startswith(mark)
        return doubled or (block.at_start and at > 0)

    def has_same_terminators(self, block: EncodedHunk, at: int) -> bool:
        """Tell whether the lines here end as the rows of the block do, CRLF or not."""
        lines, crlf = self.before.lines, self.before.encoding.encode_newline("\r\n")
        old = (piece for piece in block.pieces if piece.sign != "+")
        return all(piece.has_cr == (lines.terminator(at + k) == crlf) for k, piece in enumerate(old) if piece.ended)

    def _find_by_rare_line(self, word: str, start: int) -> Iterator[int]:
        rare = min(word, key=self._counts.__getitem__)
        offset = word.index(rare)
        at = self._text.find(rare, start + offset)
        while at >= 0:
            if self._text.startswith(word, at - offset):
                yield at - offset
            at = self._text.find(rare, at + 1)

    def _find_by_start(self, word: str, start: int) -> Iterator[int]:
        """Look at every place where the first lines of the word are; all words are looked up in one pass."""
        size = _start_size(word)
        places = self._start_places(size).get(word[:size])
        if places is not None:
            for at in places[bisect_left(places, start) :]:
                if self._text.startswith(word, at):
                    yield at
            return
        at = self._text.find(word, start)
        while at >= 0:
            yield at
            at = self._text.find(word, at + 1)

    def _start_places(self, size: int) -> dict[str, list[int]]:
        """Return where the first lines of all words are that are looked up by so many lines."""
        if size not in self._starts:
            words = (self._encode_word(block.old) for block in self._blocks)
            found: dict[str, list[int]] = {word[:size]: [] for word in words if word and _start_size(word) == size}
            for at in range(len(self._text) - size + 1):
                places = found.get(self._text[at : at + size])
                if places is not None:
                    places.append(at)
            self._starts[size] = found
        return self._starts[size]

    def _encode_word(self, lines: list[bytes]) -> str:
        return "".join([self._signs.get(line, "\0") for line in lines])


def _start_size(word: str) -> int:
    """Return by how many lines a word is looked up: a power of two, so that there are few such numbers."""
    return min(_MAX_START_LINES, 1 << (len(word).bit_length() - 1))

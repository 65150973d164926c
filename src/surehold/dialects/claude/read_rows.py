"""Lines laid out for reading: `N→text`, and `N.2→` where a very long line goes on."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import add

from surehold.text.page import Page

ARROW = "→"
_PIECE = 2_000
"""Characters of a line in one row."""
_PREFIX = 24
"""Characters that a row has besides, at most."""
_FIRST_PAGE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Lines laid out for reading, as many as fit."""

    rows: tuple[str, ...]
    lines: int
    """Lines that are shown, the last one perhaps in part."""
    next_column: int | None = None
    """Where the only line goes on that is here."""
    characters: int | None = None
    """How many the line has, when it is shown in part and that is known."""


def laid_out(page: Page, column: int, room: int) -> Rows:
    """Lay lines out with their numbers, as many as fit; the first one is shown in part when it alone is too long."""
    if column == 1 and (plain := _plain(page, room)):
        return plain
    rows, short = list[str](), min(_PIECE, max(room - _PREFIX, 1))
    for lines, row in enumerate(page.rows):
        text = bare(page.encoding.decode(row), page)
        is_cut = page.cut and lines == len(page.rows) - 1
        if column > max(len(text), 1):
            return Rows(rows=(), lines=0, characters=None if is_cut else len(text))
        number, rest = page.start + lines, text[column - 1 :]
        pieces = _pieces(number, rest, column, _PIECE)
        size = sum(map(len, pieces)) + len(pieces)
        if size > room or is_cut:
            pieces = _pieces(number, rest, column, short)
            shown = _whole_pieces(pieces[:-1] if is_cut else pieces, room)
            if rows or not shown:
                return Rows(rows=tuple(rows), lines=lines)
            total = None if is_cut else len(text)
            return Rows(rows=tuple(shown), lines=1, next_column=column + len(shown) * short, characters=total)
        room -= size
        rows += pieces
    return Rows(rows=tuple(rows), lines=len(page.rows))


def _plain(page: Page, room: int) -> Rows | None:
    """Lay out lines of which none is long, all at once; None when it is not that simple."""
    if page.cut or page.style == "cr" or not page.rows:
        return None
    text = page.text
    lines = text.removesuffix("\n").split("\n")
    if "\r" in text:
        ended = len(lines) - (not text.endswith("\n"))
        lines = [*(line.removesuffix("\r") for line in lines[:ended]), *lines[ended:]]
    if len(lines) != len(page.rows) or max(map(len, lines)) > _PIECE:
        return None
    rows = list(map(add, _prefixes(page.start, len(lines)), lines))
    sizes = list(accumulate(map(len, rows)))
    kept = bisect_right(range(len(rows)), room, key=lambda index: sizes[index] + index + 1)
    return Rows(rows=tuple(rows[:kept]), lines=kept) if kept else None


def _prefixes(first: int, count: int) -> Sequence[str]:
    """Return what stands in front of so many lines; those of the first page of a file are made only once."""
    if first == 1 and count <= _FIRST_PAGE:
        return _first_prefixes()
    return [f"{number}{ARROW}" for number in range(first, first + count)]


@cache
def _first_prefixes() -> tuple[str, ...]:
    return tuple(f"{number}{ARROW}" for number in range(1, _FIRST_PAGE + 1))


def _whole_pieces(pieces: list[str], room: int) -> list[str]:
    """Return the first pieces of a line that fit; one in any case."""
    fitting = sum(length <= room for length in accumulate(len(piece) + 1 for piece in pieces))
    return pieces[: max(fitting, 1)]


def _pieces(number: int, text: str, column: int, size: int) -> list[str]:
    """Return a line, or what is left of it from a column on, in rows of at most so many characters."""
    if column == 1 and len(text) <= size:
        return [f"{number}{ARROW}{text}"]
    found = list[str]()
    for start in range(0, len(text), size):
        part = (column - 1 + start) // _PIECE + 1
        found.append(f"{number}{f'.{part}' if part > 1 else ''}{ARROW}{text[start : start + size]}")
    return found


def bare(text: str, page: Page) -> str:
    """Return a line without its terminator; a CR that ends no line is content."""
    if page.style == "cr":
        return text.removesuffix("\r")
    bare = text.removesuffix("\n")
    return bare.removesuffix("\r") if len(bare) < len(text) else text

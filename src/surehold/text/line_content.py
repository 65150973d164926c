"""The text of an operation, as rows.

1. One final terminator is dropped; the empty text is one blank line.
2. Line breaks of the text only separate rows: which terminators are written is decided by the file.
3. Rows that all begin with real anchors were copied from a display; the anchors are cut off, and that is reported.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_BREAK = re.compile(r"\r\n|\n")
_ANY_BREAK = re.compile(r"\r\n|\n|\r")
_COPIED = re.compile(r"\d{1,9}#([0-9a-f]{6,16})(?:\.\d{1,9})?(?:[+-]\d{1,9})?[!~]?\|", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The rows of an operation's text, and how many of them begin with a real anchor."""

    rows: tuple[str, ...]
    copied: int

    @property
    def is_mixed(self) -> bool:
        """Whether some rows begin with an anchor and some do not, so that nobody can tell what is meant."""
        return 0 < self.copied < len(self.rows)

    @property
    def clean(self) -> tuple[str, ...]:
        """The rows without copied anchors."""
        return tuple(_COPIED.sub("", row, count=1) for row in self.rows) if self.copied else self.rows


def split_rows(text: str, *, lone_cr_breaks: bool) -> list[str]:
    """Return the rows of a text."""
    rows = (_ANY_BREAK if lone_cr_breaks else _BREAK).split(text)
    return rows[:-1] if len(rows) > 1 and not rows[-1] else rows


def copied_hashes(rows: Iterable[str]) -> set[str]:
    """Return the hashes of everything that looks like a copied anchor at the beginning of a row."""
    return {match[1].lower() for row in rows if (match := _COPIED.match(row))}


def content_of(rows: Iterable[str], is_real: Callable[[str], bool]) -> Content:
    """Tell copied rows from rows that only look so; an anchor is real when a line of the file has its hash."""
    kept = tuple(rows)
    marks = (_COPIED.match(row) for row in kept)
    return Content(rows=kept, copied=sum(mark is not None and is_real(mark[1].lower()) for mark in marks))

"""The operations a caller may send for lines, and the rows of their text.

1. One final terminator of the text is dropped; the empty text is one blank line.
2. Line breaks of the text only separate rows: the file decides which terminators are written.
3. Rows that all begin with real anchors were copied from a display; the anchors are cut off, and that is reported.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentOperation:
    """Any operation."""

    op: ClassVar[str]

    def as_sent(self, **instead: Any) -> dict[str, Any]:
        """Return the operation as plain data, ready to be sent, with some fields replaced."""
        own = {each.name: getattr(self, each.name) for each in fields(self)} | instead
        return {"op": self.op, **{name: value for name, value in own.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SingleLineBase(_SentOperation):
    """An operation that points at one line."""

    hash: str
    occurrence: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLine(_SingleLineBase):
    """One line becomes the content."""

    op = "replace_line"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAfter(_SingleLineBase):
    """The content goes below a line."""

    op = "insert_after"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertBefore(_SingleLineBase):
    """The content goes above a line."""

    op = "insert_before"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteLine(_SingleLineBase):
    """One line goes."""

    op = "delete_line"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineRangeBase(_SentOperation):
    """An operation that points at the first and the last of several lines."""

    start_hash: str
    end_hash: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRange(_LineRangeBase):
    """Both lines and all between become the content."""

    op = "replace_range"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRange(_LineRangeBase):
    """Both lines and all between go."""

    op = "delete_range"


Operation = ReplaceLine | InsertAfter | InsertBefore | DeleteLine | ReplaceRange | DeleteRange
SingleLineOperation = ReplaceLine | InsertAfter | InsertBefore | DeleteLine
RangeOperation = ReplaceRange | DeleteRange


_BREAK = re.compile(r"\r\n|\n")
_ANY_BREAK = re.compile(r"\r\n|\n|\r")
_COPIED_ANCHOR = re.compile(r"\d{1,9}#([0-9a-f]{6,16})(?:\.\d{1,9})?(?:[+-]\d{1,9})?[!~]?\|", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationText:
    """The rows of an operation's text, and how many of them begin with a real anchor."""

    rows: tuple[str, ...]
    copied: int

    @property
    def is_mixed(self) -> bool:
        """Whether some rows begin with an anchor and some do not, so that it is not certain what is meant."""
        return 0 < self.copied < len(self.rows)

    @property
    def clean_rows(self) -> tuple[str, ...]:
        """The rows without copied anchors."""
        return tuple(_COPIED_ANCHOR.sub("", row, count=1) for row in self.rows) if self.copied else self.rows


def split_rows(text: str, *, lone_cr_breaks: bool) -> list[str]:
    """Return the rows of a text."""
    rows = (_ANY_BREAK if lone_cr_breaks else _BREAK).split(text)
    return rows[:-1] if len(rows) > 1 and not rows[-1] else rows


def copied_hashes(rows: Iterable[str]) -> set[str]:
    """Return the hashes of everything that looks like a copied anchor at the beginning of a row."""
    return {match[1].lower() for row in rows if (match := _COPIED_ANCHOR.match(row))}


def detect_copied_rows(rows: Iterable[str], is_real: Callable[[str], bool]) -> OperationText:
    """Tell copied rows from rows that only look so; an anchor is real when a line of the file has its hash."""
    kept = tuple(rows)
    marks = (_COPIED_ANCHOR.match(row) for row in kept)
    return OperationText(rows=kept, copied=sum(mark is not None and is_real(mark[1].lower()) for mark in marks))

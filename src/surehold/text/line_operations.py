"""What a caller may do to lines, as it was sent."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """Any operation."""

    op: ClassVar[str]

    def as_sent(self, **instead: Any) -> dict[str, Any]:
        """Return the operation as plain data, ready to be sent, with some fields replaced."""
        own = {each.name: getattr(self, each.name) for each in fields(self)} | instead
        return {"op": self.op, **{name: value for name, value in own.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnLine(_Sent):
    """An operation that points at one line."""

    hash: str
    occurrence: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLine(_OnLine):
    """One line becomes the content."""

    op = "replace_line"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAfter(_OnLine):
    """The content goes below a line."""

    op = "insert_after"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertBefore(_OnLine):
    """The content goes above a line."""

    op = "insert_before"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteLine(_OnLine):
    """One line goes."""

    op = "delete_line"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnRange(_Sent):
    """An operation that points at the first and the last of several lines."""

    start_hash: str
    end_hash: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRange(_OnRange):
    """Both lines and all between become the content."""

    op = "replace_range"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRange(_OnRange):
    """Both lines and all between go."""

    op = "delete_range"


Operation = ReplaceLine | InsertAfter | InsertBefore | DeleteLine | ReplaceRange | DeleteRange
OnLine = ReplaceLine | InsertAfter | InsertBefore | DeleteLine
OnRange = ReplaceRange | DeleteRange

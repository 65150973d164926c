"""One operation of a call: what was sent, read."""

from dataclasses import dataclass
from typing import NamedTuple

import surehold.text.anchor_refusals as refusals
from surehold.errors import SchemaInvalid
from surehold.text.anchor import parse_anchor
from surehold.text.anchor_reading import Pointer
from surehold.text.anchor_trouble import Problem
from surehold.text.line_content import split_rows
from surehold.text.line_operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceRange,
)
from surehold.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An operation with its anchors and its text read."""

    index: int
    op: Operation
    pointers: tuple[Pointer, ...]
    rows: tuple[str, ...]

    @property
    def edge(self) -> str | None:
        """The edge of the file that it points at, instead of a line."""
        return self.pointers[0].anchor.edge


def read_request(index: int, op: Operation, before: Snapshot) -> Request | list[Problem]:
    """Read the fields of an operation, or tell what is wrong with each of them."""
    read = [_pointer(index, op, each) for each in _anchored_fields(op)]
    problems = [each for each in read if isinstance(each, Problem)]
    if problems:
        return problems
    rows = list[str]()
    if not isinstance(op, (DeleteLine, DeleteRange)):
        rows = split_rows(op.content, lone_cr_breaks=before.lines.breaker == before.encoding.newline("\r"))
    pointers = tuple(each for each in read if isinstance(each, Pointer))
    return Request(index=index, op=op, pointers=pointers, rows=tuple(rows))


class _Field(NamedTuple):
    """A field that holds an anchor, with the occurrence and the line number that stand beside it."""

    name: str
    text: str
    occurrence: int | None
    line: int | None


def _anchored_fields(op: Operation) -> tuple[_Field, ...]:
    if isinstance(op, (ReplaceRange, DeleteRange)):
        return (
            _Field("start_hash", op.start_hash, None, op.start_line),
            _Field("end_hash", op.end_hash, None, op.end_line),
        )
    return (_Field("hash", op.hash, op.occurrence, op.line),)


def _pointer(index: int, op: Operation, field: _Field) -> Pointer | Problem:
    try:
        anchor = parse_anchor(field.text, field=field.name)
    except SchemaInvalid as error:
        return refusals.bad_field(index, op, error)
    if anchor.edge and not isinstance(op, (InsertAfter, InsertBefore)):
        message = f"`{anchor.edge}` is no line, so it cannot be in `{field.name}` of {op.op}"
        action = "Use BOF and EOF with insert_after or insert_before."
        return refusals.unfit(index, op, message, action, field=field.name, given=anchor.edge)
    nth = field.occurrence
    if nth is not None and anchor.occurrence not in (None, nth):
        message = f"`{field.name}` says occurrence {anchor.occurrence}, but `occurrence` says {nth}"
        return refusals.unfit(index, op, message, "Send one of the two.", field="occurrence", given=nth)
    return Pointer(
        field=field.name,
        anchor=anchor,
        occurrence=anchor.occurrence if nth is None else nth,
        number=field.line if anchor.line is None else anchor.line,
    )

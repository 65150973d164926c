"""Line operations as a caller sends them, converted to the operations of the text core."""

from typing import ClassVar, Literal

from surehold.errors import SchemaInvalid
from surehold.text.anchored.edits import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.tools.spec import Json, NestedParams

_OPERATION_CLASSES: dict[str, type[Operation]] = {
    kind.op: kind for kind in (ReplaceLine, InsertAfter, InsertBefore, DeleteLine, ReplaceRange, DeleteRange)
}
_SINGLE_LINE_FIELDS = ("hash", "occurrence", "line")
_RANGE_FIELDS = ("start_hash", "end_hash", "start_line", "end_line")
_FIELD_TO_USE_INSTEAD = {
    "start_hash": "hash",
    "end_hash": "hash",
    "hash": "start_hash and end_hash",
    "start_line": "line",
    "end_line": "line",
    "line": "start_line and end_line",
    "occurrence": "the copied anchor with its `.K`, such as `118#5da3f1.7`",
    "content": "no content: it only deletes",
}


class LineOperation(NestedParams):
    """One operation on lines."""

    ALIASES: ClassVar = {"operation": "op", "text": "content", "new_content": "content", "anchor": "hash"}

    op: Literal["replace_line", "insert_after", "insert_before", "delete_line", "replace_range", "delete_range"]
    hash: str | None = None
    """Anchor of the line; BOF or EOF for inserts."""
    occurrence: int | None = None
    line: int | None = None
    start_hash: str | None = None
    """Ranges: anchor of the first line."""
    end_hash: str | None = None
    """Ranges: anchor of the last line."""
    start_line: int | None = None
    end_line: int | None = None
    content: str | None = None
    """New lines, without anchors."""

    @staticmethod
    def from_python(operation: Operation) -> Json:
        return operation.as_sent()

    def to_operation(self, index: int) -> Operation:
        """Return it as the text core takes it; refuse fields that belong to another kind of operation."""
        kind = _OPERATION_CLASSES[self.op]
        own = (
            *(_RANGE_FIELDS if issubclass(kind, (ReplaceRange, DeleteRange)) else _SINGLE_LINE_FIELDS),
            *_content_fields(kind),
        )
        sent = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        for name in sent:
            if name != "op" and name not in own:
                raise _foreign_field_error(index, self.op, name)
        for name in ("hash",) if "hash" in own else ("start_hash", "end_hash"):
            if name not in sent:
                raise _missing_field_error(index, self.op, name)
        if "content" in own and "content" not in sent:
            raise _missing_field_error(index, self.op, "content")
        if "\0" in str(sent.get("content", "")):
            raise SchemaInvalid(
                f"Operation {index}: `content` contains a NUL byte.",
                reason="zero_byte",
                operation_index=index,
                op=self.op,
                field="content",
            )
        return kind(**{name: value for name, value in sent.items() if name != "op"})


def _content_fields(kind: type[Operation]) -> tuple[str, ...]:
    return () if issubclass(kind, (DeleteLine, DeleteRange)) else ("content",)


def _foreign_field_error(index: int, op: str, name: str) -> SchemaInvalid:
    return SchemaInvalid(
        f"Operation {index}: `{op}` takes no `{name}`; use {_FIELD_TO_USE_INSTEAD[name]}.",
        reason="foreign_field",
        operation_index=index,
        op=op,
        field=name,
    )


def _missing_field_error(index: int, op: str, name: str) -> SchemaInvalid:
    return SchemaInvalid(
        f"Operation {index}: `{op}` needs `{name}`.",
        reason="missing_field",
        operation_index=index,
        op=op,
        field=name,
    )

"""The events of a tool call, and their two wire formats: ACP version 1, and the shape of the multi-edit contract."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from surehold.text.escape import ensure_utf8
from surehold.tools.call import Json
from surehold.tools.listing import Kind

Status = Literal["pending", "in_progress", "completed", "failed"]
Dialect = Literal["v1", "contract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLocation:
    """A place in a file that a call looks at or changes."""

    path: str
    """Absolute."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """A stretch of a file before and after: all of a small or new file, one hunk of a large one."""

    path: str
    """Absolute."""
    old: str | None
    """None for a file that is new."""
    new: str
    old_start: int = 1
    new_start: int = 1
    """The lines at which the two texts begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """One moment of a tool call. What a moment does not change stays empty."""

    call_id: str
    status: Status
    title: str = ""
    kind: Kind | Literal["execute"] | None = None
    locations: tuple[FileLocation, ...] = ()
    raw_input: Json | None = None
    raw_output: Json | None = None
    text: str = ""
    """What a model reads."""
    diff: str = ""
    """The unified diff of everything that the call changed."""
    diffs: tuple[FileDiff, ...] = ()
    content: tuple[Json, ...] = ()
    """Images and the like, as MCP spells them; ACP spells them the same."""
    change_id: str = ""
    """The id with which the change can be undone."""


MAX_INPUT_BYTES = 10 * 1024
"""Bytes of a text in the arguments of a call; a client shows them to a person."""
MAX_OUTPUT_BYTES = 256 * 1024
"""Bytes of a text in a result; a file can be larger than a message may be."""


def cut_texts(value: Any, limit: int) -> Any:
    """Return plain data in which no text has more bytes than the limit; what was cut says how much is missing."""
    if isinstance(value, str):
        return _cut_text(value, limit)
    if isinstance(value, dict):
        return {key: cut_texts(inner, limit) for key, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [cut_texts(inner, limit) for inner in cast("list[Any]", value)]
    return value


def _cut_text(text: str, limit: int) -> str:
    if len(text) <= limit // 4:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    head = data[:limit].decode("utf-8", "ignore")
    return f"{head}\n[{len(data) - limit:,} more bytes are not shown]"


CHANGE_KEY = "surehold/change"
LINES_KEY = "surehold/lines"


def to_acp_update(event: ToolEvent) -> Json:
    """Spell an event as today's clients understand it: the `update` of a `session/update`."""
    text = ({"type": "text", "text": event.text},) if event.text else ()
    update: Json = {
        "sessionUpdate": "tool_call" if event.status == "pending" else "tool_call_update",
        "toolCallId": event.call_id,
        "title": event.title or None,
        "kind": event.kind,
        "status": event.status,
        "locations": [_location_json(one) for one in event.locations],
        "rawInput": event.raw_input,
        "rawOutput": cut_texts(event.raw_output, MAX_OUTPUT_BYTES),
        "content": [
            *map(diff_content, event.diffs),
            *({"type": "content", "content": block} for block in (*text, *event.content)),
        ],
        "_meta": {CHANGE_KEY: event.change_id} if event.change_id else None,
    }
    return ensure_utf8({key: value for key, value in update.items() if value not in (None, [])})


def to_contract_update(event: ToolEvent) -> Json:
    if event.status == "pending":
        begin: Json = {
            "type": "toolCall",
            "id": event.call_id,
            "kind": event.kind,
            "status": event.status,
            "title": event.title or None,
            "locations": [{"path": one.path} for one in event.locations],
            "rawInput": event.raw_input,
        }
        return ensure_utf8({key: value for key, value in begin.items() if value is not None})
    fields: Json = {"status": event.status}
    if event.raw_output is not None:
        # The contract's results have no `_meta`; only callers of version 1 know what is in it.
        fields["rawOutput"] = {key: value for key, value in event.raw_output.items() if key != "_meta"}
        fields["content"] = [{"type": "text", "text": event.diff or event.text}]
    return ensure_utf8({"type": "toolCallUpdate", "id": event.call_id, "fields": fields})


EVENT_FORMATS: Mapping[Dialect, Callable[[ToolEvent], Json]] = {"v1": to_acp_update, "contract": to_contract_update}


def diff_content(diff: FileDiff) -> Json:
    """Spell a stretch of a file; where it does not begin at the top, it says where."""
    spelled: Json = {"type": "diff", "path": diff.path, "oldText": diff.old, "newText": diff.new}
    if (diff.old_start, diff.new_start) == (1, 1):
        return spelled
    return {**spelled, "_meta": {LINES_KEY: {"oldStart": diff.old_start, "newStart": diff.new_start}}}


def _location_json(location: FileLocation) -> Json:
    return {"path": location.path} if location.line is None else {"path": location.path, "line": location.line}

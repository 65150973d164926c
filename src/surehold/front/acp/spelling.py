"""The two spellings of an event: ACP version 1, and the literal shape of the multi-edit contract."""

from collections.abc import Callable, Mapping

from surehold.front.acp.cuts import MOST_OUTPUT, cut
from surehold.front.acp.event import Dialect, FileDiff, Location, ToolEvent
from surehold.front.mcp.strings import valid
from surehold.tools.spec import Json

CHANGE_KEY = "surehold/change"
LINES_KEY = "surehold/lines"


def canonical(event: ToolEvent) -> Json:
    """Spell an event as today's clients understand it: the `update` of a `session/update`."""
    begins = event.status == "pending"
    update: Json = {
        "sessionUpdate": "tool_call" if begins else "tool_call_update",
        "toolCallId": event.call_id,
        **_what(event),
        "status": event.status,
        "locations": [_place(one) for one in event.locations],
        "rawInput": event.raw_input,
        "rawOutput": cut(event.raw_output, MOST_OUTPUT),
        "content": [*map(spelled_diff, event.diffs), *map(_block, _blocks(event))],
        "_meta": {CHANGE_KEY: event.change_id} if event.change_id else None,
    }
    return valid({key: value for key, value in update.items() if value not in (None, [])})


def contract(event: ToolEvent) -> Json:
    """Spell an event letter by letter as the contract shows it."""
    if event.status == "pending":
        begin: Json = {
            "type": "toolCall",
            "id": event.call_id,
            **_what(event),
            "status": event.status,
            "locations": [{"path": one.path} for one in event.locations],
            "rawInput": event.raw_input,
        }
        return valid({key: begin[key] for key in _CONTRACT_ORDER if key in begin})
    fields: Json = {"status": event.status}
    if event.raw_output is not None:
        # The contract's results have no `_meta`; what stands there is known to callers of version 1 alone.
        fields["rawOutput"] = {key: value for key, value in event.raw_output.items() if key != "_meta"}
        fields["content"] = [{"type": "text", "text": event.diff or event.text}]
    return valid({"type": "toolCallUpdate", "id": event.call_id, "fields": fields})


SPELLINGS: Mapping[Dialect, Callable[[ToolEvent], Json]] = {"v1": canonical, "contract": contract}
_CONTRACT_ORDER = ("type", "id", "kind", "status", "title", "locations", "rawInput")


def spelled_diff(diff: FileDiff) -> Json:
    """Spell a stretch of a file; where it does not begin at the top, it says where."""
    spelled: Json = {"type": "diff", "path": diff.path, "oldText": diff.old, "newText": diff.new}
    if (diff.old_start, diff.new_start) == (1, 1):
        return spelled
    return {**spelled, "_meta": {LINES_KEY: {"oldStart": diff.old_start, "newStart": diff.new_start}}}


def _what(event: ToolEvent) -> Json:
    named: Json = {"title": event.title} if event.title else {}
    return {**named, "kind": event.kind} if event.kind else named


def _place(location: Location) -> Json:
    if location.line is None:
        return {"path": location.path}
    return {"path": location.path, "line": location.line}


def _blocks(event: ToolEvent) -> tuple[Json, ...]:
    text = ({"type": "text", "text": event.text},) if event.text else ()
    return (*text, *event.content)


def _block(block: Json) -> Json:
    return {"type": "content", "content": block}

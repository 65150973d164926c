"""A tool's answer becomes the result that a host understands.

1. A tool that only looks answers with text; hosts would show its data instead of the text.
2. A tool that changes something answers with text and data that each suffice alone.
3. Every result carries all of the data for programs in `_meta`.
4. What is larger than the host's budget is kept as a resource, and the result says where. Nothing is cut silently.
"""

import json
from collections.abc import Callable
from typing import Any, cast

from surehold.front.mcp.strings import shown_data, valid
from surehold.text.visible import safe_rows
from surehold.tools.context import Budget
from surehold.tools.spec import Answer, Json, Params, Result, Tool

RESULT_KEY = "surehold/result"
SESSION_KEY = "surehold/session"
MENDED_KEY = "surehold/mended"
SAVED_KEY = "answerSavedAs"
_SHORTEST = 200
_FEWEST = 5
_ROOM = 200
"""Characters for the sentence that says where the rest is."""

Keep = Callable[[str, str], str]
"""Keeps a text of some MIME type and returns the address of the resource."""


def tool_result(tool: Tool[Params, Result], answer: Answer, *, budget: Budget, handle: str, keep: Keep) -> Json:
    """Return the result of a call as the protocol spells it."""
    looks = tool.hints.read_only
    text = fitting_text(valid(answer.text) if looks else safe_rows(answer.text), budget.answer_characters, keep)
    content: list[Json] = [{"type": "text", "text": text}] if text or not answer.content else []
    meta: Json = {RESULT_KEY: valid(answer.data)}
    if handle:
        meta[SESSION_KEY] = handle
    result: Json = {"content": [*content, *valid(answer.content)], "isError": not answer.ok, "_meta": meta}
    if tool.output_schema is not None:
        result["structuredContent"] = fitting_data(
            shown_data(answer.structured or answer.data), budget.answer_characters, keep
        )
    return result


def fitting_text(text: str, limit: int, keep: Keep) -> str:
    """Return a text that fits; the whole one is kept when it does not."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - _ROOM, 0)]
    head = head[: head.rfind("\n") + 1] or head
    place = keep(text, "text/plain")
    rest = len(text) - len(head)
    return f"{head}\n[{rest:,} more characters did not fit. All of it is the resource {place}]"


def fitting_data(data: Json, limit: int, keep: Keep) -> Json:
    """Return data that fits as JSON: the longest texts and lists in it are shortened, and all of it is kept."""
    whole = json.dumps(data, ensure_ascii=False)
    if len(whole) <= limit:
        return data
    place = keep(whole, "application/json")
    length, count = limit, limit
    small = data
    while length > _SHORTEST or count > _FEWEST:
        length, count = max(length // 2, _SHORTEST), max(count // 2, _FEWEST)
        small = {**cast("Json", _shortened(data, length, count, place)), SAVED_KEY: place}
        if len(json.dumps(small, ensure_ascii=False)) <= limit:
            break
    return small


def _shortened(value: Any, length: int, count: int, place: str) -> Any:
    if isinstance(value, str):
        rest = len(value) - length
        return value if rest <= 0 else f"{value[:length]}\n[{rest:,} more characters: {place}]"
    if isinstance(value, dict):
        rows = cast("Json", value)
        return {key: _shortened(inner, length, count, place) for key, inner in rows.items()}
    if isinstance(value, list):
        return [_shortened(inner, length, count, place) for inner in cast("list[Any]", value)[:count]]
    return value

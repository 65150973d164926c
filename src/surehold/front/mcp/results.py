"""Turns a tool's answer into the result that a host understands.

1. A read-only tool answers with text; hosts would show its data instead of the text.
2. A tool that changes something answers with text and data that each suffice alone.
3. Every result carries all of the data for programs in `_meta`.
4. What exceeds the host's budget is saved as a resource, and the result says where. Nothing is cut silently.
"""

import json
from collections.abc import Callable
from typing import Any, cast

from surehold.front.shared.sanitize import encode_json, ensure_utf8, escape_data
from surehold.text.escape import escape_lines
from surehold.tools.call import AnswerBudget, Params
from surehold.tools.spec import Answer, Json, Result, Tool

RESULT_KEY = "surehold/result"
SESSION_KEY = "surehold/session"
REPAIRED_KEY = "surehold/mended"
_SAVED_KEY = "answerSavedAs"
_MIN_TEXT_CHARS = 200
_MIN_LIST_ITEMS = 5
_NOTE_CHARS = 200
"""Characters for the sentence that says where the rest is."""

KeepText = Callable[[str, str], str]
"""Keeps a text of some MIME type and returns the address of the resource."""


def tool_result(
    tool: Tool[Params, Result], answer: Answer, *, budget: AnswerBudget, handle: str, keep: KeepText
) -> Json:
    limit, read_only = budget.answer_characters, tool.hints.read_only
    text = cut_text_to_fit(ensure_utf8(answer.text) if read_only else escape_lines(answer.text), limit, keep)
    content: list[Json] = [{"type": "text", "text": text}] if text or not answer.content else []
    encoded = encode_json(answer.data)
    plain = encoded.isascii() and "\x7f" not in encoded  # then there is nothing to escape
    meta: Json = {RESULT_KEY: answer.data if plain else ensure_utf8(answer.data)}
    if handle:
        meta[SESSION_KEY] = handle
    result: Json = {"content": [*content, *ensure_utf8(answer.content)], "isError": not answer.ok, "_meta": meta}
    if tool.output_schema is not None:
        if plain and (answer.structured is None or answer.structured is answer.data) and len(encoded) <= limit:
            result["structuredContent"] = answer.data
        else:
            result["structuredContent"] = cut_data_to_fit(escape_data(answer.structured or answer.data), limit, keep)
    return result


def cut_text_to_fit(text: str, limit: int, keep: KeepText) -> str:
    """Return a text that fits; the whole one is kept when it does not."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - _NOTE_CHARS, 0)]
    head = head[: head.rfind("\n") + 1] or head
    uri = keep(text, "text/plain")
    rest = len(text) - len(head)
    return f"{head}\n[{rest:,} more characters did not fit. All of it is the resource {uri}]"


def cut_data_to_fit(data: Json, limit: int, keep: KeepText) -> Json:
    """Return data that fits as JSON: the longest texts and lists in it are shortened, and all of it is kept."""
    whole = json.dumps(data, ensure_ascii=False)
    if len(whole) <= limit:
        return data
    uri = keep(whole, "application/json")
    length, count = limit, limit
    small = data
    while length > _MIN_TEXT_CHARS or count > _MIN_LIST_ITEMS:
        length, count = max(length // 2, _MIN_TEXT_CHARS), max(count // 2, _MIN_LIST_ITEMS)
        small = {**cast("Json", _shorten_values(data, length, count, uri)), _SAVED_KEY: uri}
        if len(json.dumps(small, ensure_ascii=False)) <= limit:
            break
    return small


def _shorten_values(value: Any, length: int, count: int, uri: str) -> Any:
    if isinstance(value, str):
        rest = len(value) - length
        return value if rest <= 0 else f"{value[:length]}\n[{rest:,} more characters: {uri}]"
    if isinstance(value, dict):
        rows = cast("Json", value)
        return {key: _shorten_values(inner, length, count, uri) for key, inner in rows.items()}
    if isinstance(value, list):
        return [_shorten_values(inner, length, count, uri) for inner in cast("list[Any]", value)[:count]]
    return value

"""Turns a tool's answer into the result that a host understands.

1. A read-only tool answers with text; hosts would show its data instead of the text.
2. A tool that changes something answers with text and data that each suffice alone. A host may show both, so together they
   fit its budget.
3. All of the data for programs is in `_meta`, for a client that asks: other hosts would show it to their model.
4. What exceeds the host's budget is saved as a resource, and the result says where. Nothing is cut silently.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from surehold.front.mcp.protocol import RESULT_KEY, SESSION_KEY
from surehold.text.escape import encode_json, ensure_utf8, escape_data, escape_lines
from surehold.text.measure import TextRoom
from surehold.tools.call import Answer, AnswerBudget, Json
from surehold.tools.listing import ListedTool

_SAVED_KEY = "answerSavedAs"
_TRUNCATED_FLAGS = ("diffTruncated", "diff_truncated")
"""What says of a diff beside it that it was cut."""
_MIN_TEXT_CHARS = 200
_MIN_LIST_ITEMS = 5

KeepText = Callable[[str, str], str]
"""Keeps a text of some MIME type and returns the address of the resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOptions:
    budget: AnswerBudget
    keep: KeepText
    handle: str = ""
    """The session to go on with, where the client must name it."""
    with_data: bool = False
    """Put the data for programs into `_meta`."""


def tool_result(tool: ListedTool, answer: Answer, *, options: ResultOptions) -> Json:
    budget = options.budget
    text = ensure_utf8(answer.text) if tool.hints.read_only else escape_lines(answer.text)
    plain, structured = False, None
    if tool.output_schema is not None or options.with_data:
        encoded = encode_json(answer.data)
        plain = encoded.isascii() and "\x7f" not in encoded  # then there is nothing to escape
    if tool.output_schema is not None:
        same = answer.structured is None or answer.structured is answer.data
        data = answer.data if plain and same else escape_data(answer.structured or answer.data)
        text, structured = _fit_both(text, data, options)
    elif not budget.delivers(text):
        text = cut_text_to_fit(text, TextRoom(size=budget.answer, measure=budget.size_of), options.keep)
    content: list[Json] = [{"type": "text", "text": text}] if text or not answer.content else []
    result: Json = {
        "content": [*content, *ensure_utf8(answer.content)] if answer.content else content,
        "isError": not answer.ok,
    }
    if structured is not None:
        result["structuredContent"] = structured
    meta: Json = {}
    if options.with_data and structured != answer.data:
        meta[RESULT_KEY] = answer.data if plain else ensure_utf8(answer.data)
    if options.handle:
        meta[SESSION_KEY] = options.handle
    return {**result, "_meta": meta} if meta else result


def _fit_both(text: str, data: Json, options: ResultOptions) -> tuple[str, Json]:
    """Return a text and data that fit together; if they do not, each gets at least half."""
    budget = options.budget
    size = budget.size_of_data(encode_json(data))
    if budget.size_of(text) + size <= budget.answer:
        return text, data
    for_text = TextRoom(size=max(budget.answer - size, budget.answer // 2), measure=budget.size_of)
    text = cut_text_to_fit(text, for_text, options.keep)
    for_data = TextRoom(size=budget.answer - budget.size_of(text), measure=budget.size_of_data)
    return text, cut_data_to_fit(data, for_data, options.keep)


def cut_text_to_fit(text: str, room: TextRoom, keep: KeepText) -> str:
    """Return a text that fits; the whole one is kept when it does not."""
    if room.measure(text) <= room.size:
        return text
    uri = keep(text, "text/plain")
    longest = _rest_note(len(text), uri)
    head = room.less(room.measure(longest)).cut_text(text)
    head = head[: head.rfind("\n") + 1] or head
    return head + _rest_note(len(text) - len(head), uri)


def _rest_note(count: int, uri: str) -> str:
    return f"\n[{count:,} more characters did not fit. All of it is the resource {uri}]"


def cut_data_to_fit(data: Json, room: TextRoom, keep: KeepText) -> Json:
    """Return data that fits as JSON: the longest texts and lists in it are shortened, and all of it is kept."""
    whole = encode_json(data)
    if room.measure(whole) <= room.size:
        return data
    uri = keep(whole, "application/json")
    for length, count in _shortening_steps(room.size):
        small = {**cast("Json", _shorten_values(data, length, count, uri)), _SAVED_KEY: uri}
        if room.measure(encode_json(small)) <= room.size:
            return small
    return {_SAVED_KEY: uri}


def _shortening_steps(size: int) -> Iterator[tuple[int, int]]:
    """Yield shorter and shorter texts and lists; below what makes sense only when nothing else helps."""
    length = count = size
    while length > _MIN_TEXT_CHARS or count > _MIN_LIST_ITEMS:
        length, count = max(length // 2, _MIN_TEXT_CHARS), max(count // 2, _MIN_LIST_ITEMS)
        yield length, count
    while length:
        length, count = length // 2, count // 2
        yield length, count


def _shorten_values(value: Any, length: int, count: int, uri: str) -> Any:
    if isinstance(value, str):
        rest = len(value) - length
        note = f"\n[{rest:,} more characters: {uri}]" if length >= _MIN_TEXT_CHARS else "…"
        return value if rest <= 0 else f"{value[:length]}{note}"
    if isinstance(value, dict):
        rows = cast("Json", value)
        short = {key: _shorten_values(inner, length, count, uri) for key, inner in rows.items()}
        return short | {
            flag: True for flag in _TRUNCATED_FLAGS if flag in rows and short.get("diff") != rows.get("diff")
        }
    if isinstance(value, (list, tuple)):
        return [_shorten_values(inner, length, count, uri) for inner in cast("list[Any]", value)[:count]]
    return value

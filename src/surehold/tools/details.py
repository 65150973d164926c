"""The details of a refusal as rows for a model. What is data for a program is words here.

1. A fact is one row, `name: value`. Facts that say nothing are left out.
2. Lines of a file are rows of their own, `12→text` or `12#5da3f1|text`, so that they can be copied; `--` is between places.
3. An operation that can be sent is JSON. Nothing else is spelled as a program would, and control characters are escaped.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from surehold.text.escape import escape_lines, escape_text

_DETAIL_CHARS = 2_000
"""How many characters of one detail a model is shown; programs get all of it."""
_MEANINGFUL_WHEN_FALSE = "editsStillApply"
_SAID_OTHERWISE = frozenset({"index", "op", "error", "kind", "message", "line", "operation", "field", "fresh_lines"})
"""What a listed problem says in its own row."""

_TAB = "\t"
_Item = Mapping[str, Any]


def detail_rows(details: Mapping[str, Any], *, leave_out: frozenset[str] = frozenset()) -> list[str]:
    """Lay details out for reading: one row each, longer ones below their name."""
    rows = list[str]()
    for key, value in details.items():
        is_in_message = key in leave_out or (
            key == "problems" and isinstance(value, list) and len(cast("list[Any]", value)) == 1
        )
        if not is_in_message and _says_something(key, value):
            rows += _fact_rows(key, value)
    return rows


def _says_something(key: str, value: Any) -> bool:
    return key == _MEANINGFUL_WHEN_FALSE if value is False else value is not None and value not in ("", [], {})


def _fact_rows(key: str, value: Any) -> list[str]:
    if isinstance(value, str):
        shown = escape_lines(value if len(value) <= _DETAIL_CHARS else value[:_DETAIL_CHARS] + "…").rstrip()
        return [f"{key}:\n{shown}" if "\n" in shown or _is_row(shown) else f"{key}: {shown}"]
    if isinstance(value, Mapping):
        item = cast("_Item", value)
        return [f"{key}: {row}" for row in [_plain_item(item)] if row] or [f"{key}:", *_item_rows(item)]
    if not isinstance(value, (list, tuple)):
        return [f"{key}: {_word(value)}"]
    items = cast("Sequence[Any]", value)
    if all(isinstance(item, Mapping) for item in items):
        return [f"{key}:", *_list_rows(cast("Sequence[_Item]", items))]
    if any(isinstance(item, str) and "|" in item for item in items):  # rows of a file
        return [f"{key}:", *(escape_text(str(item), keep=_TAB) for item in items)]
    return [f"{key}: " + ", ".join(map(_word, items))]


def _list_rows(items: Sequence[_Item]) -> Iterator[str]:
    for number, item in enumerate(items):
        rows = list(_item_rows(item))
        if number and len(rows) > 1 and _is_row(rows[0]):
            yield "--"
        yield from rows


def _is_row(text: str) -> bool:
    """Tell whether a text is a line of a file with its number."""
    return text.partition("→")[0].isdigit()


def _item_rows(item: _Item) -> Iterator[str]:
    layout = next((layout for names, layout in _LAYOUTS if names <= item.keys()), None)
    if layout is not None:
        yield from layout(item)
    else:
        yield f"- {_plain_item(item)}"


def _plain_item(item: _Item) -> str:
    """Return an item of plain facts as one row; nothing if it has lines of a file or other items in it."""
    if any(names <= item.keys() for names, _ in _LAYOUTS):
        return ""
    if "op" in item:
        return json.dumps(item, ensure_ascii=False)
    told = {key.replace("_", " "): value for key, value in item.items() if value not in (None, "", [], {}, False)}
    return ", ".join(key if value is True else f"{key} {_quoted(value)}" for key, value in told.items())


def _line_rows(item: _Item) -> Iterator[str]:
    for number, row in enumerate(str(item["text"]).split("\n"), start=item["line"]):
        yield f"{number}→{escape_text(row, keep=_TAB)}"


def _fresh_rows(item: _Item) -> Iterator[str]:
    return (row for line in item["fresh"] for row in _line_rows(line))


def _context_rows(item: _Item) -> Iterator[str]:
    yield from str(item["context"]).split("\n")


def _candidate_rows(item: _Item) -> Iterator[str]:
    nth, row = item.get("occurrence"), f"{item['anchor']}|{escape_text(item['preview'], keep=_TAB)}"
    context = f"context {item['context']}"
    yield f"- occurrence {nth}, {context}: {row}" if nth else f"- {context}: {row}"


def _argument_rows(item: _Item) -> Iterator[str]:
    yield f"- `{item['argument']}`: {item['problem']}."


def _problem_rows(item: _Item) -> Iterator[str]:
    """Say a listed problem, and show what belongs to it."""
    yield f"- Operation {item['index']}: {item['message']}." if "index" in item else f"- {item['message']}"
    yield from detail_rows(item, leave_out=_SAID_OTHERWISE)


_LAYOUTS: tuple[tuple[frozenset[str], Callable[[_Item], Iterator[str]]], ...] = (
    (frozenset({"anchor", "context", "preview"}), _candidate_rows),
    (frozenset({"message"}), _problem_rows),
    (frozenset({"argument", "problem"}), _argument_rows),
    (frozenset({"line", "fresh"}), _fresh_rows),
    (frozenset({"line", "context"}), _context_rows),
    (frozenset({"line", "text"}), _line_rows),
)
"""How items with these fields are laid out."""


def _quoted(value: Any) -> str:
    return f"`{escape_text(value)}`" if isinstance(value, str) else _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return escape_text(value)
    if isinstance(value, (list, tuple)):  # first and last line, or several of them
        parts = cast("Sequence[Any]", value)
        if len(parts) == 2 and all(isinstance(part, int) for part in parts):  # noqa: PLR2004 - a pair
            return str(parts[0]) if parts[0] == parts[1] else f"{parts[0]}-{parts[1]}"
        return ", ".join(map(_word, parts))
    return str(value) if isinstance(value, (int, float)) else json.dumps(value, ensure_ascii=False)

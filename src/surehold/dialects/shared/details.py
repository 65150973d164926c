"""The details of a refusal, laid out for reading."""

from typing import Any, cast

from surehold.tools.schema import Json

_SAID = frozenset({"editIndex", "oldText"})
"""Details that the message says, or the caller sent."""
_SHOWN = 2_000
"""How many characters of one detail a model is shown; programs get all of it."""


def detail_rows(details: Json) -> list[str]:
    """Lay details out for reading: one line each, longer texts as blocks."""
    rows = list[str]()
    for key, value in details.items():
        if key in _SAID or value in (None, "", [], {}) or (value is False and key != "editsStillApply"):
            continue
        rows.append(_detail(key, value))
    return rows


def _detail(key: str, value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        return f"{key}:\n{shown.rstrip()}" if "\n" in shown else f"{key}: {shown}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, str) and "|" in item for item in items):  # rows of a file
            return "\n".join([f"{key}:", *map(str, items)])
        if all(isinstance(item, (int, str)) for item in items):
            return f"{key}: " + ", ".join(map(str, items))
        return "\n".join([f"{key}:", *(f"- {_flat(item)}" for item in items)])
    return f"{key}: {_flat(value)}"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in cast("Json", value).items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)

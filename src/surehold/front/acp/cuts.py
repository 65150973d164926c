"""Long texts in plain data, cut and marked."""

from typing import Any, cast

MOST_INPUT = 10 * 1024
"""Bytes of a text in the arguments of a call; a client shows them, and nobody reads more."""
MOST_OUTPUT = 256 * 1024
"""Bytes of a text in a result; a file can be larger than a message may be."""


def cut(value: Any, limit: int) -> Any:
    """Return plain data in which no text has more bytes than the limit; what was cut says how much is missing."""
    if isinstance(value, str):
        return _cut(value, limit)
    if isinstance(value, dict):
        return {key: cut(inner, limit) for key, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [cut(inner, limit) for inner in cast("list[Any]", value)]
    return value


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit // 4:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    head = data[:limit].decode("utf-8", "ignore")
    return f"{head}\n[{len(data) - limit:,} more bytes are not shown]"

"""How the pages of the reference write tables and code."""

import re
from typing import Any

_BLOCK_CHARS = 100
"""The width of a block on a page."""


def line(text: str) -> str:
    """Return text as one line."""
    return re.sub(r"\s+", " ", text).strip()


def cell(text: str) -> str:
    """Return text as a cell of a table: one line, its bars escaped."""
    return line(text).replace("|", "\\|")


def code(value: Any) -> str:
    """Return a value as code in a cell; nothing for nothing."""
    return f"`{cell(str(value))}`" if value not in (None, "") else ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def signature_block(text: str) -> str:
    """Return a signature as a block of Python, one argument a line where it is long."""
    if len(text) > _BLOCK_CHARS and "(" in text:
        name, _, rest = text.partition("(")
        inner, _, result = rest.rpartition(") -> ")
        text = f"{name}(\n    " + ",\n    ".join(_split(inner)) + f",\n) -> {result}"
    return f"```py\n{text}\n```\n"


def _split(text: str) -> list[str]:
    """Split arguments at the commas between them, not at those inside of brackets or texts."""
    parts, depth, start, quote = list[str](), 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]

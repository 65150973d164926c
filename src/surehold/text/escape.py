"""Escapes control and direction characters, so that text cannot steer a terminal or mislead a reader."""

import re
import unicodedata
from functools import cache

# Reorder or hide their neighbours: marks, embeddings and isolates, separators, the byte order mark, tags.
_DECEPTIVE = re.compile(r"[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_TAB = "\t"
_SURROGATE_BYTES = (0xDC80, 0xDCFF)  # how Python spells the bytes of a file name that is not UTF-8


def preview_text(text: str, chars: int) -> str:
    """Return a text of at most so many characters: its beginning and an ellipsis where it is longer."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def quote_line(text: str, chars: int) -> str:
    """Return a text for a sentence: cut to so many characters, escaped, in backticks."""
    return f"`{escape_text(preview_text(text, chars), keep=_TAB)}`"


def escape_text(text: str, *, keep: str = "") -> str:
    """Return the text with everything escaped that could steer a terminal or fool a reader; `keep` names controls that may stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep else _escape_character(c) for c in text)


def escape_lines(text: str) -> str:
    """Return several lines with everything escaped but tabs and the line breaks themselves."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    rows = (
        escape_text(row.removesuffix("\r"), keep="\t") + ("\r" if row.endswith("\r") else "")
        for row in text.split("\n")
    )
    return "\n".join(rows)


_EDITABLE_ESCAPE = re.compile("⟦U\\+(10[0-9A-F]{4}|[0-9A-F]{4,5})⟧")


def escape_editable(text: str) -> str:
    """Return lines for a box in which a person edits them, with visible escapes that `unescape_editable` turns back exactly."""
    marked = _EDITABLE_ESCAPE.sub(lambda match: f"⟦U+27E6⟧{match[0][1:]}", text)  # it only looks like one of ours
    if marked.isascii() and marked.replace("\n", "").replace("\t", "").isprintable():
        return marked
    return "".join(c if c in "\n\t" or _escape_character(c) == c else f"⟦U+{ord(c):04X}⟧" for c in marked)


def unescape_editable(text: str) -> str:
    return _EDITABLE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


@cache
def _escape_character(character: str) -> str:
    code = ord(character)
    if _SURROGATE_BYTES[0] <= code <= _SURROGATE_BYTES[1]:
        return f"\\x{code - 0xDC00:02x}"
    tricky = unicodedata.category(character) in {"Cc", "Cs"} or _DECEPTIVE.match(character)
    return character.encode("unicode_escape").decode() if tricky else character

"""Makes text safe to show and to send: no character that steers a terminal or misleads a reader, and valid UTF-8 only.

One lone surrogate in an answer ends an SDK server, and a file name that is not UTF-8 is enough to produce one. Data is
encoded once to find out whether it is safe, and copied only when it is not.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from surehold.errors import InvalidArgument

# Reorder or hide their neighbours: marks, embeddings and isolates, separators, the byte order mark, tags.
_DECEPTIVE = re.compile(r"[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
# Take no room: what they do to their neighbours is seen or is nothing, so text and whole names can be hidden by them.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u206f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff]"
)
_NON_JOINER, _JOINER, _EMOJI_STYLE = "\u200c", "\u200d", "\ufe0f"
_JOINED_SCRIPTS = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
"""Arabic and its kin, the scripts of India and their kin, Mongolian: whether letters join can make another word."""
_TAB = "\t"
_SURROGATE_BYTES = (0xDC80, 0xDCFF)  # how Python spells the bytes of a file name that is not UTF-8
_SURROGATE = re.compile("[\ud800-\udfff]")
_EARLY_CONTROLS = "".join(map(chr, range(0x20)))
"""JSON escapes these itself."""


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
    return _map_rows(text, escape_text)


def _map_rows(text: str, show: Callable[..., str]) -> str:
    rows = text.split("\n")
    return "\n".join(show(row.removesuffix("\r"), keep=_TAB) + ("\r" if row.endswith("\r") else "") for row in rows)


def reveal_text(text: str, *, keep: str = "") -> str:
    """Return the text for a person who decides by it: escaped, and nothing in it that takes no room and is not needed."""
    if text.isascii() or not _UNSEEN.search(text):
        return escape_text(text, keep=keep)
    return "".join(c if c in keep else _reveal_character(text, at) for at, c in enumerate(text))


def reveal_lines(text: str) -> str:
    """Return several lines for a person who decides by them; tabs and the line breaks stay."""
    return escape_lines(text) if text.isascii() else _map_rows(text, reveal_text)


def _reveal_character(text: str, at: int) -> str:
    character = text[at]
    if not _UNSEEN.match(character) or _is_part_of_neighbours(text, at):
        return _escape_character(character)
    return character.encode("unicode_escape").decode()


def _is_part_of_neighbours(text: str, at: int) -> bool:
    """Tell whether a character makes one picture or one word with its neighbours, as in Persian, Hindi, and pictures of families."""
    character, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    kind = unicodedata.category(before)
    if character in {_JOINER, _NON_JOINER} and _JOINED_SCRIPTS.match(before) and _JOINED_SCRIPTS.match(after):
        return True
    if character == _JOINER:
        is_picture = kind in {"So", "Sk"} or (before == _EMOJI_STYLE and _is_part_of_neighbours(text, at - 1))
        return is_picture and bool(after) and unicodedata.category(after) == "So"
    if character in {"\ufe0e", _EMOJI_STYLE}:
        return kind in {"So", "Sm"} or before in "‼⁉〰〽" or (before in "0123456789#*" and after == "\u20e3")
    return False


_EDITABLE_ESCAPE = re.compile("⟦U\\+(10[0-9A-F]{4}|[0-9A-F]{4,5})⟧")


def escape_editable(text: str) -> str:
    """Return lines for a box in which a person edits them, with visible escapes that `unescape_editable` turns back exactly."""
    marked = _EDITABLE_ESCAPE.sub(lambda match: f"⟦U+27E6⟧{match[0][1:]}", text)  # it only looks like one of ours
    if marked.isascii() and marked.replace("\n", "").replace("\t", "").isprintable():
        return marked
    shown = (c if c in "\n\t" else _reveal_character(marked, at) for at, c in enumerate(marked))
    return "".join(one if one == c else f"⟦U+{ord(c):04X}⟧" for one, c in zip(shown, marked, strict=True))


def unescape_editable(text: str) -> str:
    return _EDITABLE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


@cache
def _escape_character(character: str) -> str:
    code = ord(character)
    if _SURROGATE_BYTES[0] <= code <= _SURROGATE_BYTES[1]:
        return f"\\x{code - 0xDC00:02x}"
    tricky = unicodedata.category(character) in {"Cc", "Cs"} or _DECEPTIVE.match(character)
    return character.encode("unicode_escape").decode() if tricky else character


def ensure_utf8(value: Any) -> Any:
    """Return text, or plain data, that UTF-8 can encode; what it cannot is shown as an escape."""
    if not has_surrogates(value):
        return value
    return _map_strings(value, lambda text: _SURROGATE.sub(lambda match: escape_text(match[0]), text))


def escape_data(value: Any) -> Any:
    """Return plain data with what JSON itself does not escape escaped: bidi and late control characters."""
    return _map_strings(value, lambda text: escape_text(text, keep=_EARLY_CONTROLS))


def without_surrogates(value: Any) -> Any:
    """Return plain data with U+FFFD for every lone surrogate."""
    return _map_strings(value, lambda text: _SURROGATE.sub("\ufffd", text))


def has_surrogates(value: Any) -> bool:
    """Tell whether text or plain data contains half of a character."""
    if isinstance(value, str) and value.isascii():
        return False
    try:
        (value if isinstance(value, str) else encode_json(value)).encode()
    except UnicodeEncodeError:
        return True
    return False


def encode_json(value: Any) -> str:
    """Return plain data as JSON, with every character as it is."""
    return json.dumps(value, ensure_ascii=False, default=_to_plain)


def lone_surrogate_error() -> InvalidArgument:
    """Return the refusal of a change that contains what no file can contain."""
    message = "The arguments contain a lone surrogate (half a character)."
    action = "Send the call again with whole characters; outside of ASCII, plain UTF-8 instead of \\u escapes."
    return InvalidArgument(message, reason="lone_surrogate", action=action)


def _to_plain(value: Any) -> Any:
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else str(value)


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if value.isprintable() else change(value)
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {_map_strings(key, change): _map_strings(inner, change) for key, inner in rows.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(inner, change) for inner in cast("list[Any]", value)]
    return value

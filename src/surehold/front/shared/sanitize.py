"""Makes outgoing text safe: valid UTF-8 only, and nothing that controls the display of the client.

One lone surrogate in an answer ends an SDK server, and a file name that is not UTF-8 is enough to produce one. Data is
encoded once to find out whether it is safe, and copied only when it is not.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from surehold.errors import InvalidArgument
from surehold.text.escape import escape_text

_SURROGATE = re.compile("[\ud800-\udfff]")
_EARLY_CONTROLS = "".join(map(chr, range(0x20)))
"""JSON escapes these itself."""


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
        return value if value.isascii() and value.isprintable() else change(value)
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {_map_strings(key, change): _map_strings(inner, change) for key, inner in rows.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(inner, change) for inner in cast("list[Any]", value)]
    return value

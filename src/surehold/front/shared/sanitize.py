"""Makes outgoing text safe: valid UTF-8 only, and nothing that controls the display of the client.

One lone surrogate in an answer ends an SDK server, and a file name that is not UTF-8 is enough to produce one.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from surehold.errors import InvalidArgument
from surehold.text.escape import escape_text

_SURROGATE = re.compile("[\ud800-\udfff]")
_EARLY_CONTROLS = "".join(map(chr, range(0x20)))


def ensure_utf8(value: Any) -> Any:
    """Return text, or plain data, that UTF-8 can spell; what it cannot is shown as an escape."""
    return _map_strings(value, _escape_surrogates)


def _escape_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda match: escape_text(match[0]), text)
    return text


def escape_data(value: Any) -> Any:
    """Return plain data with what JSON itself does not escape escaped: bidi and late control characters."""
    return _map_strings(value, lambda text: escape_text(text, keep=_EARLY_CONTROLS))


def lone_surrogate_error() -> InvalidArgument:
    """Return the refusal of a change that holds what no file can hold."""
    return InvalidArgument(
        "The call holds half of a character: a lone surrogate, which no file can hold.",
        reason="lone_surrogate",
        action="Send the call again with whole characters; outside of ASCII, plain UTF-8 instead of \\u escapes.",
    )


def has_surrogates(value: Any) -> bool:
    """Tell whether a caller sent half of a character."""
    if isinstance(value, str):
        return not value.isascii() and _SURROGATE.search(value) is not None
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return any(has_surrogates(key) or has_surrogates(inner) for key, inner in rows.items())
    if isinstance(value, (list, tuple)):
        return any(has_surrogates(inner) for inner in cast("list[Any]", value))
    return False


def without_surrogates(value: Any) -> Any:
    """Return plain data with U+FFFD for every half of a character."""
    return _map_strings(value, lambda text: _SURROGATE.sub("\ufffd", text))


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else change(value)
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {_map_strings(key, change): _map_strings(inner, change) for key, inner in rows.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(inner, change) for inner in cast("list[Any]", value)]
    return value

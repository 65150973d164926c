r"""One line of a client becomes a message, if it can be one at all.

Some hosts send half of a character as an escape (`\ud83d` alone). The SDK's parser refuses such a line, and the client
would wait forever; so the halves become U+FFFD, and the request says that it was mended.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from surehold.front.mcp.results import MENDED_KEY

_ESCAPES = re.compile(
    rb"\\\\"  # a backslash that is content
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_INVALID_REQUEST = -32600
_MOST_DIGITS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What a line came to."""

    message: JSONRPCMessage | None = None
    replies: tuple[JSONRPCError, ...] = ()
    """What to answer at once, to requests that are not even requests."""


def received(line: bytes) -> Received:
    """Read one line."""
    try:
        return Received(message=jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    mended = _mended(line)
    if mended is not None:
        return Received(message=mended)
    return Received(replies=_replies(line))


def _mended(line: bytes) -> JSONRPCMessage | None:
    whole, halves = _ESCAPES.subn(lambda match: b"\\ufffd" if match["half"] else match[0], line)
    if not halves or whole == line:
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except ValidationError:
        return None
    if isinstance(message, JSONRPCRequest) and message.params is not None:
        meta = message.params.get("_meta")
        known = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        message.params["_meta"] = {**known, MENDED_KEY: True}
    return message


def _number(digits: str) -> int | float:
    """Read a number of any length; Python refuses very long ones, and the client would wait for an answer."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("inf")


def _replies(line: bytes) -> tuple[JSONRPCError, ...]:
    """Return an error for every request in the line that somebody may wait for: a batch, or a malformed one."""
    try:
        found = json.loads(line, parse_int=_number)
    except (ValueError, RecursionError):
        return ()
    batch = isinstance(found, list)
    why = "Send one message per line; batches are not served." if batch else "This is no request of JSON-RPC 2.0."
    requests = cast("list[Any]", found) if batch else [found]
    objects = [cast("dict[str, Any]", one) for one in requests if isinstance(one, dict)]
    ids = [one["id"] for one in objects if "method" in one and type(one.get("id")) in {int, str}]
    error = ErrorData(code=_INVALID_REQUEST, message=why)
    return tuple(JSONRPCError(jsonrpc="2.0", id=each, error=error) for each in ids)

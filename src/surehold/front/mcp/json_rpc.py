"""JSON-RPC messages as lines: what a line holds, and what is answered when it holds no message.

1. A line holds one message; batches are refused, request by request.
2. A malformed request whose id can be read is answered with an error of that id: the client may wait for it.
3. Some hosts send half of a character as an escape. Lone surrogates become U+FFFD, and the request says that it was
   repaired.
4. What is nested deeper than 200 levels is malformed.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from surehold.front.mcp.protocol import REPAIRED_KEY, RequestId
from surehold.front.mcp.request_shapes import is_integer
from surehold.text.escape import ensure_utf8

Json = dict[str, Any]

INVALID_REQUEST = -32600
_MAX_DIGITS = 4_000
_MAX_DEPTH = 200
_MAY_BE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE_ESCAPES = re.compile(
    rb"\\\\"  # a backslash that is content
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


@dataclass(slots=True)
class RpcRequest:
    id: RequestId
    method: str
    params: Json | None


@dataclass(slots=True)
class RpcNotification:
    method: str
    params: Json | None


@dataclass(slots=True)
class RpcReply:
    """The answer of the client to a request of ours: a result, or an error."""

    id: RequestId | None
    result: Json | None
    error: Json | None


RpcMessage = RpcRequest | RpcNotification | RpcReply


def parse_line(line: bytes) -> RpcMessage | tuple[Json, ...]:
    """Return the message in a line; if it has none, what to answer at once."""
    whole = repair_halves(line) if _MAY_BE_HALF.search(line) else None
    try:
        message = _message_from(_load_json(line if whole is None else whole))
    except (ValueError, RecursionError):
        message = None
    if message is None:
        return error_replies(line)
    if whole is not None and isinstance(message, RpcRequest) and message.params is not None:
        mark_repaired(message.params)
    return message


def repair_halves(line: bytes) -> bytes | None:
    """Return a line with U+FFFD in the place of every lone surrogate; None when it has none."""
    whole, _ = _SURROGATE_ESCAPES.subn(lambda match: b"\\ufffd" if match["half"] else match[0], line)
    return None if whole == line else whole


def mark_repaired(params: Json) -> None:
    """Say in the parameters of a request that they are not quite what was sent."""
    meta = params.get("_meta")
    known = cast("Json", meta) if isinstance(meta, dict) else {}
    params["_meta"] = {**known, REPAIRED_KEY: True}


def encode_message(message: Json) -> bytes:
    """Return a message as a line, without its end."""
    try:
        return _ENCODE(message).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return _ENCODE(ensure_utf8(message)).encode()


def error_reply(request: RequestId | None, code: int, message: str, data: Any = None) -> Json:
    error: Json = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": request, "error": error if data is None else {**error, "data": data}}


def _load_json(line: bytes) -> Any:
    text = line.decode()
    found = json.loads(text)
    if text.count("{") + text.count("[") > _MAX_DEPTH:
        _check_depth(found)
    return found


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH + 1):
        if not level:
            return
        level = [each for one in level for each in _members(one)]
    raise ValueError("This is nested too deep.")


def _members(value: Any) -> list[Any]:
    """Return what an object or a list contains, of that which can contain something itself."""
    if isinstance(value, dict):
        inner = list(cast("Json", value).values())
    else:
        inner = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in inner if isinstance(one, (dict, list))]


def _message_from(found: Any) -> RpcMessage | None:
    row = cast("Json", found) if isinstance(found, dict) else {}
    if row.get("jsonrpc") != "2.0":
        return None
    name, method = cast("RequestId | None", row.get("id")), row.get("method")
    params = cast("Json | None", row.get("params"))
    if "id" in row and (name is None or _is_id(name)) and _is_error(row.get("error")):
        return RpcReply(name, None, row["error"])
    if isinstance(method, str) and (params is None or isinstance(params, dict)):  # pyright: ignore[reportUnnecessaryIsInstance] - it is what was sent
        return (
            RpcRequest(name, method, params) if name is not None and _is_id(name) else RpcNotification(method, params)
        )
    result = row.get("result")
    return RpcReply(name, cast("Json", result), None) if _is_id(name) and isinstance(result, dict) else None


def _is_id(value: Any) -> bool:
    return type(value) is int or type(value) is str


def _is_error(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    error = cast("Json", value)
    return is_integer(error.get("code")) and isinstance(error.get("message"), str)


def _parse_number(digits: str) -> int | float:
    """Read a number of any length; Python refuses very long ones, and the client would wait for an answer."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


def error_replies(line: bytes) -> tuple[Json, ...]:
    """Return an error for every request in a line that is a batch or malformed."""
    try:
        found = json.loads(line, parse_int=_parse_number)
    except (ValueError, RecursionError):
        found = _outermost_members(line)
        if "id" not in found and "method" in found:
            found |= _last_member(line)
    batch = isinstance(found, list)
    why = "Send one message per line; batches are not served." if batch else "This is not a JSON-RPC 2.0 request."
    requests = cast("list[Any]", found) if batch else [found]
    objects = [cast("Json", one) for one in requests if isinstance(one, dict)]
    ids = [one["id"] for one in objects if _may_wait(one)]
    return tuple(error_reply(each, INVALID_REQUEST, why) for each in ids)


def _may_wait(found: Json) -> bool:
    """Tell whether a client may wait for the answer: what has an id and is not an answer itself."""
    is_message = found.get("jsonrpc") == "2.0" and not found.keys() & {"result", "error"}
    return _is_id(found.get("id")) and ("method" in found or is_message)


def _last_member(line: bytes) -> Json:
    """Return the id at the end of an object that cannot be parsed, if its only one is there."""
    tokens: list[bytes] = _TOKEN.findall(line)
    with suppress(ValueError):
        if tokens.count(b'"id"') == 1 and tokens[-4:-2] == [b'"id"', b":"] and tokens[-1] == b"}":
            return {"id": json.loads(tokens[-2], parse_int=_parse_number)}
    return {}


def _outermost_members(line: bytes) -> Json:
    """Return the plain members of an object that cannot be parsed: what is nested too deep, or cut off, has an id too."""
    members, depth, key = dict[str, Any](), 0, b""
    for token in _TOKEN.findall(line):
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and token not in b":,":
            if key:
                with suppress(ValueError):
                    members[json.loads(key)] = json.loads(token, parse_int=_parse_number)
            key = b"" if key else token
        if depth == 1 and token == b",":
            key = b""
    return members

"""The shapes of requests: which methods each era has, and what their parameters must look like.

The tables say what the protocol's schemas say, for both eras; a differential test compares them with the SDK's own. Values
are accepted as leniently as there: a number may be spelled as text, and unknown members are ignored.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

Shape = Callable[[Any], bool]
Json = dict[str, Any]

_INTEGER_TEXT = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0*)?\s*", re.ASCII)
_MAX_WHOLE_FLOAT = 2.0**63
_BOOLEAN_WORDS = frozenset({"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_integer(value: Any) -> bool:
    """Accept a whole number, also one that is spelled as text."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < _MAX_WHOLE_FLOAT
    return isinstance(value, int) or (isinstance(value, str) and _INTEGER_TEXT.fullmatch(value) is not None)


def _is_boolean(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in _BOOLEAN_WORDS
    return isinstance(value, bool) or (isinstance(value, (int, float)) and value in (0, 1))


def _is_fraction(value: Any) -> bool:
    """Accept a number from 0 to 1."""
    try:
        return isinstance(value, (bool, int, float, str)) and 0.0 <= float(value) <= 1.0
    except ValueError:
        return False


def _is_token(value: Any) -> bool:
    return _is_text(value) or is_integer(value)


def _is_answer(value: Any) -> bool:
    """Accept what a person can fill into a form."""
    return value is None or isinstance(value, (str, int, float)) or _TEXTS(value)


def _is_file_uri(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower().startswith("file:")


def _one_of(*words: str) -> Shape:
    return lambda value: isinstance(value, str) and value in words


def _any_of(*shapes: Shape) -> Shape:
    return lambda value: any(shape(value) for shape in shapes)


def _list_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, list) and all(map(shape, cast("list[Any]", value)))


def _map_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, dict) and all(map(shape, cast("Json", value).values()))


def _record(needed: Mapping[str, Shape] | None = None, /, **optional: Shape) -> Shape:
    """Accept an object with the needed members; optional ones may be missing or null."""
    return _record_of(needed or {}, optional)


def _record_of(needed: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
    rules = tuple(needed.items())
    extras = tuple(optional.items())

    def accepts(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        row = cast("Json", value)
        if not all(name in row and shape(row[name]) for name, shape in rules):
            return False
        return all(row.get(name) is None or shape(row[name]) for name, shape in extras)

    return accepts


_TEXTS = _list_of(_is_text)
_LEVEL = _one_of("alert", "critical", "debug", "emergency", "error", "info", "notice", "warning")
_ICON = _record({"src": _is_text}, mimeType=_is_text, sizes=_TEXTS, theme=_one_of("light", "dark"))
_CLIENT = _record(
    {"name": _is_text, "version": _is_text},
    title=_is_text,
    description=_is_text,
    websiteUrl=_is_text,
    icons=_list_of(_ICON),
)
_ELICITATION = _record(form=_is_object, url=_is_object)
_SAMPLING = _record(context=_is_object, tools=_is_object)
_SETTINGS = _map_of(_is_object)
_TASK_REQUESTS = _record(elicitation=_record(create=_is_object), sampling=_record(createMessage=_is_object))
_TASKS = _record(cancel=_is_object, list=_is_object, requests=_TASK_REQUESTS)
_CAPABILITIES: Mapping[str, Shape] = {
    "elicitation": _ELICITATION,
    "experimental": _SETTINGS,
    "extensions": _SETTINGS,
    "sampling": _SAMPLING,
}
_SENT_CAPABILITIES = _record_of({}, {**_CAPABILITIES, "roots": _is_object})

is_capabilities = _record_of({}, {**_CAPABILITIES, "roots": _record(listChanged=_is_boolean), "tasks": _TASKS})
is_client_info = _CLIENT

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"


def _unless_missing(name: str, member: Shape, shape: Shape) -> Shape:
    """Accept an object of this shape whose member is missing or has a shape of its own; null does not."""
    return lambda value: shape(value) and (name not in value or member(value[name]))


_OLD_META = _unless_missing("progressToken", _is_token, _is_object)
_NEW_META = _unless_missing(
    "progressToken",
    _is_token,
    _record_of(
        {PROTOCOL_VERSION_KEY: _is_text, CLIENT_CAPABILITIES_KEY: _SENT_CAPABILITIES},
        {CLIENT_INFO_KEY: _CLIENT, _LOG_LEVEL_KEY: _LEVEL},
    ),
)
_OPEN_META = _is_object
_NOTES = _record(audience=_list_of(_one_of("user", "assistant")), lastModified=_is_text, priority=_is_fraction)
_LINK_MEMBERS: Mapping[str, Shape] = {
    "annotations": _NOTES,
    "description": _is_text,
    "icons": _list_of(_ICON),
    "mimeType": _is_text,
    "size": is_integer,
    "title": _is_text,
}
_CONTENTS = _any_of(
    _record({"uri": _is_text, "text": _is_text}, mimeType=_is_text, _meta=_OPEN_META),
    _record({"uri": _is_text, "blob": _is_text}, mimeType=_is_text, _meta=_OPEN_META),
)
_ROOTS = _record({"roots": _list_of(_record({"uri": _is_file_uri}, name=_is_text, _meta=_OPEN_META))}, _meta=_OPEN_META)
is_elicitation_result = _record(
    {"action": _one_of("accept", "decline", "cancel")}, content=_map_of(_is_answer), _meta=_OPEN_META
)


class _Replies:
    """The replies of a client that a request may carry; in the handshake era blocks may lack what has a usual value."""

    def __init__(self, *, is_lenient: bool) -> None:
        self._is_lenient = is_lenient
        notes: Mapping[str, Shape] = {"annotations": _NOTES}
        text = self._block(("text",), {"text": _is_text}, notes)
        data = self._block(("image", "audio"), {"data": _is_text, "mimeType": _is_text}, notes)
        link = self._block(("resource_link",), {"name": _is_text, "uri": _is_text}, _LINK_MEMBERS)
        embedded = self._block(("resource",), {"resource": _CONTENTS}, notes)
        use = self._block(("tool_use",), {"id": _is_text, "name": _is_text, "input": _is_object}, {})
        result = self._block(("tool_result",), {"toolUseId": _is_text}, {"isError": _is_boolean})
        block = _any_of(text, data, use, self._with("content", _list_of(_any_of(text, data, link, embedded)), result))
        sampled = _record(
            {"role": _one_of("user", "assistant"), "model": _is_text, "content": _any_of(block, _list_of(block))},
            stopReason=_is_text,
            _meta=_OPEN_META,
        )
        replies = _map_of(_any_of(sampled, _ROOTS, is_elicitation_result))
        self.members: Mapping[str, Shape] = {"inputResponses": replies, "requestState": _is_text}

    def _block(self, kinds: tuple[str, ...], needed: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
        return self._with("type", _one_of(*kinds), _record_of(needed, {**optional, "_meta": _OPEN_META}))

    def _with(self, name: str, member: Shape, shape: Shape) -> Shape:
        if self._is_lenient:
            return _unless_missing(name, member, shape)
        return lambda value: shape(value) and name in value and member(value[name])


_TEXT_MAP = _map_of(_is_text)
_REFERENCE = _any_of(
    _record({"type": _one_of("ref/prompt"), "name": _is_text}, title=_is_text),
    _record({"type": _one_of("ref/resource"), "uri": _is_text}),
)
_FILTER = _record(
    promptsListChanged=_is_boolean,
    toolsListChanged=_is_boolean,
    resourcesListChanged=_is_boolean,
    resourceSubscriptions=_TEXTS,
)
_NEEDED: Mapping[str, Mapping[str, Shape]] = {
    "completion/complete": {"argument": _record({"name": _is_text, "value": _is_text}), "ref": _REFERENCE},
    "prompts/get": {"name": _is_text},
    "resources/read": {"uri": _is_text},
    "resources/subscribe": {"uri": _is_text},
    "resources/unsubscribe": {"uri": _is_text},
    "subscriptions/listen": {"notifications": _FILTER},
    "tools/call": {"name": _is_text},
    "logging/setLevel": {"level": _LEVEL},
    "initialize": {"capabilities": is_capabilities, "clientInfo": _CLIENT, "protocolVersion": _is_text},
}
_OPTIONAL: Mapping[str, Mapping[str, Shape]] = {
    "completion/complete": {"context": _record(arguments=_TEXT_MAP)},
    "prompts/get": {"arguments": _TEXT_MAP},
    "prompts/list": {"cursor": _is_text},
    "resources/list": {"cursor": _is_text},
    "resources/templates/list": {"cursor": _is_text},
    "tools/list": {"cursor": _is_text},
    "tools/call": {"arguments": _is_object, "task": _record(ttl=is_integer)},
}
_BOTH_ERAS = (
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/call",
    "tools/list",
)


_WITH_REPLIES = frozenset({"prompts/get", "resources/read", "tools/call"})
_OLD_REPLIES, _NEW_REPLIES = (_Replies(is_lenient=is_lenient).members for is_lenient in (True, False))


def _old_shape(method: str) -> Shape:
    replies: Mapping[str, Shape] = _OLD_REPLIES if method in _WITH_REPLIES else {}
    shape = _record_of(_NEEDED.get(method, {}), {**_OPTIONAL.get(method, {}), **replies, "_meta": _OLD_META})
    if method in _NEEDED:
        return shape
    return lambda params: params is None or shape(params)


def _new_shape(method: str) -> Shape:
    replies: Mapping[str, Shape] = _NEW_REPLIES if method in _WITH_REPLIES else {}
    return _record_of({**_NEEDED.get(method, {}), "_meta": _NEW_META}, {**_OPTIONAL.get(method, {}), **replies})


HANDSHAKE_METHODS: Mapping[str, Shape] = {
    method: _old_shape(method)
    for method in (
        *_BOTH_ERAS,
        "initialize",
        "logging/setLevel",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
    )
}
"""What the parameters of each request look like up to 2025-11-25."""
STATELESS_METHODS: Mapping[str, Shape] = {
    method: _new_shape(method) for method in (*_BOTH_ERAS, "server/discover", "subscriptions/listen")
}
"""The same for 2026-07-28."""


def is_true(value: Any) -> bool:
    """Read a boolean that has been accepted already, however it is spelled."""
    return value.lower() in {"1", "on", "t", "true", "y", "yes"} if isinstance(value, str) else bool(value)

"""The protocol as data: its versions, what this server announces in each era, and what surrounds a request or a result.

1. The first request decides the era of a connection: one that carries the envelope of 2026-07-28 in its `_meta` begins a
   stateless connection, everything else one that shakes hands.
2. A request of the other era is refused from then on.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from surehold.front.mcp.request_shapes import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_METHODS,
    PROTOCOL_VERSION_KEY,
    STATELESS_METHODS,
    is_capabilities,
    is_client_info,
)

Json = dict[str, Any]
RequestId = int | str
Era = Literal["handshake", "stateless"]
"""`handshake` up to 2025-11-25, `stateless` from 2026-07-28 on."""

RESULT_KEY = "surehold/result"
"""Where the data for programs is, and the experimental capability of a client that asks for it."""
SESSION_KEY = "surehold/session"
CALL_ID_KEY = "claudecode/toolUseId"
IDEMPOTENCY_KEY = "surehold/idempotency_key"
"""How the one host that sends it spells the id of a tool call."""
REPAIRED_KEY = "surehold/mended"

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSION = "2026-07-28"
SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"
_SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

INVALID_PARAMS = -32602
NO_SUCH_RESOURCE = -32002
"""What the handshake era calls a missing resource; the stateless era calls it invalid parameters."""
CONNECTION_CLOSED = -32000
INTERNAL_ERROR = -32603
_INVALID_REQUEST = -32600
_METHOD_NOT_FOUND = -32601
_UNSUPPORTED_VERSION = -32022

_SERVED_WITHOUT_HANDSHAKE = frozenset({"initialize", "ping"})
_NOT_SERVED = frozenset({"logging/setLevel"})
_LONG_CACHE_MS = 300_000


class RpcError(Exception):
    """The request itself is wrong: a protocol error, not the answer of a tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def require_first_page(cursor: str | None) -> None:
    """Refuse a cursor for a list that always comes whole; an empty one is none, as some clients send it."""
    if cursor:
        raise unknown_cursor_error()


def unknown_cursor_error() -> RpcError:
    return RpcError(INVALID_PARAMS, "This cursor is not one of ours; begin without one.")


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """How long a client may keep a result, and for whom."""

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"


_FOR_ALL = CachePolicy(_LONG_CACHE_MS, "public")
CACHE_POLICIES: Mapping[str, CachePolicy] = {
    "tools/list": _FOR_ALL,
    "prompts/list": _FOR_ALL,
    "resources/templates/list": _FOR_ALL,
    "server/discover": CachePolicy(_LONG_CACHE_MS),
    "resources/list": CachePolicy(),
    "resources/read": CachePolicy(),
}


UI_EXTENSION = "io.modelcontextprotocol/ui"
VIEW_TYPE = "text/html;profile=mcp-app"


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What a client says about itself: with the handshake, or with each request."""

    name: str = ""
    can_elicit: bool = False
    """It shows forms to a person; one that names no mode means forms."""
    wants_data: bool = False
    shows_views: bool = False
    """It shows views of the extension for MCP Apps."""

    @classmethod
    def from_sent(cls, info: Any, capabilities: Any) -> "ClientFacts":
        known = cast("Json", capabilities) if is_capabilities(capabilities) else None
        named = cast("Json", info) if known is not None and is_client_info(info) else {"name": ""}
        elicitation = (known or {}).get("elicitation")
        can_elicit = elicitation is not None and (elicitation.get("form") is not None or elicitation.get("url") is None)
        wants_data = RESULT_KEY in ((known or {}).get("experimental") or {})
        shows_views = announces_views((known or {}).get("extensions"))
        return cls(named["name"], can_elicit, wants_data, shows_views)


def announces_views(extensions: Any) -> bool:
    """Tell whether the extensions of a client contain the one for views, with pages of HTML."""
    settings = cast("Json", extensions).get(UI_EXTENSION) if isinstance(extensions, dict) else None
    types = cast("Json", settings).get("mimeTypes") if isinstance(settings, dict) else None
    return isinstance(types, list) and VIEW_TYPE in types


@dataclass(slots=True, eq=False)
class RunningCall:
    """A request that is being answered."""

    id: RequestId
    changes: bool = False
    is_loading: bool = False
    """Its tool is imported or the workspace opened, which takes its time on a busy machine and says nothing about the call."""
    is_stopped: bool = False
    is_silent: bool = False
    """The client took it back, or it was answered because the server ends."""
    watched: tuple[str, ...] = ()
    """What a client listens to."""

    def is_cancelled(self) -> bool:
        return self.is_stopped


@dataclass(frozen=True, slots=True)
class Handling:
    """One request on its way to its answer."""

    method: str
    params: Json
    era: Era
    facts: ClientFacts
    call: RunningCall = field(default_factory=lambda: RunningCall(0))

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.params.get("_meta") or {}


class ServerCard:
    """What the server tells about itself, in the words of either era."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        """Take name, title, version, description and instructions."""
        self._info = {key: described[key] for key in ("name", "title", "version", "description")}
        self._instructions = described["instructions"]

    def initialize_result(self, wanted: str) -> Json:
        version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": version,
            "capabilities": _capabilities(list_changed=False),
            "serverInfo": self._info,
            "instructions": self._instructions,
        }

    def discover_result(self) -> Json:
        return {
            "supportedVersions": [STATELESS_VERSION],
            "capabilities": _capabilities(list_changed=True),
            "instructions": self._instructions,
        }

    def complete_result(self, method: str, result: Json) -> Json:
        """Return a result of the stateless era with everything that surrounds it there."""
        whole: Json = {"resultType": "complete", **result}
        policy = CACHE_POLICIES.get(method)
        if policy and whole["resultType"] == "complete":
            whole = {"ttlMs": policy.ttl_ms, "cacheScope": policy.scope, **whole}
        whole["_meta"] = {**whole.get("_meta", {}), _SERVER_INFO_KEY: self._info}
        return whole


def _capabilities(*, list_changed: bool) -> Json:
    listed = {"listChanged": list_changed}
    return {"completions": {}, "prompts": listed, "resources": {**listed, "subscribe": True}, "tools": listed}


def has_envelope(params: Json | None) -> bool:
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta


def check_handshake_request(method: str, params: Json | None, *, is_open: bool) -> None:
    """Refuse what is not a request of the handshake era, or comes before the handshake."""
    if method != "initialize" and has_envelope(params):
        message = (
            "this connection serves the handshake protocol era; "
            "requests carrying the 2026-07-28 envelope are not accepted on it"
        )
        raise RpcError(_INVALID_REQUEST, message)
    _check_shape(method, params, HANDSHAKE_METHODS)
    if not is_open and method not in _SERVED_WITHOUT_HANDSHAKE:
        raise _invalid_params()


def check_stateless_request(method: str, params: Json | None) -> ClientFacts:
    """Refuse what is not a request of the stateless era; return who sends it."""
    if method == "initialize":
        message = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"
        wanted = (params or {}).get("protocolVersion")
        raise RpcError(_UNSUPPORTED_VERSION, message, _supported_versions(wanted))
    facts = _read_envelope(params)
    _check_shape(method, params, STATELESS_METHODS)
    return facts


def _check_shape(method: str, params: Json | None, known: Mapping[str, Callable[[Any], bool]]) -> None:
    shape = known.get(method)
    if shape is None:
        raise RpcError(_METHOD_NOT_FOUND, "Method not found", method)
    if not shape(params):
        raise _invalid_params()
    if method in _NOT_SERVED:
        raise RpcError(_METHOD_NOT_FOUND, "Method not found", method)


def _invalid_params() -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def _supported_versions(wanted: Any) -> Json:
    supported: Json = {"supported": [STATELESS_VERSION]}
    return {**supported, "requested": wanted} if isinstance(wanted, str) else supported


def _read_envelope(params: Json | None) -> ClientFacts:
    sent = (params or {}).get("_meta")
    if not isinstance(sent, dict):
        message = (
            "params._meta must be an object carrying the required "
            f"{PROTOCOL_VERSION_KEY!r} and {CLIENT_CAPABILITIES_KEY!r} envelope keys"
        )
        raise RpcError(INVALID_PARAMS, message)
    meta = cast("Json", sent)
    if missing := [key for key in (PROTOCOL_VERSION_KEY, CLIENT_CAPABILITIES_KEY) if key not in meta]:
        message = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        raise RpcError(INVALID_PARAMS, message)
    version = meta[PROTOCOL_VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version != STATELESS_VERSION:
        raise RpcError(_UNSUPPORTED_VERSION, "Unsupported protocol version", _supported_versions(version))
    return ClientFacts.from_sent(meta.get(CLIENT_INFO_KEY), meta[CLIENT_CAPABILITIES_KEY])


def subscription_end(request: RequestId) -> Json:
    """Return the result of a request that listened, when the server ends."""
    return {"_meta": {SUBSCRIPTION_ID_KEY: request}}


def same_id(request: RequestId) -> RequestId:
    """Return what identifies a request: some clients send a number back as text."""
    if isinstance(request, str):
        with suppress(ValueError):
            return int(request)
    return request


def era_of(method: str, params: Json | None) -> Era:
    """Return the era that a connection with this first request is in."""
    return "stateless" if method != "initialize" and has_envelope(params) else "handshake"

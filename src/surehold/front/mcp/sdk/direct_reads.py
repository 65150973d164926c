"""Answers plain reads over HTTP with one JSON document, without a stream of events and the SDK's session around it.

1. Only what cannot have another message beside its answer comes this way: a call of a tool that only reads, without a
   progress token, in a session of the handshake era that the SDK has opened. All else, and all that looks unusual, is the
   SDK's, which says what is wrong with it.
2. A read that its client cancels is abandoned, and answered as the SDK does.
3. From time to time a read goes to the SDK, which then knows that the session is in use, or that it is over.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surehold.front.mcp.json_rpc import RpcMessage, RpcNotification, RpcRequest, encode_message, error_reply, parse_line
from surehold.front.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    REPAIRED_KEY,
    ClientFacts,
    Json,
    RequestId,
    RpcError,
    check_handshake_request,
    same_id,
)
from surehold.front.mcp.sdk.server import DISCONNECTED_KEY, PRINCIPAL_KEY, BoundServer
from surehold.front.mcp.sessions import Caller, facts_in_meta
from surehold.tools.call import ProgressListener

SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_JSON_TYPE = "application/json"
_EVENTS_TYPE = "text/event-stream"
_MAX_BODY_BYTES = 1 << 16
_MAX_OPEN_SECONDS = 30.0
_PARTS_OF_A_READ = frozenset({"name", "arguments", "_meta"})
_REQUEST_CANCELLED = -32800


@dataclass(slots=True)
class _OpenSession:
    """A session that the SDK has opened."""

    facts: ClientFacts
    known_until: float
    """When the SDK must hear of it again."""
    reads: dict[RequestId, "asyncio.Task[Json]"] = field(default_factory=dict[RequestId, "asyncio.Task[Json]"])


class DirectReads:
    """Answers plain reads itself, and passes everything else on."""

    def __init__(self, app: ASGIApp, bound: BoundServer, *, path: str, most: int, idle_seconds: float) -> None:
        """`most`: so many sessions are known; `idle_seconds`: after so long the SDK forgets one that it does not hear of."""
        self._app, self._bound, self._path, self._most = app, bound, path, most
        self._open_seconds = min(_MAX_OPEN_SECONDS, idle_seconds / 4)
        self._sessions = OrderedDict[str, _OpenSession]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or str(scope["path"]).rstrip("/") != self._path:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = headers.get(SESSION_HEADER, "")
        if scope["method"] != "POST" or not _is_small_json(headers):
            if scope["method"] == "DELETE":
                self._sessions.pop(name, None)
            await self._app(scope, receive, send)
            return
        first = await receive()
        message = _read_message(first)
        session = self._sessions.get(name)
        if session is not None and isinstance(message, RpcRequest) and self._is_plain_read(session, message):
            await self._answer(scope, send, name, session, message)
        else:
            await self._pass_on(scope, _after(first, receive), send, name, message)

    def _is_plain_read(self, session: _OpenSession, request: RpcRequest) -> bool:
        params = request.params or {}
        if request.method != "tools/call" or params.keys() - _PARTS_OF_A_READ or time.monotonic() > session.known_until:
            return False
        try:
            check_handshake_request(request.method, params, is_open=True)
        except RpcError:
            return False
        tool = self._bound.adapter.catalog.tools.get(params["name"])
        meta: Json = params.get("_meta") or {}
        is_known = tool is not None and tool.hints.read_only and same_id(request.id) not in session.reads
        return is_known and "progressToken" not in meta and REPAIRED_KEY not in meta

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, name: str, message: RpcMessage | None) -> None:
        """Let the SDK answer, and learn from it which sessions are open."""
        opening: ClientFacts | None = None
        if isinstance(message, RpcRequest) and message.method == "initialize":
            self._sessions.pop(name, None)
            opening = _facts_of(message.params)
        elif isinstance(message, RpcNotification) and message.method == "notifications/cancelled":
            self._cancel(name, (message.params or {}).get("requestId"))

        async def note_session(answer: Message) -> None:
            if answer["type"] == "http.response.start":
                accepted = answer["status"] < HTTPStatus.BAD_REQUEST
                if accepted and name in self._sessions:
                    self._sessions[name].known_until = time.monotonic() + self._open_seconds
                elif accepted and opening and not name and (new := Headers(scope=answer).get(SESSION_HEADER)):
                    self._sessions[new] = _OpenSession(opening, time.monotonic() + self._open_seconds)
                    if len(self._sessions) > self._most:
                        self._sessions.popitem(last=False)
                elif not accepted:
                    self._sessions.pop(name, None)
            await send(answer)

        await self._app(scope, receive, note_session)

    def _cancel(self, name: str, request: RequestId | None) -> None:
        session = self._sessions.get(name)
        if session and isinstance(request, (int, str)) and (read := session.reads.get(same_id(request))):
            read.cancel()

    async def _answer(self, scope: Scope, send: Send, name: str, session: _OpenSession, request: RpcRequest) -> None:
        key = same_id(request.id)
        read = session.reads[key] = asyncio.ensure_future(self._read(scope, name, session.facts, request))
        try:
            reply = await asyncio.shield(read)
        except asyncio.CancelledError:
            if not read.cancelled():  # the server ends
                read.cancel()
                raise
            reply = error_reply(request.id, _REQUEST_CANCELLED, "Request cancelled")
        finally:
            session.reads.pop(key, None)
        body = encode_message(reply)
        headers = ((b"content-type", _JSON_TYPE.encode()), (b"content-length", b"%d" % len(body)))
        session_header = (SESSION_HEADER.encode(), name.encode("latin-1"))
        with suppress(OSError):  # the client has left
            await send({"type": "http.response.start", "status": 200, "headers": [*headers, session_header]})
            await send({"type": "http.response.body", "body": body})

    async def _read(self, scope: Scope, name: str, facts: ClientFacts, request: RpcRequest) -> Json:
        params = request.params or {}
        who = f"the person at {facts.name or 'the client'}"

        def call_adapter(progress: ProgressListener, cancelled: Callable[[], bool]) -> Json:
            caller = Caller(
                client=facts.name,
                connection=name,
                principal=scope.get(PRINCIPAL_KEY, ""),
                gone=scope.get(DISCONNECTED_KEY, lambda: False),
                who=who,
                wants_data=facts.wants_data,
                shows_views=facts.shows_views,
                progress=progress,
                cancelled=cancelled,
                **facts_in_meta(params.get("_meta") or {}),
            )
            return self._bound.adapter.call_tool(params["name"], params.get("arguments"), caller)

        try:
            result = await self._bound.calls.run_in_thread(call_adapter, changes=False)
        except RpcError as error:
            return error_reply(request.id, error.code, error.message, error.data)
        except Exception:
            import logging

            logging.getLogger("surehold").exception("A request failed.")
            return error_reply(request.id, INTERNAL_ERROR, "Internal server error")
        return {"jsonrpc": "2.0", "id": request.id, "result": result}


def _is_small_json(headers: Headers) -> bool:
    """Tell whether a request can be a plain read of a client that takes plain answers, by its headers."""
    length, accepted = headers.get("content-length", ""), headers.get("accept", "")
    return (
        length.isascii()
        and length.isdigit()
        and int(length) <= _MAX_BODY_BYTES
        and headers.get("content-type", "").partition(";")[0].strip() == _JSON_TYPE
        and _JSON_TYPE in accepted
        and _EVENTS_TYPE in accepted
        and headers.get(_VERSION_HEADER, HANDSHAKE_VERSIONS[0]) in HANDSHAKE_VERSIONS
    )


def _read_message(first: Message) -> RpcMessage | None:
    """Return the message of a request whose body came in one piece."""
    if first["type"] != "http.request" or first.get("more_body"):
        return None
    found = parse_line(first.get("body", b""))
    return None if isinstance(found, tuple) else found


def _facts_of(params: Json | None) -> ClientFacts | None:
    """Return what a client says of itself with the handshake; None if it is not one that succeeds."""
    try:
        check_handshake_request("initialize", params, is_open=False)
    except RpcError:
        return None
    sent = params or {}
    return ClientFacts.from_sent(sent["clientInfo"], sent["capabilities"])


def _after(first: Message, receive: Receive) -> Receive:
    """Return what gives a message that was received already, and then those that follow."""
    waiting = [first]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again

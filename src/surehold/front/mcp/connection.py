"""One client's connection, in either era: takes its messages, and has its requests answered.

1. Messages are taken in order, in one thread; what may take time is answered in another one.
2. What the server offers is answered at once. The workspace is opened by the first request that needs it, or when the client
   is quiet for a moment.
3. A request is answered once: with its result, with an error, or not at all when the client took it back.
4. A read that is cancelled is abandoned. A change that is cancelled stops as long as nothing was written, and is awaited.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from surehold.errors import SureholdError
from surehold.front.mcp.catalog import ServerCatalog
from surehold.front.mcp.json_rpc import RpcMessage, RpcNotification, RpcReply, RpcRequest, error_reply
from surehold.front.mcp.protocol import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ClientFacts,
    Era,
    Handling,
    RequestId,
    RpcError,
    RunningCall,
    ServerCard,
    check_handshake_request,
    check_stateless_request,
    era_of,
    same_id,
    subscription_end,
)
from surehold.text.escape import ensure_utf8

if TYPE_CHECKING:
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.workspace_requests import WorkspaceRequests

Json = dict[str, Any]
StartWork = Callable[[Callable[[], None]], None]

_MAX_EARLY_MESSAGES = 8
"""Messages before the first request that count."""
_SETTLE_SECONDS = 0.05
_LIST_TOOLS = "tools/list"


class ClientConnection:
    """What one client over one pair of pipes has asked for, and what it is told."""

    def __init__(
        self,
        catalog: ServerCatalog,
        open_adapter: "Callable[[], Adapter]",
        *,
        send: Callable[[Json], None],
        start: StartWork,
        when_lost: Callable[[], None],
    ) -> None:
        """`send` puts a message on its way, from any thread; `start` has something done in another thread.

        `open_adapter` opens the workspace; `when_lost` is told when it cannot be opened, after which nothing can be served.
        """
        self._catalog, self._open_adapter = catalog, open_adapter
        self._send, self._start, self._when_lost = send, start, when_lost
        self._card = ServerCard(catalog.describe_server())
        self._era: Era | None = None
        self._is_open = self._is_ending = False
        self._early = 0
        self._facts = ClientFacts()
        self._changed = threading.Condition()
        self._calls = dict[RequestId, RunningCall]()
        self._opening = threading.Lock()
        self._requests: WorkspaceRequests | None = None
        self._at_once = self._make_answers()

    def _make_answers(self) -> Mapping[str, Callable[[Json], Json]]:
        """Return what answers the requests that need no workspace; that is done in the thread that reads."""
        catalog, card = self._catalog, self._card
        return {
            "ping": lambda _: {},
            "initialize": lambda params: card.initialize_result(params["protocolVersion"]),
            "server/discover": lambda _: card.discover_result(),
            "prompts/list": lambda params: catalog.list_prompts(params.get("cursor")),
            "prompts/get": lambda params: catalog.get_prompt(params["name"], params.get("arguments")),
        }

    def open_early(self) -> None:
        """Open the workspace now, in another thread, so that the first call need not wait for it."""

        def open_quietly() -> None:
            with suppress(Exception):  # the server ends, and says why
                self._open_requests()

        self._start(open_quietly)

    def _open_requests(self) -> "WorkspaceRequests":
        with self._opening:
            if self._requests is None:
                from surehold.front.mcp.workspace_requests import WorkspaceRequests

                try:
                    self._requests = WorkspaceRequests(self._open_adapter(), send=self._send, changed=self._changed)
                except Exception as error:
                    self._when_lost()
                    if not isinstance(error, SureholdError):
                        raise
                    facts = {"kind": error.kind, "reason": error.reason}
                    raise RpcError(INTERNAL_ERROR, ensure_utf8(str(error)), facts) from None
                if self._is_ending:
                    self._requests.withdraw_questions()
                self._take_command_questions()
            return self._requests

    def _take_command_questions(self) -> None:
        """Let commands ask here, as soon as the workspace is known: on the page, and a client that is not stateless."""
        if self._requests is not None:
            can_ask = self._era == "handshake" and self._facts.can_elicit
            self._requests.take_command_questions(at_client=can_ask)

    # What the client sends.
    def take_message(self, message: RpcMessage) -> None:
        if isinstance(message, RpcRequest):
            self._take_request(message)
        elif isinstance(message, RpcNotification):
            self._take_notification(message)
        else:
            self._take_reply(message)

    def _take_request(self, request: RpcRequest) -> None:
        self._era = self._era or era_of(request.method, request.params)
        try:
            if self._era == "stateless":
                facts = check_stateless_request(request.method, request.params)
            else:
                check_handshake_request(request.method, request.params, is_open=self._is_open)
                facts = self._facts
        except RpcError as error:
            self._send(error_reply(request.id, error.code, error.message, error.data))
            return
        call = RunningCall(request.id)
        handling = Handling(request.method, request.params or {}, self._era, facts, call)
        call.is_loading = request.method != _LIST_TOOLS and request.method not in self._at_once
        if request.method == "tools/call":
            call.changes = handling.params["name"] in self._catalog.writing
        elif request.method == "initialize":
            self._facts = ClientFacts.from_sent(handling.params["clientInfo"], handling.params["capabilities"])
            self._is_open = True
            self._take_command_questions()
        with self._changed:
            self._calls[same_id(request.id)] = call
        if call.is_loading:
            self._start(partial(self._answer, handling))
        else:
            self._answer(handling)

    def _take_notification(self, message: RpcNotification) -> None:
        if self._era is None:
            self._early += 1
            if self._early > _MAX_EARLY_MESSAGES:
                return
        params = message.params or {}
        if message.method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        elif message.method == "notifications/initialized" and self._era != "stateless":
            self._is_open = self._is_open or params.get("_meta") is None or isinstance(params["_meta"], dict)

    def _cancel(self, request: Any) -> None:
        if not isinstance(request, (int, str)) or isinstance(request, bool):
            return
        key, requests = same_id(request), self._requests
        with self._changed:
            call = self._calls.get(key)
            if call is not None:
                call.is_stopped = call.is_silent = True
                if not call.changes:
                    self._calls.pop(key, None)
        if requests is not None:
            requests.stop_listening(key, call)

    def _take_reply(self, message: RpcReply) -> None:
        if message.id is not None and self._requests is not None:
            self._requests.take_reply(message)

    # What it is answered.
    def _answer(self, handling: Handling) -> None:
        call, reply = handling.call, None
        try:
            result = None if call.is_stopped else self._result_of(handling)
            if result is not None:
                if handling.era == "stateless":
                    result = self._card.complete_result(handling.method, result)
                reply = {"jsonrpc": "2.0", "id": call.id, "result": result}
        except RpcError as error:
            reply = error_reply(call.id, error.code, error.message, error.data)
        except Exception:
            import logging

            logging.getLogger("surehold").exception("A request failed.")
            reply = error_reply(call.id, INTERNAL_ERROR, "Internal server error")
        self._finish(call, reply)

    def _result_of(self, handling: Handling) -> Json | None:
        if handling.method == _LIST_TOOLS:
            cursor = handling.params.get("cursor")
            return {"tools": self._catalog.list_tools(cursor, views=handling.facts.shows_views)}
        if at_once := self._at_once.get(handling.method):
            return at_once(handling.params)
        if handling.method == "tools/call" and (tool := self._catalog.tools.get(handling.params["name"])):
            tool.load()  # while another thread opens the workspace
        requests = self._open_requests()
        handling.call.is_loading = False
        return requests.answer(handling)

    def _finish(self, call: RunningCall, reply: Json | None) -> None:
        key = same_id(call.id)
        with self._changed:
            is_wanted = not call.is_silent
            call.is_silent = True  # no one else answers it
        if is_wanted and reply is not None:
            self._send(reply)
        with self._changed:  # only now: whoever waits for the last call may end the server at once
            if self._calls.get(key) is call:
                del self._calls[key]
            self._changed.notify_all()

    # The end.
    def finish_calls(self, seconds: float, *, has_reader: Callable[[], bool]) -> None:
        """Let calls end whose answers the client still reads: reads for so long, changes for as long as they take."""
        self._is_ending = True
        if self._requests is not None:
            self._requests.withdraw_questions()
        end = time.monotonic() + seconds
        with self._changed:
            while self._calls and has_reader() and (self.is_changing or time.monotonic() < end):
                self._changed.wait(_SETTLE_SECONDS)
                if any(call.is_loading for call in self._calls.values()):
                    end = time.monotonic() + seconds

    def close(self) -> None:
        """End every subscription in good order, and answer what is not answered yet."""
        listeners = self._requests.close() if self._requests is not None else ()
        with self._changed:
            left = [call for call in self._calls.values() if not call.is_silent]
            for call in left:
                call.is_stopped = True
                call.is_silent = not call.changes
            self._changed.notify_all()
        for call in listeners:
            result = self._card.complete_result("subscriptions/listen", subscription_end(call.id))
            self._send({"jsonrpc": "2.0", "id": call.id, "result": result})
        for call in left:
            if not call.changes:
                self._send(error_reply(call.id, CONNECTION_CLOSED, "Connection closed"))

    def wait_for_changes(self, seconds: float) -> None:
        """Wait until every change has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_changing, seconds)

    @property
    def is_changing(self) -> bool:
        return any(call.changes for call in self._calls.values())

"""One client's connection, in either era: takes its messages, and has the adapter answer its requests.

1. Messages are taken in order, in one thread; what may take time is answered in another one.
2. A request is answered once: with its result, with an error, or not at all when the client took it back.
3. A read that is cancelled is abandoned. A change that is cancelled stops as long as nothing was written, and is awaited.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from surehold.errors import PermissionRequired
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.approval import elicitation_reply, round_input
from surehold.front.mcp.json_rpc import RequestId, RpcMessage, RpcNotification, RpcReply, RpcRequest, error_reply
from surehold.front.mcp.progress import ProgressThrottle
from surehold.front.mcp.protocol import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    SUBSCRIPTION_ID_KEY,
    ClientFacts,
    ServerCard,
    check_handshake_request,
    check_stateless_request,
    era_of,
)
from surehold.front.mcp.request_shapes import is_true
from surehold.front.mcp.resources import ResourceWatcher
from surehold.front.mcp.sessions import Caller, ElicitationReply, Era, RpcError, facts_in_meta, new_handle
from surehold.front.shared.person import person_name
from surehold.front.shared.sanitize import ensure_utf8
from surehold.workspace.access.permission import Approval

Json = dict[str, Any]
StartWork = Callable[[Callable[[], None]], None]

_MAX_SUBSCRIPTIONS = 4096
_MAX_LISTENERS = 1024
_MAX_EARLY_MESSAGES = 8
"""Messages before the first request that count."""
_SETTLE_SECONDS = 0.05
_LIST_FLAGS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_SHORT_WORK = frozenset({"ping", "initialize", "server/discover", "tools/list", "prompts/list"})
"""Requests that are answered at once, in the thread that reads."""


@dataclass(slots=True, eq=False)
class _RunningCall:
    """A request that is being answered."""

    id: RequestId
    changes: bool = False
    is_loading: bool = False
    """Its tool is being imported, which takes its time on a busy machine and says nothing about the call."""
    is_stopped: bool = False
    is_silent: bool = False
    """The client took it back, or it was answered because the server ends."""
    watched: tuple[str, ...] = ()
    """What a client listens to."""

    def is_cancelled(self) -> bool:
        return self.is_stopped


@dataclass(slots=True)
class _Question:
    """A form that the client shows."""

    answer: Future[Approval]
    read: Callable[[ElicitationReply], Approval]


@dataclass(frozen=True, slots=True)
class _Handling:
    """One request on its way to the adapter."""

    method: str
    params: Json
    era: Era
    facts: ClientFacts
    call: _RunningCall = field(default_factory=lambda: _RunningCall(0))

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.params.get("_meta") or {}


class ClientConnection:
    """What one client over one pair of pipes has asked for, and what it is told."""

    def __init__(self, adapter: Adapter, *, send: Callable[[Json], None], start: StartWork) -> None:
        """`send` puts a message on its way, from any thread; `start` has something done in another thread."""
        self._adapter, self._send, self._start = adapter, send, start
        self._card = ServerCard(adapter.describe_server())
        self._own = new_handle()
        self._who = person_name()
        self._era: Era | None = None
        self._is_open = False
        self._early = 0
        self._facts = ClientFacts()
        self._changed = threading.Condition()
        self._calls = dict[RequestId, _RunningCall]()
        self._listeners = dict[RequestId, _RunningCall]()
        self._questions = dict[RequestId, _Question]()
        self._last_question = 0
        self._subscribed = OrderedDict[str, bool]()
        self._watch = ResourceWatcher(adapter.resource_mark, self._notify_updated)
        self._answers = self._make_answers()

    def _make_answers(self) -> Mapping[str, Callable[[Json, _Handling], Json | None]]:
        adapter, card = self._adapter, self._card
        return {
            "ping": lambda _, __: {},
            "initialize": lambda params, _: card.initialize_result(params["protocolVersion"]),
            "server/discover": lambda _, __: card.discover_result(),
            "tools/list": lambda _, __: {"tools": adapter.list_tools()},
            "tools/call": lambda _, handling: self._call_tool(handling),
            "resources/list": lambda params, _: adapter.list_resources(params.get("cursor")),
            "resources/templates/list": lambda _, __: adapter.list_templates(),
            "resources/read": lambda params, handling: adapter.read_resource(params["uri"], self._caller(handling)),
            "resources/subscribe": lambda params, handling: self._subscribe(params["uri"], self._caller(handling)),
            "resources/unsubscribe": lambda params, _: self._unsubscribe(params["uri"]),
            "subscriptions/listen": lambda _, handling: self._listen(handling),
            "prompts/list": lambda _, __: adapter.list_prompts(),
            "prompts/get": lambda params, _: adapter.get_prompt(params["name"], params.get("arguments")),
            "completion/complete": lambda params, _: adapter.complete_template(
                params["ref"].get("uri", ""), params["argument"]["value"]
            ),
        }

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
        call = _RunningCall(request.id)
        handling = _Handling(request.method, request.params or {}, self._era, facts, call)
        if request.method == "tools/call":
            call.changes, call.is_loading = self._adapter.may_write(handling.params["name"]), True
        elif request.method == "initialize":
            self._facts = ClientFacts.from_sent(handling.params["clientInfo"], handling.params["capabilities"])
            self._is_open = True
        with self._changed:
            self._calls[_same_id(request.id)] = call
        if request.method in _SHORT_WORK:
            self._answer(handling)
        else:
            self._start(partial(self._answer, handling))

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
        key = _same_id(request)
        with self._changed:
            call = self._calls.get(key) or self._listeners.pop(key, None)
            if call is None:
                return
            call.is_stopped = call.is_silent = True
            if not call.changes:
                self._calls.pop(key, None)
        self._stop_watching(call)

    def _take_reply(self, message: RpcReply) -> None:
        with self._changed:
            question = None if message.id is None else self._questions.pop(_same_id(message.id), None)
        if question is None:
            return
        with suppress(InvalidStateError):  # it was withdrawn in this moment
            try:
                question.answer.set_result(question.read(elicitation_reply(message.result, message.error)))
            except PermissionRequired as error:
                question.answer.set_exception(error)

    # What it is answered.
    def _answer(self, handling: _Handling) -> None:
        call, reply = handling.call, None
        try:
            result = None if call.is_stopped else self._answers[handling.method](handling.params, handling)
            if result is not None:
                if handling.era == "stateless":
                    result = self._card.complete_result(handling.method, result)
                reply = {"jsonrpc": "2.0", "id": call.id, "result": result}
        except RpcError as error:
            reply = error_reply(call.id, error.code, error.message, error.data)
        except Exception:
            logging.getLogger("surehold").exception("A request failed.")
            reply = error_reply(call.id, INTERNAL_ERROR, "Internal server error")
        self._finish(call, reply)

    def _finish(self, call: _RunningCall, reply: Json | None) -> None:
        key = _same_id(call.id)
        with self._changed:
            if self._calls.get(key) is call:
                del self._calls[key]
            is_wanted = not call.is_silent
            self._changed.notify_all()
        if is_wanted and reply is not None:
            self._send(reply)

    def _call_tool(self, handling: _Handling) -> Json:
        call, params, extra = handling.call, handling.params, dict[str, Any]()
        self._adapter.load_tool(params["name"])
        call.is_loading = False
        token = handling.meta.get("progressToken")
        if isinstance(token, (str, int)) and not isinstance(token, bool):
            extra["progress"] = self._progress_listener(call, token)
        if call.changes and handling.facts.can_elicit:
            if handling.era == "stateless":
                extra["round"] = round_input(params)
            else:
                extra["show_form"] = self._show_form
        caller = self._caller(handling, cancelled=call.is_cancelled, **extra)
        return self._adapter.call_tool(params["name"], params.get("arguments"), caller)

    def _caller(self, handling: _Handling, **extra: Any) -> Caller:
        return Caller(
            client=handling.facts.name,
            client_version=handling.facts.version,
            era=handling.era,
            connection=self._own,
            who=self._who,
            wants_data=handling.facts.wants_data,
            **facts_in_meta(handling.meta),
            **extra,
        )

    def _progress_listener(self, call: _RunningCall, token: RequestId) -> Callable[..., None]:
        throttle = ProgressThrottle()

        def report(done: float, total: float | None = None, message: str = "") -> None:
            if call.is_stopped or not throttle.accepts(done, total):
                return
            params: Json = {"progressToken": token, "progress": done}
            if total is not None:
                params["total"] = total
            self._notify("notifications/progress", {**params, "message": ensure_utf8(message)} if message else params)

        return report

    def _notify(self, method: str, params: Json) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    # Questions.
    def _show_form(self, form: Json, read: Callable[[ElicitationReply], Approval]) -> Future[Approval]:
        question = _Question(Future(), read)
        with self._changed:
            self._last_question += 1
            name = self._last_question
            self._questions[name] = question
        question.answer.add_done_callback(lambda answer: self._withdraw_form(name) if answer.cancelled() else None)
        self._send({"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": form})
        return question.answer

    def _withdraw_form(self, name: int) -> None:
        with self._changed:
            was_open = self._questions.pop(name, None)
        if was_open:
            self._notify("notifications/cancelled", {"requestId": name, "reason": "caller cancelled"})

    # Subscriptions.
    def _subscribe(self, uri: str, caller: Caller) -> Json:
        if uri not in self._subscribed:
            self._adapter.check_watchable(uri, caller)
            self._watch.add_uri(uri)
        dropped = ""
        with self._changed:
            self._subscribed[uri] = True
            if len(self._subscribed) > _MAX_SUBSCRIPTIONS:
                dropped, _ = self._subscribed.popitem(last=False)
        if dropped:
            self._watch.drop_uri(dropped)
        return {}

    def _unsubscribe(self, uri: str) -> Json:
        with self._changed:
            known = self._subscribed.pop(uri, False)
        if known:
            self._watch.drop_uri(uri)
        return {}

    def _listen(self, handling: _Handling) -> None:
        """Begin to tell a client of the stateless era about changes, until it cancels the request."""
        call, wanted = handling.call, cast("Json", handling.params["notifications"])
        uris = tuple(cast("list[str]", wanted.get("resourceSubscriptions") or ()))
        if len(self._listeners) >= _MAX_LISTENERS:
            raise RpcError(INTERNAL_ERROR, "Subscription limit reached")
        for uri in uris:
            self._watch.add_uri(uri)
        call.watched = uris
        honoured: Json = {flag: True for flag in _LIST_FLAGS if is_true(wanted.get(flag))}
        if uris:
            honoured["resourceSubscriptions"] = list(uris)
        meta = {SUBSCRIPTION_ID_KEY: call.id}
        with self._changed:
            if not call.is_silent:
                self._notify("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": meta})
                self._listeners[_same_id(call.id)] = call
        if call.is_silent:
            self._stop_watching(call)

    def _notify_updated(self, uri: str) -> None:
        with self._changed:
            if uri in self._subscribed:
                self._notify("notifications/resources/updated", {"uri": uri})
            for call in self._listeners.values():
                if uri in call.watched:
                    meta = {SUBSCRIPTION_ID_KEY: call.id}
                    self._notify("notifications/resources/updated", {"uri": uri, "_meta": meta})

    def _stop_watching(self, call: _RunningCall) -> None:
        watched, call.watched = call.watched, ()
        for uri in watched:
            self._watch.drop_uri(uri)

    # The end.
    def finish_calls(self, seconds: float, *, has_reader: Callable[[], bool]) -> None:
        """Let calls end whose answers the client still reads: reads for so long, changes for as long as they take."""
        self._adapter.approvals.close()
        end = time.monotonic() + seconds
        with self._changed:
            while self._calls and has_reader() and (self.is_changing or time.monotonic() < end):
                self._changed.wait(_SETTLE_SECONDS)
                if any(call.is_loading for call in self._calls.values()):
                    end = time.monotonic() + seconds

    def close(self) -> None:
        """End every subscription in good order, and answer what is not answered yet."""
        self._watch.close()
        with self._changed:
            listeners, self._listeners = list(self._listeners.values()), {}
            left = [call for call in self._calls.values() if not call.is_silent]
            for call in left:
                call.is_stopped = True
                call.is_silent = not call.changes
            self._changed.notify_all()
        for call in listeners:
            ended = {"_meta": {SUBSCRIPTION_ID_KEY: call.id}}
            result = self._card.complete_result("subscriptions/listen", ended)
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


def _same_id(request: RequestId) -> RequestId:
    """Return what identifies a request: some clients send a number back as text."""
    if isinstance(request, str):
        with suppress(ValueError):
            return int(request)
    return request

"""The requests of one client that need the workspace: calls, questions, resources and subscriptions.

It is imported when the first of them comes, with everything that it needs.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from surehold.errors import PermissionRequired
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.approval import elicitation_reply, round_input
from surehold.front.mcp.json_rpc import RpcReply
from surehold.front.mcp.progress import ProgressThrottle
from surehold.front.mcp.protocol import (
    INTERNAL_ERROR,
    SUBSCRIPTION_ID_KEY,
    Handling,
    Json,
    RequestId,
    RpcError,
    RunningCall,
    same_id,
)
from surehold.front.mcp.request_shapes import is_true
from surehold.front.mcp.resources import ResourceWatcher
from surehold.front.mcp.sessions import Caller, ElicitationReply, facts_in_meta, new_handle
from surehold.front.shared.person import person_name
from surehold.text.escape import ensure_utf8
from surehold.workspace.access.permission import Approval

_MAX_SUBSCRIPTIONS = 4096
_MAX_LISTENERS = 1024
_LIST_FLAGS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


@dataclass(slots=True)
class _Question:
    """A form that the client shows."""

    answer: Future[Approval]
    read: Callable[[ElicitationReply], Approval]


class WorkspaceRequests:
    """Answers the requests of one connection through the adapter, and keeps its questions and subscriptions."""

    def __init__(self, adapter: Adapter, *, send: Callable[[Json], None], changed: threading.Condition) -> None:
        """Take the adapter, what sends a message, and what guards the calls of the connection and everything here."""
        self._adapter, self._send, self._changed = adapter, send, changed
        self._own = new_handle()
        self._who = person_name()
        self._listeners = dict[RequestId, RunningCall]()
        self._questions = dict[RequestId, _Question]()
        self._last_question = 0
        self._subscribed = OrderedDict[str, bool]()
        self._watch = ResourceWatcher(adapter.resource_mark, self._notify_updated)
        self._answers = self._make_answers()

    def _make_answers(self) -> Mapping[str, Callable[[Json, Handling], Json | None]]:
        adapter = self._adapter
        return {
            "tools/call": lambda _, handling: self._call_tool(handling),
            "resources/list": lambda params, _: adapter.list_resources(params.get("cursor")),
            "resources/templates/list": lambda params, _: adapter.list_templates(params.get("cursor")),
            "resources/read": lambda params, handling: adapter.read_resource(params["uri"], self._caller(handling)),
            "resources/subscribe": lambda params, handling: self._subscribe(params["uri"], self._caller(handling)),
            "resources/unsubscribe": lambda params, _: self._unsubscribe(params["uri"]),
            "subscriptions/listen": lambda _, handling: self._listen(handling),
            "completion/complete": lambda params, _: adapter.complete_template(
                params["ref"].get("uri", ""), params["argument"]["value"]
            ),
        }

    def answer(self, handling: Handling) -> Json | None:
        """Return the result of a request; None when it is answered later."""
        return self._answers[handling.method](handling.params, handling)

    def close(self) -> Sequence[RunningCall]:
        """Stop looking at resources; return the requests that listened, which are not answered yet."""
        self._watch.close()
        self._adapter.command_post.close()
        with self._changed:
            listeners, self._listeners = list(self._listeners.values()), {}
        return listeners

    def _call_tool(self, handling: Handling) -> Json:
        call, params, extra = handling.call, handling.params, dict[str, Any]()
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

    def _caller(self, handling: Handling, **extra: Any) -> Caller:
        return Caller(
            client=handling.facts.name,
            era=handling.era,
            connection=self._own,
            who=self._who,
            wants_data=handling.facts.wants_data,
            shows_views=handling.facts.shows_views,
            **facts_in_meta(handling.meta),
            **extra,
        )

    def _progress_listener(self, call: RunningCall, token: RequestId) -> Callable[..., None]:
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
    def take_reply(self, message: RpcReply) -> None:
        with self._changed:
            question = None if message.id is None else self._questions.pop(same_id(message.id), None)
        if question is None:
            return
        with suppress(InvalidStateError):  # it was withdrawn in this moment
            try:
                question.answer.set_result(question.read(elicitation_reply(message.result, message.error)))
            except PermissionRequired as error:
                question.answer.set_exception(error)

    def withdraw_questions(self) -> None:
        """Ask nothing any more: the client has left."""
        self._adapter.approvals.close()

    def take_command_questions(self, *, at_client: bool) -> None:
        """Let commands ask on the page, if there is one; those that the host of this client runs may ask the client."""
        self._adapter.command_post.open(self._show_form if at_client else None)

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

    def _listen(self, handling: Handling) -> None:
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
                self._listeners[same_id(call.id)] = call
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

    def stop_listening(self, key: RequestId, call: RunningCall | None) -> None:
        """Forget what a request listens to that the client took back; `call` is given while it is being answered."""
        with self._changed:
            listening = self._listeners.pop(key, None)
            listener = call or listening
            if listener is None:
                return
            listener.is_stopped = listener.is_silent = True
        self._stop_watching(listener)

    def _stop_watching(self, call: RunningCall) -> None:
        watched, call.watched = call.watched, ()
        for uri in watched:
            self._watch.drop_uri(uri)

"""Binds the adapter to the SDK's low-level server, for both eras of the protocol.

This is the only seam to the SDK's server: requests, elicitation and subscriptions, and the signals that end it.
"""

import asyncio
import os
import signal
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from surehold.errors import PermissionRequired
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.protocol import CACHE_POLICIES, RESULT_KEY, RpcError, announces_views
from surehold.front.mcp.resources import ResourceWatcher
from surehold.front.mcp.sdk.call_threads import CallThreads, Send, Work
from surehold.front.mcp.sessions import Caller, ElicitationReply, RoundInput, ShowForm, facts_in_meta, new_handle
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.event_loop import run_on_loop
from surehold.front.shared.pending_approval import client_gone_error
from surehold.front.shared.person import person_name
from surehold.tools.call import Json, ProgressListener
from surehold.workspace.access.permission import Approval

INTERRUPTED_EXIT_CODE = 130
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class ShutdownSignals:
    """Waits for a signal to end; a second one ends the program at once, which is safe for every file."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.code = 0

    async def watch_signals(self) -> None:
        ending = [one for one in _ENDING_SIGNALS if signal.getsignal(one) != signal.SIG_IGN]  # as under nohup
        with anyio.open_signal_receiver(*ending) as signals:
            async for number in signals:
                if self.asked.is_set():
                    os._exit(128 + number)
                self.code = INTERRUPTED_EXIT_CODE if number == signal.SIGINT else 0
                self.asked.set()

    async def cancel_when_asked(self, scope: anyio.CancelScope) -> None:
        await self.asked.wait()
        scope.cancel()


RequestContext = ServerRequestContext[Any, Any]


def can_elicit(ctx: RequestContext) -> bool:
    """Tell whether the client shows forms to a person; one that names no mode means forms."""
    capabilities = ctx.session.client_capabilities
    declared = capabilities.elicitation if capabilities else None
    return declared is not None and (declared.form is not None or declared.url is None)


def _wants_data(ctx: RequestContext) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and RESULT_KEY in (capabilities.experimental or {})


def _shows_views(ctx: RequestContext) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and announces_views(capabilities.extensions)


def _round_input(params: types.CallToolRequestParams) -> RoundInput:
    given = params.input_responses or {}
    replies = {key: _reply_from(one) for key, one in given.items() if isinstance(one, types.ElicitResult)}
    return RoundInput(state=params.request_state or "", replies=replies)


def make_form_channel(ctx: RequestContext) -> ShowForm:
    """Return the way to ask the client of a call while the call waits."""
    loop = asyncio.get_running_loop()

    async def show_form(form: Json, read: Callable[[ElicitationReply], Approval]) -> Approval:
        params = types.ElicitRequestFormParams.model_validate(form)
        try:
            result = await ctx.session.send_request(
                types.ElicitRequest(params=params),
                types.ElicitResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise client_gone_error() from None
            raise PermissionRequired("The client could not ask for approval.", cause=error.message) from None
        except ValidationError as error:
            cause = "its answer does not follow the protocol"
            raise PermissionRequired("The client could not ask for approval.", cause=cause) from error
        return read(_reply_from(result))

    return lambda form, read: run_on_loop(show_form(form, read), loop)


def _reply_from(result: types.ElicitResult) -> ElicitationReply:
    return ElicitationReply(action=result.action, content=result.content or {})


PRINCIPAL_KEY = "surehold.principal"
"""Where the HTTP front leaves the name that a bearer token identifies."""
DISCONNECTED_KEY = "surehold.disconnected"
"""Where the HTTP front leaves a function that tells whether the client has closed the connection."""

T = TypeVar("T")
_CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    cast("CacheableMethod", method): CacheHint(ttl_ms=policy.ttl_ms, scope=policy.scope)
    for method, policy in CACHE_POLICIES.items()
}
_MAX_SUBSCRIPTIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundServer:
    """A server of the SDK, and what its transports need to end it well."""

    server: Server[Any]
    adapter: Adapter
    calls: CallThreads
    approvals: ApprovalQueue
    listening: ListenHandler
    is_listening: Callable[[], bool]
    """Tells whether a stream of `subscriptions/listen` has not ended yet."""
    forget_client: Callable[[str], None]
    """Ends the subscriptions of a connection whose client is gone."""


def make_server(adapter: Adapter) -> BoundServer:
    return _ServerBinding(adapter).make_bound_server()


class _ServerBinding:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._calls = CallThreads()
        self._own = new_handle()
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._streams = 0
        self._watch = ResourceWatcher(adapter.resource_mark, self._notify_from_thread)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscribed = OrderedDict[tuple[str, str], ServerSession]()

    def make_bound_server(self) -> BoundServer:
        adapter = self._adapter
        server = Server[Any](
            **adapter.catalog.describe_server(),
            cache_hints=_CACHE_HINTS,
            lifespan=self._run_lifespan,
            get_tool_input_schema=adapter.catalog.input_schema,
            on_list_tools=self._answer_in_thread(
                lambda ctx, page: {"tools": adapter.catalog.list_tools(page and page.cursor, views=_shows_views(ctx))}
            ),
            on_call_tool=_plain_answer(self._call_tool),
            on_list_resources=self._answer_in_thread(lambda _, page: adapter.list_resources(page and page.cursor)),
            on_list_resource_templates=self._answer_in_thread(
                lambda _, page: adapter.list_templates(page and page.cursor)
            ),
            on_read_resource=self._answer_in_thread(
                lambda ctx, params: adapter.read_resource(params.uri, self._caller_from(ctx))
            ),
            on_subscribe_resource=self._subscribe_resource,
            on_unsubscribe_resource=self._unsubscribe_resource,
            on_subscriptions_listen=self._listen_for_updates,
            on_list_prompts=self._answer_in_thread(lambda _, page: adapter.catalog.list_prompts(page and page.cursor)),
            on_get_prompt=self._answer_in_thread(
                lambda _, params: adapter.catalog.get_prompt(params.name, params.arguments)
            ),
            on_completion=self._answer_in_thread(
                lambda _, params: adapter.complete_template(getattr(params.ref, "uri", ""), params.argument.value)
            ),
        )
        return BoundServer(
            server=server,
            adapter=adapter,
            calls=self._calls,
            approvals=adapter.approvals,
            listening=self._listening,
            is_listening=lambda: self._streams > 0,
            forget_client=self._end_subscriptions,
        )

    @asynccontextmanager
    async def _run_lifespan(self, _: Server[Any]) -> AsyncGenerator[None]:
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._watch.close()

    async def _call_tool(self, ctx: RequestContext, params: types.CallToolRequestParams) -> Json:
        name, caller = params.name, self._caller_from(ctx)
        changes = name in self._adapter.catalog.writing
        if changes and can_elicit(ctx):
            if caller.era == "stateless":
                caller = replace(caller, round=_round_input(params))
            else:
                caller = replace(caller, show_form=make_form_channel(ctx))

        def call_adapter(progress: ProgressListener, cancelled: Callable[[], bool]) -> Json:
            heard = replace(caller, progress=progress, cancelled=cancelled)
            return self._adapter.call_tool(name, params.arguments, heard)

        send: Send | None = ctx.session.report_progress if (ctx.meta or {}).get("progress_token") is not None else None
        return await self._run_call(call_adapter, changes=changes, send=send)

    async def _subscribe_resource(self, ctx: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        caller = self._caller_from(ctx)
        key = (caller.connection, params.uri)
        if key not in self._subscribed:
            await self._run_call(lambda _, __: self._adapter.check_watchable(params.uri, caller))
            await anyio.to_thread.run_sync(self._watch.add_uri, params.uri)
        self._subscribed[key] = ctx.session
        while len(self._subscribed) > _MAX_SUBSCRIPTIONS:
            self._end_subscription(next(iter(self._subscribed)))
        return types.EmptyResult()

    async def _unsubscribe_resource(
        self, ctx: RequestContext, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._end_subscription((self._caller_from(ctx).connection, params.uri))
        return types.EmptyResult()

    def _end_subscriptions(self, connection: str) -> None:
        for key in [key for key in self._subscribed if key[0] == connection]:
            self._end_subscription(key)

    def _end_subscription(self, key: tuple[str, str]) -> None:
        if self._subscribed.pop(key, None):
            self._watch.drop_uri(key[1])

    async def _listen_for_updates(
        self, ctx: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        watched = list[str]()
        self._streams += 1
        try:
            for uri in params.notifications.resource_subscriptions or ():
                await anyio.to_thread.run_sync(self._watch.add_uri, uri)
                watched.append(uri)
            return await self._listening(ctx, params)
        finally:
            for uri in watched:
                self._watch.drop_uri(uri)
            self._streams -= 1

    def _notify_from_thread(self, uri: str) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._notify_subscribers(uri)))

    async def _notify_subscribers(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))
        for (_, wanted), session in list(self._subscribed.items()):
            if wanted == uri:
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await session.send_resource_updated(uri)

    def _answer_in_thread(self, work: Callable[[RequestContext, Any], Json]) -> Any:
        return _plain_answer(lambda ctx, params: self._run_call(lambda _, __: work(ctx, params)))

    async def _run_call(self, work: "Work[T]", *, changes: bool = False, send: Send | None = None) -> T:
        try:
            return await self._calls.run_in_thread(work, changes=changes, send=send)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    def _caller_from(self, ctx: RequestContext) -> Caller:
        client = ctx.session.client_params.client_info if ctx.session.client_params else None
        stateless = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        web = ctx.request
        name = client.name if client else ""
        return Caller(
            client=name,
            era="stateless" if stateless else "handshake",
            connection=self._own if web is None else "" if stateless else web.headers.get("mcp-session-id", ""),
            principal=web.scope.get(PRINCIPAL_KEY, "") if web is not None else "",
            gone=web.scope.get(DISCONNECTED_KEY, lambda: False) if web is not None else lambda: False,
            who=person_name() if web is None else f"the person at {name or 'the client'}",
            wants_data=_wants_data(ctx),
            shows_views=_shows_views(ctx),
            **facts_in_meta(ctx.meta or {}),
        )


def _plain_answer(answer: Callable[[RequestContext, Any], Awaitable[Json]]) -> Any:
    """Let an answer be plain data: the SDK takes it as well as its own types, only its signatures do not say so."""

    async def complete_result(ctx: RequestContext, params: Any) -> Json:
        return {"resultType": "complete", **await answer(ctx, params)}

    return complete_result

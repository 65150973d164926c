"""The adapter on the SDK's low-level server, for both eras of the protocol."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.asking import Asking, Desk
from surehold.front.mcp.caller import Caller, RpcError
from surehold.front.mcp.calls import Calls, Send
from surehold.front.mcp.elicit import can_elicit, delivery, replies_in
from surehold.front.mcp.results import MENDED_KEY, SESSION_KEY
from surehold.front.mcp.rounds import Round
from surehold.front.mcp.sessions import new_handle
from surehold.front.mcp.watch import Watch
from surehold.tools.context import Progress
from surehold.tools.spec import Json

PRINCIPAL = "surehold.principal"
"""Where the HTTP front leaves the name that a bearer token stands for."""

Ctx = ServerRequestContext[Any, Any]
T = TypeVar("T")
_LASTING = CacheHint(ttl_ms=300_000, scope="public")
_CACHED: dict[CacheableMethod, CacheHint] = {
    "tools/list": _LASTING,
    "prompts/list": _LASTING,
    "resources/templates/list": _LASTING,
    "server/discover": CacheHint(ttl_ms=300_000),
    "resources/list": CacheHint(),
    "resources/read": CacheHint(),
}
_SUBSCRIPTIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A server of the SDK, and what its transports need to end it well."""

    server: Server[Any]
    calls: Calls
    desk: Desk
    listening: ListenHandler


def make_server(adapter: Adapter) -> Bound:
    """Put an adapter on an SDK server."""
    return _Binding(adapter).bound()


class _Binding:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._calls = Calls()
        self._desk = Desk()
        self._own = new_handle()
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._watch = Watch(adapter.mark, self._tell)
        self._subscribed = OrderedDict[tuple[str, str], ServerSession]()

    def bound(self) -> Bound:
        about = self._adapter.describe()
        server = Server[Any](
            about["name"],
            version=about["version"],
            title=about["title"],
            description=about["description"],
            instructions=about["instructions"],
            cache_hints=_CACHED,
            lifespan=self._lifespan,
            get_tool_input_schema=self._adapter.input_schema,
            on_list_tools=_plain(self._list_tools),
            on_call_tool=_plain(self._call_tool),
            on_list_resources=_plain(self._list_resources),
            on_list_resource_templates=_plain(self._list_templates),
            on_read_resource=_plain(self._read_resource),
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
            on_list_prompts=_plain(self._list_prompts),
            on_get_prompt=_plain(self._get_prompt),
            on_completion=_plain(self._complete),
        )
        return Bound(server=server, calls=self._calls, desk=self._desk, listening=self._listening)

    @asynccontextmanager
    async def _lifespan(self, _: Server[Any]) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch.run)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    # Tools.
    async def _list_tools(self, _: Ctx, __: types.PaginatedRequestParams | None) -> Json:
        return {"tools": self._adapter.list_tools()}

    async def _call_tool(self, ctx: Ctx, params: types.CallToolRequestParams) -> Json:
        name, arguments, caller = params.name, params.arguments, self._caller(ctx)
        changes, asking, brought = self._adapter.changes(name), None, None
        if changes and can_elicit(ctx):
            if caller.era == "stateless":
                brought = Round(state=params.request_state or "", replies=replies_in(params))
            else:
                asking = self._desk.open(delivery(ctx, seconds=self._adapter.profile.ask_seconds))

        def work(progress: Progress, cancelled: Callable[[], bool]) -> Json:
            called = replace(caller, progress=progress, cancelled=cancelled, ask=asking, round=brought)
            return self._adapter.call_tool(name, arguments, called)

        send: Send | None = ctx.session.report_progress if (ctx.meta or {}).get("progress_token") is not None else None
        try:
            return await self._run(work, changes=changes, send=send, asking=asking)
        finally:
            if asking:
                self._desk.drop(asking)

    # Resources.
    async def _list_resources(self, _: Ctx, params: types.PaginatedRequestParams | None) -> Json:
        cursor = params.cursor if params else None
        return await self._run(lambda _, __: self._adapter.list_resources(cursor))

    async def _list_templates(self, _: Ctx, __: types.PaginatedRequestParams | None) -> Json:
        return self._adapter.list_templates()

    async def _read_resource(self, ctx: Ctx, params: types.ReadResourceRequestParams) -> Json:
        caller = self._caller(ctx)
        return await self._run(lambda _, __: self._adapter.read_resource(params.uri, caller))

    async def _complete(self, _: Ctx, params: types.CompleteRequestParams) -> Json:
        ref = params.ref
        template = ref.uri if isinstance(ref, types.ResourceTemplateReference) else ""
        return await self._run(lambda _, __: self._adapter.complete(template, params.argument.value))

    # Subscriptions.
    async def _subscribe(self, ctx: Ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
        caller = self._caller(ctx)
        key = (caller.connection, params.uri)
        if key not in self._subscribed:
            await self._run(lambda _, __: self._adapter.check_watchable(params.uri, caller))
            await self._watch.add(params.uri)
        self._subscribed[key] = ctx.session
        while len(self._subscribed) > _SUBSCRIPTIONS:
            (_, uri), _ = self._subscribed.popitem(last=False)
            self._watch.drop(uri)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        if self._subscribed.pop((self._caller(ctx).connection, params.uri), None):
            self._watch.drop(params.uri)
        return types.EmptyResult()

    async def _listen(
        self, ctx: Ctx, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        watched = list[str]()
        try:
            for uri in params.notifications.resource_subscriptions or ():
                await self._watch.add(uri)
                watched.append(uri)
            return await self._listening(ctx, params)
        finally:
            for uri in watched:
                self._watch.drop(uri)

    async def _tell(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))
        for (_, wanted), session in list(self._subscribed.items()):
            if wanted == uri:
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await session.send_resource_updated(uri)

    # Prompts.
    async def _list_prompts(self, _: Ctx, __: types.PaginatedRequestParams | None) -> Json:
        return self._adapter.list_prompts()

    async def _get_prompt(self, _: Ctx, params: types.GetPromptRequestParams) -> Json:
        return await self._run(lambda _, __: self._adapter.get_prompt(params.name, params.arguments))

    async def _run(
        self,
        work: Callable[[Progress, Callable[[], bool]], T],
        *,
        changes: bool = False,
        send: Send | None = None,
        asking: Asking | None = None,
    ) -> T:
        try:
            return await self._calls.run(work, changes=changes, send=send, asking=asking)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    def _caller(self, ctx: Ctx) -> Caller:
        client = ctx.session.client_params.client_info if ctx.session.client_params else None
        stateless = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        meta: dict[str, Any] = dict(ctx.meta or {})
        return Caller(
            client=client.name if client else "",
            client_version=client.version if client else "",
            era="stateless" if stateless else "handshake",
            connection=self._connection(ctx, stateless=stateless),
            principal=ctx.request.scope.get(PRINCIPAL, "") if ctx.request is not None else "",
            handle=str(meta.get(SESSION_KEY) or ""),
            mended=bool(meta.get(MENDED_KEY)),
        )

    def _connection(self, ctx: Ctx, *, stateless: bool) -> str:
        if ctx.request is None:
            return self._own
        return "" if stateless else ctx.request.headers.get("mcp-session-id", "")


def _plain(answer: Callable[[Ctx, Any], Awaitable[Json]]) -> Any:
    """Let an answer be plain data: the SDK takes it as well as its own types, only its signatures do not say so."""

    async def complete(ctx: Ctx, params: Any) -> Json:
        return {"resultType": "complete", **await answer(ctx, params)}

    return complete

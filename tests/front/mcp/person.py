"""A person who sits at the official SDK's client, and answers what the server asks."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import anyio
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from front.mcp.client import Json, surehold
from front.mcp.site import Site
from surehold.front.mcp.approval import ALWAYS, ONCE, REFUSE
from waiting import HANG_SECONDS

T = TypeVar("T")
Way = Literal["stdio", "http"]
Era = Literal["legacy", "2026-07-28"]


def yes(**more: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": ONCE, **more})


def always() -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": ALWAYS})


def no(note: str = "") -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": REFUSE, "note": note})


@dataclass
class Person:
    """Gives one answer after the other, the last one again and again, and remembers what was shown."""

    answers: ElicitResult | list[ElicitResult] = field(default_factory=yes)
    before: Callable[[], object] = lambda: None
    """What happens while the person thinks."""
    silent: bool = False
    shown: list[ElicitRequestFormParams] = field(default_factory=list[ElicitRequestFormParams])

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.shown.append(params)
        if self.silent:
            await anyio.sleep_forever()
        self.before()
        given = self.answers if isinstance(self.answers, list) else [self.answers]
        return given[min(len(self.shown), len(given)) - 1]


@dataclass(frozen=True)
class Host:
    """Calls tools through the SDK's client on a real server, with or without a person."""

    site: Site
    flags: tuple[str, ...] = ("--mode", "default")
    era: Era = "legacy"
    way: Way = "stdio"

    def call(self, person: Person | None, tool: str, **arguments: Any) -> Json:
        """Call one tool, and return what a program reads of it."""
        return self.calls(person, (tool, arguments))[0]

    def calls(self, person: Person | None, *calls: tuple[str, Json]) -> list[Json]:
        """Call tools one after the other, in one session."""

        async def all_of(client: Client) -> list[Json]:
            return [_data(await client.call_tool(tool, arguments)) for tool, arguments in calls]

        return self.run(person, all_of)

    def run(self, person: Person | None, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something with a connected client."""
        if self.way == "http":
            with self.site.serve("mcp", "--http", "127.0.0.1:0", *self.flags) as server:
                return anyio.run(self._with, f"http://127.0.0.1:{server.port}/mcp", person, work)
        with (self.site.root.parent / "stderr.log").open("a", encoding="utf-8") as log:
            words = surehold("mcp", self.site.root, "--state-dir", self.site.state, *self.flags)
            child = stdio_client(StdioServerParameters(command=sys.executable, args=words), errlog=log)
            return anyio.run(self._with, child, person, work)

    async def _with(self, server: Transport | str, person: Person | None, work: Callable[[Client], Awaitable[T]]) -> T:
        async with Client(
            server, mode=self.era, read_timeout_seconds=HANG_SECONDS, elicitation_callback=person
        ) as client:
            return await work(client)


def _data(result: object) -> Json:
    assert isinstance(result, CallToolResult)
    data: Json = (result.meta or {}).get("surehold/result") or result.structured_content or {}
    return {**data, "isError": result.is_error}

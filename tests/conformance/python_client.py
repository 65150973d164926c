"""The official Python SDK's client, in every era that it speaks."""

from importlib.metadata import version
from pathlib import Path
from typing import TextIO, cast

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

from conformance.lifecycle import REVISIONS, Connection, Json, Reply, Step, live
from conformance.report import Check, outcome
from conformance.servers import Place, http_server, new_place


def checks(folder: Path) -> list[Check]:
    """Live an edit's life over both transports, in every mode."""
    found = list[Check]()
    for mode in REVISIONS:
        place = new_place(folder / f"python-stdio-{mode}")
        found += _checks(f"stdio, {mode}", over_stdio(place, mode))
        place = new_place(folder / f"python-http-{mode}")
        with http_server(place) as url:
            found += _checks(f"HTTP, {mode}", anyio.run(_live, url, mode, place.root))
    return found


def over_stdio(place: Place, mode: str) -> list[Step]:
    """Start the place's server as a child and live an edit's life."""
    with (place.folder / "stderr.log").open("w", encoding="utf-8") as log:
        return anyio.run(_live, child(place, log), mode, place.root)


def child(place: Place, log: TextIO) -> Transport:
    """Return the transport that starts the place's server; what it logs goes to a file."""
    command, *arguments = place.command
    return stdio_client(StdioServerParameters(command=command, args=[*arguments, "--meta"]), errlog=log)


async def _live(server: Transport | str, mode: str, root: Path) -> list[Step]:
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        return await live(connection(client, mode), root)


def connection(client: Client, mode: str) -> Connection:
    """Return the client in the terms of the lifecycle."""

    async def tools() -> dict[str, Json | None]:
        return {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

    async def call(name: str, arguments: Json) -> Reply:
        result = await client.call_tool(name, arguments)
        assert isinstance(result, CallToolResult)
        return reply(result)

    async def refused_code(name: str) -> int | None:
        try:
            await client.call_tool(name, {})
        except MCPError as error:
            return error.error.code
        return None

    revisions = (REVISIONS[mode], client.protocol_version)
    return Connection(revisions=revisions, tools=tools, call=call, refused_code=refused_code)


def reply(result: CallToolResult) -> Reply:
    """Return a result of the SDK as plain data."""
    meta = result.meta or {}
    return Reply(
        text="\n".join(block.text for block in result.content if isinstance(block, TextContent)),
        structured=result.structured_content,
        is_error=bool(result.is_error),
        result=cast("Json", meta.get("surehold/result") or result.structured_content or {}),
    )


def _checks(way: str, steps: list[Step]) -> list[Check]:
    part = f"Python SDK {version('mcp')}, {way}"
    return [Check(part=part, name=step.name, outcome=outcome(ok=step.ok), why=step.seen) for step in steps]

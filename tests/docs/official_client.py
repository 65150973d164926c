"""The official MCP client, as far as these tests need it: connect, and ask which tools there are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PATIENCE = 60.0


def tools_over_stdio(command: Sequence[str], *, cwd: Path, log: Path, env: Mapping[str, str]) -> list[str]:
    """Start a server, shake hands, and return the names of its tools; what it logs goes to a file."""

    async def ask() -> list[str]:
        server = StdioServerParameters(command=command[0], args=list(command[1:]), cwd=cwd, env=dict(env))
        with log.open("w", encoding="utf-8") as errors:
            async with Client(
                stdio_client(server, errlog=errors), mode="legacy", read_timeout_seconds=PATIENCE
            ) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    return anyio.run(ask)


def tools_over_http(url: str, headers: Mapping[str, str]) -> list[str]:
    """Connect to a server, shake hands, and return the names of its tools."""

    async def ask() -> list[str]:
        async with (
            httpx2.AsyncClient(headers=dict(headers)) as http,
            Client(
                streamable_http_client(url, http_client=http), mode="legacy", read_timeout_seconds=PATIENCE
            ) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    return anyio.run(ask)

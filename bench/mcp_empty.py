"""The least that a server on the SDK can be: one tool that gives back its text. It is what ours is compared with."""

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def _list_tools(_context: object, _params: object) -> types.ListToolsResult:
    tool = types.Tool(name="echo", description="Gives back a text.", input_schema=_SCHEMA)
    return types.ListToolsResult(tools=[tool])


async def _call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = str((params.arguments or {}).get("text", ""))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _serve() -> None:
    server = Server("empty", on_list_tools=_list_tools, on_call_tool=_call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve)

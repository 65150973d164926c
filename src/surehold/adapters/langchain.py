"""LangChain and LangGraph: the tools of a session as a list that `create_agent`, `bind_tools` and `ToolNode` take."""

from typing import Any

from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession
from surehold.adapters.tool_calls import SessionTool, ToolReply, session_tools
from surehold.library.families import DEFAULT_FAMILIES

with import_framework("langchain-core", "1.7"):
    from langchain_core.tools import StructuredTool, ToolException


def langchain_tools(session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False) -> list[StructuredTool]:
    """Return the tools of a session, to be called or awaited; with `shell` also `run_command`, which runs under capture.

    A refusal is a `ToolException`, which becomes a `ToolMessage` with the status `error`.
    """
    return [_structured_tool(one) for one in session_tools(session, tools, shell=shell)]


def _structured_tool(tool: SessionTool) -> StructuredTool:
    def call(**arguments: Any) -> Any:
        return _content(tool.call(arguments))

    async def call_async(**arguments: Any) -> Any:
        return _content(await tool.call_async(arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        func=call,
        coroutine=call_async,
        handle_tool_error=True,
        metadata={"read_only": tool.read_only},
    )


def _content(reply: ToolReply) -> Any:
    if not reply.ok:
        raise ToolException(reply.text)
    images = [{"type": "image", "base64": one["data"], "mime_type": one["mimeType"]} for one in reply.images]
    return [{"type": "text", "text": reply.text}, *images] if images else reply.text

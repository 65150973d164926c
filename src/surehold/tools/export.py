"""Tool lists in the formats of other programs, generated from the one definition of each tool."""

from collections.abc import Callable, Iterable

from surehold.tools.spec import AnyTool, Json


def mcp_tool(tool: AnyTool) -> Json:
    """Return a tool as the Model Context Protocol lists it."""
    hints = tool.hints
    entry: Json = {
        "name": tool.name,
        "title": hints.title or tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": False,
        },
    }
    return {**entry, "outputSchema": tool.output_schema} if tool.output_schema is not None else entry


def openai_tool(tool: AnyTool) -> Json:
    """Return a tool as OpenAI's Responses API takes it."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,
    }


def anthropic_tool(tool: AnyTool) -> Json:
    """Return a tool as Anthropic's Messages API takes it."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


FORMATS: dict[str, Callable[[AnyTool], Json]] = {"openai": openai_tool, "anthropic": anthropic_tool, "mcp": mcp_tool}


def export_tools(tools: Iterable[AnyTool], format: str) -> list[Json]:  # noqa: A002 - the word that people type
    """Return a tool list in one of the formats."""
    return [FORMATS[format](tool) for tool in tools]

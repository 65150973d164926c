"""The tools for other programs: as OpenAI, Anthropic and MCP list them, and as a section of a system prompt."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surehold.tools.listing import ListedTool

Json = dict[str, Any]

_WAYS_TO_CHANGE = (
    ("edit_file", "`edit_file` for quoted passages"),
    ("edit", "`edit` for lines named by their anchors"),
    ("write_file", "`write_file` for the whole content"),
    ("apply_patch", "`apply_patch` for several files at once"),
)


def build_guidance(tools: "Iterable[ListedTool]", *, roots: Sequence[str] = (), lean: bool = False) -> str:
    """Return everything: how the tools go together, and what each of them has to say for itself."""
    found = list(tools)
    protocol = describe_protocol([tool.name for tool in found], roots=roots, lean=lean)
    return "\n\n".join(filter(None, (protocol, *(tool.brief if lean else tool.guide for tool in found))))


def describe_protocol(names: Sequence[str], *, roots: Sequence[str] = (), lean: bool = False) -> str:
    """Return how the tools go together, in at most twelve lines."""
    place = f" Workspace: {', '.join(roots)}" if roots else ""
    lines = [f"Surehold: file tools that never lose an edit.{place}"]
    if not all(name.endswith("_text_file") for name in names):  # that family takes absolute paths, and says so
        lines.append("Paths are relative to the first directory, or absolute below any of them.")
    ways = [text for name, text in _WAYS_TO_CHANGE if name in names]
    if "read_file" in names and ways:
        lines += _numbered_steps(ways)
    if not lean and ways:
        lines.append("A call happens completely or not at all, also when it changes several files.")
        lines.append("Long answers come in pages; the answer names the next call.")
    if not lean and "delete_file" in names:
        lines.append("Deleted files go to the trash: `restore_file` brings them back.")
    if ways:
        lines.append("A person can look at every change with `surehold log`, and take it back with `surehold undo`.")
    return "\n".join(lines)


def _numbered_steps(ways: Sequence[str]) -> list[str]:
    return [
        "1. Read before you change: `read_file` shows the text and its sha256.",
        f"2. Change it with {', '.join(ways)}. Where a tool takes `expectedSha256`, pass that sha256.",
        "3. The result holds the new sha256: use it for the next change, without reading again.",
        "4. `stale_file` means that the file changed since you read it. Read it again, look what is new, repeat the change.",
        '5. Every refusal says what to do next; "Nothing was written." means just that.',
    ]


def mcp_tool(tool: "ListedTool") -> Json:
    hints = tool.hints
    entry: Json = {
        "name": tool.name,
        "title": hints.title or tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            **({"idempotentHint": True} if hints.idempotent else {}),
            "openWorldHint": False,
        },
    }
    return {**entry, "outputSchema": tool.output_schema} if tool.output_schema is not None else entry


def openai_chat_tool(tool: "ListedTool") -> Json:
    """Return a tool as OpenAI's chat API takes it, and every API that follows it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": False}
    return {"type": "function", "function": function}


def openai_tool(tool: "ListedTool") -> Json:
    """Return a tool as OpenAI's Responses API takes it."""
    entry = {"type": "function", "name": tool.name, "description": tool.description}
    return {**entry, "parameters": tool.input_schema, "strict": False}


def anthropic_tool(tool: "ListedTool") -> Json:
    """Return a tool as Anthropic's Messages API takes it."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


FORMATS: dict[str, Callable[["ListedTool"], Json]] = {
    "mcp": mcp_tool,
    "openai": openai_tool,
    "openai-responses": openai_tool,
    "openai-chat": openai_chat_tool,
    "anthropic": anthropic_tool,
}
"""How each API takes a tool; `openai` alone means its Responses API."""


def export_tools(tools: "Iterable[ListedTool]", format: str) -> list[Json]:  # noqa: A002 - the word that people type
    return [FORMATS[format](tool) for tool in tools]

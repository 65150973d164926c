"""Tools as a host lists them."""

from typing import Any

from surehold.tools.export import mcp_tool
from surehold.tools.spec import Json, Tool

_ALWAYS = frozenset({"read_file", "edit_file", "edit"})
"""Tools that a host which loads definitions late should show from the start: every task needs them."""
_LARGEST = 200_000
"""Up to here a host that files large results away leaves ours alone: they are paged already."""


def tool_entry(tool: Tool[Any, Any], *, lean: bool = False) -> Json:
    """Return one tool as `tools/list` spells it, with what single hosts want to know."""
    entry = mcp_tool(tool)
    if lean:
        entry["description"] = tool.description.partition("\n\n")[0]
    meta: Json = {}
    if tool.name in _ALWAYS:
        meta["anthropic/alwaysLoad"] = True
    if tool.hints.read_only:
        meta["anthropic/maxResultSizeChars"] = _LARGEST
    return {**entry, "_meta": meta} if meta else entry

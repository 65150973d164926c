"""Look up tools and tool families by name.

A family is imported when it is first asked for.
"""

from importlib import import_module

from surehold.errors import InvalidArgument
from surehold.tools.spec import AnyTool

FAMILIES = ("anchored", "files", "multi_edit", "claude")
DEFAULT_FAMILIES = "anchored,files"


def tools_of(names: str = DEFAULT_FAMILIES) -> tuple[AnyTool, ...]:
    """Return the tools of a comma list of families, or of `all`, each once, sorted by name."""
    asked = list(FAMILIES) if names.strip() == "all" else [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in asked if name not in FAMILIES] or ([] if asked else [names]):
        action = f"Choose from {', '.join(FAMILIES)}, or `all`."
        raise InvalidArgument(f"No tool family is called `{unknown[0]}`.", reason="unknown_family", action=action)
    found = dict[str, AnyTool]()
    for family in asked:
        for tool in import_module(f"surehold.dialects.{family}").TOOLS:
            found.setdefault(tool.name, tool)
    return tuple(found[name] for name in sorted(found))


def tool_named(name: str) -> AnyTool:
    tools = {tool.name: tool for tool in tools_of("all")}
    if name not in tools:
        action = f"Choose from {', '.join(tools)}."
        raise InvalidArgument(f"No tool is called `{name}`.", reason="unknown_tool", action=action)
    return tools[name]

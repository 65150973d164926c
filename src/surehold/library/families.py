"""Look up tools and tool families by name.

A tool is imported when it is first called. What is known of it before is in `tools.json`, which `make fix` writes from the
tools themselves.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument
from surehold.library.arguments import bad_argument
from surehold.tools.listing import ToolListing, listing_from

if TYPE_CHECKING:
    from surehold.tools.spec import AnyTool

DEFAULT_FAMILIES = "anchored,files"
FAMILY_TOOLS: Mapping[str, Sequence[str]] = {
    "anchored": ("shared.read_file:read_file", "anchored.edit:edit", "shared.write_file:write_file"),
    "files": (
        "shared.read_file:read_file",
        "files.list_directory:list_directory",
        "files.search_files:search_files",
        "files.glob:glob",
        "shared.write_file:create_file",
        "shared.write_file:write_file",
        "files.edit_file:edit_file",
        "files.trash:delete_file",
        "files.trash:restore_file",
        "files.move_file:move_file",
        "files.apply_patch:apply_patch",
    ),
    "multi_edit": (
        "multi_edit.text_file:read_text_file",
        "multi_edit.text_file:write_text_file",
        "multi_edit.text_file:edit_text_file",
        "multi_edit.multi_edit_text_file:multi_edit_text_file",
    ),
    "claude": (
        "claude.read:read",
        "claude.write:write",
        "claude.edit:edit",
        "claude.glob:glob",
        "claude.grep:grep",
        "claude.notebook_edit:notebook_edit",
    ),
}
"""Every tool of every family: its module below `dialects/`, and its name there."""
FAMILIES = tuple(FAMILY_TOOLS)
NAMESPACES = {"claude": "ClaudeTools", "multi_edit": "MultiEditTools"}
"""Families whose tools are in a namespace of the session, and what the namespace's class is called."""


@cache
def load_tool(home: str) -> "AnyTool":
    module, _, name = home.partition(":")
    return getattr(import_module(f"surehold.dialects.{module}"), name)


def tools_of(names: str = DEFAULT_FAMILIES) -> "tuple[AnyTool, ...]":
    """Return the tools of a comma list of families, or of `all`, each once, sorted by name."""
    return tuple(sorted(map(load_tool, _homes_of(names)), key=lambda tool: tool.name))


def list_tools(names: str = DEFAULT_FAMILIES) -> tuple[ToolListing, ...]:
    """Return the same tools without loading them."""
    known = _read_listings()
    found = (listing_from(known[home], partial(load_tool, home)) for home in _homes_of(names))
    return tuple(sorted(found, key=lambda tool: tool.name))


def tool_named(name: str) -> "AnyTool":
    homes = {data["name"]: home for home, data in _read_listings().items()}
    if name not in homes:
        action = f"Choose from {', '.join(sorted(homes))}."
        raise InvalidArgument(f"No tool is called `{name}`.", reason="unknown_tool", action=action)
    return load_tool(homes[name])


def check_families(names: str) -> None:
    """Refuse a list of families with an unknown one."""
    _homes_of(names)


def _homes_of(names: str) -> list[str]:
    if not isinstance(names, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may have no type checker
        raise bad_argument("tools", "a comma list of families", names, f'tools="{DEFAULT_FAMILIES}"')
    asked = list(FAMILIES) if names.strip() == "all" else [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in asked if name not in FAMILIES] or ([] if asked else [names]):
        action = f"Choose from {', '.join(FAMILIES)}, or `all`."
        raise InvalidArgument(f"No tool family is called `{unknown[0]}`.", reason="unknown_family", action=action)
    return list(dict.fromkeys(home for family in asked for home in FAMILY_TOOLS[family]))


@cache
def _read_listings() -> dict[str, dict[str, Any]]:
    return json.loads(Path(__file__).with_name("tools.json").read_bytes())

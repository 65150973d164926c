"""What a person reads above a tool call: `Read src/a.py:10-60`, `multi_edit_text_file (3 edits)`."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, cast

from surehold.front.acp.places import first_line, line_number, named_path, other_path
from surehold.text.visible import safe
from surehold.tools.spec import Kind, Tool

_LONGEST = 160
_VERBS = {
    "create_file": "Create",
    "write_file": "Write",
    "write_text_file": "Write",
    "Write": "Write",
    "list_directory": "List",
    "glob": "Find",
    "Glob": "Find",
    "restore_file": "Restore",
    "apply_patch": "Apply a patch",
}
"""Where the kind of a tool says too little."""
_KINDS: Mapping[Kind, str] = {
    "read": "Read",
    "edit": "Edit",
    "delete": "Delete",
    "move": "Move",
    "search": "Search",
    "other": "",
}
_CONTRACT = "multi_edit_text_file"
"""Its title is part of a contract: the tool's own name."""


def title(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, roots: tuple[str, ...]) -> str:
    """Say what a call is about to do, in one line that nothing can steer."""
    verb = tool.name if tool.name == _CONTRACT else _VERBS.get(tool.name) or _KINDS[tool.hints.kind] or tool.name
    words = [verb, "" if tool.name == _CONTRACT else _about(tool, arguments, roots), _amount(arguments)]
    said = safe(" ".join(word for word in words if word))
    if arguments.get("dryRun") or arguments.get("dry_run"):
        said += " (dry run)"
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


def _about(tool: Tool[Any, Any], arguments: Mapping[str, Any], roots: tuple[str, ...]) -> str:
    path = _short(named_path(tool, arguments), roots)
    match tool.hints.kind:
        case "search":
            wanted = str(arguments.get("query") or arguments.get("pattern") or "")
            where = "" if wanted and path == "." else path
            return " in ".join(word for word in (f"`{wanted}`" if wanted else "", where) if word)
        case "read":
            return path + _lines(first_line(tool, arguments), arguments)
        case "move":
            return f"{path} to {_short(other_path(arguments), roots)}"
        case _:
            return path


def _lines(first: int | None, arguments: Mapping[str, Any]) -> str:
    """Return `:10-60` for the lines that are asked for; a `limit` says the same as the last one."""
    last = line_number(arguments.get("endLine"))
    limit = line_number(arguments.get("limit"))
    if last is None and limit is not None:
        last = (first or 1) + limit - 1
    if first is None and last is None:
        return ""
    return f":{first or 1}-{last if last is not None else ''}"


def _amount(arguments: Mapping[str, Any]) -> str:
    for name, one in (("edits", "edit"), ("operations", "operation")):
        found = arguments.get(name)
        if isinstance(found, list):
            count = len(cast("list[Any]", found))
            return f"({count} {one}{'' if count == 1 else 's'})"
    return ""


def _short(path: str, roots: tuple[str, ...]) -> str:
    """Return a path as short as it is clear: relative to the first root it lies in."""
    for root in roots:
        if path != root and PurePath(path).is_relative_to(root):
            return str(PurePath(path).relative_to(root))
    return path

"""Finds the files and lines that a call is about, and writes its title: `Read src/a.py:10-60`."""

import os.path
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, cast

from surehold.errors import SureholdError
from surehold.front.acp.events import FileLocation
from surehold.text.escape import escape_text
from surehold.tools.spec import Kind, Tool
from surehold.workspace.receipt import FileReceipt

_PATH_ARGUMENTS = (
    "path",
    "file_path",
    "filePath",
    "notebook_path",
    "fromPath",
    "source",
    "targetPath",
    "root",
    "directory",
)
"""Where calls name the file they are about; the first that is sent counts."""
_DESTINATION_ARGUMENTS = ("toPath", "destination")
_FIRST_LINE_ARGUMENTS = ("startLine", "line", "offset")
"""Where reading calls say which line they begin at."""


def named_path(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> str:
    """Return the path that a call names, as it was sent; empty when it names none."""
    found = (arguments.get(name) for name in _PATH_ARGUMENTS)
    named = next((one for one in found if isinstance(one, str) and one), "")
    usual = (tool.params.model_fields[name].default for name in ("path", "root") if name in tool.params.model_fields)
    return named or next((one for one in usual if isinstance(one, str)), "")


def other_path(arguments: Mapping[str, Any]) -> str:
    """Return where a call wants to move a file to; empty when it does not say."""
    found = (arguments.get(name) for name in _DESTINATION_ARGUMENTS)
    return next((one for one in found if isinstance(one, str)), "")


def requested_locations(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, root: str) -> tuple[FileLocation, ...]:
    """Return the places that a call names, before anything was looked at."""
    if isinstance(patch := arguments.get("patch"), str):
        return tuple(FileLocation(path=_absolute_path(path, root)) for path in _patched_paths(patch))
    found = list[FileLocation]()
    if path := named_path(tool, arguments):
        found.append(FileLocation(path=_absolute_path(path, root), line=first_line(tool, arguments)))
    if other := other_path(arguments):
        found.append(FileLocation(path=_absolute_path(other, root)))
    return tuple(found)


def first_line(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> int | None:
    """Return the line that a call reads from, if it says so; a search counts other things."""
    if tool.hints.kind != "read":
        return None
    return next((n for name in _FIRST_LINE_ARGUMENTS if (n := line_number(arguments.get(name)))), None)


def changed_locations(files: Iterable[FileReceipt], *, root: str) -> tuple[FileLocation, ...]:
    """Return every path of a change, with the first line that differs."""
    found = list[FileLocation]()
    for one in files:
        horizon = one.plan.horizon
        found.append(
            FileLocation(path=_absolute_path(one.path, root), line=horizon.must_refresh_from_line if horizon else None)
        )
        if one.change.to_path:
            found.append(FileLocation(path=_absolute_path(one.change.to_path, root)))
    return tuple(found)


def line_number(value: Any) -> int | None:
    """Return the line that a caller sent, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _absolute_path(path: str, root: str) -> str:
    """Return a path as an editor wants it. Only spelled, not resolved: nothing is looked at for a title."""
    return os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - names need not be UTF-8


def _patched_paths(patch: str) -> list[str]:
    from surehold.text.patch.parse import parse_patch

    try:
        found = parse_patch(patch)
    except SureholdError:  # the tool itself says what is wrong with it
        return []
    return [path for one in found.files for path in (one.path, one.to_path) if path]


_MAX_TITLE_CHARS = 160
_TOOL_VERBS = {
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
_KIND_VERBS: Mapping[Kind, str] = {
    "read": "Read",
    "edit": "Edit",
    "delete": "Delete",
    "move": "Move",
    "search": "Search",
    "other": "",
}
_CONTRACT_TOOL = "multi_edit_text_file"
"""Its title is part of a contract: the tool's own name."""


def call_title(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, roots: tuple[str, ...]) -> str:
    """Say what a call is about to do, in one line that nothing can steer."""
    verb = (
        tool.name
        if tool.name == _CONTRACT_TOOL
        else _TOOL_VERBS.get(tool.name) or _KIND_VERBS[tool.hints.kind] or tool.name
    )
    words = [
        verb,
        "" if tool.name == _CONTRACT_TOOL else _describe_subject(tool, arguments, roots),
        _count_text(arguments),
    ]
    said = escape_text(" ".join(word for word in words if word))
    if arguments.get("dryRun") or arguments.get("dry_run"):
        said += " (dry run)"
    return said if len(said) <= _MAX_TITLE_CHARS else f"{said[: _MAX_TITLE_CHARS - 1]}…"


def _describe_subject(tool: Tool[Any, Any], arguments: Mapping[str, Any], roots: tuple[str, ...]) -> str:
    path = _shorten_path(named_path(tool, arguments), roots)
    match tool.hints.kind:
        case "search":
            wanted = str(arguments.get("query") or arguments.get("pattern") or "")
            where = "" if wanted and path == "." else path
            return " in ".join(word for word in (f"`{wanted}`" if wanted else "", where) if word)
        case "read":
            return path + _line_range_text(first_line(tool, arguments), arguments)
        case "move":
            return f"{path} to {_shorten_path(other_path(arguments), roots)}"
        case _:
            return path


def _line_range_text(first: int | None, arguments: Mapping[str, Any]) -> str:
    """Return `:10-60` for the lines that are asked for; a `limit` says the same as the last one."""
    last = line_number(arguments.get("endLine"))
    limit = line_number(arguments.get("limit"))
    if last is None and limit is not None:
        last = (first or 1) + limit - 1
    if first is None and last is None:
        return ""
    return f":{first or 1}-{last if last is not None else ''}"


def _count_text(arguments: Mapping[str, Any]) -> str:
    for name, one in (("edits", "edit"), ("operations", "operation")):
        found = arguments.get(name)
        if isinstance(found, list):
            count = len(cast("list[Any]", found))
            return f"({count} {one}{'' if count == 1 else 's'})"
    return ""


def _shorten_path(path: str, roots: tuple[str, ...]) -> str:
    """Return a path as short as it is clear: relative to the first root it lies in."""
    for root in roots:
        if path != root and PurePath(path).is_relative_to(root):
            return str(PurePath(path).relative_to(root))
    return path

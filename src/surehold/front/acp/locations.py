"""Finds the files and lines that a call is about, and writes its title: `Read src/a.py:10-60`."""

import os.path
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, cast

from surehold.front.acp.events import FileLocation
from surehold.text.escape import preview_text, reveal_text
from surehold.tools.spec import Tool
from surehold.workspace.proposal import FileReceipt

_FIRST_LINE_ARGUMENTS = ("startLine", "line", "offset")
"""Where reading calls say which line they begin at."""


def requested_locations(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, root: str) -> tuple[FileLocation, ...]:
    """Return the places that a call names, before anything was looked at."""
    first = first_line(tool, arguments)
    return tuple(
        FileLocation(path=_absolute_path(path, root), line=None if number else first)
        for number, path in enumerate(tool.params.named_paths(arguments))
    )


def first_line(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> int | None:
    """Return the line that a call reads from, if it says so; a search counts other things."""
    if tool.hints.kind != "read":
        return None
    return next((n for name in _FIRST_LINE_ARGUMENTS if (n := line_number(arguments.get(name)))), None)


def changed_locations(files: Iterable[FileReceipt], *, root: str) -> tuple[FileLocation, ...]:
    """Return every path of a change, with the first line that differs."""
    found = list[FileLocation]()
    for one in files:
        line = one.plan.horizon.must_refresh_from_line if one.plan.horizon else None
        found.append(FileLocation(path=_absolute_path(one.path, root), line=line))
        if one.change.to_path:
            found.append(FileLocation(path=_absolute_path(one.change.to_path, root)))
    return tuple(found)


def line_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _absolute_path(path: str, root: str) -> str:
    """Return a path as an editor wants it. Only spelled, not resolved: nothing is looked at for a title."""
    return os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - names need not be UTF-8


_MAX_TITLE_CHARS = 160


def call_title(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, roots: tuple[str, ...]) -> str:
    """Say what a call is about to do, in one line that nothing can steer."""
    hints = tool.hints
    words = [
        hints.verb or (tool.name if hints.kind == "other" else hints.kind.capitalize()),
        _describe_subject(tool, arguments, roots) if hints.title_names_path else "",
        _count_text(arguments),
    ]
    title = reveal_text(" ".join(word for word in words if word))
    if arguments.get("dryRun") or arguments.get("dry_run"):
        title += " (dry run)"
    return preview_text(title, _MAX_TITLE_CHARS)


def _describe_subject(tool: Tool[Any, Any], arguments: Mapping[str, Any], roots: tuple[str, ...]) -> str:
    subject = tool.params.subject_of(arguments)
    path = _shorten_path(subject.path, roots)
    match tool.hints.kind:
        case "search":
            wanted = str(arguments.get("query") or arguments.get("pattern") or "")
            where = "" if wanted and path == "." else path
            return " in ".join(word for word in (f"`{wanted}`" if wanted else "", where) if word)
        case "read":
            return path + _line_range_text(first_line(tool, arguments), arguments)
        case "move":
            return f"{path} to {_shorten_path(subject.destination, roots)}"
        case _:
            return path


def _line_range_text(first: int | None, arguments: Mapping[str, Any]) -> str:
    """Return `:10-60` for the lines that are asked for; a `limit` says the same as the last one."""
    last, limit = line_number(arguments.get("endLine")), line_number(arguments.get("limit"))
    if not last and limit:
        last = (first or 1) + limit - 1
    return f":{first or 1}-{last or ''}" if first or last else ""


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

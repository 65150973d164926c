"""Which places of which files a call is about."""

import os.path
from collections.abc import Iterable, Mapping
from typing import Any

from surehold.errors import SureholdError
from surehold.front.acp.event import Location
from surehold.tools.spec import Tool
from surehold.workspace.receipt import FileReceipt

_PATHS = ("path", "file_path", "filePath", "notebook_path", "fromPath", "source", "targetPath", "root", "directory")
"""Where calls name the file they are about; the first that is sent counts."""
_OTHERS = ("toPath", "destination")
_FIRST_LINES = ("startLine", "line", "offset")
"""Where reading calls say which line they begin at."""


def named_path(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> str:
    """Return the path that a call names, as it was sent; empty when it names none."""
    found = (arguments.get(name) for name in _PATHS)
    named = next((one for one in found if isinstance(one, str) and one), "")
    usual = (tool.params.model_fields[name].default for name in ("path", "root") if name in tool.params.model_fields)
    return named or next((one for one in usual if isinstance(one, str)), "")


def other_path(arguments: Mapping[str, Any]) -> str:
    """Return where a call wants to move a file to; empty when it does not say."""
    found = (arguments.get(name) for name in _OTHERS)
    return next((one for one in found if isinstance(one, str)), "")


def asked_places(tool: Tool[Any, Any], arguments: Mapping[str, Any], *, root: str) -> tuple[Location, ...]:
    """Return the places that a call names, before anything was looked at."""
    if isinstance(patch := arguments.get("patch"), str):
        return tuple(Location(path=_absolute(path, root)) for path in _patched(patch))
    found = list[Location]()
    if path := named_path(tool, arguments):
        found.append(Location(path=_absolute(path, root), line=first_line(tool, arguments)))
    if other := other_path(arguments):
        found.append(Location(path=_absolute(other, root)))
    return tuple(found)


def first_line(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> int | None:
    """Return the line that a call reads from, if it says so; a search counts other things."""
    if tool.hints.kind != "read":
        return None
    return next((n for name in _FIRST_LINES if (n := line_number(arguments.get(name)))), None)


def changed_places(files: Iterable[FileReceipt], *, root: str) -> tuple[Location, ...]:
    """Return every path of a change, with the first line that differs."""
    found = list[Location]()
    for one in files:
        horizon = one.plan.horizon
        found.append(Location(path=_absolute(one.path, root), line=horizon.must_refresh_from_line if horizon else None))
        if one.change.to_path:
            found.append(Location(path=_absolute(one.change.to_path, root)))
    return tuple(found)


def line_number(value: Any) -> int | None:
    """Return the line that a caller sent, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _absolute(path: str, root: str) -> str:
    """Return a path as an editor wants it. Only spelled, not resolved: nothing is looked at for a title."""
    return os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - names need not be UTF-8


def _patched(patch: str) -> list[str]:
    from surehold.text.patch import parse_patch

    try:
        found = parse_patch(patch)
    except SureholdError:  # the tool itself says what is wrong with it
        return []
    return [path for one in found.files for path in (one.path, one.to_path) if path]

"""What a person can type instead of JSON. Each command is a call of one tool."""

import os.path
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from surehold.tools.spec import Json

_LINES = re.compile(r"(?P<path>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{0,9}))?")
_PAIR = 2


class BadCommand(Exception):
    """The words do not fit the command; the message says how they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """A command, and how its words become the arguments of a tool."""

    name: str
    usage: str
    help: str
    tool: str
    read: Callable[[Sequence[str], str], Json | None]
    """From the words, and the directory that relative paths start in; None when the words do not fit."""

    def arguments(self, words: Sequence[str], root: str) -> Json:
        """Return the arguments of the call."""
        found = self.read(words, root)
        if found is None:
            raise BadCommand(f"It is used like this: /{self.name} {self.usage}")
        return found


def _read(words: Sequence[str], _: str) -> Json | None:
    if len(words) != 1:
        return None
    lines = _LINES.fullmatch(words[0])
    if lines is None:
        return {"path": words[0]}
    first = int(lines["first"])
    last = int(lines["last"]) if lines["last"] else None if lines["last"] == "" else first
    return {"path": lines["path"], "startLine": first} | ({} if last is None else {"endLine": last})


def _edit(words: Sequence[str], root: str) -> Json | None:
    path, *texts = words or [""]
    if not path or not texts or len(texts) % _PAIR:
        return None
    edits = [{"old_string": old, "new_string": new} for old, new in zip(texts[::2], texts[1::2], strict=True)]
    return {"path": os.path.join(root, path), "edits": edits}  # noqa: PTH118 - names need not be UTF-8


def _create(words: Sequence[str], _: str) -> Json | None:
    return {"path": words[0], "content": words[1]} if len(words) == _PAIR else None


def _grep(words: Sequence[str], _: str) -> Json | None:
    return _with_root(words, {"mode": "regex"}, "query")


def _find(words: Sequence[str], _: str) -> Json | None:
    return _with_root(words, {}, "pattern")


def _with_root(words: Sequence[str], fixed: Json, name: str) -> Json | None:
    if not 1 <= len(words) <= _PAIR:
        return None
    return {**fixed, name: words[0]} | ({"root": words[1]} if len(words) == _PAIR else {})


def _list(words: Sequence[str], _: str) -> Json | None:
    return {"path": words[0] if words else "."} if len(words) <= 1 else None


SHORTCUTS = (
    Shortcut(
        name="read",
        usage="PATH[:FIRST-LAST]",
        help="Show a file, or some lines of it.",
        tool="read_file",
        read=_read,
    ),
    Shortcut(
        name="edit",
        usage="PATH OLD NEW [OLD NEW …]",
        help="Replace texts that each stand once in a file.",
        tool="multi_edit_text_file",
        read=_edit,
    ),
    Shortcut(name="create", usage="PATH TEXT", help="Make a new file.", tool="create_file", read=_create),
    Shortcut(
        name="grep",
        usage="PATTERN [PATH]",
        help="Search files for a regular expression.",
        tool="search_files",
        read=_grep,
    ),
    Shortcut(name="find", usage="GLOB [PATH]", help="Find files by name.", tool="glob", read=_find),
    Shortcut(name="ls", usage="[PATH]", help="List a directory.", tool="list_directory", read=_list),
)

"""Parses a prompt into tool calls: JSON, or commands such as `/read`, one after the other.

```
{"tool": "read_file", "arguments": {"path": "src/a.py"}}
[{"tool": …}, {"tool": …}]
/read src/a.py:10-60
/tool delete_file {"path": "old.txt", "expectedSha256": "…"}
```

The whole prompt is parsed before any of it runs. If any part cannot be parsed, nothing runs.
"""

import json
import os.path
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from surehold.text.escape import escape_text
from surehold.tools.call import Json
from surehold.tools.spec import AnyTool

_LINE_RANGE = re.compile(r"(?P<path>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{0,9}))?")
_PAIR = 2


class CommandUsageError(Exception):
    """The words do not fit the command; the message says how they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCommand:
    """A command, and how its words become the arguments of a tool."""

    name: str
    usage: str
    help: str
    tool: str
    read: Callable[[Sequence[str], str], Json | None]
    """From the words, and the directory that relative paths start in; None when the words do not fit."""

    def parse_words(self, words: Sequence[str], root: str) -> Json:
        """Return the arguments of the call."""
        found = self.read(words, root)
        if found is None:
            raise CommandUsageError(f"It is used like this: /{self.name} {self.usage}")
        return found


def _read_arguments(words: Sequence[str], _: str) -> Json | None:
    if len(words) != 1:
        return None
    lines = _LINE_RANGE.fullmatch(words[0])
    if lines is None:
        return {"path": words[0]}
    first = int(lines["first"])
    last = int(lines["last"]) if lines["last"] else None if lines["last"] == "" else first
    return {"path": lines["path"], "startLine": first} | ({} if last is None else {"endLine": last})


def _edit_arguments(words: Sequence[str], root: str) -> Json | None:
    path, *texts = words or [""]
    if not path or not texts or len(texts) % _PAIR:
        return None
    edits = [{"old_string": old, "new_string": new} for old, new in zip(texts[::2], texts[1::2], strict=True)]
    return {"path": os.path.join(root, path), "edits": edits}  # noqa: PTH118 - names need not be UTF-8


def _create_arguments(words: Sequence[str], _: str) -> Json | None:
    return {"path": words[0], "content": words[1]} if len(words) == _PAIR else None


def _grep_arguments(words: Sequence[str], _: str) -> Json | None:
    return _with_root(words, {"mode": "regex"}, "query")


def _find_arguments(words: Sequence[str], _: str) -> Json | None:
    return _with_root(words, {}, "pattern")


def _with_root(words: Sequence[str], fixed: Json, name: str) -> Json | None:
    if not 1 <= len(words) <= _PAIR:
        return None
    return {**fixed, name: words[0]} | ({"root": words[1]} if len(words) == _PAIR else {})


def _list_arguments(words: Sequence[str], _: str) -> Json | None:
    return {"path": words[0] if words else "."} if len(words) <= 1 else None


SCRIPT_COMMANDS = (
    ScriptCommand(
        name="read",
        usage="PATH[:FIRST-LAST]",
        help="Show a file, or some lines of it.",
        tool="read_file",
        read=_read_arguments,
    ),
    ScriptCommand(
        name="edit",
        usage="PATH OLD NEW [OLD NEW …]",
        help="Replace texts that each occur once in a file.",
        tool="multi_edit_text_file",
        read=_edit_arguments,
    ),
    ScriptCommand(
        name="create", usage="PATH TEXT", help="Make a new file.", tool="create_file", read=_create_arguments
    ),
    ScriptCommand(
        name="grep",
        usage="PATTERN [PATH]",
        help="Search files for a regular expression.",
        tool="search_files",
        read=_grep_arguments,
    ),
    ScriptCommand(name="find", usage="GLOB [PATH]", help="Find files by name.", tool="glob", read=_find_arguments),
    ScriptCommand(name="ls", usage="[PATH]", help="List a directory.", tool="list_directory", read=_list_arguments),
)


_FENCE = re.compile(r"^[ \t]*(```|~~~)[\w+-]*[ \t]*$", re.MULTILINE)
_TOOL = re.compile(r"/?tool[ \t]+(?P<name>[\w.-]+)\s*")
_WORD = re.compile(r"/(?P<name>[\w-]+)(?P<rest>[^\n]*)")
_SPACE = re.compile(r"[\s,]*")
_PREVIEW_CHARS = 80


class ScriptError(Exception):
    """The prompt cannot be parsed; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """One tool, and what it is called with."""

    tool: AnyTool
    arguments: Json


class ScriptParser:
    """Reads prompts, for one set of tools."""

    def __init__(self, tools: Mapping[str, AnyTool], *, root: str) -> None:
        self._tools = tools
        self._root = root
        self.shortcuts = tuple(one for one in SCRIPT_COMMANDS if one.tool in tools)

    def parse_prompt(self, text: str) -> tuple[ScriptCall, ...]:
        """Return the calls of a prompt, in order; none when it only asks for help."""
        text = _FENCE.sub("", text)
        if text.strip() in ("", "/help", "help"):
            return ()
        return tuple(self._iter_calls(text))

    def _iter_calls(self, text: str) -> Iterator[ScriptCall]:
        at = _skip_space(text, 0)
        while at < len(text):
            if text[at] in "{[":
                found, at = _parse_json(text, at)
                rows = cast("list[Any]", found) if isinstance(found, list) else [found]
                yield from map(self._from_json, rows)
            elif match := _TOOL.match(text, at):
                arguments, at = _parse_json(text, match.end())
                yield self._make_call(match["name"], arguments)
            elif match := _WORD.match(text, at):
                yield self._from_command(match["name"], match["rest"])
                at = match.end()
            else:
                raise ScriptError(f"This is neither JSON nor a command: {_preview_text(text[at:])}")
            at = _skip_space(text, at)

    def _from_json(self, found: Any) -> ScriptCall:
        call = cast("Json", found) if isinstance(found, dict) else {}
        name, arguments = call.get("tool", call.get("name")), call.get("arguments", call.get("input", {}))
        if not isinstance(name, str):
            raise ScriptError(f'A call looks like {{"tool": …, "arguments": …}}; this does not: {_preview_text(found)}')
        if isinstance(arguments, str):  # as some models send them
            arguments, _ = _parse_json(arguments, 0)
        return self._make_call(name, arguments)

    def _from_command(self, name: str, rest: str) -> ScriptCall:
        command = next((one for one in self.shortcuts if one.name == name), None)
        if command is None:
            raise ScriptError(f"There is no command /{escape_text(name)}.")
        return ScriptCall(tool=self._tools[command.tool], arguments=self._command_arguments(command, rest))

    def _command_arguments(self, command: ScriptCommand, rest: str) -> Json:
        try:
            return command.parse_words(shlex.split(rest), self._root)
        except ValueError as error:
            raise ScriptError(f"The quotes of /{command.name} do not match: {error}.") from None
        except CommandUsageError as error:
            raise ScriptError(str(error)) from None

    def _make_call(self, name: str, arguments: Any) -> ScriptCall:
        if name not in self._tools:
            raise ScriptError(f"No tool is called `{escape_text(name[:_PREVIEW_CHARS])}`.")
        if not isinstance(arguments, dict):
            raise ScriptError(f"The arguments of `{name}` must be a JSON object: {_preview_text(arguments)}")
        return ScriptCall(tool=self._tools[name], arguments=cast("Json", arguments))


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _parse_json(text: str, at: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply, or a number too long"
        raise ScriptError(f"This is not JSON ({why}): {_preview_text(text[at:])}") from None


def _preview_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    line = escape_text(text.strip().split("\n", 1)[0])
    return line if len(line) <= _PREVIEW_CHARS else f"{line[:_PREVIEW_CHARS]}…"

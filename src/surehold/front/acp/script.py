"""A prompt read as tool calls: JSON, or commands, one after the other.

```
{"tool": "read_file", "arguments": {"path": "src/a.py"}}
[{"tool": …}, {"tool": …}]
/read src/a.py:10-60
/tool delete_file {"path": "old.txt", "expectedSha256": "…"}
```

All of a prompt is read before any of it runs. What cannot be read stops everything: nobody wants half of a script.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from surehold.front.acp.commands import SHORTCUTS, BadCommand, Shortcut
from surehold.text.visible import safe
from surehold.tools.spec import AnyTool, Json

_FENCE = re.compile(r"^[ \t]*(```|~~~)[\w+-]*[ \t]*$", re.MULTILINE)
_TOOL = re.compile(r"/?tool[ \t]+(?P<name>[\w.-]+)\s*")
_WORD = re.compile(r"/(?P<name>[\w-]+)(?P<rest>[^\n]*)")
_SPACE = re.compile(r"[\s,]*")
_SHOWN = 80


class Unreadable(Exception):
    """The prompt is no script; the message says where it stops to be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """One tool, and what it is called with."""

    tool: AnyTool
    arguments: Json


class Reader:
    """Reads prompts, for one set of tools."""

    def __init__(self, tools: Mapping[str, AnyTool], *, root: str) -> None:
        self._tools = tools
        self._root = root
        self.shortcuts = tuple(one for one in SHORTCUTS if one.tool in tools)

    def read(self, text: str) -> tuple[ScriptCall, ...]:
        """Return the calls of a prompt, in order; none when it only asks for help."""
        text = _FENCE.sub("", text)
        if text.strip() in ("", "/help", "help"):
            return ()
        return tuple(self._calls(text))

    def _calls(self, text: str) -> Iterator[ScriptCall]:
        at = _skipped(text, 0)
        while at < len(text):
            if text[at] in "{[":
                found, at = _json(text, at)
                rows = cast("list[Any]", found) if isinstance(found, list) else [found]
                yield from map(self._from_json, rows)
            elif match := _TOOL.match(text, at):
                arguments, at = _json(text, match.end())
                yield self._call(match["name"], arguments)
            elif match := _WORD.match(text, at):
                yield self._from_command(match["name"], match["rest"])
                at = match.end()
            else:
                raise Unreadable(f"This is neither JSON nor a command: {_beginning(text[at:])}")
            at = _skipped(text, at)

    def _from_json(self, found: Any) -> ScriptCall:
        call = cast("Json", found) if isinstance(found, dict) else {}
        name, arguments = call.get("tool", call.get("name")), call.get("arguments", call.get("input", {}))
        if not isinstance(name, str):
            raise Unreadable(f'A call looks like {{"tool": …, "arguments": …}}; this does not: {_beginning(found)}')
        if isinstance(arguments, str):  # as some models send them
            arguments, _ = _json(arguments, 0)
        return self._call(name, arguments)

    def _from_command(self, name: str, rest: str) -> ScriptCall:
        command = next((one for one in self.shortcuts if one.name == name), None)
        if command is None:
            raise Unreadable(f"There is no command /{safe(name)}.")
        return ScriptCall(tool=self._tools[command.tool], arguments=self._words(command, rest))

    def _words(self, command: Shortcut, rest: str) -> Json:
        try:
            return command.arguments(shlex.split(rest), self._root)
        except ValueError as error:
            raise Unreadable(f"The quotes of /{command.name} do not match: {error}.") from None
        except BadCommand as error:
            raise Unreadable(str(error)) from None

    def _call(self, name: str, arguments: Any) -> ScriptCall:
        if name not in self._tools:
            raise Unreadable(f"No tool is called `{safe(name[:_SHOWN])}`.")
        if not isinstance(arguments, dict):
            raise Unreadable(f"The arguments of `{name}` must be a JSON object: {_beginning(arguments)}")
        return ScriptCall(tool=self._tools[name], arguments=cast("Json", arguments))


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _json(text: str, at: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply, or a number too long"
        raise Unreadable(f"This is no JSON ({why}): {_beginning(text[at:])}") from None


def _beginning(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    line = safe(text.strip().split("\n", 1)[0])
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"

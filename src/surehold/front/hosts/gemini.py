"""Gemini CLI: hooks and our server in its settings; shell commands are rewritten."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surehold.front.hosts.agent_host import (
    HOOK_TIMEOUT_SECONDS,
    SERVER_NAME,
    AgentHost,
    EventNames,
    EventShape,
    HookEvent,
    HostPlace,
    group_hooks,
    json_hooks,
    object_of,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_EDIT_TOOLS = frozenset({"write_file", "replace"})
_SHELL_TOOL = "run_shell_command"
_MATCHERS = {
    "BeforeAgent": "",
    "BeforeTool": "run_shell_command|write_file|replace",
    "AfterTool": "write_file|replace",
    "AfterAgent": "",
}
_EVENT_NAMES = EventNames(
    prompt="BeforeAgent",
    before="BeforeTool",
    after="AfterTool",
    end=("AfterAgent", "SessionEnd"),
    edit_tools=_EDIT_TOOLS,
    shell_tools=frozenset({_SHELL_TOOL}),
)


def gemini_hooks(command: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks as settings and extensions spell them; times are in milliseconds here."""
    hook = {"type": "command", "name": SERVER_NAME, "command": command, "timeout": HOOK_TIMEOUT_SECONDS * 1000}
    return group_hooks(_MATCHERS, hook)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonValue, SettingsFile

    hooks = json_hooks("gemini", gemini_hooks(place.hook_command("gemini")))
    server = JsonValue(keys=("mcpServers", SERVER_NAME), value={"command": place.program, "args": ["mcp"]})
    return (SettingsFile(name=".gemini/settings.json", edits=(server, *hooks)),)


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments, tool = object_of(event, "tool_input"), text_of(event, "tool_name")
    path = text_of(arguments, "file_path")
    return HookEvent(
        kind=_EVENT_NAMES.kind_of(text_of(event, "hook_event_name"), tool),
        session=text_of(event, "session_id"),
        tool=tool,
        directory=text_of(event, "cwd"),
        paths=(path,) if path else (),
        command=text_of(arguments, "command"),
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


def _answer_shell(event: HookEvent, command: str) -> Mapping[str, Any]:
    return {
        "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {**event.arguments, "command": command}}
    }


HOST = AgentHost(
    key="gemini",
    name="Gemini CLI",
    agent="gemini-cli-mcp-client",
    settings=_list_settings,
    read_event=_read_event,
    event_shape=EventShape(names=_EVENT_NAMES.by_kind(), edit=("replace", "file_path")),
    edit_tools=sorted(_EDIT_TOOLS),
    shell_tool=_SHELL_TOOL,
    answer_shell=_answer_shell,
    next_steps={
        "user": "Start Gemini CLI again; `/hooks` and `/mcp` show what it found.",
        "project": "Start Gemini CLI in the project and trust the folder: it does not load settings of others.",
    },
    not_covered={"`!` commands": "what you type yourself into its shell mode has no hook"},
)

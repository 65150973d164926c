"""Cursor: hooks in `hooks.json`, our server in `mcp.json`; shell commands are rewritten."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from surehold.front.hosts.agent_host import (
    HOOK_TIMEOUT_SECONDS,
    SERVER_NAME,
    AgentHost,
    EventNames,
    EventShape,
    HookEvent,
    HostPlace,
    object_of,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_EDIT_TOOLS = frozenset({"Write", "StrReplace", "Edit", "MultiEdit", "EditNotebook", "Delete"})
_SHELL_TOOL = "Shell"
_EVENTS = {
    "beforeSubmitPrompt": "",
    "preToolUse": "Shell|Write|StrReplace|Edit|MultiEdit|EditNotebook|Delete",
    "postToolUse": "Write|StrReplace|Edit|MultiEdit|EditNotebook|Delete",
    "afterFileEdit": "",
    "stop": "",
}
_EVENT_NAMES = EventNames(
    prompt="beforeSubmitPrompt",
    before="preToolUse",
    after="postToolUse",
    end=("stop", "sessionEnd"),
    edit_tools=_EDIT_TOOLS,
    shell_tools=frozenset({_SHELL_TOOL}),
)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonDefault, JsonHook, JsonValue, SettingsFile

    hook = {"command": place.hook_command("cursor"), "timeout": HOOK_TIMEOUT_SECONDS}
    hooks = [
        JsonHook(keys=("hooks", event), item={**hook, **({"matcher": matcher} if matcher else {})}, host="cursor")
        for event, matcher in _EVENTS.items()
    ]
    server = JsonValue(
        keys=("mcpServers", SERVER_NAME), value={"command": place.program, "args": ["mcp", "${workspaceFolder}"]}
    )
    return (
        SettingsFile(name=".cursor/mcp.json", edits=(server,)),
        SettingsFile(name=".cursor/hooks.json", edits=(JsonDefault(keys=("version",), value=1), *hooks)),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments, tool = object_of(event, "tool_input"), text_of(event, "tool_name")
    path = text_of(arguments, "file_path", "path", "target_notebook") or text_of(event, "file_path")
    roots, name = event.get("workspace_roots"), text_of(event, "hook_event_name")
    root = next((str(one) for one in cast("list[Any]", roots)), "") if isinstance(roots, list) else ""
    return HookEvent(
        kind="after_edit" if name == "afterFileEdit" else _EVENT_NAMES.kind_of(name, tool),
        session=text_of(event, "conversation_id", "session_id"),
        turn=text_of(event, "generation_id"),
        call_id=text_of(event, "tool_use_id"),
        tool=tool or "Edit",
        directory=root or text_of(event, "cwd"),
        paths=(path,) if path else (),
        command=text_of(arguments, "command"),
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


HOST = AgentHost(
    key="cursor",
    name="Cursor",
    agent="cursor",
    settings=_list_settings,
    read_event=_read_event,
    event_shape=EventShape(
        names=_EVENT_NAMES.by_kind(), edit=("Write", "file_path"), session="conversation_id", turn="generation_id"
    ),
    edit_tools=sorted(_EDIT_TOOLS),
    shell_tool=_SHELL_TOOL,
    answer_shell=lambda event, command: {
        "permission": "allow",
        "updated_input": {**event.arguments, "command": command},
    },
    next_steps=dict.fromkeys(("user", "project"), "Start Cursor again; Settings → Hooks and → MCP show what it found."),
    not_covered={
        "everything": "Cursor has no command line that could be tested here; the settings follow its documentation",
        "Tab completions": "what you accept in the editor is your own edit",
    },
)

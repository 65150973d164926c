"""VS Code: hooks of its agent in a file of their own, our server among its servers; shell commands are rewritten."""

from collections.abc import Mapping, Sequence
from functools import partial
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
    patched_paths,
    replace_command,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_EDIT_TOOLS = frozenset(
    {
        "create_file",
        "insert_edit_into_file",
        "replace_string_in_file",
        "multi_replace_string_in_file",
        "apply_patch",
        "edit_notebook_file",
        "create_new_jupyter_notebook",
        "editFiles",
    }
)
_SHELL_TOOLS = frozenset({"run_in_terminal", "runTerminalCommand"})
_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
_EVENT_NAMES = EventNames(
    prompt="UserPromptSubmit",
    before="PreToolUse",
    after="PostToolUse",
    end=("Stop",),
    edit_tools=_EDIT_TOOLS,
    shell_tools=_SHELL_TOOLS,
)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonHook, JsonValue, SettingsFile

    hook = {"type": "command", "command": place.hook_command("vscode"), "timeout": HOOK_TIMEOUT_SECONDS}
    hooks = [JsonHook(keys=("hooks", event), item=hook, host="vscode") for event in _EVENTS]
    server = {"type": "stdio", "command": place.program, "args": ["mcp", "${workspaceFolder}"]}
    user = place.scope == "user"
    return (
        SettingsFile(
            name=".config/Code/User/mcp.json" if user else ".vscode/mcp.json",
            edits=(JsonValue(keys=("servers", SERVER_NAME), value=server),),
        ),
        SettingsFile(
            name=".copilot/hooks/surehold-vscode.json" if user else ".github/hooks/surehold-vscode.json", edits=hooks
        ),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments, tool = object_of(event, "tool_input"), text_of(event, "tool_name")
    return HookEvent(
        kind=_EVENT_NAMES.kind_of(text_of(event, "hook_event_name", "hookEventName"), tool),
        session=text_of(event, "session_id", "sessionId"),
        call_id=text_of(event, "tool_use_id"),
        tool=tool,
        directory=text_of(event, "cwd"),
        paths=_named_paths(arguments),
        command=text_of(arguments, "command"),
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


def _named_paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if path := text_of(arguments, "filePath", "file_path", "path"):
        return (path,)
    if patch := text_of(arguments, "input", "patch"):
        return patched_paths(patch)
    files = arguments.get("files") or arguments.get("replacements")
    rows = cast("list[Any]", files) if isinstance(files, list) else []
    names = [one if isinstance(one, str) else text_of(object_of({"file": one}, "file"), "filePath") for one in rows]
    return tuple(dict.fromkeys(filter(None, names)))


HOST = AgentHost(
    key="vscode",
    name="VS Code",
    agent="Visual Studio Code",
    settings=_list_settings,
    moved_by={"XDG_CONFIG_HOME": ".config"},
    read_event=_read_event,
    event_shape=EventShape(names=_EVENT_NAMES.by_kind(), edit=("replace_string_in_file", "filePath")),
    edit_tools=sorted(_EDIT_TOOLS),
    shell_tool="run_in_terminal",
    answer_shell=partial(replace_command, decision="ask"),
    next_steps=dict.fromkeys(("user", "project"), "Reload the window; `MCP: List Servers` names the server."),
    not_covered={
        "everything": "VS Code has no command line that could be tested here; the settings follow its documentation",
        "your own terminal": "commands that you type yourself have no hook",
    },
)

"""Copilot CLI: a file of hooks, our server among its servers; shell commands are rewritten."""

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
    object_of,
    patched_paths,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_EDIT_TOOLS = frozenset({"create", "edit", "str_replace_editor", "apply_patch"})
_SHELL_TOOL = "bash"
_EVENTS = ("userPromptSubmitted", "preToolUse", "postToolUse", "agentStop")
_EVENT_NAMES = EventNames(
    prompt="userPromptSubmitted",
    before="preToolUse",
    after="postToolUse",
    end=("agentStop", "sessionEnd"),
    edit_tools=_EDIT_TOOLS,
    shell_tools=frozenset({_SHELL_TOOL}),
)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonDefault, JsonHook, JsonValue, SettingsFile

    hooks = [
        JsonHook(
            keys=("hooks", event),
            item={
                "type": "command",
                "bash": f"{place.hook_command('copilot')} {event}",
                "timeoutSec": HOOK_TIMEOUT_SECONDS,
            },
            host="copilot",
        )
        for event in _EVENTS
    ]
    server = {"type": "local", "command": place.program, "args": ["mcp"], "tools": ["*"]}
    user = place.scope == "user"
    return (
        SettingsFile(
            name=".copilot/mcp-config.json" if user else ".github/mcp.json",
            edits=(JsonValue(keys=("mcpServers", SERVER_NAME), value=server),),
        ),
        SettingsFile(
            name=".copilot/hooks/surehold.json" if user else ".github/hooks/surehold.json",
            edits=(JsonDefault(keys=("version",), value=1), *hooks),
        ),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    """Read an event; its name is not in it, so the hook's command line has it."""
    arguments, tool = object_of(event, "toolArgs"), text_of(event, "toolName")
    path, patch = text_of(arguments, "path", "file_path"), text_of(arguments, "patch", "input")
    return HookEvent(
        kind=_EVENT_NAMES.kind_of(text_of(event, "hook_event_name"), tool),
        session=text_of(event, "sessionId"),
        tool=tool,
        directory=text_of(event, "cwd"),
        paths=(path,) if path else patched_paths(patch),
        command=text_of(arguments, "command"),
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


HOST = AgentHost(
    key="copilot",
    name="Copilot CLI",
    agent="github-copilot-developer",
    settings=_list_settings,
    moved_by={"COPILOT_HOME": ".copilot"},
    read_event=_read_event,
    event_shape=EventShape(
        names=_EVENT_NAMES.by_kind(), edit=("edit", "path"), session="sessionId", tool="toolName", arguments="toolArgs"
    ),
    edit_tools=sorted(_EDIT_TOOLS),
    shell_tool=_SHELL_TOOL,
    # Without a decision: one would take the place of the question to the person.
    answer_shell=lambda event, command: {"modifiedArgs": {**event.arguments, "command": command}},
    next_steps={
        "user": "Start Copilot CLI again; `/mcp` shows the server.",
        "project": "Start Copilot CLI in the project and trust the folder: it does not run hooks of others.",
    },
    not_covered={
        "write_bash": "what is typed into a shell that runs already has no hook; the shell itself is recorded"
    },
)

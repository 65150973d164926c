"""Claude Code: hooks and a shell prefix in its settings, our server among its servers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surehold.front.hosts.agent_host import (
    HOOK_TIMEOUT_SECONDS,
    SERVER_NAME,
    AgentHost,
    HookEvent,
    HookKind,
    HostPlace,
    group_hooks,
    json_hooks,
    object_of,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

EDIT_TOOLS = "Edit|Write|MultiEdit|NotebookEdit"
_MATCHERS = {
    "UserPromptSubmit": "",
    "PreToolUse": EDIT_TOOLS,
    "PostToolUse": EDIT_TOOLS,
    "PostToolUseFailure": EDIT_TOOLS,
    "Stop": "",
}
_KINDS: Mapping[str, HookKind] = {
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before_edit",
    "PostToolUse": "after_edit",
    "PostToolUseFailure": "after_edit",
    "Stop": "end",
    "SessionEnd": "end",
}


def claude_hooks(command: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks as settings and plugins spell them."""
    hook = {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS}
    return group_hooks(_MATCHERS, hook)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonValue, SettingsFile

    server = JsonValue(
        keys=("mcpServers", SERVER_NAME), value={"type": "stdio", "command": place.program, "args": ["mcp"]}
    )
    hooks = json_hooks("claude", claude_hooks(place.hook_command("claude")))
    prefix = JsonValue(keys=("env", "CLAUDE_CODE_SHELL_PREFIX"), value=f"{place.executable} -c")
    user = place.scope == "user"
    return (
        SettingsFile(name=".claude.json" if user else ".mcp.json", edits=(server,)),
        # Of a project's two files this one is personal: others who have no Surehold keep their shell.
        SettingsFile(name=".claude/settings.json" if user else ".claude/settings.local.json", edits=(*hooks, prefix)),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments = object_of(event, "tool_input")
    path = text_of(arguments, "file_path", "notebook_path")
    kind = _KINDS.get(text_of(event, "hook_event_name"), "other")
    return HookEvent(
        kind=kind if path or kind in {"prompt", "end"} else "other",
        session=text_of(event, "session_id"),
        turn=text_of(event, "prompt_id"),
        call_id=text_of(event, "tool_use_id"),
        tool=text_of(event, "tool_name"),
        directory=text_of(event, "cwd"),
        paths=(path,) if path else (),
        prompt=text_of(event, "prompt"),
        agent=text_of(event, "agent_type"),
        arguments=arguments,
    )


HOST = AgentHost(
    key="claude",
    name="Claude Code",
    agent="claude-code",
    settings=_list_settings,
    moved_by={"CLAUDE_CONFIG_DIR": ".claude"},
    read_event=_read_event,
    edit_tools=EDIT_TOOLS.split("|"),
    shell_tool="Bash",
    next_steps={
        "user": "Start Claude Code again; `/hooks` and `/mcp` show what it found.",
        "project": "Start Claude Code in the project, and approve the server when it asks.",
    },
    not_covered={
        "worktrees": "a worktree does not have the project's personal settings; use --user",
        "cloud sessions": "hooks and the prefix of this machine do not run there",
    },
    starts_shell=True,
)

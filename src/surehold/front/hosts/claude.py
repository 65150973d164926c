"""Claude Code: hooks and a shell prefix in its settings, our server among its servers.

A plugin cannot set the prefix. Its hook lets the shell itself begin with our program instead: a command that a hook rewrites
is compared with the person's rules as it was rewritten, so that what they deny would run.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surehold.front.hosts.agent_host import (
    HOOK_TIMEOUT_SECONDS,
    SERVER_NAME,
    AgentHost,
    EventShape,
    HookEvent,
    HookKind,
    HostPlace,
    ShellStart,
    group_hooks,
    json_hooks,
    object_of,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

EDIT_TOOLS = "Edit|Write|MultiEdit|NotebookEdit"
_PREFIX = ("env", "CLAUDE_CODE_SHELL_PREFIX")
_MATCHERS = {
    "UserPromptSubmit": "",
    "PreToolUse": EDIT_TOOLS,
    "PostToolUse": EDIT_TOOLS,
    "PostToolUseFailure": EDIT_TOOLS,
    "Stop": "",
}
_KINDS: Mapping[str, HookKind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before_edit",
    "PostToolUse": "after_edit",
    "PostToolUseFailure": "after_edit",
    "Stop": "end",
    "SessionEnd": "end",
}


_ENTRY = """\
if [ "${{SUREHOLD_ENTERED-}}" != "${{CLAUDE_CODE_SESSION_ID-none}}" ] && [ -x {program} ] &&
  [ -n "${{BASH_EXECUTION_STRING-}}${{ZSH_EXECUTION_STRING-}}" ]; then
  export SUREHOLD_ENTERED="${{CLAUDE_CODE_SESSION_ID-none}}"
  exec {program} -c "${{BASH_EXECUTION_STRING-}}${{ZSH_EXECUTION_STRING-}}"
fi
"""
"""What a shell of the host runs first: it becomes our shell, once, which runs the same script."""


def claude_hooks(command: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks as settings and plugins spell them."""
    hook = {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS}
    return group_hooks(_MATCHERS, hook)


def claude_plugin_hooks(command: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks of a plugin, which has no shell prefix."""
    hook = {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS}
    return group_hooks({"SessionStart": "", **_MATCHERS}, hook)


def _begin_session(program: str) -> None:
    """Add our entry to what the host runs before each command of this session."""
    if path := os.environ.get("CLAUDE_ENV_FILE"):
        entry = _ENTRY.format(program=shlex.quote(program))
        with open(path, "a+", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is loaded late
            file.seek(0)
            if entry not in file.read():
                file.write(entry)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonValue, SettingsFile

    server = JsonValue(
        keys=("mcpServers", SERVER_NAME), value={"type": "stdio", "command": place.program, "args": ["mcp"]}
    )
    hooks = json_hooks("claude", claude_hooks(place.hook_command("claude")))
    prefix = JsonValue(keys=_PREFIX, value=f"{place.executable} -c")
    user = place.scope == "user"
    return (
        SettingsFile(name=".claude.json" if user else ".mcp.json", edits=(server,)),
        # Of a project's two files this one is personal: others who have no Surehold keep their shell.
        SettingsFile(name=".claude/settings.json" if user else ".claude/settings.local.json", edits=(*hooks, prefix)),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments = object_of(event, "tool_input")
    path = text_of(arguments, "file_path", "notebook_path")
    kind, tool = _KINDS.get(text_of(event, "hook_event_name"), "other"), text_of(event, "tool_name")
    return HookEvent(
        kind=kind if path or tool in EDIT_TOOLS.split("|") or kind in {"start", "prompt", "end"} else "other",
        session=text_of(event, "session_id"),
        turn=text_of(event, "prompt_id"),
        call_id=text_of(event, "tool_use_id"),
        tool=tool,
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
    begin_session=_begin_session,
    event_shape=EventShape(
        names={"prompt": "UserPromptSubmit", "before_edit": "PreToolUse", "after_edit": "PostToolUse", "end": "Stop"},
        edit=("Edit", "file_path"),
        turn="prompt_id",
    ),
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
    shell_start=ShellStart(setting=_PREFIX, line="{program} {script}", session="CLAUDE_CODE_SESSION_ID"),
)

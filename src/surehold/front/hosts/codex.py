"""Codex: hooks in `hooks.json`, our server in `config.toml`; shell commands are rewritten."""

from collections.abc import Mapping, Sequence
from functools import partial
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
    patched_paths,
    replace_command,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_MATCHERS = {"UserPromptSubmit": "", "PreToolUse": "^(Bash|apply_patch)$", "PostToolUse": "^apply_patch$", "Stop": ""}
_EVENT_NAMES = EventNames(
    prompt="UserPromptSubmit",
    before="PreToolUse",
    after="PostToolUse",
    end=("Stop", "SessionEnd"),
    edit_tools=frozenset({"apply_patch"}),
    shell_tools=frozenset({"Bash"}),
)


def codex_hooks(command: str) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks as `hooks.json` and plugins spell them."""
    hook = {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS}
    return group_hooks(_MATCHERS, hook)


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import SettingsFile, TomlTable

    hooks = json_hooks("codex", codex_hooks(place.hook_command("codex")))
    # Codex hides the environment from servers; the history must be where the hooks and the shell have it.
    server = {"command": place.program, "args": ["mcp"], "env_vars": ["XDG_STATE_HOME"], "startup_timeout_sec": 30}
    table = TomlTable(keys=("mcp_servers", SERVER_NAME), values=server)
    return (
        SettingsFile(name=".codex/config.toml", edits=(table,)),
        SettingsFile(name=".codex/hooks.json", edits=hooks),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments, tool = object_of(event, "tool_input"), text_of(event, "tool_name")
    kind = _EVENT_NAMES.kind_of(text_of(event, "hook_event_name"), tool)
    command = text_of(arguments, "command")
    return HookEvent(
        kind=kind,
        session=text_of(event, "session_id"),
        turn=text_of(event, "turn_id"),
        call_id=text_of(event, "tool_use_id"),
        tool=tool,
        directory=text_of(event, "cwd"),
        paths=patched_paths(command) if kind in {"before_edit", "after_edit"} else (),
        command=command,
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


HOST = AgentHost(
    key="codex",
    name="Codex",
    agent="codex",
    settings=_list_settings,
    moved_by={"CODEX_HOME": ".codex"},
    read_event=_read_event,
    event_shape=EventShape(names=_EVENT_NAMES.by_kind(), edit=("apply_patch", "command"), turn="turn_id"),
    edit_tools=("apply_patch",),
    shell_tool="Bash",
    answer_shell=partial(replace_command, decision="allow"),
    next_steps=dict.fromkeys(
        ("user", "project"),
        "Start Codex and confirm the hooks in `/hooks`: it skips hooks that it was not told to trust.",
    ),
    not_covered={
        "hooks that are not trusted": "Codex skips them without a word; see `/hooks`",
        "write_stdin": "what is typed into a shell that runs already has no hook; the shell itself is recorded",
    },
)

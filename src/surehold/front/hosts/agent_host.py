"""What is known of a host that Surehold sets itself up in: its settings files, its events, and how it is answered.

Each host has a module of its own here, with one `HOST`. It is found by its name, so that a hook loads no other one.
"""

import importlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from surehold.errors import InvalidArgument

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import JsonHook, SettingsFile

HOST_KEYS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "vscode")
SERVER_NAME = "surehold"
HOOK_TIMEOUT_SECONDS = 10

SetupScope = Literal["user", "project"]
HookKind = Literal["start", "prompt", "before_edit", "after_edit", "before_shell", "end", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """What a host tells before or after something happens."""

    kind: HookKind
    session: str = ""
    turn: str = ""
    """The host's own id of the turn; empty if it has none."""
    call_id: str = ""
    tool: str = ""
    directory: str = ""
    """Where the host works."""
    paths: tuple[str, ...] = ()
    command: str = ""
    prompt: str = ""
    agent: str = ""
    """A part of the host that works on its own, such as a subagent; empty for the host itself."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the tool call, as they came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlace:
    """Where a host is set up, and which program it is to call."""

    scope: SetupScope
    program: str
    """How to start Surehold: its name or its path."""
    executable: str
    """Its path."""

    def hook_command(self, host: str) -> str:
        return shlex.join((self.program, "hook", host))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventShape:
    """How a host spells its events: the doctor sends such ones through the hooks that are in its settings."""

    names: Mapping[HookKind, str]
    """How it calls each kind that it sends."""
    edit: tuple[str, str]
    """One of its edit tools, and the argument that has the file, or the patch."""
    name: str = "hook_event_name"
    session: str = "session_id"
    turn: str = ""
    directory: str = "cwd"
    tool: str = "tool_name"
    arguments: str = "tool_input"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellStart:
    """How a host that is told to starts shell commands as `surehold -c SCRIPT` by itself."""

    setting: tuple[str, ...]
    """Where its settings have the program."""
    line: str
    """What it runs, with `{program}` as it is set, and `{script}` in quotes."""
    session: str
    """The variable that has the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHost:
    """A host, as `surehold setup`, `surehold hook` and `surehold doctor --host` know it."""

    key: str
    name: str
    agent: str
    """How its changes are signed in the history, as its server's are."""
    settings: "Callable[[HostPlace], Sequence[SettingsFile]]"
    """Its files, from the home directory or from the project, by the scope."""
    read_event: Callable[[Mapping[str, Any]], HookEvent]
    event_shape: EventShape
    answer_shell: Callable[[HookEvent, str], Mapping[str, Any]] = lambda _event, _command: {}
    """What to answer so that another command runs instead."""
    begin_session: Callable[[str], None] = lambda _program: None
    """Let its shell begin with our program, where a hook can do that as a session begins."""
    edit_tools: Sequence[str]
    """Its own tools that change files, as its hooks name them."""
    shell_tool: str
    """Its own tool that runs commands."""
    next_steps: Mapping[SetupScope, str]
    """What the person still has to do."""
    not_covered: Mapping[str, str]
    """What it does that cannot be recorded, and why."""
    moved_by: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which variables move its directories out of the home directory, and which directory each of them replaces."""
    shell_start: ShellStart | None = None
    """How it starts shell commands as `surehold -c SCRIPT` by itself; None where hooks rewrite them."""


def find_agent_host(key: str) -> AgentHost:
    if key not in HOST_KEYS:
        choose = f"Choose one of {', '.join(HOST_KEYS)}."
        raise InvalidArgument(f"Unknown host `{key}`.", reason="unknown_host", action=choose)
    return cast("AgentHost", importlib.import_module(f"surehold.front.hosts.{key}").HOST)


def group_hooks(matchers: Mapping[str, str], hook: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return one hook for several events, each with a matcher or without, as most hosts spell it."""
    return {event: [{**({"matcher": text} if text else {}), "hooks": [dict(hook)]}] for event, text in matchers.items()}


def json_hooks(host: str, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> "list[JsonHook]":
    """Return the hooks of each event as edits of a settings file."""
    from surehold.front.hosts.settings_files import JsonHook

    return [JsonHook(keys=("hooks", event), item=item, host=host) for event, items in hooks.items() for item in items]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNames:
    """How a host calls its events, and its own tools in them."""

    prompt: str
    before: str
    """Before any of its tools runs."""
    after: str
    end: tuple[str, ...]
    edit_tools: frozenset[str]
    shell_tools: frozenset[str]

    def kind_of(self, name: str, tool: str) -> HookKind:
        if name == self.prompt:
            return "prompt"
        if name in self.end:
            return "end"
        if name == self.before and tool in self.shell_tools:
            return "before_shell"
        if name in {self.before, self.after} and tool in self.edit_tools:
            return "before_edit" if name == self.before else "after_edit"
        return "other"

    def by_kind(self) -> dict[HookKind, str]:
        """Return the names, as the doctor sends them."""
        before, after = self.before, self.after
        return {
            "prompt": self.prompt,
            "before_edit": before,
            "after_edit": after,
            "before_shell": before,
            "end": self.end[0],
        }


def replace_command(event: HookEvent, command: str, *, decision: str) -> dict[str, Any]:
    """Answer that another command runs instead, as Codex and VS Code understand it."""
    updated = {**event.arguments, "command": command}
    return {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision, "updatedInput": updated}
    }


def text_of(event: Mapping[str, Any], *names: str) -> str:
    """Return the first of these members that is a text."""
    return next((value for name in names if isinstance(value := event.get(name), str)), "")


def object_of(event: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the first of these members that is an object."""
    for name in names:
        value = event.get(name)
        if isinstance(value, dict):
            return cast("Mapping[str, Any]", value)
    return {}


def patched_paths(patch: str) -> tuple[str, ...]:
    """Return the files that a patch in the `*** Begin Patch` envelope touches."""
    rows = re.findall(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", patch, re.MULTILINE)
    return tuple(dict.fromkeys(rows))

"""opencode: a plugin that calls our hook, our server and our shell in its configuration."""

import json
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
    object_of,
    patched_paths,
    text_of,
)

if TYPE_CHECKING:
    from surehold.front.hosts.settings_files import SettingsFile

_EDIT_TOOLS = ("edit", "write", "patch", "apply_patch", "multiedit")
_SHELL = ("shell",)
_PLUGIN = """\
// Written by `surehold setup opencode`; `surehold setup opencode --remove` removes it.
import { spawnSync } from "node:child_process"

const HOOK = %(hook)s
const TOOLS = new Set(%(tools)s)
const turns = new Map()

function tell(event, directory) {
  const input = JSON.stringify({ ...event, cwd: directory })
  const done = spawnSync(HOOK[0], HOOK.slice(1), { input, cwd: directory, timeout: %(timeout)d })
  if (done.error || done.status !== 0) console.error(`surehold: the hook failed: ${done.error ?? done.stderr}`)
}

export const Surehold = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    const turn = output.message?.id ?? ""
    turns.set(input.sessionID, turn)
    const prompt = (output.parts ?? []).map((part) => part.text ?? "").join("\\n")
    tell({ event: "prompt", session: input.sessionID, turn, prompt }, directory)
  },
  "tool.execute.before": async (input, output) => {
    if (!TOOLS.has(input.tool)) return
    const turn = turns.get(input.sessionID) ?? ""
    const call = { session: input.sessionID, turn, call: input.callID, tool: input.tool, args: output.args }
    tell({ event: "before", ...call }, directory)
  },
  "tool.execute.after": async (input) => {
    if (!TOOLS.has(input.tool)) return
    const turn = turns.get(input.sessionID) ?? ""
    const call = { session: input.sessionID, turn, call: input.callID, tool: input.tool, args: input.args }
    tell({ event: "after", ...call }, directory)
  },
  "shell.env": async (input, output) => {
    if (!input.sessionID) return
    output.env.SUREHOLD_AGENT = "opencode"
    output.env.SUREHOLD_SESSION = input.sessionID
    output.env.SUREHOLD_TURN = turns.get(input.sessionID) ?? ""
    output.env.SUREHOLD_CALL = input.callID ?? ""
  },
  event: async ({ event }) => {
    if (event.type === "session.idle") tell({ event: "end", session: event.properties.sessionID }, directory)
  },
})
"""
_KINDS: Mapping[str, HookKind] = {"prompt": "prompt", "before": "before_edit", "after": "after_edit", "end": "end"}


def _list_settings(place: HostPlace) -> "Sequence[SettingsFile]":
    from surehold.front.hosts.settings_files import JsonDefault, JsonValue, SettingsFile, WholeFile

    folder = ".config/opencode/" if place.scope == "user" else ""
    plugins = f"{folder}plugins" if folder else ".opencode/plugins"
    hook = json.dumps([place.executable, "hook", "opencode"], ensure_ascii=False)
    tools = json.dumps(_EDIT_TOOLS)
    server = {"type": "local", "command": [place.program, "mcp"], "enabled": True}
    return (
        SettingsFile(
            name=f"{folder}opencode.json",
            edits=(
                JsonValue(keys=("mcp", SERVER_NAME), value=server),
                JsonDefault(keys=_SHELL, value=place.executable),
            ),
        ),
        SettingsFile(
            name=f"{plugins}/surehold.js",
            edits=(WholeFile(text=_PLUGIN % {"hook": hook, "tools": tools, "timeout": HOOK_TIMEOUT_SECONDS * 1000}),),
        ),
    )


def _read_event(event: Mapping[str, Any]) -> HookEvent:
    arguments = object_of(event, "args")
    path, patch = text_of(arguments, "filePath", "file_path"), text_of(arguments, "patchText", "patch")
    return HookEvent(
        kind=_KINDS.get(text_of(event, "event"), "other"),
        session=text_of(event, "session"),
        turn=text_of(event, "turn"),
        call_id=text_of(event, "call"),
        tool=text_of(event, "tool"),
        directory=text_of(event, "cwd"),
        paths=(path,) if path else patched_paths(patch),
        prompt=text_of(event, "prompt"),
        arguments=arguments,
    )


HOST = AgentHost(
    key="opencode",
    name="opencode",
    agent="opencode",
    settings=_list_settings,
    moved_by={"XDG_CONFIG_HOME": ".config"},
    read_event=_read_event,
    event_shape=EventShape(
        names={"prompt": "prompt", "before_edit": "before", "after_edit": "after", "end": "end"},
        edit=("edit", "filePath"),
        name="event",
        session="session",
        turn="turn",
        tool="tool",
        arguments="args",
    ),
    edit_tools=_EDIT_TOOLS,
    shell_tool="bash",
    next_steps=dict.fromkeys(("user", "project"), "Start opencode again; `opencode mcp list` names the server."),
    not_covered={"another `shell` in opencode.json": "shell commands are recorded only if Surehold is that shell"},
    shell_start=ShellStart(setting=_SHELL, line="{program} -c {script}", session="SUREHOLD_SESSION"),
)

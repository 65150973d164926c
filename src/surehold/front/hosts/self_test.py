"""`surehold doctor --host HOST`: tries, in a directory of its own, what is recorded of a host, and says what is not.

What is tried is what the host's settings have: an event goes to the hook as the host would send it, and a script runs as
the host would run it. Then the history must have what they did, and undo must take it back.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

from surehold.capture.filter import can_listen
from surehold.capture.joined import JOINED_VARIABLE, find_open_run
from surehold.errors import SureholdError
from surehold.front.hosts.agent_host import SERVER_NAME, AgentHost, HookKind, SetupScope, ShellStart
from surehold.front.hosts.hook import PROJECT_VARIABLES, locate_state
from surehold.front.hosts.hook_notes import HookNotes
from surehold.front.hosts.settings_files import JsonHook, JsonValue, TomlTable, texts_in
from surehold.front.hosts.setup import HostSetup, plan_setup
from surehold.text.config.jsonc import JsoncText

_SCOPES: Sequence[SetupScope] = ("project", "user")
_EARLIER, _LATER = "one\n", "two\n"
_EDITED, _REMOVED = "edited.txt", "removed.txt"
_SCRIPT = f"rm {_REMOVED}"
_SESSION, _TURN = "trial", "trial-turn"
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCoverage:
    """What is recorded of a host on this machine, and what is not."""

    host: str
    setup: tuple[str, ...]
    """Where everything is in its files."""
    covered: tuple[str, ...]
    not_covered: Mapping[str, str]
    """What, and why."""
    broken: tuple[str, ...]
    """What was tried and is not recorded, though it is set up."""
    failures: tuple[str, ...]
    """What hooks logged, oldest first."""

    @property
    def works(self) -> bool:
        return bool(self.setup and not self.broken)


class _TrialFailed(Exception):
    """Something that should be recorded is not."""


def examine_host(host: AgentHost, *, root: str, state_dir: str = "") -> HostCoverage:
    """Look for the setup, and try what it has: the hooks with an edit, the shell with a script."""
    plans = [plan for scope in _SCOPES if (plan := _find_setup(host, scope, root))]
    covered, missing, broken = list[str](), dict[str, str](), dict[str, str]()
    if plans:
        if why := _find_failure(plans[0], _Trial.try_server):
            broken["our own tools"] = why
        else:
            covered.append("our own tools: the server that is in its settings answers")
        if why := _find_failure(plans[0], _Trial.try_edit):
            broken["its own edit tools, and turns"] = why
        else:
            covered.append("its own edit tools: an edit went through its hooks, and was undone")
            covered.append("turns: marked by its prompts")
        if why := _why_not_captured():
            missing["its shell"] = why
        elif why := _find_failure(plans[0], _Trial.try_shell):
            broken["its shell"] = why
        else:
            covered.append("its shell: a script ran as it runs them, and was undone")
    else:
        missing["everything"] = f"it is not set up; run: surehold setup {host.key}"
    failures = HookNotes(locate_state(root, state_dir) / "hooks").failures()
    return HostCoverage(
        host=host.key,
        setup=tuple(plan.scope for plan in plans),
        covered=tuple(covered),
        not_covered={**broken, **missing, **host.not_covered},
        broken=tuple(broken),
        failures=tuple(failures),
    )


def _why_not_captured() -> str:
    """Return why commands cannot be captured here, whatever the settings say; empty if they can be."""
    if find_open_run() is not None:
        return "not tried: this command is part of a recorded run; ask in a terminal of your own"
    why = can_listen()
    return f"what commands change cannot be captured here: {why}" if why else ""


def _find_setup(host: AgentHost, scope: SetupScope, root: str) -> HostSetup | None:
    """Return the setup of a scope; None if something of it is not in the host's files."""
    try:
        plan = plan_setup(host, scope, root=root, environment=os.environ)
        contents = [(one, (plan.base / one.name).read_bytes()) for one in plan.files]
        return plan if all(one.put_into(data) == data for one, data in contents) else None
    except (SureholdError, OSError):
        return None


def _find_failure(plan: HostSetup, attempt: "Callable[[_Trial], None]") -> str:
    """Make an attempt in a directory of its own, and return why it failed; empty if it did not."""
    try:
        with _open_trial(plan) as trial:
            attempt(trial)
    except (_TrialFailed, SureholdError, OSError, ValueError, subprocess.SubprocessError) as error:
        return f"the trial failed: {error}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A workspace and a history for one trial, and the settings that are tried."""

    plan: HostSetup
    root: Path
    state_home: Path
    environment: Mapping[str, str]

    def try_server(self) -> None:
        """Start the server as the host would, and ask for its tools."""
        words = [word.replace("${workspaceFolder}", str(self.root)) for word in self._server_words()]
        facts = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "doctor", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": facts}
        begun, ask = (
            {"jsonrpc": "2.0", **one}
            for one in ({"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"})
        )
        said = self._run(
            shlex.join(words), "".join(f"{json.dumps(one)}\n" for one in (begin, begun, ask)), may_greet=True
        )
        answers = [json.loads(line) for line in said.splitlines()]
        if not any(one.get("id") == ask["id"] and one.get("result", {}).get("tools") for one in answers):
            raise _TrialFailed("the server lists no tools")

    def try_edit(self) -> None:
        """Begin a turn, and edit a file as the host would."""
        self._tell("prompt")
        self._tell("before_edit")
        (self.root / _EDITED).write_text(_LATER, encoding="utf-8")
        self._tell("after_edit")
        self._undo(_EDITED)

    def try_shell(self) -> None:
        """Remove a file by a script, as the host would."""
        start = self.plan.host.shell_start
        self._tell("prompt")
        if start is None:
            line, variables = _find_command(self._tell("before_shell")), dict[str, str]()
            if not line:
                raise _TrialFailed("the hook did not put the command under our shell")
        else:
            line = start.line.format(program=self._started_program(start), script=shlex.quote(_SCRIPT))
            variables = {start.session: _SESSION}
        self._run(line, variables=variables)
        if (self.root / _REMOVED).exists():
            raise _TrialFailed("the script did not run")
        self._undo(_REMOVED)

    def _tell(self, kind: HookKind) -> Any:
        """Send an event to the hook that the settings have for it, and return the answer."""
        said = self._run(self._hook_line(self.plan.host.event_shape.names[kind]), json.dumps(self._event(kind)))
        return json.loads(said) if said.strip() else {}

    def _event(self, kind: HookKind) -> dict[str, Any]:
        shape, root = self.plan.host.event_shape, str(self.root)
        event: dict[str, Any] = {
            shape.name: shape.names[kind],
            shape.session: _SESSION,
            shape.directory: root,
            "workspace_roots": [root],
            "prompt": "a trial",
        }
        if shape.turn:
            event[shape.turn] = _TURN
        if kind == "before_shell":
            event |= {shape.tool: self.plan.host.shell_tool, shape.arguments: {"command": _SCRIPT}}
        if kind in {"before_edit", "after_edit"}:
            tool, argument = shape.edit
            patch = f"*** Begin Patch\n*** Update File: {_EDITED}\n@@\n-one\n+two\n*** End Patch\n"
            value = patch if tool == "apply_patch" else str(self.root / _EDITED)
            event |= {shape.tool: tool, shape.arguments: {argument: value}}
        return event

    def _hook_line(self, event: str) -> str:
        """Return the command that the settings have for an event."""
        ours = re.compile(rf"surehold\S* hook {self.plan.host.key}\b")
        for file in self.plan.files:
            text = (self.plan.base / file.name).read_text(encoding="utf-8-sig")
            if any(isinstance(edit, JsonHook) and edit.keys[-1] == event for edit in file.edits):
                node = JsoncText(text).find_node(("hooks", event))
                for line in texts_in(node.value if node else None):
                    if ours.search(line):
                        return line
            elif found := re.search(r"^const HOOK = (\[.*\])$", text, re.MULTILINE):
                return shlex.join(json.loads(found[1]))
        raise _TrialFailed(f"no hook for {event} is in the settings")

    def _server_words(self) -> list[str]:
        """Return the command of the server that the settings have."""
        for file in self.plan.files:
            text = (self.plan.base / file.name).read_text(encoding="utf-8-sig")
            for edit in file.edits:
                if isinstance(edit, JsonValue | TomlTable) and edit.keys[-1] == SERVER_NAME:
                    node = None if isinstance(edit, TomlTable) else JsoncText(text).find_node(edit.keys)
                    server: Any = node.value if node else reduce(getitem, edit.keys, cast("Any", tomllib.loads(text)))
                    command: Any = server["command"]
                    return (
                        list(cast("list[str]", command))
                        if isinstance(command, list)
                        else [command, *server.get("args", ())]
                    )
        raise _TrialFailed("no server is in the settings")

    def _started_program(self, start: ShellStart) -> str:
        for file in self.plan.files:
            if file.name.endswith(".json"):
                text = (self.plan.base / file.name).read_text(encoding="utf-8-sig")
                if node := JsoncText(text).find_node(start.setting):
                    return str(node.value)
        raise _TrialFailed(f"{'.'.join(start.setting)} is not in the settings")

    def _run(
        self, line: str, stdin: str = "", *, variables: Mapping[str, str] | None = None, may_greet: bool = False
    ) -> str:
        """Run a line of the settings, and return its output; a complaint is a failure."""
        done = subprocess.run(  # noqa: S602 - hosts give the lines of their settings to a shell
            line,
            shell=True,
            cwd=self.root,
            env={**self.environment, **(variables or {})},
            input=stdin.encode(),
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        told = done.stderr.decode(errors="replace").strip()
        if done.returncode or (told and not may_greet):
            raise _TrialFailed(told or f"`{line}` ended with {done.returncode}")
        return done.stdout.decode(errors="replace")

    def _undo(self, name: str) -> None:
        """Find a file in the history, with its session and its turn, and undo what was done."""
        from surehold.app import Settings, open_workspace

        states = list(self.state_home.glob("surehold/*/state.db"))
        if not states:
            raise _TrialFailed("nothing was recorded")
        with open_workspace(self.root, settings=Settings(state_dir=states[0].parent)) as workspace:
            entries = [one for one in workspace.history.log() if one.change.path == name]
            if not entries:
                raise _TrialFailed("what it did was not recorded")
            if entries[0].call.session != _SESSION or not entries[0].call.turn:
                raise _TrialFailed("session and turn were not recorded")
            workspace.history.undo()
        path = self.root / name
        if not path.exists() or path.read_text(encoding="utf-8") != _EARLIER:
            raise _TrialFailed("what it did was recorded, and undo did not take it back")


@contextmanager
def _open_trial(plan: HostSetup) -> Generator[_Trial]:
    with tempfile.TemporaryDirectory(prefix="surehold-doctor-", ignore_cleanup_errors=True) as folder:
        root, state_home = Path(os.path.realpath(folder), "root"), Path(folder, "state")
        (root / ".git").mkdir(parents=True)
        for name in (_EDITED, _REMOVED):
            (root / name).write_text(_EARLIER, encoding="utf-8")
        unwanted = {*PROJECT_VARIABLES, "AI_AGENT", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", JOINED_VARIABLE}
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in unwanted and not name.startswith("SUREHOLD_")
        }
        places = {"XDG_STATE_HOME": str(state_home), "XDG_CONFIG_HOME": str(Path(folder, "config"))}
        yield _Trial(plan=plan, root=root, state_home=state_home, environment={**kept, **places})


def _find_command(answer: Any) -> str:
    """Return the command that a hook answers with, wherever the host wants it."""
    if not isinstance(answer, dict):
        return ""
    members = cast("dict[str, Any]", answer)
    if isinstance(command := members.get("command"), str):
        return command
    return next((found for one in members.values() if (found := _find_command(one))), "")

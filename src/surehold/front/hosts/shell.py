"""`surehold -c SCRIPT`: the shell that hosts are given, which records what a script changes.

Who asks is known from the environment: from our own variables, else from those of the host. A script that cannot be
recorded runs anyway, and the log of the hooks says so.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from surehold.front.hosts.hook import locate_root, locate_state
from surehold.front.hosts.hook_notes import HookNotes

_SESSION_VARIABLES = ("SUREHOLD_SESSION", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID")
_CALL_VARIABLES = ("SUREHOLD_CALL", "CODEX_TOOL_CALL_ID")
_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "ksh"})
_UNRECORDED = "_harness"
"""How Claude Code ends the name of who runs commands that are its own, such as hooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCaller:
    """On whose behalf a script runs."""

    agent: str
    session: str
    turn: str
    call_id: str


def identify_caller(environment: Mapping[str, str], notes: HookNotes) -> ShellCaller:
    session = _first_of(environment, _SESSION_VARIABLES)
    agent = environment.get("SUREHOLD_AGENT") or ("claude-code" if environment.get("CLAUDECODE") else "")
    turn = environment.get("SUREHOLD_TURN") or (notes.turn_of(session) if session else "")
    return ShellCaller(agent=agent, session=session, turn=turn, call_id=_first_of(environment, _CALL_VARIABLES))


def run_script(script: str) -> int:
    """Run a script under capture if it belongs to an agent; return its exit code."""
    shell = _choose_shell(script, os.environ)
    if os.environ.get("AI_AGENT", "").endswith(_UNRECORDED):
        _become_shell(shell, script)
    notes = HookNotes(locate_state(locate_root(""), "") / "hooks")
    caller = identify_caller(os.environ, notes)
    failure = f"surehold -c: shell commands of {caller.agent or 'this shell'} cannot be recorded by this version."
    notes.log_failure(failure)
    print(failure, file=sys.stderr, flush=True)  # noqa: T201 - the one who reads the output of the script must know
    _become_shell(shell, script)


def _choose_shell(script: str, environment: Mapping[str, str]) -> str:
    """Return the shell that the host would have taken: the one that its script is written for."""
    wanted = "zsh" if "/snapshot-zsh-" in script else ""
    usual = environment.get("SHELL", "")
    name = wanted or (usual if os.path.basename(usual) in _SHELLS else "bash")  # noqa: PTH119 - cheap
    return shutil.which(name) or shutil.which("sh") or "/bin/sh"


def _become_shell(shell: str, script: str) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(shell, [shell, "-c", script])  # noqa: S606 - this is a shell


def _first_of(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environment.get(name))), "")

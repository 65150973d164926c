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

from surehold.capture.joined import find_open_run
from surehold.front.hosts.hook import locate_root, locate_state
from surehold.front.hosts.hook_notes import HookNotes
from surehold.text.escape import reveal_text

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCall:
    """A script, the shell that is to run it, and where its changes are recorded."""

    shell: str
    script: str
    root: str
    notes: HookNotes

    @property
    def is_recorded(self) -> bool:
        """Whether this is for us to record: not what the host runs for itself, nor what is part of a recorded run."""
        return not os.environ.get("AI_AGENT", "").endswith(_UNRECORDED) and find_open_run() is None

    def run_words(self) -> list[str]:
        """Return the arguments of `surehold` that record the script."""
        caller = identify_caller(os.environ, self.notes)
        facts = {"--agent": caller.agent, "--session": caller.session, "--turn": caller.turn, "--call": caller.call_id}
        options = [f"{name}={value}" for name, value in facts.items() if value]
        return ["run", *options, f"--root={self.root}", "--", self.shell, "-c", self.script]

    def run_unrecorded(self, why: str = "") -> NoReturn:
        """Become the shell; say why nothing is recorded, if something should be."""
        if why:
            failure = f"surehold: what this command does cannot be undone, since it is not recorded: {why}"
            self.notes.log_failure(failure)
            print(reveal_text(failure), file=sys.stderr)  # noqa: T201 - whoever reads the output must know
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(self.shell, [self.shell, "-c", self.script])  # noqa: S606 - this is a shell


def plan_script(script: str) -> ShellCall:
    root = locate_root("")
    notes = HookNotes(locate_state(root, "") / "hooks")
    return ShellCall(shell=_choose_shell(script, os.environ), script=script, root=root, notes=notes)


def identify_caller(environment: Mapping[str, str], notes: HookNotes) -> ShellCaller:
    session = _first_of(environment, _SESSION_VARIABLES)
    agent = environment.get("SUREHOLD_AGENT") or ("claude-code" if environment.get("CLAUDECODE") else "")
    turn = environment.get("SUREHOLD_TURN") or (notes.turn_of(session) if session else "")
    return ShellCaller(agent=agent, session=session, turn=turn, call_id=_first_of(environment, _CALL_VARIABLES))


def _choose_shell(script: str, environment: Mapping[str, str]) -> str:
    """Return the shell that the host would have taken: the one that its script is written for."""
    wanted = "zsh" if "/snapshot-zsh-" in script else ""
    usual = environment.get("SHELL", "")
    name = wanted or (usual if os.path.basename(usual) in _SHELLS else "bash")  # noqa: PTH119 - cheap
    return shutil.which(name) or shutil.which("sh") or "/bin/sh"


def _first_of(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environment.get(name))), "")

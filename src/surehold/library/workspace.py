"""A workspace whose sessions can call the tools.

The tools are imported by the first session, since most commands need none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, PermissionDenied
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.settings import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReceipt:
    """What a command printed, how it ended, and what it changed."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    change_id: str
    """Empty when nothing changed."""
    created: int | None
    changed: int | None
    deleted: int | None
    moved: int | None
    """How many paths; None inside another run, which counts them with its own."""
    complete: bool
    """Whether an undo gives exactly what was there before."""
    not_kept: tuple[dict[str, str], ...]
    running: tuple[str, ...]
    """What still runs, and is recorded into the same change when it ends."""


class AgentWorkspace(Workspace):
    """One or several directories that agents may edit."""

    def run(
        self,
        argv: Sequence[str],
        *,
        session: str = "",
        turn: str = "",
        agent: str = "",
        reason: str = "",
        stdin: bytes = b"",
        confine: bool = False,
    ) -> RunReceipt:
        """Run a command in the first root and record what it changes, so that it can be undone."""
        import json
        import subprocess
        import sys
        import tempfile
        from pathlib import Path

        if self.runs_dir is None or isinstance(argv, str) or not argv:
            raise InvalidArgument(
                "A command is a list of words.", reason="no_command", action='run(["make", "format"])'
            )
        options = {"--session": session, "--turn": turn, "--agent": agent, "--reason": reason}
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            words = [sys.executable, "-P", "-m", "surehold", "run", "--root", self.roots[0], "--report", str(report)]
            words += ["--state-dir", str(self.runs_dir.parent), *(["--confine"] if confine else [])]
            words += [word for name, value in options.items() if value for word in (name, value)]
            words += ["--", *argv]
            done = subprocess.run(words, cwd=self.roots[0], input=stdin, capture_output=True, check=False)  # noqa: S603 - that is the purpose
            if not report.exists():
                message = "The command could not be run under capture."
                cause = done.stderr.decode("utf-8", "replace")[-2000:]
                raise PermissionDenied(message, reason="capture_impossible", action="Look at the cause.", cause=cause)
            facts: dict[str, Any] = json.loads(report.read_text())
        facts.pop("joined", None)
        facts.update(
            not_kept=tuple(facts["not_kept"]), running=tuple(facts["running"]), change_id=facts["change_id"] or ""
        )
        return RunReceipt(**facts, stdout=done.stdout, stderr=done.stderr)

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: "Mode | None" = None,
        approver: "Approver | None" = None,
    ) -> "AgentSession":
        """Begin a session, or continue the one of that id, in a mode and with an approver to ask."""
        from surehold.library.session import AgentSession

        return AgentSession(self, id=id or self.new_id(), agent=agent, permission=self.permission(mode, approver))

"""A workspace whose sessions can call the tools.

The tools are imported by the first session, since most commands need none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from surehold.errors import InvalidArgument, PermissionDenied
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.past.selectors import Selectors
    from surehold.workspace.proposal import Receipt
    from surehold.workspace.settings import Mode
    from surehold.workspace.undo.switch_board import ChangeView

Moment = str | datetime
"""A time as `2h`, `10:00`, `yesterday` or in ISO form; or as Python has it."""


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

    def changes(
        self,
        *paths: str,
        session: str = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        limit: int | None = None,
    ) -> "list[ChangeView]":
        """Return the changes that the selectors name, newest first; without any, all of them."""
        from itertools import islice

        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        # As in the log: outside edits belong to no session and no agent.
        outside = not any((session, agent, turn, since, until))
        entries = self.history.iterate(self.history.select(words), outside=outside)
        return list(islice(self.history.group_changes(entries), limit))

    def undo(
        self,
        change: str = "",
        *,
        session: str = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        paths: Sequence[str] = (),
        partial: bool = False,
        dry_run: bool = False,
    ) -> "Receipt":
        """Undo a change, or everything that the selectors name as one change; without any, the newest change."""
        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        return self._switch("undo", change, words, partial=partial, dry_run=dry_run)

    def redo(
        self,
        change: str = "",
        *,
        session: str = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        paths: Sequence[str] = (),
        partial: bool = False,
        dry_run: bool = False,
    ) -> "Receipt":
        """Redo what was undone: a change, everything that the selectors name, or what was undone last."""
        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        return self._switch("redo", change, words, partial=partial, dry_run=dry_run)

    def _switch(
        self, operation: Literal["undo", "redo"], change: str, words: "Selectors", *, partial: bool, dry_run: bool
    ) -> "Receipt":
        from surehold.workspace.proposal import CallAuthor

        author, history = CallAuthor(agent="library"), self.history
        if change and words:
            action = "Name a change, or selectors such as agent= and since=."
            raise InvalidArgument("A change is named, and selectors too.", reason="change_and_selectors", action=action)
        if words:
            many = history.undo_selected if operation == "undo" else history.redo_selected
            return many(words, author=author, partial=partial, dry_run=dry_run)
        one = history.undo if operation == "undo" else history.redo
        return one(change, author=author, dry_run=dry_run)


def _selectors(
    paths: Sequence[str], *, session: str, agent: str, turn: str, since: Moment, until: Moment
) -> "Selectors":
    from surehold.workspace.past.selectors import Selectors

    if isinstance(paths, str):
        raise InvalidArgument("`paths` is a list.", reason="bad_paths", action='paths=["src/app.py"]')
    moments = [one.astimezone().isoformat() if isinstance(one, datetime) else one for one in (since, until)]
    return Selectors(session=session, agent=agent, turn=turn, since=moments[0], until=moments[1], paths=tuple(paths))

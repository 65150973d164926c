"""Runs a command for a program: `surehold run` in a process of its own, its output collected, its questions answered."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surehold.errors import OTHER_MODE, InvalidArgument, PermissionDenied, spell
from surehold.library.arguments import (
    can_be_passed_on,
    require_flag,
    require_name,
    require_number,
    require_text,
    session_id,
    text_items,
)

if TYPE_CHECKING:
    from asyncio import Future

    from surehold.workspace.access.permission import Approval, Approver
    from surehold.workspace.runs.questions import CommandCall
    from surehold.workspace.session import Session
    from surehold.workspace.workspace import Workspace

_LOOK_SECONDS = 0.1
_SIGNALLED = 128


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


class CommandRun:
    """One command that runs under capture. It is started at once; another thread may stop it."""

    def __init__(
        self,
        workspace: "Workspace",
        argv: Sequence[str],
        *,
        options: Mapping[str, str],
        confine: bool = False,
        approver: "Approver | None" = None,
    ) -> None:
        """Take the options of `surehold run`, of which empty ones are left out."""
        example = 'run(["make", "format"])'
        command = text_items("argv", argv, example=example)
        if workspace.runs_dir is None or not command or not all(map(can_be_passed_on, command)):
            raise InvalidArgument("A command is a list of words.", reason="no_command", action=example)
        self._is_stopped = False
        self._folder = tempfile.TemporaryDirectory()
        self._report = Path(self._folder.name) / "report.json"
        root = workspace.roots[0]
        words = [sys.executable, "-P", "-m", "surehold", "run", "--root", root, *workspace.opened_with]
        words += ["--end-tree", "--report", str(self._report), *(["--confine"] if confine else [])]
        words += [f"{name}={value}" for name, value in options.items() if value]
        # Not as an option: it may have a password, and others can see the words of a process.
        environment = {**os.environ, "SUREHOLD_STATE": workspace.state_url} if workspace.state_url else None
        ours, theirs = socket.socketpair()
        if approver is not None:
            words += ["--ask-through", str(theirs.fileno())]
        passed = (theirs.fileno(),) if approver is not None else ()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(  # noqa: S603 - that is the purpose
                [*words, "--", *command],
                env=environment,
                cwd=root,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                pass_fds=passed,
            )
        except BaseException:
            ours.close()
            self._folder.cleanup()
            raise
        finally:
            theirs.close()
        self._questions = ours
        if approver is not None:
            threading.Thread(target=self._answer_questions, args=(approver,), daemon=True).start()

    def stop(self) -> None:
        """End the command and all that it started, as a signal does; what they changed until then is recorded."""
        self._is_stopped = True
        with suppress(ProcessLookupError):
            self._process.terminate()

    def wait(self, stdin: bytes = b"") -> RunReceipt:
        """Give the command its input, wait for its end, and return what it did."""
        try:
            stdout, stderr = self._process.communicate(stdin)
            if not self._report.exists() and self._is_stopped:  # before the command began
                return _nothing_run(stdout, stderr)
            if not self._report.exists():
                message = "The command could not be run under capture."
                cause = stderr.decode("utf-8", "replace")[-2000:]
                raise PermissionDenied(message, reason="capture_impossible", action="Look at the cause.", cause=cause)
            facts: dict[str, Any] = json.loads(self._report.read_text())
        finally:
            with suppress(OSError):
                self._questions.shutdown(socket.SHUT_RDWR)
            self._questions.close()
            self._folder.cleanup()
        facts.pop("joined", None)
        facts.update(
            not_kept=tuple(facts["not_kept"]), running=tuple(facts["running"]), change_id=facts["change_id"] or ""
        )
        return RunReceipt(**facts, stdout=stdout, stderr=stderr)

    def _answer_questions(self, approver: "Approver") -> None:
        from surehold.workspace.access.permission import read_answer
        from surehold.workspace.runs.questions import answer_question

        def ask(question: "CommandCall") -> "Approval":
            return read_answer(approver(question.to_request()))

        while answer_question(self._questions, ask):
            pass


def _nothing_run(stdout: bytes, stderr: bytes) -> RunReceipt:
    counts = dict.fromkeys(("created", "changed", "deleted", "moved"), 0)
    ended = _SIGNALLED + signal.SIGTERM
    return RunReceipt(
        exit_code=ended, stdout=stdout, stderr=stderr, change_id="", **counts, complete=True, not_kept=(), running=()
    )


def start_run(
    workspace: "Workspace",
    argv: Sequence[str],
    *,
    session: "str | Session" = "",
    turn: str = "",
    agent: str = "",
    reason: str = "",
    confine: bool = False,
    guard: int | None = None,
    approver: "Approver | None" = None,
) -> CommandRun:
    """Start a command in the first root of a workspace, on behalf of a session; see `AgentWorkspace.run`."""
    from surehold.workspace.access.permission import check_approver

    workspace.require_open()
    require_flag("confine", confine)
    if guard is not None:
        require_number("guard", guard, example="guard=100")
        if guard < 0:
            raise InvalidArgument("`guard` is a number of deletions.", reason="bad_guard", action="guard=100")
    for name, given in (("turn", turn), ("agent", agent), ("session", session_id(session))):
        require_name(name, given)
    require_text("reason", reason)
    if not can_be_passed_on(reason):
        message = "`reason` has a zero byte, or half of a character."
        raise InvalidArgument(message, reason="bad_reason", action="Use whole characters.")
    asked, call, known = check_approver(approver) or workspace.approver, "", session_id(session)
    if not isinstance(session, str):
        if session.permission.mode == "plan":
            action = spell("Describe what the command would do, or {}.", OTHER_MODE)
            raise PermissionDenied("This is plan mode, which changes nothing.", reason="plan_mode", action=action)
        agent, turn, call = agent or session.agent, turn or session.turn_id, session.call_id
        asked = approver or session.permission.approver
    options = {"--session": known, "--turn": turn, "--call": call, "--agent": agent, "--reason": reason}
    options["--guard"] = "" if guard is None else str(guard)
    return CommandRun(workspace, argv, options=options, confine=confine, approver=asked)


async def finish_run(run: CommandRun, stdin: bytes = b"", cancelled: Callable[[], bool] = lambda: False) -> RunReceipt:
    """Wait for a command in another thread; when it is cancelled, the command is ended and what it did is recorded."""
    import asyncio

    from surehold.library.call_threads import start_in_thread

    waiting = asyncio.wrap_future(start_in_thread(lambda: run.wait(stdin)))
    try:
        while not (await asyncio.wait({waiting}, timeout=_LOOK_SECONDS))[0]:
            if cancelled():
                run.stop()
    except asyncio.CancelledError as cancel:
        run.stop()
        await asyncio.wait({waiting})
        cancel.add_note(_describe_end(waiting))
        raise
    return waiting.result()


def _describe_end(waiting: "Future[RunReceipt]") -> str:
    if (error := waiting.exception()) is not None:
        return f"The command failed by itself: {error}"
    change_id = waiting.result().change_id
    return f"The command was ended; what it did is change {change_id}." if change_id else "The command changed nothing."

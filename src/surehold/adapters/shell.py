"""Runs the shell commands of a model under capture, on behalf of a session, so that what they change can be undone."""

import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from surehold.library.arguments import require_session
from surehold.library.async_session import AsyncSession, call_in_thread
from surehold.library.command_run import RunReceipt, start_run
from surehold.library.session import AgentSession
from surehold.library.tool_methods import CANCELLED

AnySession = AgentSession | AsyncSession

_MAX_OUTPUT_CHARS = 30_000
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = "5"
"""How long a command may take to end after it was told to."""
_TIMED_OUT = (124, 137)
"""How `timeout` reports that it ended the command: by SIGTERM, by SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What a command printed and how it ended, as text."""

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    change_id: str
    """Empty when no file changed."""

    def to_text(self) -> str:
        """Return it for a model, cut to what is worth reading."""
        rows = [cut_output(self.stdout.rstrip("\n"))]
        if self.stderr:
            rows.append(f"stderr:\n{cut_output(self.stderr.rstrip())}")
        rows.append(f"exit code {self.exit_code}" + (", ended because its time was over" if self.timed_out else ""))
        if self.change_id:
            rows.append(f"changeId: {self.change_id}")
        return "\n".join(filter(None, rows))


def plain_session(session: AnySession) -> AgentSession:
    """Return the session whose methods block; that of `surehold.aio` has one inside."""
    return require_session(session.plain if isinstance(session, AsyncSession) else session)


def run_shell(session: AgentSession, command: str, *, timeout: float | None = None) -> CommandOutcome:
    """Run a command line in the first root, and wait for it."""
    # `timeout` ends all that the command has started; a signal to the shell alone would leave its children running.
    limits = ["timeout", "-k", _GRACE_SECONDS, str(timeout or 0)]
    began = monotonic()
    receipt = run_words(session, [*limits, shutil.which("bash") or "/bin/sh", "-c", command])
    is_over = bool(timeout) and monotonic() - began >= (timeout or 0)
    return CommandOutcome(
        stdout=receipt.stdout.decode("utf-8", "replace"),
        stderr=receipt.stderr.decode("utf-8", "replace"),
        exit_code=receipt.exit_code,
        timed_out=is_over and receipt.exit_code in _TIMED_OUT,
        change_id=receipt.change_id,
    )


async def run_shell_async(session: AgentSession, command: str, *, limit: float | None = None) -> CommandOutcome:
    """Do it in a thread; a task that is cancelled ends the command, and what it changed until then is recorded."""
    return await call_in_thread(run_shell, session, command, timeout=limit)


def run_words(session: AgentSession, words: Sequence[str]) -> RunReceipt:
    """Run a program under capture; it is ended when the call is cancelled."""
    run = start_run(session.workspace, words, session=session)
    cancelled, has_ended = CANCELLED.get(), threading.Event()

    def watch() -> None:
        while not has_ended.wait(_LOOK_SECONDS):
            if cancelled():
                run.stop()
                break

    threading.Thread(target=watch, daemon=True).start()
    try:
        return run.wait()
    finally:
        has_ended.set()


def cut_output(text: str, limit: int = _MAX_OUTPUT_CHARS) -> str:
    """Return a text with its middle left out where it is too long: how it began and how it ended is what counts."""
    if len(text) <= limit:
        return text
    half = max(limit // 2, 1)
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"

"""The process that was started to run a command: it has the terminal, passes signals on, asks the person, and waits."""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from surehold.capture.landlock import confine_writes

NOT_FOUND, NOT_EXECUTABLE, SUPERVISOR_DIED = 127, 126, 125
SIGNALLED = 128
_LAST_STREAM = 2
_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_OURS = frozenset(
    {
        *_FROM_THE_TERMINAL,
        *(signal.SIGSTOP, signal.SIGKILL, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU),
        *(signal.SIGWINCH, signal.SIGPIPE, signal.SIGURG, signal.SIGXCPU, signal.SIGXFSZ),  # each process has its own
        *(
            signal.SIGSEGV,
            signal.SIGBUS,
            signal.SIGFPE,
            signal.SIGILL,
            signal.SIGTRAP,
            signal.SIGSYS,
        ),  # mistakes of ours
    }
)
_FORWARDED = tuple(sorted(signal.valid_signals() - _OURS))
_ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

Message = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What to run, and how."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    run_id: str
    root: str
    wait: float = 2.0
    """Seconds in which what the command left running is waited for."""
    ends_tree: bool = False
    """A signal that ends the command ends everything that it started, too."""
    writable: tuple[str, ...] | None = None
    """The only directories below which it may write; None for no such limit."""


@dataclass(slots=True)
class RunEnding:
    """How a run ended, as its caller hears of it."""

    exit_code: int = SUPERVISOR_DIED
    report: Message | None = None
    refused: str = ""
    """Why it could not begin; nothing was run."""
    problem: str = ""
    """Why the command could not be executed."""

    @property
    def has_broken_off(self) -> bool:
        """Whether the supervisor died, or may have left something that it could not record."""
        if self.report is None:
            return not self.refused and not self.problem
        return not self.report.get("complete") and not self.report.get("running")


class _QuestionInterrupted(Exception):
    """A signal came that ends the command, while a person was asked about it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _interrupt_question(number: int, _: object) -> None:
    raise _QuestionInterrupted(number)


class RunCaller:
    """The process that was started: it passes signals on, asks the person, and waits."""

    def __init__(self, answer: Callable[[Message], Message], *, ends_tree: bool = False) -> None:
        self._answer, self._ends_tree = answer, ends_tree
        self._supervisor = self._command = 0
        self._has_ended = False
        """The command has; what it left running is waited for."""
        self._early = list[int]()

    def take_signals(self) -> Mapping[int, Any]:
        """Take signals over, before there is anything that they could hit alone; return who had them."""
        return {number: signal.signal(number, self._pass_on) for number in (*_FORWARDED, *_FROM_THE_TERMINAL)}

    def wait_for_ending(self, connection: socket.socket, supervisor: int) -> RunEnding:
        ending, self._supervisor = RunEnding(), supervisor
        with connection.makefile("rb") as lines:
            for line in lines:
                message = cast("Message", json.loads(line))
                if "ask" in message:
                    send_message(connection, self._ask_person(message["ask"]))
                elif self._handle(message, ending):
                    break
        if ending.has_broken_off:
            with suppress(OSError):
                os.waitpid(supervisor, 0)  # it ends now; what it did not record can be recorded only after that
        return ending

    def set_command(self, pid: int) -> None:
        """Take the command to which signals are passed on, those that came before it too."""
        self._command = pid
        for number in self._early:
            self._pass_on(number, None)

    def _ask_person(self, question: Message) -> Message:
        """Ask; to interrupt the question is to say no."""
        before: dict[int, Any] = {number: signal.signal(number, _interrupt_question) for number in _ENDING}
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_DFL)  # the command waits, and cannot stop now
        try:
            return self._answer(question)
        except _QuestionInterrupted as interrupted:
            self._pass_on(interrupted.number, None)
            return {"answer": False, "note": "interrupted"}
        finally:
            give_back_signals(before)

    def stop_with_command(self) -> None:
        """Stop, so that the shell sees its job stopped; not when the signal had stopped us too, and we were continued together."""
        if _is_stopped(self._command):
            os.kill(os.getpid(), signal.SIGSTOP)

    def _handle(self, message: Message, ending: RunEnding) -> bool:
        if "pid" in message:
            self.set_command(int(message["pid"]))
        elif "ended" in message:
            self._has_ended = True
        elif "stopped" in message:
            self.stop_with_command()
        elif "refused" in message:
            ending.refused = str(message["refused"])
            return True
        elif "failed" in message:
            ending.exit_code, ending.problem = int(message["exit_code"]), str(message["failed"])
            return True
        elif "done" in message:
            ending.exit_code, ending.report = int(message["exit_code"]), message["done"]
            ending.problem = str(message.get("problem", ""))
            return True
        return False

    def _pass_on(self, number: int, _: object) -> None:
        if not self._command:
            self._early.append(number)
            return
        if not self._has_ended:
            is_sent = number in _FROM_THE_TERMINAL and _is_in_foreground()  # the terminal sends to the whole group
            try:
                os.kill(self._command, 0 if is_sent else number)
            except ProcessLookupError:
                self._has_ended = True
            except OSError:
                return
        if self._supervisor and number in _ENDING and (self._has_ended or self._ends_tree):
            with suppress(OSError):  # so that it waits no longer
                os.kill(self._supervisor, signal.SIGTERM if self._ends_tree else signal.SIGINT)


def occupy_closed_streams() -> None:
    """Let nothing of ours get the number of a stream that is closed; the command still finds it closed."""
    while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= _LAST_STREAM:
        pass
    os.close(fd)


def give_back_signals(before: Mapping[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as facts:
            return facts.read().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _is_in_foreground() -> bool:
    try:
        fd = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


def send_message(connection: socket.socket, message: Message) -> bool:
    try:
        connection.sendall(json.dumps(message).encode("ascii") + b"\n")
    except OSError:
        return False
    return True


def run_plainly(line: CommandLine) -> RunEnding:
    """Run a command without capture, and return how it ended; signals are passed on."""
    import subprocess

    ending = RunEnding()
    caller = RunCaller(lambda _: {})
    before = caller.take_signals()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        confine = partial(confine_writes, line.writable) if line.writable is not None else None
        # The handlers of Python end with it, so that the command has the usual ones.
        with subprocess.Popen(line.argv, env=dict(line.environment), preexec_fn=confine) as command:  # noqa: S603, PLW1509 - there is one thread
            caller.set_command(command.pid)
            code = _wait_for_end(command.pid, caller)
            command.returncode = code
        ending.exit_code = SIGNALLED - code if code < 0 else code
    except (OSError, ValueError) as error:
        ending.exit_code, ending.problem = explain_failed_start(line, error)
    finally:
        give_back_signals(before)
    return ending


def _wait_for_end(pid: int, caller: RunCaller) -> int:
    while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
        caller.stop_with_command()
    return os.waitstatus_to_exitcode(status)


def explain_failed_start(line: CommandLine, error: OSError | ValueError) -> tuple[int, str]:
    """Return the exit code and the words that shells have for it; a closed directory in PATH does not hide a missing name."""
    name = line.argv[0]
    folders = line.environment.get("PATH", os.defpath).split(os.pathsep)
    if isinstance(error, ValueError):  # no name, or one that no file can have
        return NOT_FOUND, f"{name!r}: not found"
    is_somewhere = os.path.dirname(name) or any(os.path.exists(os.path.join(folder, name)) for folder in folders)
    if isinstance(error, FileNotFoundError) or not is_somewhere:
        return NOT_FOUND, f"{name}: not found"
    return NOT_EXECUTABLE, f"{name}: {error.strerror}"

"""Runs a command under capture: three processes, so that neither its streams nor its terminal notice.

caller ── supervisor ── command      The caller is what was started, and has the terminal and the exit code.
                                     The supervisor has a session of its own, hears of the calls, and records;
                                     it goes on until the last process of the tree has ended.
                                     The command is in the group and the session of the caller.
"""

import ctypes
import errno
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NoReturn, Protocol

from surehold.capture.caller import (
    NOT_EXECUTABLE,
    SIGNALLED,
    SUPERVISOR_DIED,
    CommandLine,
    Message,
    RunCaller,
    RunEnding,
    explain_failed_start,
    give_back_signals,
    send_message,
)
from surehold.capture.filter import install_filter, receive_descriptor
from surehold.capture.joined import JOINED_VARIABLE, spell_run
from surehold.capture.landlock import confine_writes
from surehold.capture.mounts import find_other_places
from surehold.capture.notices import Listener, hear_trial_call, make_trial_call
from surehold.capture.own_history import OwnHistory
from surehold.capture.places import PathFinder
from surehold.capture.supervisor import DeletionGuard, Supervisor

if TYPE_CHECKING:
    from surehold.capture.kept.keeper import Keeper

_PR_SET_CHILD_SUBREAPER = 36
_WATCHED_ALREADY = (
    "another program watches the calls of this process already, as another `surehold run` or a sandbox does"
)
_ACCESS_MODE = 3
_GARBAGE_OBJECTS = 200_000
_MAX_POLL_SECONDS = 60.0
_ENDING_POLL_SECONDS = 0.05
_KILLED_SECONDS = 10.0
"""How long a killed process is waited for: the kernel may be busy on its behalf."""


class RunBook(Protocol):
    """What the supervisor asks of those who keep and record; used in the supervisor's process alone."""

    @property
    def history_directory(self) -> str:
        """Where the history is kept."""
        ...

    def covers(self, path: bytes) -> bool:
        """Tell whether a path is to be kept."""
        ...

    def open_keeper(self) -> "Keeper":
        """Begin the record, at the first call that changes something."""
        ...

    def make_guard(self, ask: Callable[[Message], Message]) -> DeletionGuard | None:
        """Return who decides about large removals, if anyone does."""
        ...

    def conclude(self, exit_code: int, notes: Sequence[tuple[bytes, str]], running: Sequence[str]) -> Message:
        """Record what changed, and return the report; what still runs is named, and comes with a later call."""
        ...


def run_captured(
    command: CommandLine, make_book: Callable[[], RunBook], answer: Callable[[Message], Message]
) -> RunEnding:
    """Run a command, and return when it has ended and what it did is recorded."""
    ours, theirs = socket.socketpair()
    caller = RunCaller(answer, ends_tree=command.ends_tree)
    before = caller.take_signals()
    supervisor = os.fork()
    if supervisor == 0:
        give_back_signals(before)
        ours.close()
        _leave(lambda: _RunSupervisor(command, make_book, theirs).run())
    theirs.close()
    try:
        return caller.wait_for_ending(ours, supervisor)
    finally:
        give_back_signals(before)
        ours.close()


def _leave(work: Callable[[], None]) -> NoReturn:
    """End this forked process after its work, whatever happens, without running what its parent had planned."""
    try:
        work()
    except BaseException:  # noqa: BLE001 - there is no caller above a forked process
        import traceback

        with suppress(Exception):
            traceback.print_exc()
        os._exit(3)
    os._exit(0)


class _RunSupervisor:
    """The process that hears of the calls and records what they did."""

    def __init__(self, command: CommandLine, make_book: Callable[[], RunBook], caller: socket.socket) -> None:
        self._line, self._make_book, self._caller = command, make_book, caller
        self._answers: IO[bytes] = caller.makefile("rb")
        self._pid = 0
        self._exit_code: int | None = None
        self._problem = ""
        self._hurried = False
        """A person does not want to wait for what was left running."""
        self._end_at = math.inf
        """When what is left of the tree is killed, after it was told to end."""
        self._told = False
        """The caller has its answer, and what still runs is recorded without it."""

    def run(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        gc.freeze()
        gc.set_threshold(_GARBAGE_OBJECTS)  # what is kept has no cycles, and there may be very much of it
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            self._caller.close()
            _become_command(self._line, theirs)
        theirs.close()
        _lift_file_limit()
        listener = receive_descriptor(ours)
        os.setsid()
        self._let_go_of_streams({self._caller.fileno(), ours.fileno(), listener})
        refused = ours.recv(4096).decode("utf-8", "replace") if listener < 0 else hear_trial_call(listener)
        if refused:
            self._tell({"refused": refused})
            return
        book = self._make_book()
        os.chdir(f"/proc/{os.getpid()}")  # what the command calls `/proc/self/cwd` must not lead us into the tree
        guard = book.make_guard(self._ask)
        finder = PathFinder(find_other_places([os.fsencode(self._line.root)]))
        supervisor = Supervisor(Listener(listener), book.covers, book.open_keeper, guard, finder)
        supervisor.history = OwnHistory(os.fsencode(book.history_directory))
        self._tell({"pid": self._pid})
        try:
            self._keep_inherited(supervisor)
            if resource.getrlimit(resource.RLIMIT_CORE)[0]:
                supervisor.dumps.begin()
            supervisor.end_turns()
            with suppress(ConnectionError):  # a signal ended it already
                ours.sendall(b"g")
            self._serve(supervisor, listener, ours, book)
        except Exception as error:
            code = SUPERVISOR_DIED if self._exit_code is None else self._exit_code
            self._tell({"failed": f"{type(error).__name__}: {error}", "exit_code": code})
            raise

    def _keep_inherited(self, supervisor: Supervisor) -> None:
        """Keep the files that the command is given open for writing, as by `>> file` of the shell that started it."""
        for name in os.listdir(f"/proc/{self._pid}/fd"):
            with suppress(OSError, StopIteration):
                with open(f"/proc/{self._pid}/fdinfo/{name}", encoding="ascii") as facts:
                    flags = next(int(row.split()[1], 8) for row in facts if row.startswith("flags:"))
                if flags & _ACCESS_MODE != os.O_RDONLY:
                    supervisor.keep_descriptor(self._pid, int(name))

    def _serve(self, supervisor: Supervisor, listener: int, command: socket.socket, book: RunBook) -> None:
        """Answer calls until the last process of the tree has ended."""
        wake_read, poll = self._take_signals(), select.poll()
        for fd in (listener, wake_read, command.fileno()):
            poll.register(fd, select.POLLIN)
        self._reap()
        deadline = math.inf
        while True:
            self._answer_calls(supervisor, poll, [(listener, select.POLLIN)])
            if self._exit_code is not None and deadline == math.inf:
                deadline = time.monotonic() + self._line.wait
                self._tell({"ended": self._exit_code})
            deadline = 0.0 if self._hurried and self._exit_code is not None else deadline
            left = _ENDING_POLL_SECONDS if self._is_ending() else deadline - time.monotonic()
            if left <= 0 and not self._told:
                self._conclude(supervisor, book, running=_names_below(os.getpid()))
            events = dict(poll.poll(1000 * (_MAX_POLL_SECONDS if self._told else min(max(left, 0), _MAX_POLL_SECONDS))))
            if wake_read in events:
                with suppress(BlockingIOError):
                    os.read(wake_read, 4096)
                self._reap()
            if command.fileno() in events and self._hear_command(command):
                poll.unregister(command.fileno())
            if events.get(listener, 0) & select.POLLIN:
                supervisor.answer_next()
            elif listener in events:
                break
        while self._exit_code is None:
            self._wait_for(os.waitpid(-1, 0))
        self._conclude(supervisor, book, running=())

    def _answer_calls(self, supervisor: Supervisor, poll: select.poll, only_a_call: list[tuple[int, int]]) -> None:
        """Answer calls as long as nothing else happens: this is where a run spends its time."""
        while self._exit_code is None and poll.poll() == only_a_call:
            supervisor.answer_next()

    def _take_signals(self) -> int:
        """Let signals wake the loop; return the descriptor that can be read then."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        signal.signal(signal.SIGINT, self._hurry)
        signal.signal(signal.SIGTERM, self._end_tree)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        return wake_read

    def _conclude(self, supervisor: Supervisor, book: RunBook, *, running: Sequence[str]) -> None:
        code = self._exit_code or 0
        supervisor.dumps.end()
        report = book.conclude(code, () if supervisor.has_keeper else supervisor.notes, running)
        if not self._told:
            self._told = True
            self._tell({"done": report, "exit_code": code, "problem": self._problem})

    def _hurry(self, _: int, __: object) -> None:
        self._hurried = True

    def _end_tree(self, _: int, __: object) -> None:
        """Tell everything below to end; what has not in a while is killed."""
        if self._end_at == math.inf:
            self._end_at = time.monotonic() + self._line.wait
            _signal_below(os.getpid(), signal.SIGTERM)

    def _is_ending(self) -> bool:
        """Tell whether the tree was told to end, and is still waited for."""
        late = time.monotonic() - self._end_at
        if late >= 0:
            _signal_below(os.getpid(), signal.SIGKILL)
        return self._end_at < math.inf and late < _KILLED_SECONDS

    def _hear_command(self, command: socket.socket) -> bool:
        """Read why the command could not be executed; tell whether there is nothing more to hear."""
        said = b""
        with suppress(ConnectionError):  # a signal ended it before it began
            said = command.recv(4096)
        if said:
            self._problem = said.decode("utf-8", "replace")
        return not said

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED)) != (0, 0):
                self._wait_for(found)

    def _wait_for(self, found: tuple[int, int]) -> None:
        pid, status = found
        if pid != self._pid:
            return
        if os.WIFSTOPPED(status):
            self._tell({"stopped": os.WSTOPSIG(status)})
        elif os.WIFSIGNALED(status):
            self._exit_code = SIGNALLED + os.WTERMSIG(status)
        else:
            self._exit_code = os.WEXITSTATUS(status)

    def _ask(self, question: Message) -> Message:
        """Ask the caller, and wait for its answer; without one it is no."""
        line = self._answers.readline() if self._tell({"ask": question}) else b""
        return json.loads(line) if line else {}

    def _tell(self, message: Message) -> bool:
        return send_message(self._caller, message)

    def _let_go_of_streams(self, needed: set[int]) -> None:
        """Hold nothing open that the command may want to see closed."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nowhere, fd)
        for name in os.listdir("/proc/self/fd"):
            fd = int(name)
            if fd > 2 and fd not in needed:  # noqa: PLR2004
                with suppress(OSError):
                    os.close(fd)


def _lift_file_limit() -> None:
    """Let the history be as large as it must be; the command keeps the limit that it was given."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    for limit in (resource.RLIM_INFINITY, hard):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return


def _ignore_signal(_: int, __: object) -> None:
    """Do nothing: the signal wakes the loop, which is all that it is for."""


def _become_command(line: CommandLine, supervisor: socket.socket) -> NoReturn:
    """Put this process under the filter, and make it the command."""
    code = NOT_EXECUTABLE
    try:
        for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):  # Python ignores them, programs do not expect that
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        try:
            if line.writable is not None:
                confine_writes(line.writable)
            install_filter(supervisor)
            make_trial_call()
        except OSError as error:
            why = _WATCHED_ALREADY if error.errno == errno.EBUSY else os.strerror(error.errno or 0)
            supervisor.sendall(b"x" + why.encode())
            os._exit(NOT_EXECUTABLE)
        if supervisor.recv(1) != b"g":
            os._exit(SUPERVISOR_DIED)
        try:
            joined = {JOINED_VARIABLE: spell_run(line.run_id, os.getppid(), line.root)}
            os.execvpe(line.argv[0], line.argv, {**line.environment, **joined})  # noqa: S606 - that is the purpose
        except (OSError, ValueError) as error:
            code, problem = explain_failed_start(line, error)
            supervisor.sendall(problem.encode("utf-8", "replace"))
    except BaseException:  # noqa: BLE001 - nothing of Python may go on in here
        os._exit(NOT_EXECUTABLE)
    os._exit(code)


def _names_below(pid: int) -> list[str]:
    """Name the processes below one, each with its number."""
    found = list[str]()
    for child in _pids_below(pid):
        with suppress(OSError), open(f"/proc/{child}/comm", errors="replace") as name:
            found.append(f"{name.read().strip()} ({child})")
    return found


def _signal_below(pid: int, number: signal.Signals) -> None:
    for child in _pids_below(pid):
        for one in (number, signal.SIGCONT):  # a stopped one hears nothing else
            with suppress(OSError):
                os.kill(child, one)


def _pids_below(pid: int) -> list[int]:
    found, pending = list[int](), [pid]
    while pending:
        one = pending.pop()
        children = list[int]()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as row:
                    children += [int(word) for word in row.read().split()]
        found += children
        pending += children
    return found

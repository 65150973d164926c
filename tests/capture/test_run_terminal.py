"""`surehold run` at a terminal: who is asked, and where signals go."""

import hashlib
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold.capture.caller import RunCaller, give_back_signals, send_message
from surehold.capture.filter import can_listen
from surehold.front.shared.stdio_lines import write_all

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

QUESTION = b"Allow this, and all further deletions? [y/N]"


def run_at_terminal(desk: RunDesk, script: str, answer: bytes) -> tuple[int, bytes]:
    """Run a script with standard input from a file, at a terminal where a person answers the question."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(desk.root)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execv(sys.executable, [*desk.words(), "bash", "-c", script])
        finally:
            os._exit(99)
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the last process has closed it
            break
        shown += piece
        if QUESTION in shown and answer:
            os.write(terminal, answer)
            answer = b""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def talk_at_terminal(words: list[str], talk: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """Run a program at a terminal of its own; whenever it has shown one text, type the other."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.execv(words[0], words)
        finally:
            os._exit(99)
    shown, seen = b"", 0
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the last process has closed it
            break
        shown += piece
        while talk and (found := shown.find(talk[0][0], seen)) >= 0:
            seen = found + len(talk[0][0])
            os.write(terminal, talk.pop(0)[1])
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def make_files(root: Path) -> None:
    for number in range(120):
        (root / f"f{number:03}").write_text("x")


@requirement("run:guard:refuses")
@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 21), (b"y\n", 0), (b"\x03", 21)], ids=["no", "yes", "interrupt"])
def test_at_a_terminal_a_person_is_asked_before_the_hundredth_deletion(desk: RunDesk, answer: bytes, left: int) -> None:
    make_files(desk.root)

    _, shown = run_at_terminal(desk, "rm f???", answer)

    assert b"99 paths were deleted; next is `f099`" in shown
    assert b"  f098" in shown
    assert len(list(desk.root.glob("f???"))) == left


@requirement("run:streams:unchanged")
def test_a_signal_that_comes_before_the_command_has_begun_reaches_it() -> None:
    caller = RunCaller(lambda _: {})
    before = caller.take_signals()
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        command = subprocess.Popen(["sleep", "600"])
        caller.set_command(command.pid)
        assert command.wait() == -signal.SIGUSR1
    finally:
        give_back_signals(before)


def hear(caller: RunCaller, *messages: dict[str, object]) -> None:
    """Let a caller hear what its supervisor says, until the end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for message in (*messages, {"refused": "the end"}):
            send_message(theirs, message)
        caller.wait_for_ending(ours, 0)


@requirement("run:streams:unchanged")
@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "continued"])
def test_a_run_stops_with_its_command_but_not_after_both_were_continued(
    monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    command = subprocess.Popen(["sleep", "600"])
    if is_stopped:
        command.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, command.pid, os.WSTOPPED | os.WNOWAIT)
    sent: list[tuple[int, int]] = []

    def send(pid: int, number: int) -> None:
        sent.append((pid, number))

    monkeypatch.setattr(os, "kill", send)

    hear(RunCaller(lambda _: {}), {"pid": command.pid}, {"stopped": signal.SIGTTIN})

    monkeypatch.undo()
    command.kill()
    command.wait()
    assert sent == ([(os.getpid(), signal.SIGSTOP)] if is_stopped else [])


@requirement("run:guard:refuses")
def test_a_question_at_the_terminal_can_be_stopped_as_any_program() -> None:
    found: list[object] = []

    def answer(_: dict[str, object]) -> dict[str, object]:
        found.append(signal.getsignal(signal.SIGTSTP))
        return {"answer": False}

    caller = RunCaller(answer)
    before = caller.take_signals()
    try:
        hear(caller, {"ask": {}})
        assert found == [signal.SIG_DFL]
        assert signal.getsignal(signal.SIGTSTP) not in {signal.SIG_DFL, signal.SIG_IGN}
    finally:
        give_back_signals(before)


@requirement("run:guard:refuses")
def test_what_is_typed_for_another_program_is_no_answer_to_the_question(desk: RunDesk) -> None:
    """A job in the background waits for its answer until it is brought to the front."""
    make_files(desk.root)
    words = [*desk.words("--guard", "2"), "rm", "f000", "f001"]
    host = f"""
import os, signal, subprocess
job = subprocess.Popen({words}, cwd={str(desk.root)!r}, process_group=0)
print("the host read", input(), flush=True)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, job.pid)
os._exit(os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED)[1]))
"""

    code, shown = talk_at_terminal(
        [sys.executable, "-c", host], [(QUESTION, b"hello\n"), (b"the host read hello", b"y\n")]
    )

    assert (code, len(list(desk.root.glob("f???")))) == (0, 118)
    assert b"surehold: rm f000 f001" in shown
    assert b"1 path was deleted; next is `f001`" in shown


@requirement("run:streams:unchanged")
@pytest.mark.parametrize("is_nested", [False, True], ids=["captured", "nested"])
def test_a_job_that_is_stopped_at_the_terminal_goes_on_in_the_front(desk: RunDesk, is_nested: bool) -> None:
    words = [
        *desk.words("--guard", "0"),
        *(desk.words() if is_nested else ()),
        "sh",
        "-c",
        "rm a.txt; echo begun; exec cat",
    ]
    shell = f"""
import os, signal, subprocess
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen({words}, cwd={str(desk.root)!r}, process_group=0, preexec_fn=lambda: signal.signal(signal.SIGTTOU, signal.SIG_DFL))
os.tcsetpgrp(0, job.pid)
assert os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED)[1])
os.tcsetpgrp(0, os.getpgrp())
print("it was stopped", flush=True)
print("the shell has it", input(), flush=True)
os.tcsetpgrp(0, job.pid)
os.killpg(job.pid, signal.SIGCONT)
print("it is in the front", flush=True)
os._exit(os.waitstatus_to_exitcode(os.waitpid(job.pid, 0)[1]))
"""

    code, shown = talk_at_terminal(
        [sys.executable, "-c", shell],
        [
            (b"begun", b"\x1a"),
            (b"it was stopped", b"hello\n"),
            (b"has it hello", b""),
            (b"in the front", b"typed\n\x04"),
        ],
    )

    assert (code, shown.count(b"typed")) == (0, 2), "as it was typed, and as the command said it"
    assert desk.read_report()["deleted"] == 1


@requirement("run:streams:unchanged")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGABRT, signal.SIGPROF, signal.SIGRTMIN + 1]
)
def test_a_signal_that_is_sent_to_the_run_ends_the_command(desk: RunDesk, number: int) -> None:
    (here,) = desk.make_gates("here")
    program = desk.start(f"rm a.txt; echo > {here}; exec sleep 600")
    here.read_bytes()

    os.kill(program.pid, number)

    assert program.wait() == 128 + number
    assert desk.read_report()["deleted"] == 1


@requirement("run:streams:unchanged")
def test_a_command_writes_to_a_non_blocking_output_as_without_us(desk: RunDesk) -> None:
    receive, send = os.pipe()
    os.set_blocking(send, False)
    with subprocess.Popen([*desk.words(), "bash", "-c", "echo said; rm a.txt"], cwd=desk.root, stdout=send) as program:
        os.close(send)
        with os.fdopen(receive, "rb") as output:
            assert output.read() == b"said\n"
    assert program.returncode == 0


@requirement("front:mcp:stdio")
def test_an_answer_is_written_whole_to_a_non_blocking_pipe() -> None:
    receive, send = os.pipe()
    os.set_blocking(send, False)
    data = bytes(range(256)) * 4096  # more than a pipe holds
    reader = subprocess.Popen(["sha256sum"], stdin=receive, stdout=subprocess.PIPE)
    os.close(receive)
    write_all(send, data)
    os.close(send)
    assert reader.communicate()[0].split()[0].decode() == hashlib.sha256(data).hexdigest()

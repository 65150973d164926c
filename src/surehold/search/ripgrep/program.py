"""Runs a program with its output in memory and a time limit; the process is always ended."""

import os
import select
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from surehold.errors import DiskFailed
from surehold.search.deadline import Deadline

_POLL_SECONDS = 0.025


@dataclass(frozen=True, kw_only=True)
class CompletedRun:
    """The output of a program."""

    code: int
    output: bytes
    errors: str
    overflowed: bool
    timed_out: bool = False


def run_program(
    argv: Sequence[str],
    *,
    deadline: Deadline,
    directory: str | None = None,
    stdin: int | None = None,
    files: tuple[int, ...] = (),
    max_output: int,
) -> CompletedRun:
    """Run a program; kill it when time is up, when the call is cancelled, or when it writes too much."""
    with ExitStack() as stack:
        output, errors = stack.enter_context(memory_file()), stack.enter_context(memory_file())
        try:
            child = subprocess.Popen(  # noqa: S603 - no shell, and every argument is an option or follows `--`
                argv,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output,
                stderr=errors,
                cwd=directory,
                env={"LC_ALL": "C"},
                pass_fds=files,
            )
        except OSError as error:
            raise DiskFailed(
                f"Could not start the search program: {error.strerror}.", reason="search_failed"
            ) from error
        try:
            timed_out = not _wait_for_exit(child, output, deadline, max_output)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        return CompletedRun(
            code=child.returncode,
            output=_read_content(output)[:max_output],
            errors=_read_content(errors).decode("utf-8", "backslashreplace"),
            overflowed=os.fstat(output).st_size > max_output,
            timed_out=timed_out,
        )


def _wait_for_exit(child: "subprocess.Popen[bytes]", output: int, deadline: Deadline, max_output: int) -> bool:
    """Wait for the end; tell whether there was time for it."""
    with _watch_exit(child) as has_ended:
        while not has_ended():
            size = os.fstat(output).st_size
            if size > max_output:
                break
            if deadline.seconds_left < 0:
                return False
            deadline.check(size // 64, None, "matches found")
    return True


@contextmanager
def _watch_exit(child: "subprocess.Popen[bytes]") -> Generator["_ExitCheck"]:
    """Yield what waits a moment and tells whether the child has ended; it notices the end at once."""
    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        yield _ExitCheck(child, None)
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        yield _ExitCheck(child, poll)
    finally:
        os.close(fd)


@dataclass(frozen=True)
class _ExitCheck:
    child: "subprocess.Popen[bytes]"
    poll: "select.poll | None"

    def __call__(self) -> bool:
        if self.poll is not None and not self.poll.poll(_POLL_SECONDS * 1000):
            return False
        try:
            self.child.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def memory_file(data: bytes = b"") -> Generator[int]:
    """Yield an unnamed file in memory, or in the temporary directory if the system has none in memory."""
    with ExitStack() as stack:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("surehold")
            stack.callback(os.close, fd)
        else:
            fd = stack.enter_context(tempfile.TemporaryFile()).fileno()
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd


def _read_content(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    parts = list[bytes]()
    at = 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)

"""Run another program to its end, with its output in memory and its time limited, and leave nothing behind."""

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
    """What a run of ripgrep left."""

    code: int
    output: bytes
    errors: str
    overflowed: bool
    timed_out: bool = False


def run_program(
    argv: Sequence[str],
    *,
    budget: Deadline,
    directory: str | None = None,
    stdin: int | None = None,
    files: tuple[int, ...] = (),
    max_output: int,
    keeps_part: bool = False,
) -> CompletedRun:
    """Run a program; kill it when time is up, when nobody wants it any more, or when it says too much.

    What it said until time was up is an error, unless a part is worth keeping.
    """
    with ExitStack() as stack:
        output, errors = stack.enter_context(memory_file()), stack.enter_context(memory_file())
        try:
            child = subprocess.Popen(  # noqa: S603 - no shell, and everything but the binary stands behind an option
                argv,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output,
                stderr=errors,
                cwd=directory,
                env={"LC_ALL": "C"},
                pass_fds=files,
            )
        except OSError as error:
            raise DiskFailed(f"The search program does not start: {error.strerror}.", reason="search_failed") from error
        try:
            timed_out = not _wait_for_exit(child, output, budget, max_output, keeps_part=keeps_part)
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


def _wait_for_exit(
    child: "subprocess.Popen[bytes]", output: int, budget: Deadline, max_output: int, *, keeps_part: bool
) -> bool:
    """Wait for the end; tell whether there was time for it."""
    with _watch_exit(child) as ended:
        while not ended():
            size = os.fstat(output).st_size
            if size > max_output:
                break
            if budget.seconds_left < 0 and keeps_part:
                return False
            if budget.seconds_left < 0:
                budget.raise_timeout(_read_content(output).count(b"\n"), "matches were found so far")
            budget.check(size // 64, None, "matches found")
    return True


@contextmanager
def _watch_exit(child: "subprocess.Popen[bytes]") -> Generator["_ExitCheck"]:
    """Yield something that waits a moment and tells whether the child has ended, without being late."""
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
    """Yield a nameless file in memory, or where there is no such thing, in the temporary directory."""
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

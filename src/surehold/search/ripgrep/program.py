"""Runs ripgrep with its output in memory and a time limit, and translates its error messages."""

import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from surehold.errors import DiskFailed, InvalidPattern, SureholdError
from surehold.search.engine import Deadline
from surehold.search.file_types import unknown_type_error

_SYNTAX = re.compile(r"^error: (.*)$", re.MULTILINE)
_TYPE = re.compile(r"unrecognized file type: (.*)")
_LITERAL = re.compile(r'the literal "(.*)" is not allowed')
_GLOB = re.compile(r"error parsing glob '(.*?)': (.*)")
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed")
_PCRE2 = re.compile(r"PCRE2: error compiling pattern at offset \d+: (.*)")
_PCRE2_STEPS = re.compile(r"PCRE2: error matching: (.*)")
_PCRE2_FEATURES = ("look-around", "backreferences")


def error_from_output(text: str) -> SureholdError | None:
    """Return the error for what ripgrep reports about a pattern; None if it reports something else."""
    if "regex parse error" in text:
        cause = _SYNTAX.search(text)
        return _invalid_regex(cause[1].strip() if cause else "it cannot be parsed")
    if "compiled regex exceeds size limit" in text or "exceeds the limit" in text:
        return _invalid_regex("it is too large when its repetitions are written out")
    if _NO_MEMORY.search(text):
        return _invalid_regex("it needs too much memory for some line")
    if found := _PCRE2.search(text):
        return _invalid_regex(found[1].strip())
    if found := _PCRE2_STEPS.search(text):
        return _slow_regex_error() if "limit exceeded" in found[1] else _invalid_regex(found[1].strip())
    if found := _LITERAL.search(text):
        return InvalidPattern(
            f"The regular expression cannot be used: `{found[1]}` ends a line, and lines are searched one by one.",
            reason="invalid_regex",
            action="Set multiline to match across lines.",
        )
    if found := _TYPE.search(text):
        return unknown_type_error(found[1].strip())
    if found := _GLOB.search(text):
        return InvalidPattern(f"The glob `{found[1]}` cannot be used: {found[2]}.", reason="invalid_glob")
    return None


def _invalid_regex(cause: str) -> InvalidPattern:
    return InvalidPattern(f"The regular expression cannot be used: {cause}.", reason="invalid_regex", cause=cause)


def _slow_regex_error() -> InvalidPattern:
    error = _invalid_regex("it takes too many steps in some line")
    error.action = "Write it without repetitions inside repetitions."
    return error


def needs_look_around(error: InvalidPattern) -> bool:
    """Tell whether an expression is valid except for look-around or backreferences, which PCRE2 knows."""
    return any(word in str(error.details.get("cause", "")) for word in _PCRE2_FEATURES)


_POLL_SECONDS = 0.025
_MAX_MEMORY_BYTES = 1 << 30
_MAX_PROGRAMS = 4
"""How many run at once; further ones wait."""


class _Seats:
    """A seat for each program that may run."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(_MAX_PROGRAMS)
        os.register_at_fork(after_in_child=self._clear)

    def _clear(self) -> None:
        self._free = threading.Semaphore(_MAX_PROGRAMS)

    @contextmanager
    def take(self, deadline: Deadline) -> Generator[bool]:
        """Wait for a seat; yield whether there was time for that."""
        free = self._free
        while not (taken := free.acquire(timeout=_POLL_SECONDS)) and deadline.seconds_left >= 0:
            deadline.check(0, None, "matches found")
        try:
            yield taken
        finally:
            if taken:
                free.release()


_SEATS = _Seats()


@dataclass(frozen=True, kw_only=True)
class CompletedRun:
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
        if not stack.enter_context(_SEATS.take(deadline)):
            return CompletedRun(code=-1, output=b"", errors="", overflowed=False, timed_out=True)
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
            message = f"Could not start the search program: {error.strerror}."
            raise DiskFailed(message, reason="search_failed") from error
        _limit_memory(child.pid)
        try:
            timed_out = not _wait_for_exit(child, _GrowingOutput(output), deadline, max_output)
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


def _limit_memory(pid: int) -> None:
    """Limit the memory of a program that has just begun; an expression may ask for any amount of it."""
    if sys.platform == "linux":
        with suppress(OSError):  # it has ended already
            resource.prlimit(pid, resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


@dataclass
class _GrowingOutput:
    """What a running program has written; only what is new is read to count the matches in it."""

    fd: int
    size: int = 0
    matches: int = 0

    def count_new(self, max_output: int) -> None:
        size = os.fstat(self.fd).st_size
        new = os.pread(self.fd, min(size, max_output) - self.size, self.size) if size > self.size else b""
        is_json = new.startswith(b"{")
        self.matches += new.count(b'{"type":"match"') if is_json else new.count(b"\n") - new.count(b"\n\n")
        self.size = size


def _wait_for_exit(
    child: "subprocess.Popen[bytes]", output: _GrowingOutput, deadline: Deadline, max_output: int
) -> bool:
    """Wait for the end; tell whether there was time for it."""
    with ExitStack() as stack:
        poll = None
        with suppress(AttributeError, OSError):  # with such a descriptor, the end is noticed at once
            fd = os.pidfd_open(child.pid)
            stack.callback(os.close, fd)
            poll = select.poll()
            poll.register(fd, select.POLLIN)
        while not _has_ended(child, poll):
            output.count_new(max_output)
            if output.size > max_output:
                break
            if deadline.seconds_left < 0:
                return False
            deadline.check(output.matches, None, "matches found")
    return True


def _has_ended(child: "subprocess.Popen[bytes]", poll: "select.poll | None") -> bool:
    """Wait a moment, and tell whether the child has ended."""
    if poll is None or poll.poll(_POLL_SECONDS * 1000):
        with suppress(subprocess.TimeoutExpired):
            child.wait(_POLL_SECONDS)
    return child.returncode is not None


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
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        return file.read()

"""What the kernel reports of a call before it happens: who makes it, with which paths; and the answer to it.

Rules:
1. The memory of the process is opened anew for each call: a descriptor kept across `execve` shows the program before.
2. What was read counts only if the call still waits afterwards: else the number of the process may be another's by now.
"""

import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
from contextlib import suppress
from typing import NamedTuple, cast

AT_EMPTY_PATH = 0x1000
_PAGE_BYTES = 4096
_MAX_PATH_BYTES = 4096
_NOTICE = struct.Struct("=QIIiIQ6Q")
OPEN_HOW, _FAMILY = struct.Struct("=QQQ"), struct.Struct("=H")
_AF_UNIX = 1
_SOCKET_NAME_BYTES = 110
_TRIAL_PATH = b"/dev/null/surehold"
_NO_NOTICE = bytes(_NOTICE.size)
_ANSWER = struct.Struct("=QqiI")
_GO_ON = 1
RESOLVE_IN_ROOT = 0x10
BEGINS_BELOW = RESOLVE_IN_ROOT << 32
"""Among the flags of an `open`: its path begins at the given directory, whatever it says."""


def _request(number: int, size: int, direction: int) -> int:
    return direction << 30 | size << 16 | 0x21 << 8 | number


_RECEIVE, _SEND = _request(0, _NOTICE.size, 3), _request(1, _ANSWER.size, 3)
_IS_VALID, _SET_FLAGS = _request(2, 8, 1), _request(4, 8, 1)
_WAKE_IN_TURN = 1


class Unreadable(Exception):
    """The path of a call cannot be read."""


class CallNotice(NamedTuple):
    """One call that waits for its answer."""

    id: int
    pid: int
    number: int
    arch: int
    arguments: tuple[int, ...]

    def signed(self, index: int) -> int:
        """Return an argument that is a descriptor."""
        value = self.arguments[index] & 0xFFFFFFFF
        return value - (1 << 32) if value & 0x80000000 else value


class Listener:
    """The calls of one process tree that are reported."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = bytearray(_NOTICE.size)
        with suppress(OSError):  # a kernel before 6.6: slower, and the same
            fcntl.ioctl(fd, _SET_FLAGS, _WAKE_IN_TURN)

    def receive(self) -> CallNotice | None:
        """Return the next call; None when it is gone again."""
        self._buffer[:] = _NO_NOTICE
        try:
            fcntl.ioctl(self.fd, _RECEIVE, self._buffer)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                return None
            raise
        values = _NOTICE.unpack(self._buffer)
        return CallNotice(values[0], values[1], values[3], values[4], values[6:])

    def still_waits(self, notice: CallNotice) -> bool:
        try:
            fcntl.ioctl(self.fd, _IS_VALID, notice.id.to_bytes(8, sys.byteorder))
        except OSError:
            return False
        return True

    def let_pass(self, notice: CallNotice) -> None:
        try:  # noqa: SIM105 - it costs less, and this is done for every call
            fcntl.ioctl(self.fd, _SEND, _ANSWER.pack(notice.id, 0, 0, _GO_ON))
        except OSError:
            pass  # the process was killed in between

    def refuse(self, notice: CallNotice, code: int) -> None:
        with suppress(OSError):
            fcntl.ioctl(self.fd, _SEND, _ANSWER.pack(notice.id, 0, -code, 0))

    def close(self) -> None:
        os.close(self.fd)


def make_trial_call() -> None:
    """Make a call that is reported, and that always fails: a file has nothing below it."""
    with suppress(OSError):
        os.truncate(_TRIAL_PATH, 0)


def hear_trial_call(fd: int) -> str:
    """Do with the trial call of a process what is done with each later one; return why that is impossible here.

    A container may allow the filter, and forbid what its listener needs.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll()[0][1] & select.POLLIN:
        return ""  # a signal ended it already
    try:
        listener = Listener(fd)
        if (notice := listener.receive()) is None:
            return ""
        with suppress(Unreadable):
            if CallerMemory().read_path(notice.pid, notice.arguments[0]) == _TRIAL_PATH and listener.still_waits(
                notice
            ):
                fcntl.ioctl(fd, _SEND, _ANSWER.pack(notice.id, 0, 0, _GO_ON))
                return ""
    except OSError as error:
        return "" if error.errno == errno.ENOENT else f"the kernel does not let calls be heard ({error.strerror})"
    return "the memory of other processes cannot be read, in which the paths of their calls are"


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class CallerMemory:
    """Reads what a pointer of another process points to."""

    def __init__(self) -> None:
        self._read = getattr(ctypes.CDLL(None, use_errno=True), "process_vm_readv", None)
        self._buffer = ctypes.create_string_buffer(_PAGE_BYTES)
        self._here, self._there = _Piece(ctypes.addressof(self._buffer), 0), _Piece(0, 0)
        self._here_at, self._there_at = ctypes.byref(self._here), ctypes.byref(self._there)

    def read_bytes(self, pid: int, pointer: int, count: int) -> bytes:
        """Return bytes that do not cross a page more than `count` says; fewer where the memory ends."""
        if self._read is not None and count <= _PAGE_BYTES:
            self._here.length = self._there.length = count
            self._there.base = pointer
            got = self._read(pid, self._here_at, 1, self._there_at, 1, 0)
            if got > 0:
                return cast("bytes", self._buffer[:got])
        try:
            fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(fd, count, pointer)
            finally:
                os.close(fd)
        except (OSError, OverflowError) as error:
            raise Unreadable from error

    def read_path(self, pid: int, pointer: int) -> bytes:
        """Return the string at a pointer."""
        if not pointer:
            return b""
        # Short first: nearly every path is, and a page is copied and searched otherwise.
        found = self.read_bytes(pid, pointer, min(256, _PAGE_BYTES - pointer % _PAGE_BYTES))
        if (end := found.find(b"\0")) >= 0:
            return found[:end]
        if not found:
            raise Unreadable
        while len(found) < _MAX_PATH_BYTES:
            at = pointer + len(found)
            piece = self.read_bytes(pid, at, min(256, _PAGE_BYTES - at % _PAGE_BYTES))
            if not piece:
                raise Unreadable
            end = piece.find(b"\0")
            if end >= 0:
                return found + piece[:end]
            found += piece
        raise Unreadable  # the kernel refuses it as well

    def read_open_flags(self, pid: int, pointer: int) -> int:
        """Return the flags of `openat2`, and above them those for its path."""
        raw = self.read_bytes(pid, pointer, OPEN_HOW.size)
        if len(raw) < OPEN_HOW.size:
            return os.O_RDWR
        flags, _, resolve = OPEN_HOW.unpack(raw)
        return flags | resolve << 32

    def read_socket_name(self, pid: int, pointer: int, length: int) -> bytes:
        """Return the path that a socket is bound to; nothing for other addresses."""
        length = min(length, _SOCKET_NAME_BYTES)
        raw = self.read_bytes(pid, pointer, length) if length > _FAMILY.size else b""
        if len(raw) <= _FAMILY.size or _FAMILY.unpack_from(raw)[0] != _AF_UNIX:
            return b""
        return raw[_FAMILY.size :].split(b"\0")[0]

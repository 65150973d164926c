"""Lets running commands change one path in turns: who has the turn keeps what is there, and has it until its call has happened.

Rules:
1. A turn is one byte of a file that all commands of a workspace share. It ends with the process that has it.
2. A call has happened when what it changes is different, or when its thread was seen elsewhere. A thread that was let go on
   may not have run yet, so that it runs says nothing.
3. What takes too long is let go, and its path is named.
"""

import fcntl
import hashlib
import os
import struct
import time
from contextlib import suppress

from surehold.capture.notices import CallNotice

TURN_SECONDS = 10.0
"""How long a call waits for its turn; whoever has it waits for the kernel alone."""
_CALL_SECONDS = 2.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.00005, 0.002
UNTOLD = "another command that was running may have changed it at the same moment; what that one wrote may be missing"


class PathTurns:
    """The paths that the call has the turn of which is being answered."""

    def __init__(self, file: str) -> None:
        self._file, self._fd = file, -1
        self._held: list[tuple[bytes, bytes]] = []
        self._missed: list[bytes] = []
        self._end = 0.0

    @property
    def has_any(self) -> bool:
        return bool(self._held or self._missed)

    def take(self, path: bytes, coming: bytes) -> None:
        """Wait for the turn of a path that is about to change, perhaps to what has another path now."""
        if not self.has_any:
            self._end = time.monotonic() + TURN_SECONDS
        try:
            if self._fd < 0:
                self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            has_turn = self._wait_for(_byte_of(path))
        except OSError:  # nothing can be locked there
            has_turn = False
        if has_turn:
            self._held.append((path, coming))
        else:
            self._missed.append(path)

    def _wait_for(self, byte: int) -> bool:
        pause = _FIRST_PAUSE_SECONDS
        while not _lock_byte(self._fd, byte, fcntl.F_WRLCK):
            if time.monotonic() >= self._end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return True

    def watch(self, notice: CallNotice) -> "CallWatch | None":
        """Return what tells when a call has happened, before it is let go on; None if no turn is held for it."""
        return CallWatch(notice, *self._held[0]) if self._held else None

    def release(self, watch: "CallWatch | None" = None) -> list[bytes]:
        """Let the next one have the turn, once the call has happened; return the paths that were not ours alone."""
        if watch is not None and not watch.wait():
            self._missed += [path for path, _ in self._held]
        for path, _ in self._held:
            with suppress(OSError):
                _lock_byte(self._fd, _byte_of(path), fcntl.F_UNLCK)
        missed = self._missed
        self._held, self._missed = [], []
        return missed


class CallWatch:
    """Tells whether a call has happened that was let go on."""

    def __init__(self, notice: CallNotice, path: bytes, coming: bytes) -> None:
        self._thread, self._path, self._is_source = notice.pid, coming or path, bool(coming)
        self._before = self._look()
        self._position = self._read("syscall")

    def wait(self) -> bool:
        """Wait until the call has happened; False if that was not seen in time."""
        end, pause = time.monotonic() + _CALL_SECONDS, _FIRST_PAUSE_SECONDS
        while not self.has_happened:
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return True

    @property
    def has_happened(self) -> bool:
        return self._look() != self._before or self._is_elsewhere

    def _look(self) -> tuple[int, ...]:
        try:
            status = os.lstat(self._path)
        except OSError:
            return ()
        place = status.st_dev, status.st_ino
        return place if self._is_source else (*place, status.st_ctime_ns, status.st_size)

    @property
    def _is_elsewhere(self) -> bool:
        """Tell whether the thread waits for something else by now, the answer to its next call for example, or is gone."""
        position = self._read("syscall")
        if position != self._position:
            return position != b"running\n"
        return bool(position) and self._read("stat").rpartition(b") ")[2][:1] == b"S"

    def _read(self, name: str) -> bytes:
        """Return what the kernel says of the thread; nothing if it is gone or may not be looked into."""
        with suppress(OSError):
            fd = os.open(f"/proc/{self._thread}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.read(fd, 512)
            finally:
                os.close(fd)
        return b""


def _byte_of(path: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(path, digest_size=8).digest(), "big") >> 2


def _lock_byte(fd: int, byte: int, kind: int) -> bool:
    """Lock or unlock a byte of an open file; False if another one has it."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))
    except BlockingIOError:
        return False
    return True

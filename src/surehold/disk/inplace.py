"""New bytes in the same file, for files that must keep their inode.

Rules:
1. The bytes are compared, read and written through one descriptor, so they belong to one file.
2. The old bytes stay in memory until the whole call is through.
3. Bytes beyond the old end are written first: when the disk is full, the old content is still whole.
4. The file itself is locked from the comparison to the last byte: its other names may lie in directories that somebody
   else has locked.
"""

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass

from surehold.disk.base import Replace
from surehold.disk.content import READING, hash_of, is_regular, read_all, write_at
from surehold.disk.failures import displaced, not_a_file, vanished
from surehold.disk.locks import lock_file
from surehold.disk.places import Place
from surehold.disk.staging import Call
from surehold.disk.tree import open_entry

_WRITING = READING & ~os.O_RDONLY | os.O_RDWR
_UNLIMITED = 1 << 62


@dataclass(slots=True, kw_only=True)
class Overwrite:
    """Writes other bytes into a file."""

    call: Call
    place: Place
    step: Replace
    _fd: int = -1
    _status: os.stat_result | None = None
    _old: bytes = b""
    _touched: bool = False
    _complete: bool = False

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.place.key

    def stage(self) -> None:
        """Nothing can be staged."""

    def publish(self) -> None:
        """Make it visible."""
        try:
            fd = self._fd = open_entry(self.place.fd, self.place.name, _WRITING)
        except FileNotFoundError as error:
            raise vanished(self.key, self.step.expected) from error
        lock_file(fd, self.key)
        status = self._status = os.fstat(fd)
        if not is_regular(status):
            raise not_a_file(status.st_mode, self.key)
        self._old = read_all(fd, size=status.st_size, limit=_UNLIMITED)
        actual = hashlib.sha256(self._old).hexdigest()
        if actual != self.step.expected:
            raise displaced(self.key, self.step.expected, actual)
        self._touched = True
        self._write(fd, self.step.data)
        mode = stat.S_IMODE(status.st_mode) if self.step.mode is None else self.step.mode
        # Writing clears setuid for everybody but root, hence the second look.
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            self._set_mode(fd, mode)
        self.call.sync_file(fd)
        self._complete = True

    def _write(self, fd: int, data: bytes) -> None:
        view, end = memoryview(data), len(self._old)
        write_at(fd, view[end:], end)
        write_at(fd, view[:end], 0)
        os.ftruncate(fd, len(data))

    def _set_mode(self, fd: int, mode: int) -> None:
        try:
            os.fchmod(fd, mode)
        except PermissionError:
            # Somebody else's file: its mode is theirs, unless changing it was the task.
            if self.step.mode is not None:
                raise

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        try:
            if self._touched:
                self._restore(self._fd)
                self._touched = False
        except OSError:
            # The old bytes are nowhere else on this disk: once more, now or never.
            self._restore(self._fd)
            self._touched = False
        finally:
            self.settle()

    def _restore(self, fd: int) -> None:
        if self._complete and not self._is_ours(fd):
            self.call.keep(self._old)
            return
        write_at(fd, memoryview(self._old), 0)
        os.ftruncate(fd, len(self._old))
        if self._status is not None:
            with suppress(PermissionError):
                os.fchmod(fd, stat.S_IMODE(self._status.st_mode))
                os.utime(fd, ns=(self._status.st_atime_ns, self._status.st_mtime_ns))
        self.call.sync_file(fd)

    def _is_ours(self, fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        return hash_of(fd, size=os.fstat(fd).st_size) == hashlib.sha256(self.step.data).hexdigest()

    def settle(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

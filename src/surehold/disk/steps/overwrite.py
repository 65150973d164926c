"""The action that writes other bytes into a file and keeps its inode.

Rules:
1. Where it can be had, an exclusive lease keeps every other program out while the bytes change.
2. The bytes are compared, read and written through one descriptor, so they belong to one file. The old bytes stay in
   memory until the whole call has succeeded. A crash in the middle leaves a torn file that only the journal can repair.
3. Bytes beyond the old end are written first: when the disk is full, the old content is still intact.
4. What another program appends stays in the file, after our bytes. New bytes at the end are appended, and written to
   their offset only if it was another one; the file is made shorter only as far as nothing was appended, which is looked
   at right before.
5. A file that another program has open for writing is not made shorter: nothing could tell us what it wrote in between.
6. The file itself is locked, from the comparison to the last byte: its other names may be in directories that another
   writer has locked.
"""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from surehold.disk.base import Replace
from surehold.disk.errno_errors import displaced_error, not_a_file_error, open_for_writing_error, translate_vanished
from surehold.disk.kernel import punch_hole
from surehold.disk.locks import lock_file
from surehold.disk.steps.staging import UNLIMITED_BYTES, StepContext
from surehold.disk.steps.watched import WatchedEntry, file_facts, open_patiently
from surehold.disk.tree import WRITE_FLAGS, is_regular, open_entry, read_all, write_at
from surehold.text.snapshot import sha256_hex

_MAX_BLOCK_BYTES = 64 * 1024


@dataclass(slots=True, kw_only=True)
class OverwriteAction:
    """Writes other bytes into a file."""

    call: StepContext
    entry: WatchedEntry
    step: Replace
    _fd: int = -1
    _status: os.stat_result | None = None
    _old: bytes = b""
    _length: int = 0
    """How much of the file is ours to change; what lies beyond was appended by another program."""
    _is_alone: bool = False
    """No other program has the file open, or can open it."""
    _touched: bool = False
    _complete: bool = False

    def publish(self) -> None:
        watch, key = self.entry.watch, self.entry.place.key
        self._open_file()
        status = self._status = os.fstat(self._fd)
        if not is_regular(status):
            raise not_a_file_error(status.st_mode, key)
        is_known = watch.exclusive and watch.data is not None and file_facts(status) == file_facts(watch.status)
        self._old = watch.data if is_known and watch.data is not None else self._read_file()
        if not is_known and sha256_hex(self._old) != self.step.expected:
            raise displaced_error(key, self.step.expected, sha256_hex(self._old))
        if watch.is_open_elsewhere and len(self.step.data) < len(self._old):
            raise open_for_writing_error(key)
        self._length, self._touched = len(self._old), True
        self._write_bytes(self.step.data)
        self._punch_holes()
        mode = stat.S_IMODE(status.st_mode) if self.step.mode is None else self.step.mode
        # Writing clears setuid for everybody but root, hence the second look.
        if stat.S_IMODE(os.fstat(self._fd).st_mode) != mode:
            self._set_mode(mode)
        self.call.sync_file(self._fd)
        self._complete = True

    def _open_file(self) -> None:
        watch, place = self.entry.watch, self.entry.place
        if watch.exclusive:
            self._fd, self._is_alone = watch.fd, True
        else:
            watch.close()  # our own lease would keep us out, too
            with translate_vanished(place.key, self.step.expected):
                self._fd = open_patiently(partial(open_entry, place.fd, place.name), WRITE_FLAGS)
            self._is_alone = self.call.kernel.take_lease(self._fd, exclusive=True) == "held"
        lock_file(self._fd, place.key)

    def _read_file(self) -> bytes:
        os.lseek(self._fd, 0, os.SEEK_SET)
        return read_all(self._fd, size=os.fstat(self._fd).st_size, limit=UNLIMITED_BYTES)

    def _write_bytes(self, data: bytes) -> None:
        """Let the file begin with these bytes instead of those that are ours to change; what others appended stays."""
        view, shared = memoryview(data), min(len(data), self._length)
        if len(data) > self._length:
            self._append_bytes(view[shared:])
        write_at(self._fd, view[:shared], 0)
        if len(data) < self._length:
            self._cut_to(len(data))

    def _punch_holes(self) -> None:
        size = len(self.step.data)
        for begin, end in self.step.holes:
            if end < size:
                punch_hole(self._fd, begin, end)
            elif self._is_alone and os.fstat(self._fd).st_size == size:  # the last block goes only as a whole
                punch_hole(self._fd, begin, end + _MAX_BLOCK_BYTES)

    def _append_bytes(self, tail: memoryview) -> None:
        """Write at the end, wherever that is by now, and trade places with what another program appended before."""
        while tail:
            with _append_mode(self._fd):
                written = os.write(self._fd, tail)
            start = os.lseek(self._fd, 0, os.SEEK_CUR) - written
            if start != self._length:  # appended to, or made shorter
                foreign = os.pread(self._fd, max(start - self._length, 0), self._length)
                write_at(self._fd, memoryview(bytes(tail[:written]) + foreign), self._length)
            self._length, tail = self._length + written, tail[written:]

    def _cut_to(self, length: int) -> None:
        foreign, known_end = b"", self._length
        while (end := os.fstat(self._fd).st_size) > known_end:  # the last look before the file is made shorter
            foreign += os.pread(self._fd, end - known_end, known_end)
            write_at(self._fd, memoryview(foreign), length)
            known_end = end
        os.ftruncate(self._fd, length + len(foreign))
        self._length = length

    def _set_mode(self, mode: int) -> None:
        try:
            os.fchmod(self._fd, mode)
        except PermissionError:
            # Another user's file: its mode is theirs, unless changing it was the task.
            if self.step.mode is not None:
                raise

    def confirm(self) -> None:
        """Check nothing: whoever has the file open, or waits for it, writes into the new version."""

    def undo(self) -> None:
        try:
            if self._touched:
                self._restore_old()
                self._touched = False
        except OSError:
            # The old bytes are nowhere else on this disk: once more, now or never.
            self._restore_old()
            self._touched = False
        finally:
            self.clean_up()

    def _restore_old(self) -> None:
        if self._complete and not self._read_file().startswith(self.step.data):  # another program wrote it anew
            self.call.keep(self.entry.place.key, self._old)
            return
        self._write_bytes(self._old)
        if self._status is not None:
            with suppress(PermissionError):
                os.fchmod(self._fd, stat.S_IMODE(self._status.st_mode))
                os.utime(self._fd, ns=(self._status.st_atime_ns, self._status.st_mtime_ns))
        self.call.sync_file(self._fd)

    def clean_up(self) -> None:
        if self._fd >= 0 and self._fd != self.entry.watch.fd:
            os.close(self._fd)
        self._fd = -1


@contextmanager
def _append_mode(fd: int) -> Generator[None]:
    """Let writes go to the end of the file, wherever that is at that moment."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)
    try:
        yield
    finally:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)

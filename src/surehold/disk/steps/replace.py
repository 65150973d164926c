"""The actions that replace the bytes at a path: by swapping names, by renaming over, or by writing in place.

Rules:
1. Swapping is the default: what was displaced still exists and can be checked, so nothing unseen can be overwritten.
2. Without a swap the old file gets a second name first, is checked, and is then renamed over. An outside write between
   the check and the rename is lost; that is why this is only the fallback.
3. A file with several names, with an owner that we cannot give to a new file, or in a directory that we cannot change
   is written in place. A crash in the middle leaves a torn file that only the journal can repair.
4. A file that we may not write is not replaced either, even where the directory would allow it.
5. In place, the bytes are compared, read and written through one descriptor, so they belong to one file. The old bytes
   stay in memory until the whole call has succeeded.
6. In place, bytes beyond the old end are written first: when the disk is full, the old content is still intact.
7. A file written in place is locked itself, from the comparison to the last byte: its other names may be in directories
   that another writer has locked.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass

from surehold.disk.base import Replace
from surehold.disk.errno_errors import displaced_error, not_a_file_error, translate_vanished, vanished_error
from surehold.disk.kernel import Unsupported, close_after
from surehold.disk.locks import lock_file
from surehold.disk.steps.staging import (
    UNLIMITED_BYTES,
    DirectorySlot,
    DisplacedFile,
    StepContext,
    check_displaced,
    hash_entry,
    link_file,
    open_temporary,
    require_staged,
)
from surehold.disk.tree import (
    READ_FLAGS,
    can_give_owner,
    copy_metadata,
    file_identity,
    hash_of,
    is_regular,
    open_entry,
    read_all,
    read_pieces,
    write_all,
    write_at,
)
from surehold.errors import PermissionDenied
from surehold.text.lines import sha256_hex

_WRITE_FLAGS = READ_FLAGS & ~os.O_RDONLY | os.O_RDWR


@dataclass(slots=True, kw_only=True)
class OverwriteAction:
    """Writes other bytes into a file."""

    call: StepContext
    place: DirectorySlot
    step: Replace
    _fd: int = -1
    _status: os.stat_result | None = None
    _old: bytes = b""
    _touched: bool = False
    _complete: bool = False

    def publish(self) -> None:
        key = self.place.key
        with translate_vanished(key, self.step.expected):
            fd = self._fd = open_entry(self.place.fd, self.place.name, _WRITE_FLAGS)
        lock_file(fd, key)
        status = self._status = os.fstat(fd)
        if not is_regular(status):
            raise not_a_file_error(status.st_mode, key)
        self._old = read_all(fd, size=status.st_size, limit=UNLIMITED_BYTES)
        actual = sha256_hex(self._old)
        if actual != self.step.expected:
            raise displaced_error(key, self.step.expected, actual)
        self._touched = True
        self._write_bytes(fd, self.step.data)
        mode = stat.S_IMODE(status.st_mode) if self.step.mode is None else self.step.mode
        # Writing clears setuid for everybody but root, hence the second look.
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            self._set_mode(fd, mode)
        self.call.sync_file(fd)
        self._complete = True

    def _write_bytes(self, fd: int, data: bytes) -> None:
        view, end = memoryview(data), len(self._old)
        write_at(fd, view[end:], end)
        write_at(fd, view[:end], 0)
        os.ftruncate(fd, len(data))

    def _set_mode(self, fd: int, mode: int) -> None:
        try:
            os.fchmod(fd, mode)
        except PermissionError:
            # Another user's file: its mode is theirs, unless changing it was the task.
            if self.step.mode is not None:
                raise

    def undo(self) -> None:
        try:
            if self._touched:
                self._restore_old(self._fd)
                self._touched = False
        except OSError:
            # The old bytes are nowhere else on this disk: once more, now or never.
            self._restore_old(self._fd)
            self._touched = False
        finally:
            self.clean_up()

    def _restore_old(self, fd: int) -> None:
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
        return hash_of(fd, size=os.fstat(fd).st_size) == sha256_hex(self.step.data)

    def clean_up(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_MAX_SWAPS = 16
_OWNER_REFUSED_ERRNOS = frozenset({errno.EPERM, errno.EINVAL, errno.EACCES})


@dataclass(slots=True, kw_only=True)
class ReplaceAction:
    """Puts other bytes at a path."""

    call: StepContext
    index: int
    step: Replace
    _instead: "OverwriteAction | RenameOverAction | None" = None
    """The other way of doing it, once it is known that swapping is not possible."""
    _place: DirectorySlot | None = None
    _temp: str = ""
    _identity: tuple[int, int] = (0, 0)
    _begun: bool = False
    _seen: DisplacedFile | None = None

    def stage(self) -> None:
        key = self.step.target.key
        with translate_vanished(key, self.step.expected):
            place = self._place = self.call.directories.find_slot(self.step.target)
            current = open_entry(place.fd, place.name, READ_FLAGS)
        with close_after(current):
            status = os.fstat(current)
            if not is_regular(status):
                raise not_a_file_error(status.st_mode, key)
            if not os.access(place.name, os.W_OK, dir_fd=place.fd, effective_ids=_EFFECTIVE_IDS):
                raise PermissionDenied(f"`{key}` is read-only.", path=key, reason="read_only_file")
            if status.st_nlink > 1 or not can_give_owner(status) or not self._write_beside(place, current, status):
                self._instead = OverwriteAction(call=self.call, place=place, step=self.step)

    def _write_beside(self, place: DirectorySlot, current: int, status: os.stat_result) -> bool:
        """Write the new file under its temporary name; False when only the old file can take the bytes."""
        temp = self.call.temp_name(self.index, "tmp")
        try:
            fd = open_temporary(place, temp, 0o600)
        except PermissionError:
            return False
        self._temp = temp
        with close_after(fd):
            self._identity = file_identity(os.fstat(fd))
            write_at(fd, memoryview(self.step.data), 0)
            try:
                copy_metadata(current, status, fd, mode=self.step.mode)
            except OSError as error:
                if error.errno not in _OWNER_REFUSED_ERRNOS:
                    raise
                self.call.drop_file(place, temp, None)
                self._temp = ""
                return False
            self.call.sync_file(fd)
        return True

    def publish(self) -> None:
        if self._instead is not None:
            self._instead.publish()
            return
        place = require_staged(self._place)
        self._begun = True
        try:
            self.call.kernel.swap(place.fd, self._temp, place.name)
        except Unsupported:
            old = self.call.temp_name(self.index, "old")
            self._publish_as(RenameOverAction(call=self.call, place=place, step=self.step, temp=self._temp, old=old))
            return
        except FileNotFoundError as error:
            raise vanished_error(self.step.target.key, self.step.expected) from error
        except OSError as error:
            # A file that something is mounted on keeps its inode.
            if error.errno != errno.EBUSY:
                raise
            self._publish_as(OverwriteAction(call=self.call, place=place, step=self.step))
            return
        place.directory.dirty = True
        self._seen = hash_entry(place, self._temp, awaited=(self.step.old, self.step.expected))
        check_displaced(self._seen, self.step.expected, self.step.target.key)

    def _publish_as(self, other: "OverwriteAction | RenameOverAction") -> None:
        self._instead = other
        other.publish()

    def undo(self) -> None:
        if self._instead is not None:
            self._instead.undo()
        if not self._temp:
            return
        place = require_staged(self._place)
        status = place.read_status(self._temp)
        if status is None:
            return
        if self._begun and file_identity(status) != self._identity:
            self._swap_back(place)
        self.call.drop_file(place, self._temp, None)

    def _swap_back(self, place: DirectorySlot) -> None:
        """Put the displaced bytes back. If what comes out is not ours, it is newer, and goes back in instead."""
        inside = (self._seen or hash_entry(place, self._temp)).sha256
        ours = sha256_hex(self.step.data)
        awaited: str | None = ours
        for _ in range(_MAX_SWAPS):
            try:
                self.call.kernel.swap(place.fd, self._temp, place.name)
            except FileNotFoundError:
                break
            place.directory.dirty = True
            found = hash_entry(place, self._temp).sha256
            if found == awaited:
                if found == ours:
                    return
                break
            inside, awaited = found, inside
        self.call.keep_file(place, self._temp)

    def clean_up(self) -> None:
        if self._instead is not None:
            self._instead.clean_up()
        if self._temp:
            self.call.drop_file(require_staged(self._place), self._temp, self._seen)


@dataclass(slots=True, kw_only=True)
class RenameOverAction:
    """Replaces a file where two names cannot be swapped."""

    call: StepContext
    place: DirectorySlot
    step: Replace
    temp: str
    old: str
    _seen: DisplacedFile | None = None

    def publish(self) -> None:
        place, expected = self.place, self.step.expected
        with translate_vanished(place.key, expected):
            original = self._give_second_name()
            self._seen = hash_entry(place, self.old)
            check_displaced(self._seen, expected, place.key)
            current = place.read_status()
        if current is None:
            raise vanished_error(place.key, expected)
        if _file_stamp(current) != _file_stamp(original):
            raise displaced_error(place.key, expected, hash_entry(place, place.name).sha256)
        os.replace(self.temp, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        place.directory.dirty = True

    def _give_second_name(self) -> os.stat_result:
        """Let the old bytes have a second name, by a link or else by a copy; return the status of the original."""
        place = self.place
        try:
            link_file(place.fd, place.name, place.fd, self.old)
            return os.stat(self.old, dir_fd=place.fd, follow_symlinks=False)
        except Unsupported:
            source = open_entry(place.fd, place.name, READ_FLAGS)
        with close_after(source):
            status = os.fstat(source)
            with close_after(open_temporary(place, self.old, 0o600)) as copy:
                write_all(copy, read_pieces(source))
                copy_metadata(source, status, copy, mode=None)
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
                self.call.sync_file(copy)
        return status

    def undo(self) -> None:
        place = self.place
        if place.read_status(self.old) is None:
            return
        if place.read_status(self.temp) is None:
            current = place.read_status()
            if current is not None and hash_entry(place, place.name).sha256 == sha256_hex(self.step.data):
                os.replace(self.old, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
                return
            self.call.keep_file(place, self.old)
        self.call.drop_file(place, self.old, None)

    def clean_up(self) -> None:
        self.call.drop_file(self.place, self.old, self._seen)


def _file_stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def must_overwrite(place: DirectorySlot) -> bool:
    status = place.read_status()
    if status is None or not is_regular(status):
        return False
    if status.st_nlink > 1 or not can_give_owner(status) or status.st_dev != os.fstat(place.fd).st_dev:
        return True
    return not os.access(".", os.W_OK | os.X_OK, dir_fd=place.fd, effective_ids=_EFFECTIVE_IDS)

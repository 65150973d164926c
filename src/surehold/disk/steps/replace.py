"""The actions that replace the bytes at a path: by swapping names, or by renaming over.

Rules:
1. Swapping is the default: what was displaced still exists and can be checked, so nothing unseen can be overwritten.
2. Nothing is shown that will be refused: the file is looked at right before the swap. If what was displaced turns out to
   be another version all the same, it is swapped back before anything is hashed.
3. Without a swap the old file gets a second name first, is checked, and is then renamed over. Without a lease, an
   outside write between the check and the rename is lost; that is why this is only the fallback.
4. A file with several names, with an owner that we cannot give to a new file, in a directory that we cannot change, or
   that another program has open for writing is written in place (see `overwrite`).
5. A file that we may not write is not replaced either, even where the directory would allow it.
"""

import errno
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from surehold.disk.base import Replace
from surehold.disk.errno_errors import displaced_error, translate_vanished, vanished_error
from surehold.disk.kernel import Unsupported, close_after
from surehold.disk.steps.overwrite import OverwriteAction
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
from surehold.disk.steps.watched import FileWatch, WatchedEntry, watch_entry
from surehold.disk.tree import (
    READ_FLAGS,
    can_give_owner,
    copy_metadata,
    file_identity,
    is_regular,
    open_entry,
    read_all,
    read_pieces,
    write_all,
    write_at,
)
from surehold.errors import PermissionDenied
from surehold.text.align import shared_ends
from surehold.text.snapshot import sha256_hex

_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_MAX_SWAPS = 16
_OWNER_REFUSED_ERRNOS = frozenset({errno.EPERM, errno.EINVAL, errno.EACCES})


@dataclass(slots=True, kw_only=True)
class ReplaceAction:
    """Puts other bytes at a path."""

    call: StepContext
    index: int
    step: Replace
    watch: FileWatch | None = None
    """The watch that the reader of the file began."""
    _entry: WatchedEntry | None = None
    _instead: "OverwriteAction | RenameOverAction | None" = None
    """The other way of doing it, once it is known that swapping is not possible."""
    _temp: str = ""
    _identity: tuple[int, int] = (0, 0)
    _begun: bool = False
    _seen: DisplacedFile | None = None

    def stage(self) -> None:
        step, key = self.step, self.step.target.key
        entry = self._entry = watch_entry(self.call, step.target, step.expected, self.watch, old=step.old)
        if not os.access(entry.place.name, os.W_OK, dir_fd=entry.place.fd, effective_ids=_EFFECTIVE_IDS):
            raise PermissionDenied(f"`{key}` is read-only.", path=key, reason="read_only_file")
        status = entry.watch.status
        keeps_inode = entry.watch.in_place or status.st_nlink > 1 or not can_give_owner(status)
        if keeps_inode or not self._write_beside(entry):
            self._instead = OverwriteAction(call=self.call, entry=entry, step=step)

    def _write_beside(self, entry: WatchedEntry) -> bool:
        """Write the new file under its temporary name; False when only the old file can take the bytes."""
        place, temp = entry.place, self.call.temp_name(self.index, "tmp")
        try:
            fd = open_temporary(place, temp, 0o600)
        except PermissionError:
            return False
        self._temp = temp
        with close_after(fd), entry.open_original() as original:
            self._identity = file_identity(os.fstat(fd))
            write_at(fd, memoryview(self.step.data), 0)
            try:
                copy_metadata(original, entry.watch.status, fd, mode=self.step.mode)
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
        entry = require_staged(self._entry)
        place = entry.place
        entry.check_undisturbed()
        self._begun = True
        try:
            self.call.kernel.swap(place.fd, self._temp, place.name)
        except Unsupported:
            old = self.call.temp_name(self.index, "old")
            self._publish_as(RenameOverAction(call=self.call, entry=entry, step=self.step, temp=self._temp, old=old))
            return
        except FileNotFoundError as error:
            raise vanished_error(place.key, self.step.expected) from error
        except OSError as error:
            # A file that something is mounted on keeps its inode.
            if error.errno != errno.EBUSY:
                raise
            self._publish_as(OverwriteAction(call=self.call, entry=entry, step=self.step))
            return
        place.directory.dirty = True
        if entry.is_displaced_as(self._temp):
            self._seen = entry.examine_displaced(self._temp, self.step.old)
        if self._seen is None or self._seen.sha256 != self.step.expected:
            self._swap_back(place)  # at once: what is refused must not stay visible
            raise entry.disturbed_error()

    def _publish_as(self, other: "OverwriteAction | RenameOverAction") -> None:
        self._instead = other
        other.publish()

    def confirm(self) -> None:
        if self._instead is not None:
            self._instead.confirm()
        else:
            require_staged(self._entry).check_settled()

    def undo(self) -> None:
        if self._entry is None:
            return
        place = self._entry.place
        if self._instead is not None:
            self._instead.undo()
        status = place.read_status(self._temp) if self._temp else None
        if status is not None:
            if self._begun and file_identity(status) != self._identity:
                self._swap_back(place)
            self.call.drop_file(place, self._temp, None)
        self._entry.close()

    def _swap_back(self, place: DirectorySlot) -> None:
        """Put the displaced file back. What another program made of our version in between is not lost.

        A file that replaced ours is newer and goes in again, and so does ours when it was rewritten. Ours with our text in
        it is only kept: a change that is refused leaves nothing at the path. A file of others that was displaced is kept
        also when it goes back: a program that read ours at the path may replace it by what it made of ours.
        """
        with ExitStack() as closing:
            displaced = dict[tuple[int, int], int]()
            if not self._put_back(place, displaced, closing):
                self.call.keep_file(place, self._temp)
                if status := place.read_status(self._temp):
                    displaced.pop(file_identity(status), None)
            self._begun = False
            for fd in displaced.values():
                data = read_all(fd, size=os.fstat(fd).st_size, limit=UNLIMITED_BYTES)
                if data != self.step.data:
                    self.call.keep(place.key, data)

    def _put_back(self, place: DirectorySlot, displaced: dict[tuple[int, int], int], closing: ExitStack) -> bool:
        """Swap until nothing of ours is at the path; True when our own file, as we wrote it, is all that was taken away."""
        inside: os.stat_result | None = None
        for _ in range(_MAX_SWAPS):
            before = place.read_status(self._temp)
            self._hold_foreign(place, before, displaced, closing)
            try:
                self.call.kernel.swap(place.fd, self._temp, place.name)
            except FileNotFoundError:
                return False
            place.directory.dirty = True
            found = place.read_status(self._temp)
            if found is not None and file_identity(found) == self._identity:
                data = self._read_ours(place)
                if data == self.step.data:
                    return True
                if self._has_our_text(data):
                    return False
            elif found is not None and inside is not None and file_identity(found) == file_identity(inside):
                return False
            inside = before
        return False

    def _hold_foreign(
        self,
        place: DirectorySlot,
        status: os.stat_result | None,
        displaced: dict[tuple[int, int], int],
        closing: ExitStack,
    ) -> None:
        """Open a displaced file that another program put at the path, so that its bytes can be kept wherever it goes."""
        known = {file_identity(require_staged(self._entry).watch.status), *displaced}
        if status is None or not is_regular(status) or file_identity(status) in known:
            return
        with suppress(OSError):
            fd = displaced[file_identity(status)] = open_entry(place.fd, self._temp, READ_FLAGS)
            closing.callback(os.close, fd)

    def _read_ours(self, place: DirectorySlot) -> bytes:
        with close_after(open_entry(place.fd, self._temp, READ_FLAGS)) as fd:
            return read_all(fd, size=os.fstat(fd).st_size, limit=UNLIMITED_BYTES)

    def _has_our_text(self, data: bytes) -> bool:
        ours, old = self.step.data, self.step.old
        if old is None:
            return data.startswith(ours)
        head, tail = shared_ends(old, ours)
        return ours[head : len(ours) - tail] in data

    def clean_up(self) -> None:
        entry = require_staged(self._entry)
        if self._instead is not None:
            self._instead.clean_up()
        if self._temp:
            entry.drop_displaced(self._temp, self._seen)
        entry.close()


@dataclass(slots=True, kw_only=True)
class RenameOverAction:
    """Replaces a file where two names cannot be swapped."""

    call: StepContext
    entry: WatchedEntry
    step: Replace
    temp: str
    old: str
    _seen: DisplacedFile | None = None

    def publish(self) -> None:
        place, expected = self.entry.place, self.step.expected
        with translate_vanished(place.key, expected):
            original = self._give_second_name()
            self._seen = hash_entry(place, self.old)
            check_displaced(self._seen, expected, place.key)
            current = place.read_status()
        if current is None:
            raise vanished_error(place.key, expected)
        if _file_stamp(current) != _file_stamp(original):
            raise displaced_error(place.key, expected, hash_entry(place, place.name).sha256)
        self.entry.check_settled()
        os.replace(self.temp, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        place.directory.dirty = True

    def _give_second_name(self) -> os.stat_result:
        """Let the old bytes have a second name, by a link or else by a copy; return the status of the original."""
        place = self.entry.place
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

    def confirm(self) -> None:
        self.entry.check_settled()

    def undo(self) -> None:
        place = self.entry.place
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
        self.entry.drop_displaced(self.old, self._seen)


def _file_stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def must_overwrite(directory: int, name: str) -> bool:
    """Tell whether an entry of an open directory is to be written in place."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not is_regular(status):
        return False
    if status.st_nlink > 1 or not can_give_owner(status) or status.st_dev != os.fstat(directory).st_dev:
        return True
    return not os.access(".", os.W_OK | os.X_OK, dir_fd=directory, effective_ids=_EFFECTIVE_IDS)

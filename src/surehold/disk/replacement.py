"""Other bytes at a path: by swapping two names, by renaming over, or by writing into the same file.

Rules:
1. Swapping is the rule: what was displaced is still there to be looked at, so nothing unseen can be overwritten.
2. Without a swap the old file gets a second name first, is looked at, and is then renamed over. An outside write
   between the look and the rename is lost to this code; that is why it is the fallback.
3. A file with several names, an owner that we cannot give to a new file, or in a directory that we cannot change is
   written in place. A crash in the middle leaves a torn file that only the journal can repair.
4. A file that we may not write is not replaced either, although the directory would allow it.
"""

import errno
import os
from dataclasses import dataclass

from surehold.disk.atomic import Action, check
from surehold.disk.base import Replace
from surehold.disk.content import READING, is_regular, pieces, write_all, write_at
from surehold.disk.facts import can_give_owner, copy_facts
from surehold.disk.failures import displaced, not_a_file, vanished
from surehold.disk.inplace import Overwrite
from surehold.disk.kernel import Unsupported
from surehold.disk.places import Place
from surehold.disk.staging import Call, Seen, identity, link, look, open_temporary
from surehold.disk.tree import open_entry
from surehold.errors import PermissionDenied
from surehold.text.hashing import sha256

_EFFECTIVE = os.access in os.supports_effective_ids
_MAX_SWAPS = 16
_NOT_TO_BE_GIVEN = frozenset({errno.EPERM, errno.EINVAL, errno.EACCES})


@dataclass(slots=True, kw_only=True)
class Replacement:
    """Puts other bytes at a path."""

    call: Call
    index: int
    step: Replace
    _instead: Action | None = None
    """The other way of doing it, once it is known that swapping is not possible."""
    _place: Place | None = None
    _temp: str = ""
    _identity: tuple[int, int] = (0, 0)
    _begun: bool = False
    _seen: Seen | None = None

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.step.target.key

    def stage(self) -> None:
        """Prepare it, invisibly."""
        try:
            place = self._place = self.call.directories.place(self.step.target)
            current = open_entry(place.fd, place.name, READING)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise vanished(self.key, self.step.expected) from error
        try:
            status = os.fstat(current)
            if not is_regular(status):
                raise not_a_file(status.st_mode, self.key)
            if not os.access(place.name, os.W_OK, dir_fd=place.fd, effective_ids=_EFFECTIVE):
                raise PermissionDenied(f"`{self.key}` is read-only.", path=self.key, reason="read_only_file")
            if status.st_nlink > 1 or not can_give_owner(status) or not self._write_beside(place, current, status):
                self._overwrite(place)
        finally:
            os.close(current)

    def _write_beside(self, place: Place, current: int, status: os.stat_result) -> bool:
        """Write the new file under its temporary name; False when only the old file can take the bytes."""
        temp = self.call.temp_name(self.index, "tmp")
        try:
            fd = open_temporary(place, temp, 0o600)
        except PermissionError:
            return False
        self._temp = temp
        try:
            self._identity = identity(os.fstat(fd))
            write_at(fd, memoryview(self.step.data), 0)
            try:
                copy_facts(current, status, fd, mode=self.step.mode)
            except OSError as error:
                if error.errno not in _NOT_TO_BE_GIVEN:
                    raise
                self.call.drop(place, temp, None)
                self._temp = ""
                return False
            self.call.sync_file(fd)
        finally:
            os.close(fd)
        return True

    def _overwrite(self, place: Place) -> None:
        self._instead = Overwrite(call=self.call, place=place, step=self.step)

    def publish(self) -> None:
        """Make it visible."""
        if self._instead is not None:
            self._instead.publish()
            return
        place = self._at()
        self._begun = True
        try:
            self.call.kernel.swap(place.fd, self._temp, place.name)
        except Unsupported:
            self._publish_as(self._rename_over(place))
            return
        except FileNotFoundError as error:
            raise vanished(self.key, self.step.expected) from error
        except OSError as error:
            # A file that something is mounted on keeps its inode.
            if error.errno != errno.EBUSY:
                raise
            self._publish_as(Overwrite(call=self.call, place=place, step=self.step))
            return
        place.directory.dirty = True
        self._seen = look(place, self._temp, awaited=(self.step.old, self.step.expected))
        check(self._seen, self.step.expected, self.key)

    def _rename_over(self, place: Place) -> "RenameOver":
        return RenameOver(
            call=self.call,
            place=place,
            temp=self._temp,
            old=self.call.temp_name(self.index, "old"),
            sha256=sha256(self.step.data),
            expected=self.step.expected,
        )

    def _publish_as(self, other: Action) -> None:
        self._instead = other
        other.publish()

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        if self._instead is not None:
            self._instead.undo()
        if not self._temp:
            return
        place = self._at()
        status = place.status(self._temp)
        if status is None:
            return
        if self._begun and identity(status) != self._identity:
            self._swap_back(place)
        self.call.drop(place, self._temp, None)

    def _swap_back(self, place: Place) -> None:
        """Put the displaced bytes back. If what comes out is not ours, it is newer, and goes back in instead."""
        inside = (self._seen or look(place, self._temp)).sha256
        ours = sha256(self.step.data)
        awaited: str | None = ours
        for _ in range(_MAX_SWAPS):
            try:
                self.call.kernel.swap(place.fd, self._temp, place.name)
            except FileNotFoundError:
                break
            place.directory.dirty = True
            found = look(place, self._temp).sha256
            if found == awaited:
                if found == ours:
                    return
                break
            inside, awaited = found, inside
        self.call.keep_file(place, self._temp)

    def settle(self) -> None:
        """Drop what was displaced."""
        if self._instead is not None:
            self._instead.settle()
        if self._temp:
            self.call.drop(self._at(), self._temp, self._seen)

    def _at(self) -> Place:
        assert self._place is not None, "a step is staged before it is published"
        return self._place


@dataclass(slots=True, kw_only=True)
class RenameOver:
    """Replaces a file where two names cannot be swapped."""

    call: Call
    place: Place
    temp: str
    old: str
    sha256: str
    expected: str
    _seen: Seen | None = None

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.place.key

    def stage(self) -> None:
        """Everything is staged."""

    def publish(self) -> None:
        """Make it visible."""
        place = self.place
        try:
            original = self._second_name()
            self._seen = look(place, self.old)
            check(self._seen, self.expected, self.key)
            current = place.status()
        except FileNotFoundError as error:
            raise vanished(self.key, self.expected) from error
        if current is None:
            raise vanished(self.key, self.expected)
        if _face(current) != _face(original):
            raise displaced(self.key, self.expected, look(place, place.name).sha256)
        os.replace(self.temp, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        place.directory.dirty = True

    def _second_name(self) -> os.stat_result:
        """Let the old bytes have a second name, by a link or else by a copy; return the status of the original."""
        place = self.place
        try:
            link(place.fd, place.name, place.fd, self.old)
            return os.stat(self.old, dir_fd=place.fd, follow_symlinks=False)
        except Unsupported:
            source = open_entry(place.fd, place.name, READING)
        try:
            status = os.fstat(source)
            copy = open_temporary(place, self.old, 0o600)
            try:
                write_all(copy, pieces(source))
                copy_facts(source, status, copy, mode=None)
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
                self.call.sync_file(copy)
            finally:
                os.close(copy)
            return status
        finally:
            os.close(source)

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        place = self.place
        if place.status(self.old) is None:
            return
        if place.status(self.temp) is None:
            current = place.status()
            if current is not None and look(place, place.name).sha256 == self.sha256:
                os.replace(self.old, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
                return
            self.call.keep_file(place, self.old)
        self.call.drop(place, self.old, None)

    def settle(self) -> None:
        """Drop what was displaced."""
        self.call.drop(self.place, self.old, self._seen)


def _face(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def must_overwrite(place: Place) -> bool:
    """Tell whether a new version can only be written into the same file."""
    status = place.status()
    if status is None or not is_regular(status):
        return False
    if status.st_nlink > 1 or not can_give_owner(status) or status.st_dev != os.fstat(place.fd).st_dev:
        return True
    return not os.access(".", os.W_OK | os.X_OK, dir_fd=place.fd, effective_ids=_EFFECTIVE)

"""The actions that switch an entry as a whole: its kind, its content, its facts and its names.

Rules:
1. Nothing is staged before: there may be very many of them, and a directory may have to be made for the next. Each is
   published by one system call, after everything that it needs is under a temporary name beside it.
2. What is displaced is checked, and put back if it is not what was expected.
3. They are not synced one by one, but all together before the change is recorded.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass

from surehold.disk.base import PutEntry, SetFacts, TakeEntry, Target
from surehold.disk.entries import Holes, entry_path, read_located, set_facts
from surehold.disk.errno_errors import displaced_error, name_taken_error, vanished_error
from surehold.disk.kernel import Unsupported, close_after
from surehold.disk.steps.staging import UNLIMITED_BYTES, DirectorySlot, StepContext, hash_entry, open_temporary
from surehold.disk.tree import write_at
from surehold.errors import SureholdError
from surehold.text.lines import sha256_hex
from surehold.text.snapshot import Version

_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700


@dataclass(slots=True, kw_only=True)
class PutEntryAction:
    """Puts an entry of any kind at a path."""

    call: StepContext
    index: int
    step: PutEntry
    _place: DirectorySlot | None = None
    _state: str = "begun"
    """`begun`, `visible`, or `swapped` while what was displaced has the temporary name."""

    def stage(self) -> None:
        """Nothing is done before."""

    def publish(self) -> None:
        place = self._place = self.call.directories.find_slot(self.step.target)
        if self.step.version.kind == "directory":
            self._make_directory(place)
            return
        self._write_beside(place)
        if self.step.expected is None:
            try:
                self.call.move_new(place, self._temp, place, place.name)
            except FileExistsError as error:
                status = place.read_status()
                raise name_taken_error(status.st_mode if status else stat.S_IFREG, place.key) from error
            self._state = "visible"
            return
        try:
            self.call.kernel.swap(place.fd, self._temp, place.name)
        except FileNotFoundError as error:
            raise vanished_error(place.key, self.step.expected.sha256) from error
        except Unsupported:
            self._rename_over(place, self.step.expected)
            return
        self._state = "swapped"
        place.directory.dirty = True
        check_entry(place, self._temp, self.step.expected)

    def _make_directory(self, place: DirectorySlot) -> None:
        os.mkdir(place.name, _PRIVATE_DIRECTORY, dir_fd=place.fd)  # its facts follow when its entries are there
        self._state, place.directory.dirty = "visible", True

    def _write_beside(self, place: DirectorySlot) -> None:
        version, data, temp = self.step.version, self.step.data, self._temp
        match version.kind:
            case "link":
                os.symlink(data, os.fsencode(temp), dir_fd=place.fd)
            case "fifo":
                os.mkfifo(temp, _PRIVATE_FILE, dir_fd=place.fd)
            case _:
                if self.step.link_to is not None and self._link_beside(place, self.step.link_to):
                    return
                with close_after(open_temporary(place, temp, _PRIVATE_FILE)) as fd:
                    _write_with_holes(fd, data, version.holes)
        if version.meta is not None:
            set_facts(entry_path(place.fd, temp), version.kind, version.meta)

    def _link_beside(self, place: DirectorySlot, other: Target) -> bool:
        """Give another name of the same file a further one here; False if that has other bytes by now."""
        try:
            found = read_located(self.call.directories.tree, other, limit=UNLIMITED_BYTES)
        except SureholdError:  # an earlier step of this call has just written it, and still keeps others out
            found = None
        else:
            if found is None or found.version.kind != "file" or found.version.sha256 != self.step.version.sha256:
                return False
        source = self.call.directories.find_slot(other)
        with suppress(OSError):
            os.link(source.name, self._temp, src_dir_fd=source.fd, dst_dir_fd=place.fd, follow_symlinks=False)
            return True
        return False

    def _rename_over(self, place: DirectorySlot, expected: Version) -> None:
        """Replace where two names cannot be swapped: what is there gets a second name first."""
        old = self.call.temp_name(self.index, "old")
        os.rename(place.name, old, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        try:
            check_entry(place, old, expected)
        except BaseException:
            os.rename(old, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
            raise
        self.call.move_new(place, self._temp, place, place.name)
        os.rename(old, self._temp, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        self._state = "swapped"

    def confirm(self) -> None:
        """Do nothing: what was displaced has been checked."""

    def undo(self) -> None:
        place = self._place
        if place is None:
            return
        if self.step.version.kind == "directory":
            if self._state == "visible":
                self.call.directories.forget(self.step.target)
                os.rmdir(place.name, dir_fd=place.fd)
            return
        if self._state == "swapped":
            try:
                self.call.kernel.swap(place.fd, self._temp, place.name)
            except Unsupported:
                os.rename(self._temp, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        elif self._state == "visible" and holds_version(place, place.name, self.step.version):
            os.unlink(place.name, dir_fd=place.fd)
        self._state = "begun"
        with suppress(FileNotFoundError):
            os.unlink(self._temp, dir_fd=place.fd)

    def clean_up(self) -> None:
        if self._state == "swapped" and self._place is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._temp, dir_fd=self._place.fd)

    @property
    def _temp(self) -> str:
        return self.call.temp_name(self.index, "tmp")


@dataclass(slots=True, kw_only=True)
class TakeEntryAction:
    """Removes an entry of any kind: what is not a directory is renamed first, and deleted once all else is done."""

    call: StepContext
    index: int
    step: TakeEntry
    _place: DirectorySlot | None = None
    _refuge: DirectorySlot | None = None
    _taken: bool = False

    def stage(self) -> None:
        """Nothing is done before."""

    def publish(self) -> None:
        expected, directories = self.step.expected, self.call.directories
        try:
            place = self._place = directories.find_slot(self.step.target)
            if expected.kind == "directory":
                directories.forget(self.step.target)
                os.rmdir(place.name, dir_fd=place.fd)
                self._taken, place.directory.dirty = True, True
                return
            refuge = self._refuge = directories.find_slot(self.step.refuge)
            os.rename(place.name, self._old, src_dir_fd=place.fd, dst_dir_fd=refuge.fd)
        except FileNotFoundError as error:
            raise vanished_error(self.step.target.key, expected.sha256) from error
        self._taken, place.directory.dirty, refuge.directory.dirty = True, True, True
        check_entry(refuge, self._old, expected)

    def confirm(self) -> None:
        """Do nothing: what was taken has been checked."""

    def undo(self) -> None:
        if not self._taken:
            return
        place = self.call.directories.find_slot(self.step.target)  # its directory may have been made again
        if self.step.expected.kind == "directory":
            os.mkdir(place.name, _PRIVATE_DIRECTORY, dir_fd=place.fd)
            if self.step.expected.meta is not None:
                set_facts(entry_path(place.fd, place.name), "directory", self.step.expected.meta)
        else:
            refuge = self.call.directories.find_slot(self.step.refuge)
            self.call.move_new(refuge, self._old, place, place.name)
        self._taken = False

    def clean_up(self) -> None:
        if self._taken and self._refuge is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._old, dir_fd=self._refuge.fd)

    @property
    def _old(self) -> str:
        return self.call.temp_name(self.index, "old")


@dataclass(slots=True, kw_only=True)
class SetFactsAction:
    """Gives an entry other facts."""

    call: StepContext
    step: SetFacts
    _begun: bool = False

    def stage(self) -> None:
        """Nothing is done before."""

    def publish(self) -> None:
        path = self._path()
        if stat.S_IFMT(os.lstat(path).st_mode) != _TYPES[self.step.kind]:
            raise displaced_error(self.step.target.key, self.step.kind, None)
        self._begun = True
        set_facts(path, self.step.kind, self.step.after)

    def confirm(self) -> None:
        """Nothing was displaced."""

    def undo(self) -> None:
        if self._begun:
            with suppress(FileNotFoundError):
                set_facts(self._path(), self.step.kind, self.step.before)

    def clean_up(self) -> None:
        """Set the time of a directory once more: dropping what was displaced has changed it."""
        if self.step.kind == "directory":
            set_facts(self._path(), "directory", self.step.after)

    def _path(self) -> str:
        tree, target = self.call.directories.tree, self.step.target
        if not target.parts:
            return entry_path(tree.root_fd(tree.root_of(target)), ".")
        place = self.call.directories.find_slot(target)
        return entry_path(place.fd, place.name)


_TYPES = {"file": stat.S_IFREG, "link": stat.S_IFLNK, "directory": stat.S_IFDIR, "fifo": stat.S_IFIFO}


def check_entry(place: DirectorySlot, name: str, expected: Version) -> None:
    """Refuse when what has a name is not what was expected."""
    if not holds_version(place, name, expected):
        raise displaced_error(place.key, expected.sha256, None)


def holds_version(place: DirectorySlot, name: str, version: Version) -> bool:
    """Tell whether a name leads to an entry of this kind with this content."""
    status = place.read_status(name)
    if status is None or stat.S_IFMT(status.st_mode) != _TYPES[version.kind]:
        return False
    match version.kind:
        case "file":
            try:
                return hash_entry(place, name).sha256 == version.sha256
            except PermissionError:  # not for us to read, and so not for us to have changed
                return status.st_size == version.size
        case "link":
            return sha256_hex(os.fsencode(os.readlink(name, dir_fd=place.fd))) == version.sha256
        case _:
            return True


def _write_with_holes(fd: int, data: bytes, holes: Holes) -> None:
    at, view = 0, memoryview(data)
    for begin, end in (*holes, (len(data), len(data))):
        if begin > at:
            write_at(fd, view[at:begin], at)
        at = max(at, end)
    os.ftruncate(fd, len(data))

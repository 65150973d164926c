"""The actions that switch an entry as a whole: its kind, its content, its facts and its names.

Rules:
1. Nothing is staged before: there may be very many of them, and a directory may have to be made for the next. Each is
   published by one system call, after everything that it needs is under a temporary name beside it.
2. What is displaced is checked, and put back if it is not what was expected.
3. What another program writes into a displaced file until it is dropped, or into ours until it is taken back, is kept.
4. They are not synced one by one, but all together before the change is recorded.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from surehold.disk.base import PutEntry, SetFacts, TakeEntry, Target
from surehold.disk.entries import ENTRY_TYPES, Holes, NotTheKind, entry_path, read_located, set_facts
from surehold.disk.errno_errors import displaced_error, name_taken_error, vanished_error
from surehold.disk.kernel import Unsupported, close_after
from surehold.disk.steps.create_remove import put_back
from surehold.disk.steps.staging import (
    UNLIMITED_BYTES,
    DirectorySlot,
    DisplacedFile,
    StepContext,
    hash_entry,
    open_temporary,
    require_staged,
)
from surehold.disk.steps.watched import LATE_WRITER_WAIT_SECONDS, watch_file
from surehold.disk.tree import file_identity, is_regular, open_own, write_at
from surehold.errors import SureholdError
from surehold.text.snapshot import Version, sha256_hex

_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700


@dataclass(slots=True, kw_only=True)
class PutEntryAction:
    """Puts an entry of any kind at a path."""

    call: StepContext
    index: int
    step: PutEntry
    _place: DirectorySlot | None = None
    _ours: tuple[int, int] = (0, 0)
    """The identity of what was written beside."""
    _visible: bool = False
    """What was written beside has its name."""
    _displaced: str = ""
    """The name that what was there has now."""
    _seen: DisplacedFile | None = None

    def stage(self) -> None:
        """Nothing is done before."""

    def publish(self) -> None:
        place = self._place = self.call.directories.find_slot(self.step.target)
        if self.step.version.kind == "directory":
            self._make_directory(place)
            return
        self._write_beside(place)
        if (status := place.read_status(self._temp)) is not None:
            self._ours = file_identity(status)
        if self.step.expected is None:
            self._make_visible(place)
            return
        try:
            self.call.kernel.swap(place.fd, self._temp, place.name)
        except FileNotFoundError as error:
            raise vanished_error(place.key, self.step.expected.sha256) from error
        except Unsupported:
            self._rename_over(place, self.step.expected)
            return
        self._visible, self._displaced, place.directory.dirty = True, self._temp, True
        self._seen = check_entry(place, self._temp, self.step.expected)

    def _make_visible(self, place: DirectorySlot) -> None:
        try:
            self.call.move_new(place, self._temp, place, place.name)
        except FileExistsError as error:
            status = place.read_status()
            raise name_taken_error(status.st_mode if status else stat.S_IFREG, place.key) from error
        self._visible = True

    def _make_directory(self, place: DirectorySlot) -> None:
        os.mkdir(place.name, _PRIVATE_DIRECTORY, dir_fd=place.fd)  # its facts follow when its entries are there
        self._visible, place.directory.dirty = True, True

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
        """Replace where two names cannot be swapped: what is there gets another name first."""
        old = self.call.temp_name(self.index, "old")
        try:
            os.rename(place.name, old, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except FileNotFoundError as error:
            raise vanished_error(place.key, expected.sha256) from error
        self._displaced, place.directory.dirty = old, True
        self._seen = check_entry(place, old, expected)
        self._make_visible(place)

    def confirm(self) -> None:
        """Do nothing: what was displaced has been checked."""

    def undo(self) -> None:
        place = self._place
        if place is None:
            return
        if self.step.version.kind == "directory":
            if self._visible:
                self.call.directories.forget(self.step.target)
                os.rmdir(place.name, dir_fd=place.fd)
            return
        if self._displaced == self._temp:
            self._swap_back(place)
        else:
            if self._visible:
                self._withdraw(place)
            if self._displaced:
                put_back(self.call, place, self._displaced, place)
                self._displaced = ""
        self._drop_ours(place)

    def _swap_back(self, place: DirectorySlot) -> None:
        """Put what was displaced back, unless another program has replaced or removed ours: that is the newest."""
        self._visible, self._displaced, place.directory.dirty = False, "", True
        with suppress(FileNotFoundError):
            self.call.kernel.swap(place.fd, self._temp, place.name)
            if self._has_ours(place):
                return
            self.call.kernel.swap(place.fd, self._temp, place.name)
        if examine_entry(place, self._temp, require_staged(self.step.expected)) is None:
            self.call.keep_file(place, self._temp)

    def _withdraw(self, place: DirectorySlot) -> None:
        """Take ours away again; a newer file that replaced it stays."""
        with suppress(FileNotFoundError):
            os.rename(place.name, self._temp, src_dir_fd=place.fd, dst_dir_fd=place.fd)
            if not self._has_ours(place):
                put_back(self.call, place, self._temp, place)
        self._visible, place.directory.dirty = False, True

    def _has_ours(self, place: DirectorySlot) -> bool:
        status = place.read_status(self._temp)
        return status is not None and file_identity(status) == self._ours

    def _drop_ours(self, place: DirectorySlot) -> None:
        """Remove what was written beside, if it has no other name by now; what was written into it since is kept."""
        status = place.read_status(self._temp)
        is_last = status is not None and file_identity(status) == self._ours and status.st_nlink == 1
        if is_last and examine_entry(place, self._temp, self.step.version) is None:
            self.call.keep_file(place, self._temp)
        self.call.drop_file(place, self._temp, None)

    def clean_up(self) -> None:
        if self._displaced:
            drop_displaced(self.call, require_staged(self._place), self._displaced, self._seen)

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
    _seen: DisplacedFile | None = None

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
            refuge = self._refuge = self._find_refuge()
            os.rename(place.name, self._old, src_dir_fd=place.fd, dst_dir_fd=refuge.fd)
        except FileNotFoundError as error:
            raise vanished_error(self.step.target.key, expected.sha256) from error
        self._taken, place.directory.dirty, refuge.directory.dirty = True, True, True
        self._seen = check_entry(refuge, self._old, expected)

    def _find_refuge(self) -> DirectorySlot:
        return replace(self.call.directories.find_slot(self.step.refuge), key=self.step.target.key)

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
            put_back(self.call, self._find_refuge(), self._old, place)
        self._taken = False

    def clean_up(self) -> None:
        if self._refuge is not None:
            drop_displaced(self.call, self._refuge, self._old, self._seen)

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
        self._begun = True
        facts = self.step.after
        if self.step.kind == "directory":  # what was displaced in it goes at the end: until then we may write there
            facts = replace(facts, mode=facts.mode | _PRIVATE_DIRECTORY)
        try:
            set_facts(self._path(), self.step.kind, facts)
        except NotTheKind as error:
            raise displaced_error(self.step.target.key, self.step.kind, None) from error

    def confirm(self) -> None:
        """Nothing was displaced."""

    def undo(self) -> None:
        if self._begun:
            with suppress(FileNotFoundError, NotTheKind):  # it was replaced or removed, facts and all
                set_facts(self._path(), self.step.kind, self.step.before)

    def clean_up(self) -> None:
        """Set the facts of a directory once more: it is complete, and dropping what was displaced has changed its time."""
        if self.step.kind == "directory":
            with suppress(NotTheKind):  # a later step has put something else there
                set_facts(self._path(), "directory", self.step.after)

    def _path(self) -> str:
        tree, target = self.call.directories.tree, self.step.target
        if not target.parts:
            return entry_path(tree.root_fd(tree.root_of(target)), ".")
        place = self.call.directories.find_slot(target)
        return entry_path(place.fd, place.name)


def check_entry(place: DirectorySlot, name: str, expected: Version) -> DisplacedFile:
    """Return what has a name; refuse when it is not what was expected."""
    seen = examine_entry(place, name, expected)
    if seen is None:
        raise displaced_error(place.key, expected.sha256, None)
    return seen


def examine_entry(place: DirectorySlot, name: str, version: Version) -> DisplacedFile | None:
    """Return what has a name, if it is an entry of this kind with this content."""
    status = place.read_status(name)
    if status is None or stat.S_IFMT(status.st_mode) != ENTRY_TYPES[version.kind]:
        return None
    seen = DisplacedFile(sha256=version.sha256, status=status)
    match version.kind:
        case "file":
            try:
                seen = hash_entry(place, name)
            except PermissionError:  # not for us to read, and so not for us to have changed
                return seen if status.st_size == version.size else None
            return seen if seen.sha256 == version.sha256 else None
        case "link":
            leads_to = os.fsencode(os.readlink(name, dir_fd=place.fd))
            return seen if sha256_hex(leads_to) == version.sha256 else None
        case _:
            return seen


def drop_displaced(call: StepContext, place: DirectorySlot, name: str, seen: DisplacedFile | None) -> None:
    """Remove a displaced entry; a program that has it open for writing is waited for, and what it wrote is kept."""
    status = place.read_status(name)
    if status is None or not is_regular(status) or status.st_nlink > 1:  # its bytes have another name
        call.drop_file(place, name, None)
        return
    with suppress(PermissionError):  # not for us to read
        watch_file(call.kernel, partial(open_own, place.fd, name), seconds=LATE_WRITER_WAIT_SECONDS).close()
    call.drop_file(place, name, seen)


def _write_with_holes(fd: int, data: bytes, holes: Holes) -> None:
    at, view = 0, memoryview(data)
    for begin, end in (*holes, (len(data), len(data))):
        if begin > at:
            write_at(fd, view[at:begin], at)
        at = max(at, end)
    os.ftruncate(fd, len(data))

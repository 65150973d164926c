"""The actions that create and remove files. Each is atomic: a path has its old state before, its new state after.

Rules:
1. `stage` prepares and makes nothing visible. `publish` is one system call that changes what is at the path, then a
   check of what it displaced; unexpected bytes make it raise.
2. `undo` may be called at any time after a failure. It checks the directory, not what was meant to happen, so it is
   right wherever the failure occurred.
3. A version written by an outside program is never dropped: the newest stays at the path, an older one goes to `keep`.
4. `clean_up` is called after everything is durable and only drops what was displaced.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from surehold.disk.base import Create, Target
from surehold.disk.errno_errors import name_taken_error, no_parent_error, open_for_writing_error, translate_vanished
from surehold.disk.kernel import Unsupported
from surehold.disk.steps.staging import (
    DirectorySlot,
    DisplacedFile,
    StepContext,
    check_displaced,
    hash_entry,
    open_temporary,
    require_staged,
)
from surehold.disk.steps.watched import FileWatch, WatchedEntry, watch_entry
from surehold.disk.tree import file_identity, restore_metadata, write_all
from surehold.errors import StaleFile

_MAX_NAMELESS_FILES = 64  # each holds a descriptor open until it is published


class StepAction(Protocol):
    """One step of a change, while it is being applied."""

    def stage(self) -> None:
        """Prepare it, invisibly."""
        ...

    def publish(self) -> None:
        """Make it visible."""
        ...

    def confirm(self) -> None:
        """Check once more, when everything is durable, that no program waits to write to what was displaced."""
        ...

    def undo(self) -> None:
        """Bring the old state back, however far it got, and remove what was staged."""
        ...

    def clean_up(self) -> None:
        """Drop what was displaced."""
        ...


@dataclass(slots=True, kw_only=True)
class CreateAction:
    """Creates a file where nothing exists."""

    call: StepContext
    index: int
    target: Target
    fill: Callable[[int], str]
    """Writes bytes and metadata into a descriptor and returns the sha256 of the bytes."""
    parents: bool = True
    """Missing directories are made."""
    _place: DirectorySlot | None = None
    _fd: int = -1
    """The nameless file, while it has no name."""
    _temp: str = ""
    _identity: tuple[int, int] = (0, 0)
    _sha256: str = ""
    _begun: bool = False

    def stage(self) -> None:
        place = self._place = self._find_slot()
        status = place.read_status()
        if status is not None:
            raise name_taken_error(status.st_mode, self.target.key)
        try:
            if self.index >= _MAX_NAMELESS_FILES:
                raise Unsupported  # noqa: TRY301  # the fallback is the same, whoever asks for it
            fd = self._fd = self.call.kernel.open_nameless(place.fd, 0o666)
        except Unsupported:
            temp = self.call.temp_name(self.index, "tmp")
            fd = open_temporary(place, temp, 0o666)
            self._temp = temp
        try:
            self._sha256 = self.fill(fd)
            self._identity = file_identity(os.fstat(fd))
            self.call.sync_file(fd)
        finally:
            if self._temp:
                os.close(fd)

    def publish(self) -> None:
        place = require_staged(self._place)
        self._begun = True
        try:
            if self._temp:
                self.call.move_new(place, self._temp, place, place.name)
            else:
                self.call.kernel.give_name(self._fd, place.fd, place.name)
        except FileExistsError as error:
            status = place.read_status()
            raise name_taken_error(status.st_mode if status else stat.S_IFREG, self.target.key) from error
        place.directory.dirty = True
        self._close_file()

    def confirm(self) -> None:
        """Nothing was displaced."""

    def undo(self) -> None:
        self._close_file()
        if self._place is None:
            return
        if self._temp:
            self.call.drop_file(self._place, self._temp, None)
        status = self._place.read_status() if self._begun else None
        if status is not None and file_identity(status) == self._identity:
            remove_ours(self.call, self.index, self._place, self._sha256)

    def clean_up(self) -> None:
        """Nothing was displaced."""

    def _find_slot(self) -> DirectorySlot:
        try:
            return self.call.directories.find_slot(self.target, make=self.parents)
        except FileNotFoundError as error:
            if self.parents:
                raise
            raise no_parent_error(self.target.key) from error

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def create_action(call: StepContext, index: int, step: Create) -> CreateAction:
    def write_content(fd: int) -> str:
        sha256 = write_all(fd, (step.data,))
        if step.meta is not None:
            restore_metadata(fd, step.meta, mode=step.mode)
        elif step.mode is not None:
            os.fchmod(fd, step.mode)
        return sha256

    return CreateAction(call=call, index=index, target=step.target, fill=write_content, parents=step.parents)


@dataclass(slots=True, kw_only=True)
class RemoveAction:
    """Removes a file: renames it first, and deletes it once everything else is done."""

    call: StepContext
    index: int
    target: Target
    expected: str
    watch: FileWatch | None = None
    """The watch that the reader of the file began."""
    place: DirectorySlot | None = None
    """Where the file is; found by `stage`."""
    entry: WatchedEntry | None = None
    """The file, watched; None for one that this call made itself."""
    _seen: DisplacedFile | None = None

    def stage(self) -> None:
        self.entry = watch_entry(self.call, self.target, self.expected, self.watch)
        self.place = self.entry.place
        if self.entry.watch.is_open_elsewhere:
            raise open_for_writing_error(self.target.key, removes=True)

    def publish(self) -> None:
        place, old = require_staged(self.place), self.old_name
        if self.entry is not None:
            self.entry.check_undisturbed()
        with translate_vanished(self.target.key, self.expected):
            try:
                self.call.kernel.rename_new(place.fd, place.name, place.fd, old)
            except Unsupported:
                # No other program uses this name, so nothing can be overwritten.
                os.rename(place.name, old, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        place.directory.dirty = True
        if self.entry is not None and not self.entry.is_displaced_as(old):
            raise self.entry.disturbed_error(old)
        self._seen = self.entry.examine_displaced(old) if self.entry is not None else hash_entry(place, old)
        check_displaced(self._seen, self.expected, self.target.key)

    def confirm(self) -> None:
        if self.entry is not None:
            self.entry.check_settled()

    def undo(self) -> None:
        if self.place is not None and self.place.read_status(self.old_name) is not None:
            put_back(self.call, self.place, self.old_name, self.place)
        if self.entry is not None:
            self.entry.close()

    def clean_up(self) -> None:
        if self.entry is None:
            self.call.drop_file(require_staged(self.place), self.old_name, self._seen)
        else:
            self.entry.drop_displaced(self.old_name, self._seen)
            self.entry.close()

    @property
    def old_name(self) -> str:
        return self.call.temp_name(self.index, "old")


def put_back(call: StepContext, source: DirectorySlot, name: str, place: DirectorySlot) -> None:
    """Move displaced bytes to their path again; if a newer file is there by now, it stays and they are kept."""
    try:
        call.move_new(source, name, place, place.name)
    except FileExistsError:
        there, displaced_file = place.read_status(), source.read_status(name)
        if there is None or displaced_file is None or file_identity(there) != file_identity(displaced_file):
            call.keep_file(source, name)
        call.drop_file(source, name, None)


def remove_ours(call: StepContext, index: int, place: DirectorySlot, sha256: str) -> None:
    """Remove a file that this call made, unless another program wrote to it since."""
    target = Target(root="", parts=(place.name,), key=place.key)
    ours = RemoveAction(call=call, index=index, target=target, expected=sha256, place=place)
    try:
        ours.publish()
    except StaleFile:
        ours.undo()
    except OSError:
        ours.undo()
        raise
    else:
        ours.clean_up()

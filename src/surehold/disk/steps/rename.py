"""The action that gives a file another name: by renaming, by linking, or by copying.

Rules:
1. An existing file at the new name is never overwritten.
2. Renaming is the default. Where a rename could overwrite, the file gets its second name by a link, then loses the
   first.
3. Across file systems the bytes and metadata are copied, and the source is removed only after the copy exists.
"""

import errno
import os
from dataclasses import dataclass

from surehold.disk.base import Rename
from surehold.disk.errno_errors import displaced_error, name_taken_error, open_for_writing_error, vanished_error
from surehold.disk.kernel import Unsupported, close_after
from surehold.disk.steps.create_remove import CreateAction, RemoveAction, put_back
from surehold.disk.steps.staging import (
    DirectorySlot,
    StepContext,
    check_displaced,
    hash_entry,
    link_file,
    require_staged,
)
from surehold.disk.steps.watched import FileWatch, WatchedEntry, watch_entry
from surehold.disk.tree import READ_FLAGS, file_identity, meta_of, open_entry, read_pieces, restore_metadata, write_all


@dataclass(slots=True, kw_only=True)
class RenameAction:
    """Gives a file another name."""

    call: StepContext
    index: int
    step: Rename
    watch: FileWatch | None = None
    """The watch that the reader of the file began."""
    _entry: WatchedEntry | None = None
    _source: DirectorySlot | None = None
    _target: DirectorySlot | None = None
    _identity: tuple[int, int] = (0, 0)
    _copy: CreateAction | None = None
    _removal: RemoveAction | None = None
    """How the old name goes, when it does not go by itself."""
    _moved: bool = False
    _linked: tuple[int, int] | None = None
    """The file that has both names."""

    def stage(self) -> None:
        entry = self._entry = watch_entry(self.call, self.step.source, self.step.expected, self.watch)
        source = self._source = entry.place
        target = self._target = self.call.directories.find_slot(self.step.target, make=True)
        status = source.read_status()
        if status is None:
            raise vanished_error(self.step.source.key, self.step.expected)
        self._identity = file_identity(status)
        there = target.read_status()
        if there is not None and not self._is_other_case(source, target, there):
            raise name_taken_error(there.st_mode, target.key)
        if status.st_dev != os.fstat(target.fd).st_dev:
            self._stage_copy(source)

    def _is_other_case(self, source: DirectorySlot, target: DirectorySlot, there: os.stat_result) -> bool:
        """Tell whether both names are one file because the file system does not know case."""
        same = file_identity(there) == self._identity and there.st_nlink == 1 and source.fd == target.fd
        return same and source.name != target.name and source.name.casefold() == target.name.casefold()

    def _stage_copy(self, source: DirectorySlot) -> None:
        if require_staged(self._entry).watch.is_open_elsewhere:
            raise open_for_writing_error(source.key, removes=True)

        def copy_content(fd: int) -> str:
            with close_after(open_entry(source.fd, source.name, READ_FLAGS)) as original:
                sha256 = write_all(fd, read_pieces(original))
                if sha256 != self.step.expected:
                    raise displaced_error(source.key, self.step.expected, sha256)
                restore_metadata(fd, meta_of(original, os.fstat(original)), mode=None)
            return sha256

        self._copy = CreateAction(call=self.call, index=self.index, target=self.step.target, fill=copy_content)
        self._copy.stage()

    def publish(self) -> None:
        source, target = require_staged(self._source), require_staged(self._target)
        entry = require_staged(self._entry)
        entry.check_undisturbed()
        if self._copy is not None:
            self._copy.publish()
            self._remove_source(source)
            return
        try:
            self.call.kernel.rename_new(source.fd, source.name, target.fd, target.name)
        except Unsupported:
            self._publish_link(source, target)
            return
        except FileNotFoundError as error:
            raise vanished_error(source.key, self.step.expected) from error
        except FileExistsError as error:
            self._change_case(source, target, error)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._publish_copy(source)
            return
        self._moved = True
        source.directory.dirty = target.directory.dirty = True
        if not entry.watch.is_leased:
            check_displaced(hash_entry(target, target.name), self.step.expected, source.key)
        entry.watch.close()  # who waits for the file writes to the same file under its new name

    def _publish_link(self, source: DirectorySlot, target: DirectorySlot) -> None:
        try:
            link_file(source.fd, source.name, target.fd, target.name)
        except Unsupported:
            self._publish_copy(source)
            return
        except FileNotFoundError as error:
            raise vanished_error(source.key, self.step.expected) from error
        except FileExistsError as error:
            self._change_case(source, target, error)
            self._moved = True
            return
        self._linked = self._identity
        target.directory.dirty = True
        there = target.read_status()
        # The source may have become another file since it was staged; the check of its bytes comes next.
        self._linked = file_identity(there) if there else None
        entry = require_staged(self._entry)
        entry.note_link(there)
        self._remove_source(source)
        entry.watch.close()

    def _change_case(self, source: DirectorySlot, target: DirectorySlot, error: FileExistsError) -> None:
        there = target.read_status()
        if there is None or not self._is_other_case(source, target, there):
            raise name_taken_error(there.st_mode if there else 0, target.key) from error
        os.rename(source.name, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd)

    def _publish_copy(self, source: DirectorySlot) -> None:
        self._stage_copy(source)
        self.publish()

    def _remove_source(self, source: DirectorySlot) -> None:
        self._removal = RemoveAction(
            call=self.call,
            index=self.index,
            target=self.step.source,
            expected=self.step.expected,
            place=source,
            entry=self._entry,
        )
        self._removal.publish()

    def confirm(self) -> None:
        if self._removal is not None:  # else the file only has another name
            self._removal.confirm()

    def undo(self) -> None:
        if self._source is not None and self._target is not None:
            self._move_back(self._source, self._target)
        if self._entry is not None:
            self._entry.close()

    def _move_back(self, source: DirectorySlot, target: DirectorySlot) -> None:
        if self._removal is not None:
            self._removal.undo()
        if self._copy is not None:
            self._copy.undo()
        elif self._linked:
            self._unlink_target(source, target)
        elif self._moved and target.read_status() is not None:
            put_back(self.call, target, target.name, source)

    def _unlink_target(self, source: DirectorySlot, target: DirectorySlot) -> None:
        """Remove the second name, unless it is another program's by now."""
        there, original = target.read_status(), source.read_status()
        if there is None or file_identity(there) != self._linked:
            return
        if original is None or file_identity(original) != self._linked:
            self.call.keep_file(target, target.name)
        self.call.drop_file(target, target.name, None)

    def clean_up(self) -> None:
        if self._removal is not None and self._linked:  # another name of the file, which lives on
            self.call.drop_file(require_staged(self._source), self._removal.old_name, None)
        elif self._removal is not None:
            self._removal.clean_up()
        require_staged(self._entry).close()

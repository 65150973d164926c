"""Another name for a file: by renaming, by linking, or by copying.

Rules:
1. Nothing that has the new name already is overwritten.
2. Renaming is the rule. Where a rename could overwrite, the file gets its second name by a link, then loses the first.
3. Across file systems the bytes and facts are copied, and the source is taken away only after the copy is there.
"""

import errno
import os
from dataclasses import dataclass

from surehold.disk.atomic import Creation, Removal, check, existing, put_back
from surehold.disk.base import Rename
from surehold.disk.content import READING, pieces, write_all
from surehold.disk.facts import meta_of, restore_facts
from surehold.disk.failures import displaced, taken, vanished
from surehold.disk.kernel import Unsupported
from surehold.disk.places import Place
from surehold.disk.staging import Call, identity, link, look
from surehold.disk.tree import open_entry


@dataclass(slots=True, kw_only=True)
class Renaming:
    """Gives a file another name."""

    call: Call
    index: int
    step: Rename
    _source: Place | None = None
    _target: Place | None = None
    _identity: tuple[int, int] = (0, 0)
    _copy: Creation | None = None
    _removal: Removal | None = None
    """How the old name goes, when it does not go by itself."""
    _moved: bool = False
    _linked: tuple[int, int] | None = None
    """The file that has both names."""

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.step.target.key

    def stage(self) -> None:
        """Prepare it, invisibly."""
        self._source = existing(self.call, self.step.source, self.step.expected)
        self._target = self.call.directories.new_place(self.step.target)
        source, target = self._places()
        status = source.status()
        if status is None:
            raise vanished(self.step.source.key, self.step.expected)
        self._identity = identity(status)
        self._check_free(source, target)
        if status.st_dev != os.fstat(target.fd).st_dev:
            self._stage_copy(source)

    def _check_free(self, source: Place, target: Place) -> None:
        there = target.status()
        if there is not None and not self._is_other_case(source, target, there):
            raise taken(there.st_mode, self.key)

    def _is_other_case(self, source: Place, target: Place, there: os.stat_result) -> bool:
        """Tell whether both names are one file because the file system does not know case."""
        same = identity(there) == self._identity and there.st_nlink == 1 and source.fd == target.fd
        return same and source.name != target.name and source.name.casefold() == target.name.casefold()

    def _stage_copy(self, source: Place) -> None:
        def fill(fd: int) -> str:
            original = open_entry(source.fd, source.name, READING)
            try:
                sha256 = write_all(fd, pieces(original))
                if sha256 != self.step.expected:
                    raise displaced(source.key, self.step.expected, sha256)
                restore_facts(fd, meta_of(original, os.fstat(original)), mode=None)
            finally:
                os.close(original)
            return sha256

        self._copy = Creation(call=self.call, index=self.index, target=self.step.target, fill=fill)
        self._copy.stage()

    def publish(self) -> None:
        """Make it visible."""
        source, target = self._places()
        if self._copy is not None:
            self._copy.publish()
            self._remove(source)
            return
        try:
            self.call.kernel.rename_new(source.fd, source.name, target.fd, target.name)
        except Unsupported:
            self._publish_link(source, target)
            return
        except FileNotFoundError as error:
            raise vanished(source.key, self.step.expected) from error
        except FileExistsError as error:
            self._change_case(source, target, error)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._publish_copy(source)
            return
        self._moved = True
        source.directory.dirty = target.directory.dirty = True
        check(look(target, target.name), self.step.expected, source.key)

    def _publish_link(self, source: Place, target: Place) -> None:
        try:
            link(source.fd, source.name, target.fd, target.name)
        except Unsupported:
            self._publish_copy(source)
            return
        except FileNotFoundError as error:
            raise vanished(source.key, self.step.expected) from error
        except FileExistsError as error:
            self._change_case(source, target, error)
            self._moved = True
            return
        self._linked = self._identity
        target.directory.dirty = True
        there = target.status()
        # The source may have become another file since it was staged; the check of its bytes comes next.
        self._linked = identity(there) if there else None
        self._remove(source)

    def _change_case(self, source: Place, target: Place, error: FileExistsError) -> None:
        there = target.status()
        if there is None or not self._is_other_case(source, target, there):
            raise taken(there.st_mode if there else 0, self.key) from error
        os.rename(source.name, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd)

    def _publish_copy(self, source: Place) -> None:
        self._stage_copy(source)
        self.publish()

    def _remove(self, source: Place) -> None:
        self._removal = Removal(call=self.call, index=self.index, target=self.step.source, expected=self.step.expected)
        self._removal.at(source)
        self._removal.publish()

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        if self._source is None or self._target is None:
            return
        if self._removal is not None:
            self._removal.undo()
        if self._copy is not None:
            self._copy.undo()
        elif self._linked:
            self._unlink(self._source, self._target)
        elif self._moved and self._target.status() is not None:
            put_back(self.call, self._target, self._target.name, self._source)

    def _unlink(self, source: Place, target: Place) -> None:
        """Take the second name away, unless it is somebody else's by now."""
        there, original = target.status(), source.status()
        if there is None or identity(there) != self._linked:
            return
        if original is None or identity(original) != self._linked:
            self.call.keep_file(target, target.name)
        self.call.drop(target, target.name, None)

    def settle(self) -> None:
        """Drop what was displaced."""
        if self._removal is not None:
            self._removal.settle()

    def _places(self) -> tuple[Place, Place]:
        assert self._source is not None, "a step is staged before it is published"
        assert self._target is not None, "a step is staged before it is published"
        return self._source, self._target

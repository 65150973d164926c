"""The disk of this machine. The modules that write are loaded by the first write: most commands only read."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Self

from surehold.disk import listing, paths
from surehold.disk.base import DirectoryEntry, EntryStat, Step, StoredFile, Target
from surehold.disk.errno_errors import as_surehold_error, not_a_file_error, translate_os_errors
from surehold.disk.kernel import Kernel, is_coherent
from surehold.disk.locks import DirectoryLocks, lock_file
from surehold.disk.tree import READ_FLAGS, Tree, is_regular, is_unchanged, meta_of, read_all, read_pieces
from surehold.errors import FileTooLarge, LockTimeout, NotFound, StaleFile

if TYPE_CHECKING:
    from surehold.disk.steps.staging import Durability

_MAX_READ_ATTEMPTS = 3
_LOCK_WAIT_SECONDS = 1.0


class LocalDisk:
    """Files below one or more directories; safe to be used by several threads."""

    def __init__(
        self,
        roots: Sequence[str | os.PathLike[str]],
        *,
        durability: "Durability" = "full",
        kernel: Kernel | None = None,
        lock_dir: str | None = None,
    ) -> None:
        self._tree = Tree([os.fspath(root) for root in roots], kernel=kernel or Kernel())
        self._durability: Durability = durability
        self._coherent: bool | None = None
        self._locks = DirectoryLocks(self._tree, fallback_dir=lock_dir)

    def close(self) -> None:
        self._tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(root.path for root in self._tree.roots)

    @property
    def is_coherent(self) -> bool:
        """Whether every root is on a file system of this machine alone."""
        if self._coherent is None:
            self._coherent = all(is_coherent(root) for root in self.roots)
        return self._coherent

    def resolve(self, path: str) -> Target:
        return paths.resolve_path(self._tree, path)

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        for _ in range(_MAX_READ_ATTEMPTS):
            fd = self._open_file(target)
            if fd is None:
                return None
            try:
                with translate_os_errors(target.key):
                    stored = _read_once(fd, target, limit)
            finally:
                os.close(fd)
            if stored is not None:
                return stored
        raise _unstable_error(target)

    def read_chunks(self, target: Target) -> Iterator[bytes]:
        """Yield the file in pieces; `StaleFile` at the end when it changed during the read."""
        fd = self._open_file(target)
        if fd is None:
            raise NotFound(f"There is no file `{target}`.", path=target.key)
        try:
            with translate_os_errors(target.key):
                before = _regular_status(fd, target)
                yield from read_pieces(fd)
                if not is_unchanged(before, os.fstat(fd)):
                    raise _unstable_error(target)
        finally:
            os.close(fd)

    def read_heads(self, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
        return listing.read_heads(self._tree, directory, names, count)

    def list_entries(self, directory: Target) -> list[DirectoryEntry]:
        return listing.list_entries(self._tree, directory)

    def stat_entries(self, directory: Target, names: Sequence[str]) -> list[EntryStat | None]:
        return listing.stat_entries(self._tree, directory, names)

    def target_below(self, directory: Target, names: Sequence[str]) -> Target:
        return listing.target_below(self._tree, directory, names)

    def open_directory(self, directory: Target) -> AbstractContextManager[int]:
        return listing.open_directory(self._tree, directory)

    def _open_file(self, target: Target) -> int | None:
        try:
            return self._tree.open_target(target, READ_FLAGS)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                return None
            raise as_surehold_error(error, target.key) from error

    def lock(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        """Hold all targets, against other threads and processes; what writes is loaded now, not half-way."""
        import_module("surehold.disk.steps.writer")  # an import that fails must fail before anything has happened
        return self._locks.lock(targets, timeout=timeout)

    def apply(
        self,
        steps: Sequence[Step],
        *,
        tag: str,
        fence: Callable[[], None],
        keep: Callable[[bytes], None],
    ) -> None:
        from surehold.disk.steps import writer

        writer.apply_steps(self._tree, steps, tag=tag, fence=fence, keep=keep, durability=self._durability)

    def replaces_in_place(self, target: Target) -> bool:
        from surehold.disk.steps import writer

        return writer.replaces_in_place(self._tree, target)

    def remove_leftovers(self, targets: Sequence[Target], *, tag: str, keep: Callable[[bytes], None]) -> None:
        from surehold.disk.steps import writer

        writer.remove_leftovers(self._tree, targets, tag=tag, keep=keep)

    def write_caution(self, target: Target) -> str:
        del target
        return ""


def _regular_status(fd: int, target: Target) -> os.stat_result:
    status = os.fstat(fd)
    if not is_regular(status):
        raise not_a_file_error(status.st_mode, target.key)
    if status.st_nlink > 1 or status.st_uid != os.geteuid():
        # Such a file is written in place; without this we could read it half written, in one tick of its clock. When
        # some other program keeps it locked, we read without: a write would notice torn bytes by their hash.
        with suppress(LockTimeout):
            lock_file(fd, target.key, shared=True, timeout=_LOCK_WAIT_SECONDS)
        return os.fstat(fd)
    return status


def _read_once(fd: int, target: Target, limit: int) -> StoredFile | None:
    before = _regular_status(fd, target)
    size = before.st_size
    data = read_all(fd, size=size, limit=limit) if size <= limit else b""
    if size > limit or len(data) > limit:
        size = max(size, len(data))
        raise FileTooLarge(f"`{target}` has {size} bytes, more than {limit}.", path=target.key, size=size, limit=limit)
    meta = meta_of(fd, before)
    # The attributes are read before the second look, so they belong to the same moment.
    if not is_unchanged(before, os.fstat(fd)):
        return None
    return StoredFile(data=data, meta=meta, links=before.st_nlink)


def _unstable_error(target: Target) -> StaleFile:
    return StaleFile(
        f"`{target}` kept changing while it was read.",
        path=target.key,
        reason="unstable_read",
        action="Read it again when the other program is done.",
    )

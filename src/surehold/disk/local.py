"""The disk of this machine. The modules that write are loaded by the first write: most commands only read."""

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Self

from surehold.disk.base import (
    EntryStat,
    EntryType,
    KeepBytes,
    OpenListing,
    Step,
    StoredEntry,
    StoredFile,
    Target,
    step_targets,
)
from surehold.disk.errno_errors import (
    as_surehold_error,
    missing_error,
    not_a_file_error,
    not_listable_error,
    root_replaced_error,
    too_large_error,
    translate_os_errors,
)
from surehold.disk.kernel import O_CLOEXEC, Kernel, close_after, is_coherent
from surehold.disk.locks import NameLocks, lock_file
from surehold.disk.paths import resolve_path
from surehold.disk.steps.watched import LeasedFile, LeaveWork, WatchedFiles, open_patiently
from surehold.disk.tree import (
    DIRECTORY_FLAGS,
    LISTED_DIRECTORY_FLAGS,
    READ_FLAGS,
    Tree,
    is_regular,
    is_unchanged,
    meta_of,
    read_all,
    read_pieces,
)
from surehold.errors import LockTimeout, NotFound, StaleFile

if TYPE_CHECKING:
    from surehold.disk.steps.staging import Durability

_MAX_READ_ATTEMPTS = 3
_OPEN_ELSEWHERE_CAUTION = "Another program has `{key}` open for writing; look whether that program noticed the change."
_LOCK_WAIT_SECONDS = 1.0
_TYPE_BITS = 0o170000
_make_stat: Callable[[tuple[EntryType, int, int, int]], EntryStat] = partial(tuple.__new__, EntryStat)  # pyright: ignore[reportUnknownMemberType]
"""Makes the metadata of a tuple, without a call of ours: a directory may be large."""
_TYPES: dict[int, EntryType] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


class LocalDisk:
    """Files below one or more directories; safe to be used by several threads."""

    def __init__(
        self,
        roots: Sequence[str | os.PathLike[str]],
        *,
        durability: "Durability" = "full",
        kernel: Kernel | None = None,
        lock_dir: str | None = None,
        leave: LeaveWork | None = None,
    ) -> None:
        """Take the roots; `leave` has the blocks of replaced files freed while the caller goes on."""
        self._tree = Tree([os.fspath(root) for root in roots], kernel=kernel or Kernel())
        self._durability: Durability = durability
        self._coherent: bool | None = None
        self._locks = NameLocks(self._tree, fallback_dir=lock_dir)
        self._watches = WatchedFiles(self._tree.kernel, leave)

    def close(self) -> None:
        self._tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(root.path for root in self._tree.roots)

    @property
    def shows_saved(self) -> bool:
        return True

    @property
    def is_coherent(self) -> bool:
        """Whether every root is on a file system of this machine alone."""
        if self._coherent is None:
            self._coherent = all(is_coherent(root) for root in self.roots)
        return self._coherent

    def resolve(self, path: str) -> Target:
        return resolve_path(self._tree, path)

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        for _ in range(_MAX_READ_ATTEMPTS):
            fd = self._open_file(target)
            if fd is None:
                return None
            with close_after(fd), translate_os_errors(target.key):
                stored = _read_once(fd, target, limit)
            if stored is not None:
                return stored
        raise _unstable_error(target)

    def read_chunks(self, target: Target) -> Iterator[bytes]:
        """Yield the file in pieces; `StaleFile` at the end when it changed during the read."""
        fd = self._open_file(target)
        if fd is None:
            raise missing_error(target.key)
        with close_after(fd), translate_os_errors(target.key):
            before = _regular_status(fd, target)
            yield from read_pieces(fd)
            if not is_unchanged(before, os.fstat(fd)):
                raise _unstable_error(target)

    @contextmanager
    def open_steady(self, target: Target) -> Generator[LeasedFile | None]:
        fd = self._open_file(target) if self.is_coherent else None
        if fd is None:
            yield None
            return
        with close_after(fd), translate_os_errors(target.key):
            kernel = self._tree.kernel
            leased = is_regular(os.fstat(fd)) and kernel.take_lease(fd, exclusive=False) == "held"
            unstable = _unstable_error(target)
            yield LeasedFile(kernel=kernel, fd=fd, status=os.fstat(fd), unstable=unstable) if leased else None

    def read_heads(self, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
        with self._open_listed(directory, DIRECTORY_FLAGS) as fd:
            return [_read_head(fd, name, count) for name in names]

    def locate(self, key: str) -> Target:
        from surehold.disk.entries import locate_key

        return locate_key(self._tree, key)

    def read_entry(self, target: Target, *, limit: int) -> StoredEntry | None:
        from surehold.disk.entries import read_located

        return read_located(self._tree, target, limit=limit)

    def lock_located(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        from surehold.disk.entries import nearest_targets

        find_nearest = partial(nearest_targets, self._tree, targets)
        return self._hold(targets, self._locks.lock_directories(find_nearest, timeout=timeout))

    def missing_directories(self, target: Target) -> tuple[str, ...]:
        from surehold.disk.entries import missing_above

        return missing_above(self._tree, target)

    def open_listing(self, directory: Target) -> OpenListing:
        fd = self._open_listed_fd(directory, LISTED_DIRECTORY_FLAGS)
        try:
            with translate_os_errors(directory.key):
                return _LocalListing(fd)
        except BaseException:
            os.close(fd)
            raise

    def stat_entries(self, directory: Target, names: Sequence[str]) -> list[EntryStat | None]:
        with self._open_listed(directory, DIRECTORY_FLAGS) as fd:
            return _stat_names(fd, names)

    def target_below(self, directory: Target, names: Sequence[str]) -> Target:
        tree = self._tree
        return tree.target_of((*tree.root_of(directory).names, *directory.parts, *names))

    def open_directory(self, directory: Target) -> AbstractContextManager[int]:
        return self._open_listed(directory, LISTED_DIRECTORY_FLAGS)

    def _open_listed(self, directory: Target, flags: int) -> AbstractContextManager[int]:
        """Open a directory for a block. Its entries are opened through it, never by a path that could change."""
        return close_after(self._open_listed_fd(directory, flags))

    def _open_listed_fd(self, directory: Target, flags: int) -> int:
        key = directory.key
        try:
            return self._tree.open_target(directory, flags)
        except NotADirectoryError as error:
            raise not_listable_error(key) from error
        except FileNotFoundError as error:
            raise NotFound(f"There is no directory `{key}`.", path=key, reason="no_such_directory") from error
        except OSError as error:
            raise as_surehold_error(error, key) from error

    def _open_file(self, target: Target) -> int | None:
        try:
            return open_patiently(partial(self._tree.open_target, target), READ_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise as_surehold_error(error, target.key) from error

    def lock(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        return self._hold(targets, self._locks.lock(targets, timeout=timeout))

    @contextmanager
    def _hold(self, targets: Sequence[Target], locks: AbstractContextManager[None]) -> Generator[None]:
        """Hold all targets, against other threads and processes; what writes is loaded now, not half-way."""
        import_module("surehold.disk.steps.writer")  # an import that fails must fail before anything has happened
        self._tree.check_roots(targets)
        with locks:
            try:
                yield
            finally:
                self._watches.end(targets)

    def read_watched(self, target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        in_place = in_place or self.replaces_in_place(target)
        for _ in range(_MAX_READ_ATTEMPTS):
            try:
                watch = self._watches.begin(target, partial(self._tree.open_target, target), in_place=in_place)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                raise as_surehold_error(error, target.key) from error
            try:
                stored = _read_once(watch.fd, target, limit)
                is_current = is_unchanged(watch.status, os.fstat(watch.fd))
            except OSError as error:
                raise as_surehold_error(error, target.key) from error
            if stored is not None and is_current:
                watch.data = stored.data
                self._watches.spare_descriptors(watch)
                return stored
        raise _unstable_error(target)

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        from surehold.disk.steps import writer

        try:
            writer.apply_steps(
                self._tree,
                steps,
                tag=tag,
                fence=fence,
                keep=keep,
                durability=self._durability,
                watches=self._watches,
                leased=leased,
            )
        finally:
            self._watches.close_used([target for step in steps for target in step_targets(step)])

    def replaces_in_place(self, target: Target) -> bool:
        from surehold.disk.steps import writer

        watch = self._watches.find(target)
        return watch.in_place if watch else writer.replaces_in_place(self._tree, target)

    def remove_leftovers(self, targets: Sequence[Target], *, tag: str, keep: KeepBytes) -> None:
        from surehold.disk.steps import writer

        writer.remove_leftovers(self._tree, targets, tag=tag, keep=keep)

    def remove_empty(self, directory: Target, *, may_go: Callable[[], bool], timeout: float) -> bool:
        from surehold.disk.entries import is_empty_directory, remove_directory

        if not directory.parts or not is_empty_directory(self._tree, directory) or not may_go():
            return False
        with self.lock_located([self.target_below(directory, ["-"])], timeout=timeout):
            return remove_directory(self._tree, directory)

    def read_caution(self) -> str:
        return " ".join(root_replaced_error(root).message for root in self._tree.replaced_roots())

    def write_caution(self, target: Target) -> str:
        return _OPEN_ELSEWHERE_CAUTION.format(key=target.key) if self._watches.was_open_elsewhere(target) else ""


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
        raise too_large_error(target.key, max(size, len(data)), limit)
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


def _read_head(dir_fd: int, name: str, count: int) -> bytes | None:
    try:
        with close_after(os.open(name, READ_FLAGS | O_CLOEXEC, dir_fd=dir_fd)) as fd:
            return os.read(fd, count) if is_regular(os.fstat(fd)) else None
    except OSError:
        return None


class _LocalListing:
    """The names in an open directory. Its loops make no calls of ours: there may be very many names."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        with os.scandir(fd) as found:
            self.entries: dict[str, EntryType] = {
                each.name: "file" if each.is_file(follow_symlinks=False) else _other_type(each) for each in found
            }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def stat_entries(self, names: Sequence[str]) -> list[EntryStat | None]:
        return _stat_names(self._fd, names)

    def modified_times(self, names: Sequence[str]) -> list[int | None]:
        fd, look_at = self._fd, os.stat
        try:
            return [look_at(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns for name in names]
        except OSError:  # at least one is gone: ask again, more patiently
            return [look and look.mtime_ns for look in self.stat_entries(names)]


def _stat_names(fd: int, names: Sequence[str]) -> list[EntryStat | None]:
    found = list[EntryStat | None]()
    look_at, types, add = os.stat, _TYPES, found.append
    for name in names:
        try:
            status = look_at(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            add(None)
            continue
        kind = types.get(status.st_mode & _TYPE_BITS, "other")
        add(_make_stat((kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns)))
    return found


def _other_type(entry: "os.DirEntry[str]") -> EntryType:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "symlink" if entry.is_symlink() else "other"

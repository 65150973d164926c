"""What the steps of one call share: its open directories, its tag, its temporary names, and how foreign bytes are kept.

Rules:
1. A directory is opened once per call, without following a link, and everything in it is reached through its
   descriptor. Changed directories are synced once, at the end.
2. Directories made for a call that fails are removed again, unless they are in use by then.
3. A temporary name carries the tag of the call and is beside the file it is for: `.surehold-<tag>-<index>.tmp` holds
   new bytes before they are visible (and displaced bytes after a swap), `….old` holds displaced bytes.
4. A temporary file that may hold bytes of another program is dropped only when those bytes are at their path, are what
   was expected, or were handed to `keep`.
"""

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeVar

from surehold.disk.base import KeepBytes, Target
from surehold.disk.errno_errors import displaced_error, not_a_file_error
from surehold.disk.kernel import O_CLOEXEC, O_NOFOLLOW, Kernel, Unsupported, close_after, sync
from surehold.disk.tree import (
    DIRECTORY_FLAGS,
    LISTED_DIRECTORY_FLAGS,
    DiskRoot,
    Tree,
    has_content,
    hash_of,
    is_regular,
    open_entry,
    open_own,
    read_all,
)
from surehold.errors import RECOVER, DiskFailed, InvalidArgument, spell

_FolderKey = tuple[str, tuple[str, ...]]
_Staged = TypeVar("_Staged")


@dataclass(slots=True, kw_only=True)
class OpenDirectory:
    fd: int
    can_sync: bool = True
    dirty: bool = False
    """Whether names in it changed during this call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySlot:
    directory: OpenDirectory
    name: str
    key: str
    fd: int
    """That of the directory."""

    def read_status(self, name: str | None = None) -> os.stat_result | None:
        """Look at the entry (or at another one beside it) without following it; None when nothing is there."""
        try:
            return os.stat(name or self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


@dataclass(slots=True, kw_only=True)
class DirectoryPool:
    tree: Tree
    _open: dict[_FolderKey, OpenDirectory] = field(default_factory=dict[_FolderKey, OpenDirectory])
    _made: list[tuple[OpenDirectory, str]] = field(default_factory=list[tuple[OpenDirectory, str]])

    def find_slot(self, target: Target, *, make: bool = False) -> DirectorySlot:
        """Return where a target is; when its directory is missing, make it, or ENOENT."""
        if not target.parts:
            raise not_a_file_error(0o040000, target.key)
        directory = self._find_directory(self.tree.root_of(target), target.parts[:-1], make=make)
        return DirectorySlot(directory=directory, name=target.parts[-1], key=target.key, fd=directory.fd)

    def _find_directory(self, root: DiskRoot, parts: tuple[str, ...], *, make: bool) -> OpenDirectory:
        known = self._open.get((root.path, parts))
        if known is not None:
            return known
        try:
            directory = _open_syncable(partial(self.tree.open_parts, root, parts))
        except FileNotFoundError:
            if not make or not parts:
                raise
            directory = self._make_directory(root, parts)
        self._open[root.path, parts] = directory
        return directory

    def _make_directory(self, root: DiskRoot, parts: tuple[str, ...]) -> OpenDirectory:
        """Make a directory. Those above it are synced too: another process may have made one just now, and not synced it yet."""
        above = self._find_directory(root, parts[:-1], make=True)
        for depth in range(len(parts)):
            self._find_directory(root, parts[:depth], make=False).dirty = True
        with suppress(FileExistsError):
            os.mkdir(parts[-1], dir_fd=above.fd)  # pathlib knows no dir_fd
            self._made.append((above, parts[-1]))
        return _open_syncable(partial(open_entry, above.fd, parts[-1]))

    def forget(self, target: Target) -> None:
        """Close a directory that is about to go, and everything below it: another one may get its name."""
        depth = len(target.parts)
        for root, parts in [key for key in self._open if key[0] == target.root and key[1][:depth] == target.parts]:
            os.close(self._open.pop((root, parts)).fd)

    def sync_changed(self) -> None:
        """Make the changed names durable, each directory once."""
        for directory in self._open.values():
            if directory.dirty and directory.can_sync:
                try:
                    sync(directory.fd)
                except OSError as error:
                    # Some file systems cannot sync a directory and have nothing to sync in it.
                    if error.errno not in {errno.EINVAL, errno.EBADF}:
                        raise

    def remove_made(self) -> None:
        """Take away the directories that this call made, as far as they are empty."""
        for above, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=above.fd)  # pathlib knows no dir_fd

    def close(self) -> None:
        for directory in self._open.values():
            os.close(directory.fd)
        self._open.clear()


def _open_syncable(open_with: Callable[[int], int]) -> OpenDirectory:
    try:
        return OpenDirectory(fd=open_with(LISTED_DIRECTORY_FLAGS))
    except PermissionError:
        # Writable but not readable: usable, only not to be synced.
        return OpenDirectory(fd=open_with(DIRECTORY_FLAGS), can_sync=False)


Durability = Literal["full", "file", "none"]
_TAG_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_NO_LINK_ERRNOS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
UNLIMITED_BYTES = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplacedFile:
    """What lies under a name: the hash of its bytes, None when it is not a regular file."""

    sha256: str | None
    status: os.stat_result


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """One `apply`: what its steps need to know."""

    kernel: Kernel
    directories: DirectoryPool
    tag: str
    keep: KeepBytes
    durability: Durability

    def temp_name(self, index: int, suffix: Literal["tmp", "old"]) -> str:
        return f".surehold-{self.tag}-{index}.{suffix}"

    def sync_file(self, fd: int) -> None:
        if self.durability != "none":
            sync(fd)

    def drop_file(self, place: DirectorySlot, name: str, seen: DisplacedFile | None) -> None:
        """Remove a temporary file; bytes that were written into it since it was `seen` are kept."""
        status = place.read_status(name)
        if status is None:
            return
        if seen is not None and _was_written(seen.status, status):
            self.keep_file(place, name)
        os.unlink(name, dir_fd=place.fd)

    def keep_file(self, place: DirectorySlot, name: str) -> None:
        """Hand the bytes of a file to the history; what is not a file has none."""
        found = place.read_status(name)
        if found is None or not is_regular(found):
            return
        with close_after(open_own(place.fd, name)) as fd:
            status = os.fstat(fd)
            if not is_regular(status):
                return
            data = read_all(fd, size=status.st_size, limit=UNLIMITED_BYTES)
        self.keep(place.key, data)

    def move_new(self, source: DirectorySlot, name: str, place: DirectorySlot, new: str) -> None:
        """Rename to a name that nothing has, whatever the system offers for it."""
        source.directory.dirty = place.directory.dirty = True
        try:
            self.kernel.rename_new(source.fd, name, place.fd, new)
        except Unsupported:
            try:
                link_file(source.fd, name, place.fd, new)
            except Unsupported:
                if place.read_status(new) is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
                os.rename(name, new, src_dir_fd=source.fd, dst_dir_fd=place.fd)
            else:
                os.unlink(name, dir_fd=source.fd)


def hash_entry(place: DirectorySlot, name: str, *, awaited: tuple[bytes | None, str] = (None, "")) -> DisplacedFile:
    """Hash what lies under a name, without following it and without waiting for anything.

    Bytes that are `awaited`, with their hash, are recognised by comparing.
    """
    try:
        fd = open_own(place.fd, name)
    except OSError as error:
        # A link, a socket, a device without driver: there, but not a file.
        if error.errno not in {errno.ELOOP, errno.ENXIO, errno.ENODEV}:
            raise
        return DisplacedFile(sha256=None, status=os.stat(name, dir_fd=place.fd, follow_symlinks=False))
    with close_after(fd):
        return hash_open_file(fd, awaited=awaited)


def hash_open_file(fd: int, *, awaited: tuple[bytes | None, str] = (None, "")) -> DisplacedFile:
    """Hash an open file, from its beginning."""
    status = os.fstat(fd)
    if not is_regular(status):
        return DisplacedFile(sha256=None, status=status)
    data, name_of_data = awaited
    os.lseek(fd, 0, os.SEEK_SET)
    if data is not None and status.st_size == len(data) and has_content(fd, data):
        return DisplacedFile(sha256=name_of_data, status=status)
    os.lseek(fd, 0, os.SEEK_SET)
    return DisplacedFile(sha256=hash_of(fd, size=status.st_size), status=status)


def check_displaced(seen: DisplacedFile, expected: str, key: str) -> None:
    if seen.sha256 is None:
        raise not_a_file_error(seen.status.st_mode, key)
    if seen.sha256 != expected:
        raise displaced_error(key, expected, seen.sha256)


def link_file(source_fd: int, name: str, dir_fd: int, new: str) -> None:
    """Give a file a second name; `Unsupported` where files have one."""
    try:
        os.link(name, new, src_dir_fd=source_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINK_ERRNOS:
            raise Unsupported from error
        raise


def open_temporary(place: DirectorySlot, name: str, mode: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC
    try:
        return os.open(name, flags, mode, dir_fd=place.fd)
    except FileExistsError as error:
        raise DiskFailed(
            f"A file of an interrupted change lies beside `{place.key}`.",
            path=place.key,
            reason="leftover",
            action=spell("Run {}.", RECOVER),
            name=name,
        ) from error


def check_tag(tag: str) -> str:
    if not _TAG_PATTERN.fullmatch(tag):
        raise InvalidArgument(f"`{tag}` cannot be part of a file name.", reason="bad_tag")
    return tag


def index_of_temporary(name: str, tag: str) -> int | None:
    """Return the index of the step that a temporary file is for; None if it is not one of this tag."""
    found = re.fullmatch(rf"\.surehold-{re.escape(tag)}-(\d+)\.(?:tmp|old)", name)
    return int(found[1]) if found else None


def require_staged(part: _Staged | None) -> _Staged:
    assert part is not None, "a step is staged before it is published"
    return part


def _was_written(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) != (other.st_size, other.st_mtime_ns)

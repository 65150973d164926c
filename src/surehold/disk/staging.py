"""What the steps of one call share: its tag, its temporary names, and what to do with bytes of others.

Rules:
1. A temporary name carries the tag of the call and lies beside the file it is for: `.surehold-<tag>-<index>.tmp` holds
   new bytes before they are visible (and displaced bytes after a swap), `….old` displaced bytes.
2. A temporary file that may hold bytes of others is dropped only when those bytes are at their path, are what was
   expected, or were handed to `keep`.
"""

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from surehold.disk.content import READING, hash_of, holds, is_regular, read_all
from surehold.disk.kernel import O_CLOEXEC, O_NOFOLLOW, Kernel, Unsupported, sync
from surehold.disk.places import Directories, Place
from surehold.disk.tree import open_entry
from surehold.errors import DiskFailed, InvalidArgument

Durability = Literal["full", "file", "none"]
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What lies under a name: the hash of its bytes, None when it is no regular file."""

    sha256: str | None
    status: os.stat_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `apply`: what its steps need to know."""

    kernel: Kernel
    directories: Directories
    tag: str
    keep: Callable[[bytes], None]
    durability: Durability

    def temp_name(self, index: int, suffix: Literal["tmp", "old"]) -> str:
        """Return the temporary name of a step."""
        return f".surehold-{self.tag}-{index}.{suffix}"

    def sync_file(self, fd: int) -> None:
        """Make the bytes of a file durable, if that is wanted."""
        if self.durability != "none":
            sync(fd)

    def drop(self, place: Place, name: str, seen: Seen | None) -> None:
        """Remove a temporary file; bytes that were written into it since it was `seen` are kept."""
        status = place.status(name)
        if status is None:
            return
        if seen is not None and _changed(seen.status, status):
            self.keep_file(place, name)
        os.unlink(name, dir_fd=place.fd)

    def keep_file(self, place: Place, name: str) -> None:
        """Hand the bytes of a temporary file over."""
        fd = open_entry(place.fd, name, READING)
        try:
            status = os.fstat(fd)
            data = read_all(fd, size=status.st_size, limit=_UNLIMITED) if is_regular(status) else None
        finally:
            os.close(fd)
        if data is not None:
            self.keep(data)

    def move_new(self, source: Place, name: str, place: Place, new: str) -> None:
        """Rename to a name that nothing has, whatever the system offers for it."""
        source.directory.dirty = place.directory.dirty = True
        try:
            self.kernel.rename_new(source.fd, name, place.fd, new)
        except Unsupported:
            try:
                link(source.fd, name, place.fd, new)
            except Unsupported:
                if place.status(new) is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
                os.rename(name, new, src_dir_fd=source.fd, dst_dir_fd=place.fd)
            else:
                os.unlink(name, dir_fd=source.fd)


def look(place: Place, name: str, *, awaited: tuple[bytes | None, str] = (None, "")) -> Seen:
    """Hash what lies under a name, without following it and without waiting for anything.

    Bytes that are `awaited`, with their hash, are recognised by comparing.
    """
    try:
        fd = open_entry(place.fd, name, READING)
    except OSError as error:
        # A link, a socket, a device without driver: there, but not a file.
        if error.errno not in {errno.ELOOP, errno.ENXIO, errno.ENODEV}:
            raise
        return Seen(sha256=None, status=os.stat(name, dir_fd=place.fd, follow_symlinks=False))
    try:
        status = os.fstat(fd)
        if not is_regular(status):
            return Seen(sha256=None, status=status)
        data, name_of_data = awaited
        if data is not None and status.st_size == len(data) and holds(fd, data):
            return Seen(sha256=name_of_data, status=status)
        os.lseek(fd, 0, os.SEEK_SET)
        return Seen(sha256=hash_of(fd, size=status.st_size), status=status)
    finally:
        os.close(fd)


def link(source_fd: int, name: str, dir_fd: int, new: str) -> None:
    """Give a file a second name; `Unsupported` where files have one."""
    try:
        os.link(name, new, src_dir_fd=source_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno in _WITHOUT_LINKS:
            raise Unsupported from error
        raise


def open_temporary(place: Place, name: str, mode: int) -> int:
    """Create a temporary file that only this call knows."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC
    try:
        return os.open(name, flags, mode, dir_fd=place.fd)
    except FileExistsError as error:
        raise DiskFailed(
            f"A file of an interrupted change lies beside `{place.key}`.",
            path=place.key,
            reason="leftover",
            action="Run `surehold recover`.",
            name=name,
        ) from error


def check_tag(tag: str) -> str:
    """Return a tag that can be part of a file name, or refuse it."""
    if not _TAG.fullmatch(tag):
        raise InvalidArgument(f"`{tag}` cannot be part of a file name.", reason="bad_tag")
    return tag


def is_temporary(name: str, tag: str) -> bool:
    """Tell whether a name is a temporary one of the call with this tag."""
    return re.fullmatch(rf"\.surehold-{re.escape(tag)}-\d+\.(tmp|old)", name) is not None


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return what makes a file the same file under another name."""
    return status.st_dev, status.st_ino


def _changed(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) != (other.st_size, other.st_mtime_ns)

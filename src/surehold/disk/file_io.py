"""Reads and writes open files: bytes in pieces, and the metadata that a replaced file must keep."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from surehold.disk.kernel import O_NOFOLLOW, O_NONBLOCK
from surehold.text.snapshot import Meta

ACL = "system.posix_acl_access"
_INTEGRITY_XATTRS = frozenset({"security.capability", "security.ima", "security.evm"})
_NO_XATTR_ERRNOS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EACCES})
_HAS_XATTRS = hasattr(os, "listxattr")


def meta_of(fd: int, status: os.stat_result) -> Meta:
    """Return what the ledger remembers of an open file."""
    return Meta(
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        xattrs=tuple(pair for pair in _read_xattrs(fd) if _must_copy(pair[0])),
    )


def copy_metadata(source: int, status: os.stat_result, fd: int, *, mode: int | None) -> None:
    """Give a new file the owner, the attributes and the mode of the one it replaces."""
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(fd, status.st_uid, status.st_gid)
    _set_xattrs(fd, _read_xattrs(source))
    os.fchmod(fd, stat.S_IMODE(status.st_mode) if mode is None else mode)


def restore_metadata(fd: int, meta: Meta, *, mode: int | None) -> None:
    """Restore the metadata of a file; without the right to change the owner, the file stays ours."""
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (meta.uid, meta.gid):
        with suppress(PermissionError):
            os.fchown(fd, meta.uid, meta.gid)
    _set_xattrs(fd, meta.xattrs)
    os.fchmod(fd, meta.mode if mode is None else mode)
    if meta.mtime_ns:
        os.utime(fd, ns=(meta.mtime_ns, meta.mtime_ns))


def can_give_owner(status: os.stat_result) -> bool:
    """Tell whether we may make another file with the same owner and group."""
    euid = os.geteuid()
    if euid == 0:
        return True
    return status.st_uid == euid and (status.st_gid == os.getegid() or status.st_gid in os.getgroups())


def _must_copy(name: str) -> bool:
    return name == ACL or name.startswith("user.")


def _read_xattrs(fd: int) -> tuple[tuple[str, bytes], ...]:
    if not _HAS_XATTRS:
        return ()
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in _NO_XATTR_ERRNOS:
            return ()
        raise
    pairs: list[tuple[str, bytes]] = []
    for name in sorted(names):
        try:
            pairs.append((name, os.getxattr(fd, name)))
        except OSError as error:
            # ENODATA: it was removed in between; the others: only the system may read it.
            if error.errno not in {errno.ENODATA, *_NO_XATTR_ERRNOS}:
                raise
    return tuple(pairs)


def _set_xattrs(fd: int, pairs: tuple[tuple[str, bytes], ...]) -> None:
    if not _HAS_XATTRS:
        return
    for name, value in pairs:
        if name in _INTEGRITY_XATTRS:
            continue
        try:
            os.setxattr(fd, name, value)
        except OSError as error:
            if _must_copy(name) and error.errno not in {errno.ENOTSUP, errno.EOPNOTSUPP}:
                raise
    if all(name != ACL for name, _ in pairs):
        # A default list of the directory may have given the new file one that the old one never had.
        with suppress(OSError):
            os.removexattr(fd, ACL)


PIECE_BYTES = 1 << 20
_COMPARE_BYTES = 1 << 17  # small enough to stay in the cache
READ_FLAGS = os.O_RDONLY | O_NONBLOCK | O_NOFOLLOW
"""Flags to open a file for reading."""
_MAX_READ_BYTES = 0x7FFF_F000  # what Linux gives in one call


def read_pieces(fd: int) -> Iterator[bytes]:
    """Yield everything from the current position on."""
    while piece := os.read(fd, PIECE_BYTES):
        yield piece


def read_all(fd: int, *, size: int, limit: int) -> bytes:
    """Return the content, at most `limit` + 1 bytes of it; `size` is what `fstat` promised."""
    data = os.read(fd, min(size + 1, limit + 1, _MAX_READ_BYTES))
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(data) == size > 0 or len(data) > limit:
        return data
    parts = [data]
    got = len(data)
    while got <= limit and (
        piece := os.read(fd, min(limit + 1 - got, _MAX_READ_BYTES, max(size + 1 - got, PIECE_BYTES)))
    ):
        parts.append(piece)
        got += len(piece)
    return data if len(parts) == 1 else b"".join(parts)


def write_all(fd: int, data: Iterable[bytes]) -> str:
    """Write every byte at the current position and return their sha256."""
    digest = hashlib.sha256()
    for piece in data:
        digest.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(fd, view) :]
    return digest.hexdigest()


def write_at(fd: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(fd, data, offset)
        data = data[written:]
        offset += written


def hash_of(fd: int, *, size: int) -> str:
    """Return the sha256 of everything from the current position on."""
    digest = hashlib.sha256()
    piece = os.read(fd, min(size + 1, PIECE_BYTES))
    digest.update(piece)
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(piece) != size or size == 0:
        for further in read_pieces(fd):
            digest.update(further)
    return digest.hexdigest()


def has_content(fd: int, data: bytes) -> bool:
    """Tell whether everything from the current position on is exactly these bytes."""
    at = 0
    while piece := os.read(fd, _COMPARE_BYTES):
        if piece != data[at : at + len(piece)]:
            return False
        at += len(piece)
    return at == len(data)


def is_unchanged(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether nothing happened to a file between two looks at it."""
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)

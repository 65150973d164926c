"""Reads, copies and restores file metadata: owner, mode, times, extended attributes.

Rules:
1. A replacement gets the metadata of the old file. What a caller could notice (mode, owner, `user.*`, access list) must
   succeed; labels that belong to the system are copied where possible.
2. Attributes that vouch for the old bytes (capabilities, integrity hashes) are not copied to new ones.
3. The order matters: a change of owner clears setuid, an access list changes the mode, so the mode comes last.
"""

import errno
import os
import stat
from contextlib import suppress

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

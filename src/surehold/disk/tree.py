"""The open root directories: the only way to open, read and write anything below them.

Rules:
1. Everything is opened relative to a root's descriptor. A path string never reaches the kernel from `/`.
2. No link is followed. A link that is swapped in makes the call fail with ELOOP; it cannot lead out.
3. A file below several roots has one name: its name below the first of them.
"""

import errno
import hashlib
import os
import stat
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from surehold.disk.base import Target
from surehold.disk.errno_errors import root_replaced_error, symlink_escape_error, translate_os_errors
from surehold.disk.kernel import (
    O_CLOEXEC,
    O_DIRECTORY,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_PATH,
    Kernel,
    Unsupported,
    sync_file_system,
)
from surehold.errors import InvalidArgument, WorkspaceClosed
from surehold.text.snapshot import Meta

ACL = "system.posix_acl_access"
_INTEGRITY_XATTRS = frozenset({"security.capability", "security.ima", "security.evm"})
_NO_XATTR_ERRNOS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EACCES})
_HAS_XATTRS = hasattr(os, "listxattr")


def meta_of(fd: int, status: os.stat_result) -> Meta:
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
WRITE_FLAGS = READ_FLAGS & ~os.O_RDONLY | os.O_RDWR
_OWNER_ENTERS = stat.S_IRUSR | stat.S_IXUSR
_MAX_READ_BYTES = 0x7FFF_F000  # what Linux gives in one call


def read_pieces(fd: int) -> Iterator[bytes]:
    while piece := os.read(fd, PIECE_BYTES):
        yield piece


def read_all(fd: int, *, size: int, limit: int) -> bytes:
    """Return the content, at most `limit` + 1 bytes of it; `size` is what `fstat` promised."""
    data = os.read(fd, min(size + 1, limit + 1, _MAX_READ_BYTES))
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(data) == size:
        return data
    parts, got = [data], len(data)
    while piece := os.read(fd, min(limit + 1 - got, _MAX_READ_BYTES, max(size + 1 - got, PIECE_BYTES))):
        parts.append(piece)
        got += len(piece)
    return b"".join(parts)


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
    piece = os.read(fd, min(size + 1, PIECE_BYTES))
    digest = hashlib.sha256(piece)
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(piece) != size:
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
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def file_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


DIRECTORY_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC
"""Flags for a directory that is only a place to start from."""
LISTED_DIRECTORY_FLAGS = os.O_RDONLY | O_DIRECTORY | O_CLOEXEC
"""Flags for a directory that is listed, locked or synced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRoot:
    """One directory below which everything happens."""

    path: str
    """Absolute, without links."""
    names: tuple[str, ...]
    """The components of `path`."""
    spellings: tuple[tuple[str, ...], ...]
    """How people may spell it: as it was given, and without links."""
    fd: int


class Tree:
    """All roots of a disk."""

    def __init__(self, roots: Sequence[str], *, kernel: Kernel) -> None:
        if not roots:
            raise InvalidArgument("A workspace needs at least one root.", reason="no_root")
        self.kernel = kernel
        with ExitStack() as stack:
            self.roots = tuple(_open_root(os.fspath(root), stack) for root in roots)
            self._by_path = {root.path: root for root in reversed(self.roots)}
            self._finalizer = weakref.finalize(self, stack.pop_all().close)

    def close(self) -> None:
        """Let go of the roots; nothing can be opened afterwards."""
        self._finalizer()

    def check_roots(self, targets: Sequence[Target]) -> None:
        """Refuse when the path of a root leads to another directory than the one that was opened."""
        for root in {target.root: self.root_of(target) for target in targets}.values():
            if self._is_replaced(root):
                raise root_replaced_error(root.path)

    def replaced_roots(self) -> list[str]:
        """Return the roots whose path leads to another directory than the one that was opened."""
        return [root.path for root in self.roots if self._is_replaced(root)]

    def _is_replaced(self, root: DiskRoot) -> bool:
        try:
            current = file_identity(os.stat(root.path))  # noqa: PTH116  # no pathlib in the hot path
        except OSError:
            current = None
        return current != file_identity(os.fstat(self.root_fd(root)))

    def sync_file_systems(self) -> None:
        """Return when everything that was written to the file systems of the roots has reached the medium."""
        for root in self.roots:
            sync_file_system(self.root_fd(root))

    def root_fd(self, root: DiskRoot) -> int:
        """Return a root's descriptor; once closed, its number may belong to anything."""
        if not self._finalizer.alive:
            raise WorkspaceClosed("This workspace is closed.")
        return root.fd

    def root_of(self, target: Target) -> DiskRoot:
        root = self._by_path.get(target.root)
        if root is None:
            raise InvalidArgument(
                f"`{target}` was resolved by another disk.", path=str(target), reason="foreign_target"
            )
        return root

    def target_of(self, names: tuple[str, ...]) -> Target:
        """Return the one target for the components of an absolute path without links."""
        for root in self.roots:
            if names[: len(root.names)] == root.names:
                parts = names[len(root.names) :]
                first = root is self.roots[0]
                key = "/".join(parts) or "." if first else "/" + "/".join(names)
                return Target(root=root.path, parts=parts, key=key)
        raise symlink_escape_error("/" + "/".join(names))

    def open_target(self, target: Target, flags: int) -> int:
        """Open what a target names; ELOOP when a link is met on the way or at the end."""
        return self.open_parts(self.root_of(target), target.parts, flags)

    def open_parts(self, root: DiskRoot, parts: tuple[str, ...], flags: int) -> int:
        """Open the entry that `parts` lead to, from a root, without following a link."""
        try:
            return self.kernel.open_beneath(self.root_fd(root), "/".join(parts) or ".", flags)
        except Unsupported:
            return _open_by_walk(self.root_fd(root), parts, flags)


def open_entry(dir_fd: int, name: str, flags: int) -> int:
    """Open one entry of a directory; ELOOP when it is a link."""
    try:
        return os.open(name, flags | O_NOFOLLOW | O_CLOEXEC, dir_fd=dir_fd)
    except OSError as error:
        # With O_DIRECTORY the kernel says ENOTDIR for a link, which would read as "a file".
        if error.errno == errno.ENOTDIR and _is_link(dir_fd, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
        raise


def open_own(dir_fd: int | None, name: str | bytes, flags: int = READ_FLAGS) -> int:
    """Open a file for reading; one of ours whose mode keeps us out is readable for that moment, and then as before."""
    try:
        return os.open(name, flags | O_NOFOLLOW | O_CLOEXEC, dir_fd=dir_fd)
    except PermissionError:
        if not O_PATH:
            raise
    fd = os.open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC, dir_fd=dir_fd)
    try:
        with readable_for_us(f"/proc/self/fd/{fd}", os.fstat(fd)) as path:
            return os.open(path, flags & ~O_NOFOLLOW | O_CLOEXEC)
    finally:
        os.close(fd)


@contextmanager
def readable_for_us(path: str | bytes, status: os.stat_result) -> Generator[str | bytes]:
    """Let ourselves read an entry of ours for a moment, whatever its mode; a directory is entered as well."""
    mode = stat.S_IMODE(status.st_mode)
    rights = _OWNER_ENTERS if stat.S_ISDIR(status.st_mode) else stat.S_IRUSR
    if mode & rights == rights or status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode):
        yield path
        return
    os.chmod(path, mode | rights)  # noqa: PTH101  # a path below a descriptor
    try:
        yield path
    finally:
        os.chmod(path, mode)  # noqa: PTH101


def _is_link(dir_fd: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_by_walk(start: int, parts: tuple[str, ...], flags: int) -> int:
    here = start
    try:
        for name in parts[:-1]:
            below = open_entry(here, name, DIRECTORY_FLAGS)
            if here != start:
                os.close(here)
            here = below
        return open_entry(here, parts[-1] if parts else ".", flags)
    finally:
        if here != start:
            os.close(here)


def _open_root(given: str, stack: ExitStack) -> DiskRoot:
    real = os.path.realpath(given)
    with translate_os_errors(given):
        fd = os.open(real, DIRECTORY_FLAGS)
    stack.callback(os.close, fd)
    spelled = os.path.abspath(given)  # noqa: PTH100  # lexical on purpose: checked against the real one below
    names = split_path(real)
    same = os.path.realpath(spelled) == real
    return DiskRoot(path=real, names=names, spellings=(names, split_path(spelled)) if same else (names,), fd=fd)


def split_path(path: str) -> tuple[str, ...]:
    """Return the names in a path; empty ones and `.` mean nothing."""
    return tuple(name for name in path.split("/") if name not in {"", "."})

"""System calls that Python does not offer, and what the mount table says about a path."""

import ctypes
import errno
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

if sys.platform != "win32":
    import fcntl

_SYS_OPENAT2 = ctypes.c_long(437)  # the same number on every architecture, as for all calls since Linux 5.1
_SYS_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = ctypes.c_uint(1 if sys.platform == "linux" else 4)
_RENAME_EXCHANGE = ctypes.c_uint(2)  # the same on Linux and macOS
_DARWIN_F_FULLFSYNC = 51
_PUNCH_HOLE = ctypes.c_int(3)  # and keep the size
_MAX_RETRIES = 128
# File systems without the flag answer with any of these.
_NO_FLAG_ERRNOS = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOTTY})
# A kernel before O_TMPFILE takes it for O_DIRECTORY and says EISDIR or ENOENT; others say EOPNOTSUPP.
_NO_TMPFILE_ERRNOS = _NO_FLAG_ERRNOS | {errno.EISDIR}

O_PATH = getattr(os, "O_PATH", 0)
O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_O_TMPFILE = getattr(os, "O_TMPFILE", 0)


Lease = Literal["held", "busy", "none"]
"""A lease was granted; another program has the file open; or this file cannot be leased."""


class Unsupported(Exception):
    """This system, or this file system, lacks the mechanism."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE_OF_HOW = ctypes.c_size_t(ctypes.sizeof(_OpenHow))


@cache
def _how_to_open(flags: int) -> _OpenHow:
    return _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The mechanisms that may be used."""

    openat2: bool = True
    exchange: bool = True
    noreplace: bool = True
    tmpfile: bool = True
    leases: bool = True

    def open_beneath(self, dir_fd: int, path: str, flags: int) -> int:
        """Open `path` below `dir_fd` in one call, without following any link."""
        if not self.openat2 or not has_openat2():
            raise Unsupported
        return _call_openat2(dir_fd, path, flags | O_CLOEXEC)

    def open_nameless(self, dir_fd: int, mode: int) -> int:
        """Open a new file that has no name yet; it vanishes by itself unless `name` gives it one."""
        if not self.tmpfile or not _O_TMPFILE or not _has_proc_fd():
            raise Unsupported
        try:
            return os.open(".", os.O_RDWR | _O_TMPFILE | O_CLOEXEC, mode, dir_fd=dir_fd)
        except OSError as error:
            if error.errno in _NO_TMPFILE_ERRNOS:
                raise Unsupported from error
            raise

    def give_name(self, fd: int, dir_fd: int, name: str) -> None:
        """Give a nameless file its name; EEXIST when the name is taken."""
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=dir_fd, follow_symlinks=True)

    def rename_new(self, source_fd: int, source: str, dir_fd: int, name: str) -> None:
        """Rename to a name that nothing has; EEXIST when it is taken."""
        if not self.noreplace:
            raise Unsupported
        _rename_with_flag(source_fd, source, dir_fd, name, _RENAME_NOREPLACE)

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        """Let two names of one directory trade places in one step; ENOENT when either is missing."""
        if not self.exchange:
            raise Unsupported
        _rename_with_flag(dir_fd, one, dir_fd, other, _RENAME_EXCHANGE)

    def take_lease(self, fd: int, *, exclusive: bool) -> Lease:
        """Ask that programs which open the file (for writing, or at all) wait until this descriptor is closed."""
        if not self.leases or sys.platform != "linux":
            return "none"
        try:
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # the default signal, SIGIO, would end the process
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK)
        except BlockingIOError:
            return "busy"
        except OSError:  # another owner, a file system without leases, not a regular file
            return "none"
        return "held"

    def holds_lease(self, fd: int, *, exclusive: bool) -> bool:
        """Tell whether a lease is whole: no program waits for the file, and the kernel has not ended the lease."""
        return fcntl.fcntl(fd, fcntl.F_GETLEASE) == (fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK)

    def drop_lease(self, fd: int) -> None:
        """Let those in who wait."""
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


class DescriptorLoan:
    """Lends an open descriptor to a block, and closes it when the block is left."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._fd)


close_after = DescriptorLoan


def sync(fd: int) -> None:
    """Return when the file or directory has reached the medium."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, _DARWIN_F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_file_system(fd: int) -> None:
    """Return when all of the file system that a descriptor is on has reached the medium."""
    libc = _load_libc()
    if not hasattr(libc, "syncfs"):
        os.sync()
        return
    place = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | O_CLOEXEC)  # the descriptor of a root is only a place
    try:
        libc.syncfs(place)
    finally:
        os.close(place)


def punch_hole(fd: int, begin: int, end: int) -> None:
    """Give the blocks of a part of a file back, which reads as zeros then; nothing happens where that is not possible."""
    with suppress(Unsupported):
        libc = _load_libc()
        if hasattr(libc, "fallocate"):
            libc.fallocate(fd, _PUNCH_HOLE, ctypes.c_int64(begin), ctypes.c_int64(end - begin))


@cache
def _load_libc() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError) as error:
        raise Unsupported from error


def _call_openat2(dir_fd: int, path: str, flags: int) -> int:
    name = os.fsencode(path)
    how = ctypes.byref(_how_to_open(flags))
    call = _load_libc().syscall
    code = errno.EAGAIN
    # EAGAIN: something was renamed while the kernel walked. EINTR: a signal came.
    for _ in range(_MAX_RETRIES):
        fd = call(_SYS_OPENAT2, dir_fd, name, how, _SIZE_OF_HOW)
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code not in {errno.EAGAIN, errno.EINTR}:
            break
    # EXDEV is how BENEATH says that the way led out; only a link can do that, so it gets the name of one.
    code = errno.ELOOP if code == errno.EXDEV else code
    raise OSError(code, os.strerror(code), path)


@cache
def has_openat2() -> bool:
    """Try it once: old kernels say ENOSYS, some containers say EPERM."""
    if sys.platform != "linux":
        return False
    flags = O_PATH | O_DIRECTORY | O_CLOEXEC
    try:
        with close_after(os.open("/", flags)) as base:
            os.close(_call_openat2(base, ".", flags))
    except (OSError, Unsupported):
        return False
    return True


def _has_proc_fd() -> bool:
    return os.path.isdir("/proc/self/fd")  # noqa: PTH112  # no pathlib in the hot path


def _rename_with_flag(source_fd: int, source: str, dir_fd: int, name: str, flag: ctypes.c_uint) -> None:
    old, new = os.fsencode(source), os.fsencode(name)
    for _ in range(_MAX_RETRIES):
        if _call_rename(source_fd, old, dir_fd, new, flag) == 0:
            return
        code = ctypes.get_errno()
        if code in _NO_FLAG_ERRNOS:
            raise Unsupported
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), source, None, name)
    raise OSError(errno.EINTR, os.strerror(errno.EINTR), source, None, name)


def _call_rename(source_fd: int, old: bytes, dir_fd: int, new: bytes, flag: ctypes.c_uint) -> int:
    libc = _load_libc()
    if sys.platform == "linux":
        if hasattr(libc, "renameat2"):
            return int(libc.renameat2(source_fd, old, dir_fd, new, flag))
        number = _SYS_RENAMEAT2.get(os.uname().machine)
        if number is not None:
            return int(libc.syscall(ctypes.c_long(number), source_fd, old, dir_fd, new, flag))
    elif hasattr(libc, "renameatx_np"):
        return int(libc.renameatx_np(source_fd, old, dir_fd, new, flag))
    raise Unsupported


_NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "lustre", "gpfs", "glusterfs", "vboxsf", "prl_fs"}
    | {"virtiofs", "ncpfs", "coda", "ocfs2", "gfs2", "beegfs", "davfs", "drvfs", "hgfs", "vmhgfs", "orangefs"}
)
_CLUSTER_LOCKS = frozenset({"ceph", "gfs2", "ocfs2", "gpfs"})
"""Network file systems that keep the locks of directories for all machines; the others keep them on each by itself."""
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def is_coherent(path: str, *, table: str = "/proc/self/mountinfo") -> bool:
    """Tell whether every read sees the latest write of every machine: not so on network and FUSE mounts."""
    kind = filesystem_of(path, table=table)
    return kind not in _NETWORK_FILESYSTEMS and not kind.startswith("fuse")


def locks_reach_others(path: str, *, table: str = "/proc/self/mountinfo") -> bool:
    """Tell whether the lock of a directory holds for every machine that has the file system: a local one has no other."""
    return is_coherent(path, table=table) or filesystem_of(path, table=table) in _CLUSTER_LOCKS


def filesystem_of(path: str, *, table: str = "/proc/self/mountinfo") -> str:
    """Return the name of the file system that a path is on; empty if unknown."""
    try:
        lines = Path(table).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    try:
        number = os.stat(path).st_dev  # noqa: PTH116  # the device number is all we want
        device = f"{os.major(number)}:{os.minor(number)}"
    except OSError:
        device = ""
    return _find_filesystem(lines, path, device)


def _find_filesystem(lines: list[str], path: str, device: str) -> str:
    """Find the mount by its device, else (a subvolume has its own device) by the longest mount point."""
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:  # noqa: PLR2004  # id, parent, device, root, mount point
            continue
        name = after.split(" ", 1)[0]
        if fields[2] == device:
            return name
        point = _unescape_field(fields[4]).rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= best:
            best, kind = len(point), name
    return kind


def _unescape_field(field: str) -> str:
    for escaped, character in _ESCAPES:
        field = field.replace(escaped, character)
    return field

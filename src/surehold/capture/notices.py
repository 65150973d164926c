"""What the kernel reports of a call before it happens: who makes it, with which paths; and the answer to it.

Rules:
1. The memory of the process is opened anew for each call: a descriptor kept across `execve` shows the program before.
2. What was read counts only if the call still waits afterwards: else the number of the process may be another's by now.
3. A path is looked up as the process would: from its working directory, its descriptors and its root.
"""

import ctypes
import errno
import fcntl
import os
import stat
import struct
import sys
from contextlib import suppress
from typing import NamedTuple, cast

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
_PAGE_BYTES = 4096
_MAX_PATH_BYTES = 4096
_MAX_LINKS = 40
_NOTICE = struct.Struct("=QIIiIQ6Q")
_OPEN_HOW, _FAMILY = struct.Struct("=QQQ"), struct.Struct("=H")
_AF_UNIX = 1
_SOCKET_NAME_BYTES = 110
_NO_NOTICE = bytes(_NOTICE.size)
_ANSWER = struct.Struct("=QqiI")
_GO_ON = 1
_RESOLVE_IN_ROOT = 0x10
BEGINS_BELOW = _RESOLVE_IN_ROOT << 32
"""Among the flags of an `open`: its path begins at the given directory, whatever it says."""
_OPENAT2 = 437
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_DELETED = b" (deleted)"
_NOWHERE_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""There is no such directory for the process either, so that its call fails."""


def _request(number: int, size: int, direction: int) -> int:
    return direction << 30 | size << 16 | 0x21 << 8 | number


_RECEIVE, _SEND = _request(0, _NOTICE.size, 3), _request(1, _ANSWER.size, 3)
_IS_VALID, _SET_FLAGS = _request(2, 8, 1), _request(4, 8, 1)
_WAKE_IN_TURN = 1


class Unreadable(Exception):
    """The path of a call cannot be read."""


class CallNotice(NamedTuple):
    """One call that waits for its answer."""

    id: int
    pid: int
    number: int
    arch: int
    arguments: tuple[int, ...]

    def signed(self, index: int) -> int:
        """Return an argument that is a descriptor."""
        value = self.arguments[index] & 0xFFFFFFFF
        return value - (1 << 32) if value & 0x80000000 else value


class Listener:
    """The calls of one process tree that are reported."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = bytearray(_NOTICE.size)
        with suppress(OSError):  # a kernel before 6.6: slower, and the same
            fcntl.ioctl(fd, _SET_FLAGS, _WAKE_IN_TURN)

    def receive(self) -> CallNotice | None:
        """Return the next call; None when it is gone again."""
        self._buffer[:] = _NO_NOTICE
        try:
            fcntl.ioctl(self.fd, _RECEIVE, self._buffer)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                return None
            raise
        values = _NOTICE.unpack(self._buffer)
        return CallNotice(values[0], values[1], values[3], values[4], values[6:])

    def still_waits(self, notice: CallNotice) -> bool:
        try:
            fcntl.ioctl(self.fd, _IS_VALID, notice.id.to_bytes(8, sys.byteorder))
        except OSError:
            return False
        return True

    def let_pass(self, notice: CallNotice) -> None:
        try:  # noqa: SIM105 - it costs less, and this is done for every call
            fcntl.ioctl(self.fd, _SEND, _ANSWER.pack(notice.id, 0, 0, _GO_ON))
        except OSError:
            pass  # the process was killed in between

    def refuse(self, notice: CallNotice, code: int) -> None:
        with suppress(OSError):
            fcntl.ioctl(self.fd, _SEND, _ANSWER.pack(notice.id, 0, -code, 0))

    def close(self) -> None:
        os.close(self.fd)


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class CallerMemory:
    """Reads what a pointer of another process points to."""

    def __init__(self) -> None:
        self._read = getattr(ctypes.CDLL(None, use_errno=True), "process_vm_readv", None)
        self._buffer = ctypes.create_string_buffer(_PAGE_BYTES)
        self._here, self._there = _Piece(ctypes.addressof(self._buffer), 0), _Piece(0, 0)
        self._here_at, self._there_at = ctypes.byref(self._here), ctypes.byref(self._there)

    def read_bytes(self, pid: int, pointer: int, count: int) -> bytes:
        """Return bytes that do not cross a page more than `count` says; fewer where the memory ends."""
        if self._read is not None and count <= _PAGE_BYTES:
            self._here.length = self._there.length = count
            self._there.base = pointer
            got = self._read(pid, self._here_at, 1, self._there_at, 1, 0)
            if got > 0:
                return cast("bytes", self._buffer[:got])
        try:
            fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(fd, count, pointer)
            finally:
                os.close(fd)
        except (OSError, OverflowError) as error:
            raise Unreadable from error

    def read_path(self, pid: int, pointer: int) -> bytes:
        """Return the string at a pointer."""
        if not pointer:
            return b""
        # Short first: nearly every path is, and a page is copied and searched otherwise.
        found = self.read_bytes(pid, pointer, min(256, _PAGE_BYTES - pointer % _PAGE_BYTES))
        if (end := found.find(b"\0")) >= 0:
            return found[:end]
        if not found:
            raise Unreadable
        while len(found) < _MAX_PATH_BYTES:
            at = pointer + len(found)
            piece = self.read_bytes(pid, at, min(256, _PAGE_BYTES - at % _PAGE_BYTES))
            if not piece:
                raise Unreadable
            end = piece.find(b"\0")
            if end >= 0:
                return found + piece[:end]
            found += piece
        raise Unreadable  # the kernel refuses it as well

    def read_open_flags(self, pid: int, pointer: int) -> int:
        """Return the flags of `openat2`, and above them those for its path."""
        raw = self.read_bytes(pid, pointer, _OPEN_HOW.size)
        if len(raw) < _OPEN_HOW.size:
            return os.O_RDWR
        flags, _, resolve = _OPEN_HOW.unpack(raw)
        return flags | resolve << 32

    def read_socket_name(self, pid: int, pointer: int, length: int) -> bytes:
        """Return the path that a socket is bound to; nothing for other addresses."""
        length = min(length, _SOCKET_NAME_BYTES)
        raw = self.read_bytes(pid, pointer, length) if length > _FAMILY.size else b""
        if len(raw) <= _FAMILY.size or _FAMILY.unpack_from(raw)[0] != _AF_UNIX:
            return b""
        return raw[_FAMILY.size :].split(b"\0")[0]


class Place(NamedTuple):
    """Where a name is: its directory, without links, and the name in it; the path of both."""

    directory: bytes
    name: bytes

    @property
    def path(self) -> bytes:
        return self.directory + self.name if self.directory == b"/" else b"%b/%b" % (self.directory, self.name)


class PathFinder:
    """Finds the places that the calls of other processes name."""

    def __init__(self, memory: CallerMemory) -> None:
        self.memory = memory
        self.sees_other_names = False
        """Some process may have another root, or other mounts."""

    def descriptor_path(self, pid: int, fd: int) -> bytes | None:
        """Return the path of an open file; None when it has none any more."""
        return _named_path(b"/proc/%d/fd/%d" % (pid, fd))

    def find(self, pid: int, at: int, raw: bytes, *, follow: bool) -> Place | None:
        """Return the place that a path names; None if there is no such directory, or none that has a name."""
        if b"/" not in raw and raw not in {b"", b".", b".."}:
            directory = self._start(pid, at)
            if directory is None:
                return None
            place = Place(directory, raw)
        else:
            found = self._split(pid, at, raw)
            if found is None:
                return None
            place = found
        return self._follow(pid, place) if follow else place

    def find_below(self, pid: int, at: int, raw: bytes, *, follow: bool) -> Place | None:
        """Return the place that a path names for a call whose paths begin at a directory, as if that were the root."""
        try:
            top = os.open(b"/proc/%d/cwd" % pid if at == AT_FDCWD else b"/proc/%d/fd/%d" % (pid, at), _DIRECTORY)
        except OSError:
            return None
        try:
            return _find_below(top, raw, follow=follow)
        finally:
            os.close(top)

    def _start(self, pid: int, at: int) -> bytes | None:
        if at != AT_FDCWD:
            return self.descriptor_path(pid, at)
        return _named_path(b"/proc/%d/cwd" % pid)

    def _split(self, pid: int, at: int, raw: bytes) -> Place | None:
        path = raw.rstrip(b"/") if raw.strip(b"/") else raw
        head, _, name = path.rpartition(b"/")
        if name in {b"", b".", b".."}:
            whole = self._real_directory(pid, at, path or b".")
            return None if whole is None else _place_of(whole)
        directory = self._real_directory(pid, at, head or b"/") if b"/" in path else self._start(pid, at)
        return None if directory is None else Place(directory, name)

    def _real_directory(self, pid: int, at: int, path: bytes) -> bytes | None:
        """Return the path of a directory without links, as the process would get there."""
        if path[:1] != b"/":
            base = b"/proc/%d/cwd/" % pid if at == AT_FDCWD else b"/proc/%d/fd/%d/" % (pid, at)
            path = base + path
        else:
            path = _own_proc(path, pid)
            if self.sees_other_names:
                path = b"/proc/%d/root" % pid + path
        try:
            fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.EACCES:
                _named_path(b"/proc/%d/cwd" % pid)  # is it the path, or the process?
            elif error.errno not in _NOWHERE_ERRNOS:
                raise Unreadable from error
            return None
        try:
            return _named_path(b"/proc/self/fd/%d" % fd)
        finally:
            os.close(fd)

    def _follow(self, pid: int, place: Place) -> Place | None:
        """Go where a link at the end leads to, also if nothing is there yet."""
        for _ in range(_MAX_LINKS):
            try:
                if not stat.S_ISLNK(os.lstat(place.path).st_mode):
                    return place
                target = os.readlink(place.path)
            except OSError:
                return place
            if place.directory.startswith(b"/proc/"):  # not a name, but the very file that a process has open
                opened = _named_path(place.path)
                return None if opened is None else _place_of(opened)
            if target[:1] != b"/":
                target = b"%b/%b" % (place.directory, target)
            found = self._split(pid, AT_FDCWD, target)
            if found is None:
                return None
            place = found
        return None


def _find_below(top: int, path: bytes, *, follow: bool) -> Place | None:
    root = _named_path(b"/proc/self/fd/%d" % top)
    for _ in range(_MAX_LINKS if root else 0):
        head, _, name = path.rstrip(b"/").rpartition(b"/")
        if name in {b"", b".", b".."}:
            return None  # a directory, which cannot be opened for writing
        directory = _directory_below(top, head or b"/")
        if directory is None:
            return None
        place = Place(directory, name)
        try:
            if not follow or not stat.S_ISLNK(os.lstat(place.path).st_mode):
                return place
            target = os.readlink(place.path)
        except OSError:
            return place
        path = target if target[:1] == b"/" else b"%b/%b" % (directory[len(root or b"") :], target)
    return None


def _directory_below(top: int, path: bytes) -> bytes | None:
    """Return the path of a directory without links, for a process whose root were `top`."""
    how = _OPEN_HOW.pack(_DIRECTORY, 0, _RESOLVE_IN_ROOT)
    fd = ctypes.CDLL(None, use_errno=True).syscall(_OPENAT2, top, path, how, len(how))
    if fd < 0:
        if ctypes.get_errno() not in _NOWHERE_ERRNOS:
            raise Unreadable
        return None
    try:
        return _named_path(b"/proc/self/fd/%d" % fd)
    finally:
        os.close(fd)


def _named_path(link: bytes) -> bytes | None:
    """Return where a link of /proc leads to; None for what has no name, or none any more."""
    try:
        path = os.readlink(link)
        if path[:1] != b"/" or (path.endswith(_DELETED) and not _is_same_file(link, path)):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:  # too long to be told, or of a process that we may not look into
        raise Unreadable from error
    return path


def _is_same_file(link: bytes, path: bytes) -> bool:
    """Tell whether a name that ends as those of deleted files do is simply a name."""
    try:
        return os.path.samestat(os.stat(link), os.lstat(path))
    except OSError:
        return False


def _place_of(path: bytes) -> Place:
    directory, _, name = path.rpartition(b"/")
    return Place(directory or b"/", name)


def _own_proc(path: bytes, pid: int) -> bytes:
    """Return a path below /proc as the process means it: `self` is the one who asks."""
    for name in (b"self", b"thread-self"):
        prefix = b"/proc/" + name
        if path == prefix or path.startswith(prefix + b"/"):
            return b"/proc/%d" % pid + path[len(prefix) :]
    if path == b"/dev/fd" or path.startswith(b"/dev/fd/"):
        return b"/proc/%d/fd" % pid + path[len(b"/dev/fd") :]
    return path

"""Locks the name of a file while the file is being changed, so that other writers of that name wait.

Rules:
1. A lock is one byte of the directory, as far as locks of the operating system are concerned. It needs no lock file, works
   across state directories, roots and users, and ends with the process that holds it.
2. A directory cannot be opened for writing, so its bytes can only be locked for reading, which excludes no one. Whoever
   wants a name first locks its byte and then looks whether another one has it too: of two, at most one sees itself alone.
3. Who has to wait does so in line: a lock file of this user has a byte for every name, and the first in line looks for the
   name. A second byte in the directory says that there is a line, so that no newcomer goes first.
4. Names are locked in the order of (device, inode, byte), so two callers cannot deadlock. Two names may share a byte: they
   do on purpose where spellings may mean one file, and where several names together make a git repository.
5. If the directory does not exist yet, the name of the first missing one is locked, in the nearest existing parent.
6. Once the lock is held, the path must still lead to the locked directory; otherwise everything is done again.
7. Not reentrant: a caller that locks a name twice waits until the timeout.
8. A directory is locked as all names in it: every byte at once, when no other one has any of them. It is not in line.
9. Where bytes of a directory cannot be locked, the byte in the lock file is the lock, and a byte for the directory is shared
   by those who have names in it; without such locks at all (macOS), the directory is locked as a whole.
"""

import errno
import hashlib
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from surehold.disk.base import Target
from surehold.disk.errno_errors import as_surehold_error, translate_os_errors
from surehold.disk.kernel import O_CLOEXEC, O_NOFOLLOW
from surehold.disk.tree import DIRECTORY_FLAGS, LISTED_DIRECTORY_FLAGS, Tree, file_identity
from surehold.errors import DiskFailed, LockTimeout

if sys.platform != "win32":
    import fcntl

_MIN_WAIT_SECONDS = 0.0002
_MAX_WAIT_SECONDS = 0.01
_BUSY_ERRNOS = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_NO_LOCK_ERRNOS = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})

_MAX_LOOK_SECONDS = 0.002
_HAS_BYTE_LOCKS = hasattr(fcntl, "F_OFD_SETLK") if sys.platform != "win32" else False
_ALL_BYTES = -1
_TO_THE_END = 0  # a length, as the operating system spells it
_LOCKED_TOGETHER = frozenset({"head", "objects", "refs", "commondir"})
"""What makes a directory a git repository: of two calls that add some of them, the second must see the first."""


class LockedName(NamedTuple):
    """A name in a directory, as the byte that is locked for it; without one, all names."""

    device: int
    inode: int
    byte: int


_NameOf = Callable[[int, str], LockedName]


class NameLocks:
    def __init__(self, tree: Tree, *, fallback_dir: str | None = None) -> None:
        self._tree = tree
        self._fallback_dir = fallback_dir

    def lock(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        """Hold the names of all targets; `LockTimeout` when it takes longer than `timeout` seconds."""
        return self._lock(lambda: targets, _locked_name, timeout)

    def lock_directories(
        self, find_targets: Callable[[], Sequence[Target]], *, timeout: float
    ) -> AbstractContextManager[None]:
        """Hold every name in the directories of all targets, so that nothing in them is changed by other callers.

        They are found again once the lock is held: a directory may have been made or removed during the wait.
        """
        return self._lock(find_targets, _all_names, timeout)

    @contextmanager
    def _lock(self, find_targets: Callable[[], Sequence[Target]], name_of: _NameOf, timeout: float) -> Generator[None]:
        deadline = time.monotonic() + timeout
        while True:
            targets = find_targets()
            with ExitStack() as stack:
                if self._lock_all(targets, name_of, stack, timeout, deadline) and find_targets() == targets:
                    yield
                    return
            # A program that keeps moving the directories must not make us wait forever.
            if time.monotonic() > deadline:
                raise _timeout_error(targets[0].key, timeout)

    def _lock_all(
        self, targets: Sequence[Target], name_of: _NameOf, stack: ExitStack, timeout: float, deadline: float
    ) -> bool:
        """Lock everything; False when a path leads elsewhere by the time its lock is held."""
        wanted: dict[LockedName, tuple[int, Target]] = {}
        key = ""
        try:
            for target in targets:
                key = target.key
                fd, missing = self._open_nearest(target)
                stack.callback(os.close, fd)
                wanted.setdefault(name_of(fd, missing), (fd, target))
            for name in sorted(wanted):
                fd, key = wanted[name][0], wanted[name][1].key
                if not self._lock_name(fd, name, stack, deadline):
                    raise _timeout_error(key, timeout)
        except OSError as error:
            raise as_surehold_error(error, key) from error
        return all(self._current_name(target, name_of) in wanted for target in targets)

    def _lock_name(self, fd: int, name: LockedName, stack: ExitStack, deadline: float) -> bool:
        if not _HAS_BYTE_LOCKS:
            stack.callback(_release_lock, fd)
            return _repeat(lambda: _try_whole(fd, fcntl.LOCK_EX), deadline)
        # Closing is not enough: a child forked in between has the descriptor, and so the lock, too.
        if name.byte == _ALL_BYTES:
            stack.callback(_unlock_bytes, fd, 0, _TO_THE_END)
            return self._lock_every_name(fd, name, stack, deadline)
        stack.callback(_unlock_bytes, fd, 2 * name.byte, 2)
        try:
            if not _is_locked(fd, 2 * name.byte, 2) and _try_byte(fd, 2 * name.byte):
                return True
            _lock_byte(fd, 2 * name.byte + 1)
        except OSError as error:
            if error.errno not in _NO_LOCK_ERRNOS:
                raise
            everything = name._replace(byte=_ALL_BYTES)
            return self._wait_in_line(everything, stack, deadline, fcntl.F_RDLCK) and self._wait_in_line(
                name, stack, deadline
            )
        with ExitStack() as line:
            with suppress(DiskFailed):  # without a line it is a matter of luck who is next
                if not self._wait_in_line(name, line, deadline):
                    return False
            got = _wait_for_byte(fd, 2 * name.byte, deadline)
        _unlock_bytes(fd, 2 * name.byte + 1, 1)
        return got

    def _lock_every_name(self, fd: int, name: LockedName, stack: ExitStack, deadline: float) -> bool:
        try:
            return _repeat(lambda: not _is_locked(fd, 0, _TO_THE_END) and _try_byte(fd, 0, _TO_THE_END), deadline)
        except OSError as error:
            if error.errno not in _NO_LOCK_ERRNOS:
                raise
            return self._wait_in_line(name, stack, deadline)

    def _wait_in_line(self, name: LockedName, stack: ExitStack, deadline: float, kind: int | None = None) -> bool:
        """Become the first in the line of a name, and stay it until the stack is left; or share it with others (`F_RDLCK`)."""
        kind = fcntl.F_WRLCK if kind is None else kind
        directory = Path(self._fallback_dir) if self._fallback_dir else _private_directory()
        with translate_os_errors(str(directory)):
            fd = os.open(directory / "names.lock", os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        stack.callback(os.close, fd)
        place = _hash_byte(f"{name.device:x}-{name.inode:x}-{name.byte:x}")
        stack.callback(_unlock_bytes, fd, place, 1)
        return _LineWaiter.try_or_wait(fd, place, deadline, kind)

    def _open_nearest(self, target: Target) -> tuple[int, str]:
        """Open the nearest directory that exists, and return it with the name that is to be locked in it."""
        root, depth = self._tree.root_of(target), max(len(target.parts) - 1, 0)
        while True:
            name = target.parts[depth] if target.parts else ""
            try:
                return self._tree.open_parts(root, target.parts[:depth], LISTED_DIRECTORY_FLAGS), name
            except (FileNotFoundError, NotADirectoryError):
                if not depth:
                    raise
                depth -= 1
            except PermissionError:
                # Not readable, so it cannot be locked itself; its identity is enough for the lock file.
                return self._tree.open_parts(root, target.parts[:depth], DIRECTORY_FLAGS), name

    def _current_name(self, target: Target, name_of: _NameOf) -> LockedName:
        try:
            fd, name = self._open_nearest(target)
            try:
                return name_of(fd, name)
            finally:
                os.close(fd)
        except OSError as error:
            raise as_surehold_error(error, target.key) from error


def _locked_name(fd: int, name: str) -> LockedName:
    folded = name.casefold()
    device, inode = file_identity(os.fstat(fd))
    if not _HAS_BYTE_LOCKS:
        return LockedName(device, inode, 0)
    return LockedName(device, inode, _hash_byte(".git" if folded in _LOCKED_TOGETHER else folded))


def _all_names(fd: int, _name: str) -> LockedName:
    return LockedName(*file_identity(os.fstat(fd)), _ALL_BYTES if _HAS_BYTE_LOCKS else 0)


def _hash_byte(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 3  # twice that is still a place in a file


class _LineWaiter(threading.Thread):
    """Waits for a byte with a time limit; a lock that blocks has no time limit of its own."""

    def __init__(self, fd: int, place: int, kind: int) -> None:
        super().__init__(name="surehold-line", daemon=True)
        self._fd, self._place, self._kind = os.dup(fd), place, kind
        self._arrived = threading.Event()
        self.given_up = False

    @classmethod
    def try_or_wait(cls, fd: int, place: int, deadline: float, kind: int) -> bool:
        """Lock a byte of a file; False when others had it until the deadline."""
        if _try_place(fd, place, kind):
            return True
        if time.monotonic() >= deadline:  # a thread that is given up at once would still get the byte for a moment
            return False
        # After one that was stopped, threads must not pile up: then it is looked at again and again.
        if not any(isinstance(thread, cls) and thread.given_up for thread in threading.enumerate()):
            with suppress(RuntimeError):  # no more threads
                return cls(fd, place, kind).wait(deadline - time.monotonic())
        return _repeat(lambda: _try_place(fd, place, kind), deadline)

    def wait(self, patience: float) -> bool:
        try:
            self.start()
        except RuntimeError:
            os.close(self._fd)
            raise
        try:
            arrived = self._arrived.wait(max(patience, 0))
        except BaseException:
            self.given_up = True
            raise
        self.given_up = not arrived
        return arrived

    def run(self) -> None:
        with suppress(OSError):
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, _describe_lock(self._kind, self._place, 1))
        self._arrived.set()
        # Whoever gives up says so before leaving: either we see it here, or they release what we took.
        if self.given_up:
            _unlock_bytes(self._fd, self._place, 1)
        os.close(self._fd)


def _wait_for_byte(fd: int, byte: int, deadline: float) -> bool:
    return _repeat(lambda: not _is_locked(fd, byte, 1) and _try_byte(fd, byte), deadline)


def _repeat(attempt: Callable[[], bool], deadline: float, *, pause: float = _MAX_LOOK_SECONDS) -> bool:
    import random

    wait = _MIN_WAIT_SECONDS
    while not attempt():
        if (left := deadline - time.monotonic()) <= 0:
            return False
        time.sleep(min(left, wait * random.uniform(0.5, 1.5)))  # noqa: S311  # spreads the waiters, keeps no secret
        wait = min(wait * 1.5, pause)
    return True


def _try_byte(fd: int, byte: int, count: int = 1) -> bool:
    """Lock a byte of a directory, or more, if no other one has any of them."""
    _lock_byte(fd, byte, count)
    if _is_locked(fd, byte, count):
        _unlock_bytes(fd, byte, count)
        return False
    return True


def _lock_byte(fd: int, byte: int, count: int = 1) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _describe_lock(fcntl.F_RDLCK, byte, count))


def _is_locked(fd: int, byte: int, count: int) -> bool:
    """Tell whether another open file has a lock there."""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _describe_lock(fcntl.F_WRLCK, byte, count))
    return struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK


def _try_place(fd: int, byte: int, kind: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _describe_lock(kind, byte, 1))
    except OSError as error:
        if error.errno not in _BUSY_ERRNOS:
            raise
        return False
    return True


def _unlock_bytes(fd: int, byte: int, count: int) -> None:
    """Release locks. The work under them is done, so a failure here must not look like a failure of the work."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _describe_lock(fcntl.F_UNLCK, byte, count))


def _describe_lock(kind: int, byte: int, count: int) -> bytes:
    return struct.pack("hhqqi", kind, os.SEEK_SET, byte, count, 0)


def lock_file(fd: int, key: str, *, shared: bool = False, timeout: float = 5.0) -> None:
    """Lock an open file against other writers of ours, until it is closed; where that is impossible, do without."""
    with translate_os_errors(key):
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        if not _repeat(lambda: _try_whole(fd, how), time.monotonic() + timeout, pause=_MAX_WAIT_SECONDS):
            raise _timeout_error(key, timeout)


def _try_whole(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY_ERRNOS:
            return False
        if error.errno not in _NO_LOCK_ERRNOS:
            raise
    return True


def _release_lock(fd: int) -> None:
    """Release the lock. The work under it is done, so a failure here must not look like a failure of the work."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


def try_directory(fd: int) -> bool:
    """Lock an open directory as names in it are locked; False when another open file has that lock."""
    return _try_byte(fd, 0) if _HAS_BYTE_LOCKS else _try_whole(fd, fcntl.LOCK_EX)


def _timeout_error(key: str, timeout: float) -> LockTimeout:
    return LockTimeout(f"Another writer held `{key}` for more than {timeout:g} s.", path=key, seconds=timeout)


def _private_directory() -> Path:
    """Return a directory for lock files that only this user can write to."""
    import tempfile

    directory = Path(tempfile.gettempdir()) / f"surehold-locks-{os.geteuid()}"
    with translate_os_errors(str(directory)):
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise DiskFailed(f"`{directory}` belongs to another user.", path=str(directory), reason="lock_directory")
    return directory

"""Locks the directory of a file while the file is being changed, so that other writers wait.

Rules:
1. The lock is an advisory lock of the operating system on the directory itself. It needs no lock file, works across
   state directories, roots and users, and ends with the process that holds it.
2. Directories are locked in the order of (device, inode), so two callers cannot deadlock.
3. If the directory does not exist yet, its nearest existing parent is locked.
4. Once the lock is held, the path must still lead to the locked directory; otherwise everything is done again.
5. Not reentrant: a caller that locks a directory twice waits until the timeout.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from surehold.disk.base import Target
from surehold.disk.errno_errors import as_surehold_error, translate_os_errors
from surehold.disk.kernel import O_CLOEXEC, O_NOFOLLOW, close_after
from surehold.disk.tree import DIRECTORY_FLAGS, LISTED_DIRECTORY_FLAGS, Tree, file_identity
from surehold.errors import DiskFailed, LockTimeout

if sys.platform != "win32":
    import fcntl

_MIN_WAIT_SECONDS = 0.0002
_MAX_WAIT_SECONDS = 0.01
_BUSY_ERRNOS = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_NO_LOCK_ERRNOS = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})

Identity = tuple[int, int]


class DirectoryLocks:
    def __init__(self, tree: Tree, *, fallback_dir: str | None = None) -> None:
        self._tree = tree
        self._fallback_dir = fallback_dir

    @contextmanager
    def lock(self, targets: Sequence[Target], *, timeout: float) -> Generator[None]:
        """Hold the directories of all targets; `LockTimeout` when it takes longer than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            with ExitStack() as stack:
                if self._lock_all(targets, stack, timeout, deadline):
                    yield
                    return
            # A program that keeps moving the directories must not make us wait forever.
            if time.monotonic() > deadline:
                raise _timeout_error(targets[0].key, timeout)

    def _lock_all(self, targets: Sequence[Target], stack: ExitStack, timeout: float, deadline: float) -> bool:
        """Lock everything; False when a path leads elsewhere by the time its lock is held."""
        wanted: dict[Identity, tuple[int, Target]] = {}
        for target in targets:
            with translate_os_errors(target.key):
                fd = self._open_nearest(target)
                stack.callback(os.close, fd)
                wanted.setdefault(file_identity(os.fstat(fd)), (fd, target))
        for identity in sorted(wanted):
            fd, target = wanted[identity]
            if not wait_for_lock(fd, target.key, timeout, deadline):
                fd = self._open_fallback(identity, stack)
                wait_for_lock(fd, target.key, timeout, deadline)
            # Closing is not enough: a child forked in between has the descriptor, and so the lock, too.
            stack.callback(_release_lock, fd)
        return all(self._current_identity(target) in wanted for target in targets)

    def _open_nearest(self, target: Target) -> int:
        root = self._tree.root_of(target)
        parts = target.parts[:-1]
        while True:
            try:
                return self._tree.open_parts(root, parts, LISTED_DIRECTORY_FLAGS)
            except (FileNotFoundError, NotADirectoryError):
                if not parts:
                    raise
                parts = parts[:-1]
            except PermissionError:
                # Not readable, so it cannot be locked itself; its identity is enough for the fallback.
                return self._tree.open_parts(root, parts, DIRECTORY_FLAGS)

    def _current_identity(self, target: Target) -> Identity:
        with translate_os_errors(target.key), close_after(self._open_nearest(target)) as fd:
            return file_identity(os.fstat(fd))

    def _open_fallback(self, identity: Identity, stack: ExitStack) -> int:
        directory = Path(self._fallback_dir) if self._fallback_dir else _private_directory()
        name = f"{identity[0]:x}-{identity[1]:x}.lock"
        with translate_os_errors(name):
            fd = os.open(directory / name, os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        stack.callback(os.close, fd)
        return fd


def lock_file(fd: int, key: str, *, shared: bool = False, timeout: float = 5.0) -> None:
    """Lock an open file against other writers of ours, until it is closed; where that is impossible, do without."""
    wait_for_lock(fd, key, timeout, time.monotonic() + timeout, shared=shared)


def wait_for_lock(fd: int, key: str, timeout: float, deadline: float, *, shared: bool = False) -> bool:
    """Wait for one lock; False when this kind of file cannot be locked."""
    wait = _MIN_WAIT_SECONDS
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    while True:
        try:
            fcntl.flock(fd, how)
        except OSError as error:
            if error.errno in _NO_LOCK_ERRNOS:
                return False
            if error.errno not in _BUSY_ERRNOS:
                raise as_surehold_error(error, key) from error
        else:
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            raise _timeout_error(key, timeout)
        import random

        time.sleep(min(left, wait * random.uniform(0.5, 1.5)))  # noqa: S311  # spreads the waiters, keeps no secret
        wait = min(wait * 1.5, _MAX_WAIT_SECONDS)


def _release_lock(fd: int) -> None:
    """Release the lock. The work under it is done, so a failure here must not look like a failure of the work."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


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

"""Goes through directories, those too whose mode keeps us out although they are ours.

Rules:
1. A directory of ours that we may not list or enter is opened to us, and is as before when the walk ends.
2. Whoever gets a path looks at its facts at once: a directory is opened only after it was yielded.
3. A directory that cannot be listed all the same is remembered: what is in it is not known.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from surehold.disk.tree import readable_for_us

_GONE_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class DirectoryWalk:
    """One walk through directories, and everything that it opened for that."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self.missed: dict[bytes, str] = {}
        """The directories that could not be listed, and why."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # an entry that is gone by now has no mode to give back
            self._opened.__exit__(kind, error, trace)

    def list_below(self, directory: bytes) -> Iterator[bytes]:
        """Yield everything below a directory, each directory before its entries; links are not followed."""
        pending = [directory]
        while pending:
            one = pending.pop()
            try:
                self.open_directory(one)
                with os.scandir(one) as entries:
                    for entry in entries:
                        yield entry.path
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
            except OSError as error:
                if error.errno not in _GONE_ERRNOS:
                    self.missed[one] = error.strerror or ""

    def open_directory(self, path: bytes) -> None:
        """Let ourselves into a directory of ours until the walk ends."""
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or os.access(path, os.R_OK | os.X_OK):
            return
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._opened.callback(os.close, fd)
        self._opened.enter_context(readable_for_us(f"/proc/self/fd/{fd}", os.fstat(fd)))

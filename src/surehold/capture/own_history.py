"""Keeps the files of the history from a command: were they removed, nothing could be undone.

Rules:
1. Only what removes, moves or empties them is refused; all else in the directory of the history may change.
2. A process that has the history open is one of ours, such as `surehold gc` as a part of the command: it may.
3. A directory above them cannot be moved, as if something were mounted there.
"""

import errno
import os
from contextlib import suppress

_DATABASE = b"state.db"
_OWN_NAMES = frozenset({_DATABASE, b"state.db-wal", b"state.db-shm", b"state.lock", b"state.sync", b"blobs", b"runs"})


class OwnHistory:
    """The directory of the history, and where earlier bytes are kept while a command runs."""

    def __init__(self, directory: bytes) -> None:
        self._directory = directory
        self._above: tuple[bytes, ...] = (directory + b"/",)
        self._stash = b""

    def add_stash(self, directory: bytes) -> None:
        """Keep another directory for as long as the command runs."""
        if not directory.startswith(self._above):
            self._stash = directory + b"/"
            self._above = (*self._above, self._stash)

    def refusal_for(self, pid: int, path: bytes, *, moves: bool) -> int:
        """Return the error for a process that is about to remove, move or empty what a path leads to; 0 for none."""
        if moves and any(one.startswith(path + b"/") for one in self._above):
            return errno.EBUSY
        if not path.startswith(self._above):
            return 0
        is_own = path.startswith(self._stash) if self._stash else False
        is_own = is_own or path[len(self._directory) + 1 :].partition(b"/")[0] in _OWN_NAMES
        return errno.EPERM if is_own and os.path.lexists(path) and not self._has_opened(pid) else 0

    def _has_opened(self, pid: int) -> bool:
        """Tell whether a process has the database of the history open."""
        database = b"%b/%b" % (self._directory, _DATABASE)
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(b"/proc/%d/fd/%d" % (pid, int(name))) == database:
                        return True
        return False

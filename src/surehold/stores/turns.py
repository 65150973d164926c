"""Writers wait in line: a blocking lock in front of SQLite, whose own waiting is a lottery.

1. The operating system serves the line and forgets a dead process at once.
2. Nobody waits for ever: a stopped process in front costs the caller a `LockTimeout`, not a hang.
3. Every wait has an open file of its own, so threads of one process queue like processes do.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from surehold.stores import faults

try:
    import fcntl
except ImportError:  # not a POSIX system: SQLite's own waiting has to do
    fcntl = None

_held: set[int] = set()


@contextmanager
def turn(lock: Path, *, database: Path, patience: float) -> Generator[None]:
    """Hold the line's first place while the body runs."""
    if fcntl is None:
        yield
        return
    try:
        place = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise faults.from_os(error, lock) from error
    _held.add(place)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not _Waiter(place).wait(patience):
            raise faults.locked(database) from None
    except OSError:
        pass  # this file system has no such lock; SQLite's own keeps us correct, if not fair
    try:
        yield
    finally:
        _leave(place)


class _Waiter(threading.Thread):
    """Waits in line for somebody who may lose patience; a blocking flock has no time limit of its own."""

    def __init__(self, place: int) -> None:
        super().__init__(name="surehold-turn", daemon=True)
        self._place = place
        self._decision = threading.Lock()
        self._arrived = threading.Event()
        self._given_up = False

    def wait(self, patience: float) -> bool:
        """Tell whether our turn came; if not, the open file is no longer ours."""
        try:
            self.start()
        except RuntimeError:  # no more threads, or the interpreter is about to end
            self.run()
        try:
            self._arrived.wait(patience)
        except BaseException:
            if not self._give_up():
                _leave(self._place)
            raise
        return not self._give_up()

    def run(self) -> None:
        assert fcntl is not None
        with suppress(OSError):
            fcntl.flock(self._place, fcntl.LOCK_EX)
        with self._decision:
            self._arrived.set()
            if self._given_up:
                _leave(self._place)

    def _give_up(self) -> bool:
        with self._decision:
            self._given_up = not self._arrived.is_set()
            return self._given_up


def _leave(place: int) -> None:
    assert fcntl is not None
    _held.discard(place)
    with suppress(OSError):
        fcntl.flock(place, fcntl.LOCK_UN)  # closing alone would wait for a child that is about to exec
    os.close(place)


def _leave_in_child() -> None:
    # A lock belongs to the open file, which a fork shares: a child that keeps it would keep a dead parent's lock.
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)

"""Writers wait in line: a blocking lock in front of SQLite, whose own waiting is a lottery.

1. The operating system serves the line and forgets a dead process at once.
2. Nobody waits for ever: a stopped process in front costs the caller a `LockTimeout`, not a hang.
3. Every wait has an open file of its own, so threads of one process queue like processes do.
4. Whoever opens a place closes it, however the wait ends. A helper thread has a duplicate of its own; if it gets the
   lock for somebody who left, it gives the lock back.
5. While such a thread is still in line nobody starts another one: threads do not pile up behind a stopped process.
"""

import os
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from surehold.stores import faults

try:
    import fcntl
except ImportError:  # not a POSIX system: SQLite's own waiting has to do
    fcntl = None

_SHORTEST, _LONGEST = 0.001, 0.02  # seconds between two attempts of somebody who may not block


@contextmanager
def turn(lock: Path, *, database: Path, patience: float) -> Generator[None]:
    """Hold the line's first place while the body runs."""
    if fcntl is None:
        yield
        return
    try:
        place = _Place(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:  # the directory is gone
        raise faults.replaced(database) from None
    except OSError as error:
        raise faults.from_os(error, lock) from error
    try:  # nothing may stand before this line: an interrupt there would keep the lock
        if not place.take() and not _wait(place, patience):
            raise faults.locked(database)
        yield
    finally:
        place.leave()


class _Place:
    """An open file on the lock; closed at the latest when nobody remembers it."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number
        _held.add(self)

    def take(self) -> bool:
        """Tell whether the lock is ours now."""
        assert fcntl is not None
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # this file system has no such lock; SQLite's own keeps us correct, if not fair
        return True

    def take_in_line(self) -> None:
        """Return when the lock is ours, however long that takes."""
        assert fcntl is not None
        with suppress(OSError):
            self._lock(fcntl.LOCK_EX)

    def duplicate(self) -> "_Place":
        """Open the same file again: whoever has either has the lock, and each is closed by itself."""
        assert self._number is not None
        return _Place(os.dup(self._number))

    def leave(self) -> None:
        """Release the lock, for every duplicate, and close the file."""
        assert fcntl is not None
        try:
            if self._number is not None:
                fcntl.flock(self._number, fcntl.LOCK_UN)  # closing alone would wait for a child about to exec
        except OSError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the file; the lock stays with a duplicate, if there is one."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)

    def __del__(self) -> None:
        self.close()

    def _lock(self, operation: int) -> None:
        assert fcntl is not None
        assert self._number is not None
        fcntl.flock(self._number, operation)


class _Waiter(threading.Thread):
    """Waits in line for somebody who may lose patience; a blocking flock has no time limit of its own."""

    def __init__(self, place: _Place) -> None:
        super().__init__(name="surehold-turn", daemon=True)
        self._place = place
        self._arrived = threading.Event()
        self.given_up = False

    def wait(self, patience: float) -> bool:
        """Tell whether our turn came."""
        try:
            self.start()
            arrived = self._arrived.wait(patience)
        except BaseException:
            self.given_up = True
            raise
        self.given_up = not arrived
        return arrived

    def run(self) -> None:
        self._place.take_in_line()
        self._arrived.set()
        # Whoever gives up says so before leaving: either we see it here, or they release what we took.
        if self.given_up:
            self._place.leave()
        else:
            self._place.close()


def _wait(place: _Place, patience: float) -> bool:
    if any(isinstance(thread, _Waiter) and thread.given_up for thread in threading.enumerate()):
        return _try_again_and_again(place, patience)
    try:
        return _Waiter(place.duplicate()).wait(patience)
    except (RuntimeError, OSError):  # no more threads or files, or the interpreter is about to end
        return _try_again_and_again(place, patience)


def _try_again_and_again(place: _Place, patience: float) -> bool:
    end, pause = time.monotonic() + patience, _SHORTEST
    while not place.take():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
    return True


_held: "weakref.WeakSet[_Place]" = weakref.WeakSet()


def _leave_in_child() -> None:
    # A lock belongs to the open file, which a fork shares: a child that keeps it would keep a dead parent's lock,
    # and one that released it would take it from a living one.
    for place in tuple(_held):
        place.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)

"""The queue of writers: a blocking lock in front of SQLite, whose own waiting is not fair.

1. The operating system serves the queue and forgets a dead process at once.
2. No caller waits forever: a stopped process at the front causes a `LockTimeout`, not a hang.
3. Every wait has an open file of its own, so threads of one process queue like processes do.
4. Whoever opens a ticket closes it, however the wait ends. A waiting thread has a duplicate of its own; if it gets the
   lock after its caller gave up, it releases the lock.
5. While such a thread is still in the queue, no other one is started: threads do not pile up after a stopped process.
"""

import os
import sys
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from surehold.stores.sqlite import state_errors

if sys.platform != "win32":
    import fcntl

_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.001, 0.02  # seconds between two attempts of a writer that may not block


@contextmanager
def hold_turn(lock: str | Path, *, database: Path, patience: float) -> Generator[None]:
    if sys.platform == "win32":  # SQLite's own waiting has to do
        yield
        return
    try:
        place = _QueueTicket(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:  # the directory is gone
        raise state_errors.history_replaced_error(database) from None
    except OSError as error:
        raise state_errors.translate_os_error(error, Path(lock)) from error
    try:  # nothing may come before this line: an interrupt there would keep the lock
        if not place.try_lock() and not _wait_in_line(place, patience):
            raise state_errors.history_locked_error(database)
        yield
    finally:
        place.unlock_and_close()


class _QueueTicket:
    """An open file on the lock; closed at the latest when it is garbage-collected."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number
        _open_tickets.add(self)

    def try_lock(self) -> bool:
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # this file system has no such lock; SQLite's own keeps us correct, if not fair
        return True

    def wait_for_lock(self) -> None:
        """Return when the lock is ours, however long that takes."""
        with suppress(OSError):
            self._lock(fcntl.LOCK_EX)

    def duplicate(self) -> "_QueueTicket":
        """Open the same file again: whoever has either has the lock, and each is closed by itself."""
        assert self._number is not None
        return _QueueTicket(os.dup(self._number))

    def unlock_and_close(self) -> None:
        """Release the lock, for every duplicate, and close the file."""
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
        assert self._number is not None
        fcntl.flock(self._number, operation)


class _QueueWaiter(threading.Thread):
    """Waits in line for a writer with a time limit; a blocking flock has no time limit of its own."""

    def __init__(self, place: _QueueTicket) -> None:
        super().__init__(name="surehold-turn", daemon=True)
        self._place = place
        self._arrived = threading.Event()
        self.given_up = False

    def wait(self, patience: float) -> bool:
        try:
            self.start()
            arrived = self._arrived.wait(patience)
        except BaseException:
            self.given_up = True
            raise
        self.given_up = not arrived
        return arrived

    def run(self) -> None:
        self._place.wait_for_lock()
        self._arrived.set()
        # Whoever gives up says so before leaving: either we see it here, or they release what we took.
        if self.given_up:
            self._place.unlock_and_close()
        else:
            self._place.close()


def _wait_in_line(place: _QueueTicket, patience: float) -> bool:
    if any(isinstance(thread, _QueueWaiter) and thread.given_up for thread in threading.enumerate()):
        return _retry_until_deadline(place, patience)
    try:
        return _QueueWaiter(place.duplicate()).wait(patience)
    except (RuntimeError, OSError):  # no more threads or files, or the interpreter is about to end
        return _retry_until_deadline(place, patience)


def _retry_until_deadline(place: _QueueTicket, patience: float) -> bool:
    end, pause = time.monotonic() + patience, _MIN_PAUSE_SECONDS
    while not place.try_lock():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
    return True


_open_tickets: "weakref.WeakSet[_QueueTicket]" = weakref.WeakSet()


def _forget_in_child() -> None:
    # A lock belongs to the open file, which a fork shares: a child that keeps it would keep a dead parent's lock,
    # and one that released it would take it from a living one.
    for place in tuple(_open_tickets):
        place.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)

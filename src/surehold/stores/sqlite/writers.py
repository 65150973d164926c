"""Writers of one history: a queue for the lock of the database, and the sync of SQLite's log that they share.

The queue is a blocking lock in front of SQLite, whose own waiting is not fair.

1. The operating system serves the queue and forgets a dead process at once.
2. No caller waits forever: a stopped process at the front causes a `LockTimeout`, not a hang.
3. Every wait has an open file of its own, so threads of one process queue like processes do.
4. Whoever opens a ticket closes it, however the wait ends. A waiting thread has a duplicate of its own; if it gets the
   lock after its caller gave up, it releases the lock.
5. While such a thread is still in the queue, no other one is started: threads do not pile up after a stopped process.

The log is brought to the disk once for all writers that wait, and while no lock of the history is held.

1. A commit gets a ticket after its bytes are in the log, and before its turn ends. Tickets are numbered in that order.
2. The first to wait is the leader: it notes the newest ticket, syncs the log, and publishes that number. Everyone whose
   ticket is covered goes on; of the others, one is the next leader.
3. Being the only leader saves work and nothing else. A sync is correct without it, so no one waits for one that was
   stopped much longer than syncs take on this disk, and whatever is wrong with the shared file is answered by a sync of
   one's own.
4. Tickets survive neither a reboot nor a new file, and need not: a new ticket is above all that were ever published.
5. SQLite writes over the log only after it is in the database and both were synced, so a later sync of the log covers
   every earlier commit.
6. The kernel reports a write that failed once, and then forgets it. So a failed sync is noted in the shared file, and
   nothing is acknowledged until the log was copied into the database and started anew (`mend`).
"""

import errno
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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


_WORD_BYTES = 8
_COMMITTED, _SYNCED, _FAILED, _BELL, _WAITING, _TOOK = range(6)
_FILE_BYTES = 6 * _WORD_BYTES
_LARGEST_TICKET = 1 << 62  # above it, the file is damaged
_LISTEN_SECONDS = 0.02  # then it is looked whether the leader died
_STOPPED_SECONDS = 0.25  # a leader that takes longer is not waited for, unless the last sync took long too
_MAX_STOPPED_SECONDS = 10.0
_POLL_SECONDS = 0.001
_FUTEX_CALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1

sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class LogSync:
    """Syncs one log for the threads of this process, together with all other processes that write it."""

    def __init__(self, shared: Path, *, mend: Callable[[], bool]) -> None:
        """`mend` makes everything durable that the log holds, in another way, or says that it cannot."""
        self._path, self._mend = shared, mend
        self._opening = threading.Lock()
        self._shared: _SharedWords | None = None
        self._leader = dict[str, object]()
        """Which call of this process leads, if one does; a dictionary, since it is taken and known in one step."""

    def take_ticket(self) -> int:
        """Return the number of a commit that was just made, in the turn of its caller; 0 when it must be synced alone."""
        try:
            words = (self._shared or self._open_shared()).words
        except OSError:
            return 0
        ticket = max(words[_COMMITTED], words[_SYNCED]) + 1
        if ticket > _LARGEST_TICKET:
            return 0
        words[_COMMITTED] = ticket
        return ticket

    def wait(self, ticket: int, log: int) -> None:
        """Return when the commit with this ticket is on the disk; `OSError` when the disk failed."""
        try:
            words = (self._shared or self._open_shared()).words if ticket else None
        except OSError:
            words = None
        if words is None:
            self.sync_alone(log)
            return
        end, me = time.monotonic() + _patience(words), object()
        try:
            while time.monotonic() < end:
                bell = words[_BELL]
                if words[_SYNCED] >= ticket and not words[_FAILED]:
                    return
                if self._may_lead(me):
                    break
                self._listen(bell)
            if words[_SYNCED] < ticket or words[_FAILED]:  # no other leader came first
                self._sync_for_all(words, log)
        finally:
            self._stop_leading(me)

    def sync_alone(self, log: int) -> None:
        """Return when everything in the log is on the disk."""
        failure: OSError | None = None
        with suppress(OSError):
            if (self._shared or self._open_shared()).words[_FAILED]:
                failure = OSError(errno.EIO, os.strerror(errno.EIO))
        try:
            sync_data(log)
        except OSError as error:
            failure = error
            self.note_failure(failed=True)
        if failure is not None and not self._mend():
            raise failure

    def note_failure(self, *, failed: bool) -> None:
        """Tell all processes that the log may have lost something, or that it was mended."""
        with suppress(OSError):
            self._open_shared().words[_FAILED] = int(failed)

    def forget(self) -> None:
        """Start anew in a forked child: the lock belongs to the open file, which is the parent's."""
        self._opening, self._leader = threading.Lock(), {}
        self.close()

    def close(self) -> None:
        """Close the shared file; no thread waits any more."""
        shared, self._shared = self._shared, None
        if shared is not None:
            os.close(shared.descriptor)

    def _sync_for_all(self, words: memoryview, log: int) -> None:
        committed, began = words[_COMMITTED], time.monotonic_ns()
        self.sync_alone(log)
        words[_TOOK] = time.monotonic_ns() - began
        words[_SYNCED] = max(words[_SYNCED], committed)

    def _may_lead(self, me: object) -> bool:
        if self._leader.setdefault("me", me) is not me:
            return False
        try:
            fcntl.flock((self._shared or self._open_shared()).descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._leader.pop("me", None)
            return False
        except OSError:
            pass  # no such lock here: every process leads its own threads
        return True

    def _stop_leading(self, me: object) -> None:
        if self._leader.get("me") is not me:
            return
        try:
            shared = self._shared or self._open_shared()
        except OSError:
            shared = None
        if shared is not None:
            with suppress(OSError):
                fcntl.flock(shared.descriptor, fcntl.LOCK_UN)
        self._leader.pop("me", None)
        if shared is not None:
            shared.words[_BELL] = time.monotonic_ns() & 0xFFFF_FFFF
            if shared.words[_WAITING]:
                shared.words[_WAITING] = 0
                with suppress(OSError):
                    shared.doorbell.ring()

    def _listen(self, bell: int) -> None:
        """Wait until a leader is done; it may be missed if none was there, or it died."""
        try:
            shared = self._open_shared()
            shared.words[_WAITING] = 1
            shared.doorbell.listen(bell)
        except OSError:
            time.sleep(_POLL_SECONDS)

    def _open_shared(self) -> "_SharedWords":
        shared = self._shared
        if shared is None:
            with self._opening:
                shared = self._shared = self._shared or _SharedWords(self._path)
        return shared


def _patience(words: memoryview) -> float:
    """Return for how many seconds a leader is waited for: longer where the last sync took long."""
    return min(max(_STOPPED_SECONDS, 3 * words[_TOOK] / 1e9), max(_STOPPED_SECONDS, _MAX_STOPPED_SECONDS))


class _SharedWords:
    """The file that all processes share, as numbers in memory; a store of one of them is one step."""

    def __init__(self, path: Path) -> None:
        """`OSError` when the file cannot be used."""
        import mmap

        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            there = os.fstat(self.descriptor).st_size
            if there < _FILE_BYTES:  # new, or cut: then it says that nothing is synced
                os.pwrite(self.descriptor, bytes(_FILE_BYTES - there), there)
            self._pages: Any = mmap.mmap(self.descriptor, _FILE_BYTES)
        except ValueError as error:  # cut again in this moment
            os.close(self.descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from error
        except BaseException:
            os.close(self.descriptor)
            raise
        self.words = memoryview(self._pages).cast("Q")
        self._doorbell: _Doorbell | None = None

    @property
    def doorbell(self) -> "_Doorbell":
        if self._doorbell is None:
            self._doorbell = _Doorbell(self._pages)
        return self._doorbell


class _Doorbell:
    """Wakes the processes that wait for a leader: a futex in the shared file."""

    def __init__(self, pages: Any) -> None:
        """`OSError` where there is no such thing."""
        import ctypes

        number = _FUTEX_CALLS.get(os.uname().machine)
        if sys.platform != "linux" or number is None or sys.maxsize < 1 << 32:
            raise OSError("There is no futex.")
        self._word = ctypes.c_uint32.from_buffer(pages, _BELL * _WORD_BYTES)
        self._address = ctypes.c_void_p(ctypes.addressof(self._word))
        self._ctypes, self._call = ctypes, ctypes.CDLL(None, use_errno=True).syscall
        self._number = ctypes.c_long(number)
        self._patience = (ctypes.c_long * 2)(0, int(_LISTEN_SECONDS * 1e9))

    def listen(self, value: int) -> None:
        """Wait for a ring, a while at most; return at once when the word holds another value."""
        self._futex(_FUTEX_WAIT, value, self._patience)

    def ring(self) -> None:
        self._futex(_FUTEX_WAKE, (1 << 31) - 1, None)

    def _futex(self, operation: int, value: int, patience: Any) -> None:
        how, what = self._ctypes.c_int(operation), self._ctypes.c_uint32(value & 0xFFFF_FFFF)
        if self._call(self._number, self._address, how, what, patience, None, None) < 0:
            number = self._ctypes.get_errno()
            if number not in {errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT}:
                raise OSError(number, os.strerror(number))

"""Brings SQLite's log to the disk: once for all writers that wait, and while no lock of the history is held.

1. A commit gets a ticket after its bytes are in the log, and before its turn ends. Tickets are numbered in that order.
2. The first to wait is the leader: it notes the newest ticket, syncs the log, and publishes that number. Everyone whose
   ticket is covered goes on; of the others, one is the next leader.
3. Being the only leader saves work and nothing else. A sync is correct without it, so no one waits for long for one that
   was stopped, and whatever is wrong with the shared file is answered by a sync of one's own.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

_WORD_BYTES = 8
_COMMITTED, _SYNCED, _FAILED, _BELL, _WAITING = range(5)
_WORDS = 5
_LISTEN_SECONDS = 0.02  # then it is looked whether the leader died
_STOPPED_SECONDS = 0.25  # a leader that takes longer is not waited for
_POLL_SECONDS = 0.001
_FUTEX_CALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1

sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True)
class _Counters:
    committed: int
    synced: int
    failed: int
    bell: int


class LogSync:
    """Syncs one log for the threads of this process, together with all other processes that write it."""

    def __init__(self, shared: Path, *, mend: Callable[[], bool]) -> None:
        """`mend` makes everything durable that the log holds, in another way, or says that it cannot."""
        self._path, self._mend = shared, mend
        self._shared: int | None = None
        self._leading, self._opening = threading.Lock(), threading.Lock()
        self._doorbell: _Doorbell | None = None

    def take_ticket(self) -> int:
        """Return the number of a commit that was just made, in the turn of its caller; 0 when it must be synced alone."""
        try:
            counters = self._read_counters()
            ticket = max(counters.committed, counters.synced) + 1
            self._write_word(_COMMITTED, ticket)
        except OSError:
            return 0
        return ticket

    def wait(self, ticket: int, log: int) -> None:
        """Return when the commit with this ticket is on the disk; `OSError` when the disk failed."""
        end = time.monotonic() + _STOPPED_SECONDS
        with suppress(_SharedFileError):
            while ticket:
                counters = self._look()
                if counters.synced >= ticket and not counters.failed:
                    return
                if self._may_lead():
                    try:
                        self._sync_for_all(ticket, log)
                    finally:
                        self._stop_leading()
                    return
                if time.monotonic() > end:
                    break
                self._listen(counters.bell)
        self.sync_alone(log)

    def sync_alone(self, log: int) -> None:
        """Return when everything in the log is on the disk."""
        failure: OSError | None = None
        with suppress(_SharedFileError):
            if self._look().failed:
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
            self._write_word(_FAILED, int(failed))

    def forget(self) -> None:
        """Start anew in a forked child: the lock belongs to the open file, which is the parent's."""
        self._leading, self._opening = threading.Lock(), threading.Lock()
        self.close()

    def close(self) -> None:
        """Close the shared file; no thread waits any more."""
        shared, self._shared, self._doorbell = self._shared, None, None
        if shared is not None:
            os.close(shared)

    def _sync_for_all(self, ticket: int, log: int) -> None:
        counters = self._look()
        if counters.synced >= ticket and not counters.failed:
            return  # another leader came first
        self.sync_alone(log)
        with suppress(OSError):
            self._write_word(_SYNCED, counters.committed)

    def _may_lead(self) -> bool:
        if not self._leading.acquire(blocking=False):
            return False
        try:
            fcntl.flock(self._descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._leading.release()
            return False
        except OSError:
            pass  # no such lock here: every process leads its own threads
        except BaseException:
            self._leading.release()
            raise
        return True

    def _stop_leading(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._descriptor(), fcntl.LOCK_UN)
        self._leading.release()
        with suppress(OSError):
            self._write_word(_BELL, time.monotonic_ns() & 0xFFFF_FFFF)
            if self._read_words()[_WAITING]:
                self._write_word(_WAITING, 0)
                self._bell().ring()

    def _listen(self, bell: int) -> None:
        """Wait until a leader is done; it may be missed if none was there, or it died."""
        try:
            self._write_word(_WAITING, 1)
            self._bell().listen(bell)
        except OSError:
            time.sleep(_POLL_SECONDS)

    def _bell(self) -> "_Doorbell":
        if self._doorbell is None:
            self._doorbell = _Doorbell(self._descriptor())
        return self._doorbell

    def _look(self) -> _Counters:
        try:
            return self._read_counters()
        except OSError as error:
            raise _SharedFileError from error

    def _read_counters(self) -> _Counters:
        committed, synced, failed, bell, _ = self._read_words()
        return _Counters(committed, synced, failed, bell)

    def _read_words(self) -> list[int]:
        data = os.pread(self._descriptor(), _WORDS * _WORD_BYTES, 0)
        data = data.ljust(_WORDS * _WORD_BYTES, b"\0")  # new, or cut: then it says that nothing is synced
        return [int.from_bytes(data[at : at + _WORD_BYTES], "little") for at in range(0, len(data), _WORD_BYTES)]

    def _write_word(self, word: int, value: int) -> None:
        os.pwrite(self._descriptor(), value.to_bytes(_WORD_BYTES, "little"), word * _WORD_BYTES)

    def _descriptor(self) -> int:
        if self._shared is None:
            with self._opening:
                if self._shared is None:
                    self._shared = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._shared


class _SharedFileError(OSError):
    """The file that all processes share cannot be used."""


class _Doorbell:
    """Wakes the processes that wait for a leader: a futex in the shared file."""

    def __init__(self, shared: int) -> None:
        """`OSError` where there is no such thing."""
        import ctypes
        import mmap

        number = _FUTEX_CALLS.get(os.uname().machine)
        if sys.platform != "linux" or number is None or sys.maxsize < 1 << 32:
            raise OSError("There is no futex.")
        os.pwrite(shared, bytes(_WORD_BYTES), _WAITING * _WORD_BYTES)  # what is mapped must exist
        pages: Any = mmap.mmap(shared, _WORDS * _WORD_BYTES)
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
        how, what = self._ctypes.c_int(operation), self._ctypes.c_uint32(value)
        if self._call(self._number, self._address, how, what, patience, None, None) < 0:
            number = self._ctypes.get_errno()
            if number not in {errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT}:
                raise OSError(number, os.strerror(number))

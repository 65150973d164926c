"""Connections to the SQLite database: who may use one, and how a transaction begins and ends.

1. A connection serves one caller at a time; idle ones wait in a pool.
2. A connection never crosses a fork. The child opens its own and neither uses nor closes those of its parent:
   closing them could remove a log file that the parent still writes.
3. Writers hold their turn from BEGIN to COMMIT. Readers never wait.
4. Only SQLite opens the database file: closing it elsewhere would drop SQLite's own locks.
5. A connection that raised is closed, not reused.
6. Nothing is written to a file that lost its name, or acknowledged when the log lost its name: the history would be lost
   with them. A database that was once found replaced stays refused until it is opened again.

Writers wait in a queue, a blocking lock in front of SQLite, whose own waiting is not fair:

7. The operating system serves the queue and forgets a dead process at once.
8. No caller waits forever: a stopped process at the front causes a `LockTimeout`, not a hang.
9. Every wait has an open file of its own, so threads of one process queue like processes do.
10. Whoever opens a ticket closes it, however the wait ends. A waiting thread has a duplicate of its own; if it gets the
   lock after its caller gave up, it releases the lock.
11. While such a thread is still in the queue, no other one is started: threads do not pile up after a stopped process.
"""

import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from surehold.errors import StateUnavailable
from surehold.stores.sqlite import schema, state_errors

if sys.platform != "win32":
    import fcntl

_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.001, 0.02  # seconds between two attempts of a writer that may not block


@contextmanager
def hold_turn(lock: Path, *, database: Path, patience: float) -> Generator[None]:
    if sys.platform == "win32":  # SQLite's own waiting has to do
        yield
        return
    try:
        place = _QueueTicket(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:  # the directory is gone
        raise state_errors.history_replaced_error(database) from None
    except OSError as error:
        raise state_errors.translate_os_error(error, lock) from error
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


Durability = Literal["full", "none"]

_WAIT_SECONDS = 30.0  # seconds; a turn takes milliseconds
_CHECKPOINT_PAGES = 500  # 2 MB of log: a log that is written over, not longer, is cheaper to bring to the disk
_LOG_LIMIT_BYTES = 64 * 1024 * 1024

_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()


@dataclass(slots=True)
class _PooledConnection:
    """A connection and the durability it is set to."""

    connection: sqlite3.Connection
    synchronous: str = ""


class Database:
    """The SQLite file of one state directory."""

    def __init__(self, state_dir: Path, *, durability: Durability) -> None:
        self.path, self._log_path = state_dir / "state.db", state_dir / "state.db-wal"
        self._lock = state_dir / "state.lock"
        self._durable = "FULL" if durability == "full" else "OFF"
        self._relaxed = "NORMAL" if durability == "full" else "OFF"
        self._idle: list[_PooledConnection] = []
        self._all: dict[int, _PooledConnection] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._file: tuple[int, int] | None = None
        """The device and inode of the file that was opened first, and that every connection must have."""
        self._log: tuple[int, int] | None = None
        """The same of its log, which stays as long as a connection is open."""
        self._replaced = False
        _databases.add(self)
        self._prepare_state(state_dir)

    @contextmanager
    def read_transaction(self) -> Generator[sqlite3.Connection]:
        """Lend a connection whose queries all see the same moment."""
        with self._lend_connection() as link:
            link.connection.execute("BEGIN")
            yield link.connection
            link.connection.execute("COMMIT")

    @contextmanager
    def write_transaction(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """Lend a connection inside the one write transaction; it commits when the body returns."""
        with self._lend_connection() as link, hold_turn(self._lock, database=self.path, patience=_WAIT_SECONDS):
            if _file_identity(self.path) != self._file:
                raise self._mark_replaced()
            synchronous = self._durable if durable else self._relaxed
            if link.synchronous != synchronous:
                link.connection.execute(f"PRAGMA synchronous = {synchronous}")
                link.synchronous = synchronous
            link.connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_log()
                yield link.connection
                link.connection.execute("COMMIT")
            except BaseException:
                # Inside the turn, so that the next in line does not meet our lock.
                _roll_back(link.connection)
                raise
            self._check_log()

    def close(self) -> None:
        """Close every idle connection; one in use is closed when it comes back."""
        self._closed = True
        self._close_idle()

    def forget_connections(self) -> None:
        """Forget every connection without closing it: they belong to the process that forked us."""
        if self._all:
            import ctypes

            for link in self._all.values():  # never to be freed, not even when the interpreter ends: freeing closes
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(link.connection))
        self._guard = threading.Lock()
        self._idle = []
        self._all = {}
        self._log = None

    @contextmanager
    def _lend_connection(self) -> Generator[_PooledConnection]:
        try:
            link = self._take_connection()
            try:
                yield link
            except BaseException as error:
                _roll_back(link.connection)
                if isinstance(error, sqlite3.Error):
                    self._close_connection(link)
                else:
                    self._give_back(link)
                raise
            self._give_back(link)
        except sqlite3.ProgrammingError:
            raise  # a bug of ours, and no news about the database
        except sqlite3.Error as error:
            raise state_errors.translate_sqlite_error(error, self.path) from error

    def _take_connection(self) -> _PooledConnection:
        with self._guard:
            if self._closed:
                raise StateUnavailable("The store is closed.", reason="store_closed", action="Open it again.")
            if self._replaced:
                raise state_errors.history_replaced_error(self.path)
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, link: _PooledConnection) -> None:
        with self._guard:
            if not self._closed and not self._replaced and id(link) in self._all:
                self._idle.append(link)
                return
        self._close_connection(link)

    def _close_connection(self, link: _PooledConnection) -> None:
        if self._all.pop(id(link), None) is not None:
            with suppress(sqlite3.Error):
                link.connection.close()
        if not self._all:
            self._log = None  # the last one to leave may have removed it

    def _close_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for link in idle:
            self._close_connection(link)

    def _mark_replaced(self) -> StateUnavailable:
        self._replaced = True  # connections in use are closed when they come back
        self._close_idle()
        return state_errors.history_replaced_error(self.path)

    def _check_log(self) -> None:
        found = _file_identity(self._log_path)
        self._log = self._log or found
        if found != self._log:
            raise self._mark_replaced()

    def _connect(self) -> _PooledConnection:
        # Twice: on a file system in layers, the first opening for writing may give the file a new number.
        link = self._try_to_connect() or self._try_to_connect()
        if link is None:
            raise self._mark_replaced()
        return link

    def _try_to_connect(self) -> _PooledConnection | None:
        before = _file_identity(self.path)
        if before is None or before != (self._file or before):
            return None  # SQLite would make a new file, or take a stranger's
        connection = sqlite3.connect(
            self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
            unmoved = _file_identity(self.path) == before
        except BaseException:
            connection.close()
            raise
        if not unmoved:
            connection.close()
            return None
        self._file = before
        link = _PooledConnection(connection)
        self._all[id(link)] = link
        return link

    def _prepare_state(self, state_dir: Path) -> None:
        try:
            self._make_folder(state_dir)
            if self.path.exists():
                with self._lend_connection() as link:
                    if schema.is_current(link.connection, self.path):
                        return
            with hold_turn(self._lock, database=self.path, patience=_WAIT_SECONDS):
                if not self.path.exists():
                    self._create_file()
                with self._lend_connection() as link:
                    schema.migrate(link.connection, self.path)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise state_errors.translate_os_error(error, state_dir) from error
            raise

    def _make_folder(self, state_dir: Path) -> None:
        missing = [folder for folder in (state_dir, *state_dir.parents) if not folder.exists()]
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._durable == "FULL":
            for folder in missing:  # a history whose directory a power failure takes away is not a history
                sync_folder(folder.parent)

    def _create_file(self) -> None:
        # SQLite would let the umask decide who may read the history; its side files copy this file's mode.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def sync_folder(folder: Path) -> None:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)  # noqa: PTH116 - no pathlib in the hot path
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise state_errors.translate_os_error(error, path) from error
    return facts.st_dev, facts.st_ino


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _forget_in_child() -> None:
    # A lock belongs to the open file, which a fork shares: a child that keeps it would keep a dead parent's lock,
    # and one that released it would take it from a living one.
    for place in tuple(_open_tickets):
        place.close()
    for database in tuple(_databases):
        database.forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)

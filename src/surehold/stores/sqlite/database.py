"""Connections to the SQLite database: who may use one, and how a transaction begins and ends.

1. A connection serves one caller at a time; idle ones wait in a pool.
2. A connection never crosses a fork. The child opens its own and neither uses nor closes those of its parent:
   closing them could remove a log file that the parent still writes.
3. Writers hold their turn from BEGIN to COMMIT. Readers never wait.
4. Only SQLite opens the database file: closing it elsewhere would drop SQLite's own locks.
5. A connection that raised is closed, not reused.
6. A durable transaction commits in its turn and waits for the disk after it, so that one sync serves many writers (see
   `writers`). What it answers, and what it saw of others, is on the disk when it returns.
7. Nothing is written to a file that lost its name, or acknowledged when the log lost its name: the history would be lost
   with them. A database that was once found replaced stays refused until it is opened again.
"""

import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from surehold.errors import StateUnavailable, SureholdError, WorkspaceClosed
from surehold.stores.sqlite import schema, state_errors
from surehold.stores.sqlite.writers import LogSync, hold_turn

Durability = Literal["full", "none"]

_WAIT_SECONDS = 30.0  # seconds; a turn takes milliseconds
_CHECKPOINT_PAGES = 500  # 2 MB of log: a log that is written over, not longer, is cheaper to bring to the disk
_LOG_LIMIT_BYTES = 64 * 1024 * 1024
_KEYS_AT_ONCE = 500

_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.002, 0.05

_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()


@dataclass(slots=True)
class _PooledConnection:
    """A connection, and whether its durability is set."""

    connection: sqlite3.Connection
    is_set_up: bool = False


class _ConnectionLoan:
    """Lends a connection of a database to a block; one that raised is closed, and what it raised says why."""

    __slots__ = ("_database", "_link")

    def __init__(self, database: "Database") -> None:
        self._database = database

    def __enter__(self) -> _PooledConnection:
        try:
            self._link = self._database.take_connection()
        except sqlite3.Error as error:
            raise state_errors.translate_sqlite_error(error, self._database.path) from error
        return self._link

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._database.give_back(self._link)
            return
        _roll_back(self._link.connection)
        if not isinstance(error, sqlite3.Error):
            self._database.give_back(self._link)
            return
        self._database.close_connection(self._link)
        if not isinstance(error, sqlite3.ProgrammingError):  # that is a bug of ours, and no news about the database
            raise state_errors.translate_sqlite_error(error, self._database.path) from error


class Database:
    """The SQLite file of one state directory."""

    def __init__(self, state_dir: Path, *, durability: Durability) -> None:
        self.path, self._log_path = state_dir / "state.db", str(state_dir / "state.db-wal")
        self._name, self._lock = str(self.path), str(state_dir / "state.lock")
        self._durable = durability == "full"
        self._groups_syncs = self._durable and sys.platform != "win32"
        self._sync = LogSync(state_dir / "state.sync", mend=self._mend_log)
        self._idle: list[_PooledConnection] = []
        self._all: dict[int, _PooledConnection] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._file: tuple[int, int] | None = None
        """The device and inode of the file that was opened first, and that every connection must have."""
        self._log: tuple[int, int] | None = None
        """The same of its log, which stays as long as a connection is open."""
        self._log_file: int | None = None
        """The log, opened before anything is written to it: only then the kernel tells us of every failure."""
        self._replaced = False
        _databases.add(self)
        self._prepare_state(state_dir)

    @contextmanager
    def read_transaction(self) -> Generator[sqlite3.Connection]:
        """Lend a connection whose queries all see the same moment."""
        with _ConnectionLoan(self) as link:
            link.connection.execute("BEGIN")
            yield link.connection
            link.connection.execute("COMMIT")

    @contextmanager
    def write_transaction(
        self, *, durable: bool = True, patience: float | None = None, later: list[int] | None = None
    ) -> Generator[sqlite3.Connection]:
        """Lend a connection inside the one write transaction; it commits when the body returns.

        With `later`, the disk is not waited for: what `sync_ticket` takes is put there.
        """
        with _ConnectionLoan(self) as link:
            with self._hold_turn(patience):
                self._begin_writing(link)
                before = link.connection.total_changes
                try:
                    self._check_log()
                    yield link.connection
                    link.connection.execute("COMMIT")
                except BaseException:
                    # Inside the turn, so that the next in line does not meet our lock.
                    _roll_back(link.connection)
                    raise
                wait = durable and self._groups_syncs and link.connection.total_changes != before
                ticket = self._sync.take_ticket() if wait else None
                if ticket is None:
                    self._check_log()
            if ticket is not None and later is not None:
                later.append(ticket)
            elif ticket is not None:
                self._reach_disk(partial(self._sync.wait, ticket))

    def sync_ticket(self, ticket: int) -> None:
        """Return when a transaction that was committed before is on the disk."""
        with _ConnectionLoan(self):
            self._reach_disk(partial(self._sync.wait, ticket))

    @contextmanager
    def short_turn(self) -> Generator[sqlite3.Connection]:
        """Lend a write transaction for a part of a long work: nothing waits for it, and afterwards others come first."""
        with self.write_transaction(durable=False) as connection:
            began = time.monotonic()
            yield connection
        # The lock is not handed over: whoever waits for it has to be awake before we want it again.
        time.sleep(min(max(time.monotonic() - began, _MIN_PAUSE_SECONDS), _MAX_PAUSE_SECONDS))

    def read_name(self) -> str:
        """Return what tells this history from others."""
        with self.read_transaction() as connection:
            return connection.execute("SELECT name FROM identity").fetchone()[0]

    def sync(self) -> None:
        """Return when everything that any process has committed is on the disk."""
        if self._groups_syncs:
            with _ConnectionLoan(self) as link:
                link.connection.execute("SELECT 1 FROM tip").fetchone()  # only then the log is there
                self._reach_disk(self._sync.sync_alone)

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
        self._forget_log()
        self._sync.forget()

    def take_connection(self) -> _PooledConnection:
        """Return a connection for one caller, who gives it back."""
        with self._guard:
            if self._closed:
                raise WorkspaceClosed("This workspace is closed.")
            if self._replaced:
                raise state_errors.history_replaced_error(self.path)
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def give_back(self, link: _PooledConnection) -> None:
        """Keep a connection for the next caller, unless it may not be used again."""
        with self._guard:
            if not self._closed and not self._replaced and id(link) in self._all:
                self._idle.append(link)
                return
        self.close_connection(link)

    def close_connection(self, link: _PooledConnection) -> None:
        """Close a connection that no one uses any more."""
        if id(link) in self._all:
            with suppress(sqlite3.Error):
                link.connection.close()
        with self._guard:
            self._all.pop(id(link), None)
            if not self._all:  # the last one to leave may have removed the log
                self._forget_log()
                self._sync.close()

    def _close_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for link in idle:
            self.close_connection(link)

    def _mark_replaced(self) -> StateUnavailable:
        self._replaced = True  # connections in use are closed when they come back
        self._close_idle()
        return state_errors.history_replaced_error(self.path)

    def _check_log(self) -> None:
        found = _file_identity(self._log_path)
        if self._log is None and found is not None:
            self._open_log()
        if found != self._log:
            raise self._mark_replaced()

    def _open_log(self) -> None:
        with self._guard:
            if self._log_file is not None:
                return
            try:
                self._log_file = os.open(self._log_path, os.O_RDWR | os.O_CLOEXEC)
                facts = os.fstat(self._log_file)
            except OSError as error:
                raise state_errors.translate_os_error(error, Path(self._log_path)) from error
            self._log = (facts.st_dev, facts.st_ino)

    def _forget_log(self) -> None:
        place, self._log_file, self._log = self._log_file, None, None
        if place is not None:
            os.close(place)

    def _hold_turn(self, patience: float | None = None) -> AbstractContextManager[None]:
        return hold_turn(self._lock, database=self.path, patience=_WAIT_SECONDS if patience is None else patience)

    def _begin_writing(self, link: _PooledConnection) -> None:
        if _file_identity(self._name) != self._file:
            raise self._mark_replaced()
        if not link.is_set_up:
            # NORMAL syncs the log before it is copied into the database; commits are synced by `LogSync`.
            level = "OFF" if not self._durable else "NORMAL" if self._groups_syncs else "FULL"
            link.connection.execute(f"PRAGMA synchronous = {level}")
            link.is_set_up = True
        link.connection.execute("BEGIN IMMEDIATE")

    def _reach_disk(self, sync: Callable[[int], None]) -> None:
        """Sync the log while a connection is lent, so that the log stays, and see that it kept its name."""
        try:
            if self._log_file is None:
                self._check_log()
            assert self._log_file is not None
            sync(self._log_file)
        except OSError as error:
            raise state_errors.translate_os_error(error, self.path) from error
        self._check_log()

    def _mend_log(self) -> bool:
        """Copy the whole log into the database, sync that, and start the log anew: what a sync lost is written again."""
        for _ in range(2):  # SQLite's own open file may have to report the failure once more
            with suppress(SureholdError), _ConnectionLoan(self) as link, self._hold_turn():
                link.connection.execute("PRAGMA synchronous = FULL")
                link.is_set_up = False
                busy, _, _ = link.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    self._sync.note_failure(failed=False)
                    return True
        return False

    def _connect(self) -> _PooledConnection:
        # Twice: on a file system in layers, the first opening for writing may give the file a new number.
        link = self._try_to_connect() or self._try_to_connect()
        if link is None:
            raise self._mark_replaced()
        return link

    def _try_to_connect(self) -> _PooledConnection | None:
        before = _file_identity(self._name)
        if before is None or before != (self._file or before):
            return None  # SQLite would make a new file, or take a stranger's
        connection = sqlite3.connect(
            self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
            unmoved = _file_identity(self._name) == before
        except BaseException:
            connection.close()
            raise
        if not unmoved:
            connection.close()
            return None
        self._file = before
        link = _PooledConnection(connection)
        with self._guard:
            self._all[id(link)] = link
        return link

    def _prepare_state(self, state_dir: Path) -> None:
        try:
            self._make_folder(state_dir)
            if self.path.exists():
                with _ConnectionLoan(self) as link:
                    if schema.is_current(link.connection, self.path):
                        return
            with self._hold_turn():
                if not self.path.exists():
                    self._create_file()
                with _ConnectionLoan(self) as link:
                    schema.migrate(link.connection, self.path)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise state_errors.translate_os_error(error, state_dir) from error
            raise

    def _make_folder(self, state_dir: Path) -> None:
        missing = [folder for folder in (state_dir, *state_dir.parents) if not folder.exists()]
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._durable:
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


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)  # noqa: PTH116 - no pathlib in the hot path
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise state_errors.translate_os_error(error, Path(path)) from error
    return facts.st_dev, facts.st_ino


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _forget_in_child() -> None:
    for database in tuple(_databases):
        database.forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


def select_keys(connection: sqlite3.Connection, select: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a selection that ends with `IN`, for many keys at a time."""
    for at in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[at : at + _KEYS_AT_ONCE]
        yield from connection.execute(f"{select} ({', '.join('?' * len(some))})", some)

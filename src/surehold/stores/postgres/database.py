"""Connections to PostgreSQL: who may use one, and what happens when one is lost.

1. A connection serves one caller at a time; idle ones wait in a pool, and there are never more than its size.
2. A call is one round trip: one statement that commits by itself. Only rare work takes a transaction of several.
3. A connection that failed is closed. Calls that may be sent twice are sent again for a while: a database that restarts, or
   whose standby takes over, is waited for.
4. A connection never crosses a fork: the child opens its own.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from surehold.errors import StateUnavailable, SureholdError
from surehold.stores.postgres.address import PostgresAddress
from surehold.stores.postgres.database_errors import may_succeed_later, server_said_no, translate_error

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

Values = Sequence[object] | Mapping[str, object]
_Result = TypeVar("_Result")

POOL_CONNECTIONS = 8
PATIENCE_SECONDS = 8.0  # less than a lease: what is finished after that may be settled by another process
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5

_databases: "weakref.WeakSet[PostgresDatabase]" = weakref.WeakSet()


class PostgresDatabase:
    """A pool of connections to one schema of one database."""

    def __init__(
        self, address: PostgresAddress, *, size: int = POOL_CONNECTIONS, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.address, self._size, self.patience = address, size, patience
        self._driver = _load_driver()
        self._closed = False
        self.forget_connections()
        _databases.add(self)

    def call(self, statement: str, values: Values = (), *, twice: bool = True) -> tuple[Any, ...]:
        """Execute one statement and return its one row; `twice`: it does no harm to send it again if no answer came."""
        return self.rows(statement, values, twice=twice)[0]

    def rows(self, statement: str, values: Values = (), *, twice: bool = True) -> list[tuple[Any, ...]]:
        """Execute one statement in one round trip, and return its rows."""
        return self._attempt(lambda connection: fetch_rows(connection, statement, values), twice=twice)

    def change(self, statement: str, values: Values = ()) -> int:
        """Execute one statement, and return how many rows it changed."""
        return self._attempt(lambda connection: connection.execute(cast("Any", statement), values).rowcount, twice=True)

    def transact(self, work: "Callable[[Connection], _Result]", *, twice: bool = True) -> _Result:
        """Do several statements as one transaction; `work` may be called again when another one was in the way."""

        def run(connection: "Connection") -> _Result:
            with connection.transaction():
                return work(connection)

        return self._attempt(run, twice=twice)

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    def forget_connections(self) -> None:
        """Forget every connection without closing it: they belong to the process that forked us."""
        self._guard, self._idle = threading.Lock(), list["Connection"]()
        self._free = threading.BoundedSemaphore(self._size)

    def _attempt(self, work: "Callable[[Connection], _Result]", *, twice: bool) -> _Result:
        deadline, pause = time.monotonic() + self.patience, _FIRST_PAUSE_SECONDS
        while True:
            sent = False
            try:
                with self._lend_connection() as connection:
                    sent = True
                    return work(connection)
            except self._driver.ProgrammingError as error:
                raise translate_error(error, self.address.shown) from error
            except self._driver.Error as error:
                safe = twice or not sent or server_said_no(error)
                if not safe or not may_succeed_later(error) or time.monotonic() + pause > deadline:
                    raise translate_error(error, self.address.shown) from error
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    @contextmanager
    def _lend_connection(self) -> "Generator[Connection]":
        if not self._free.acquire(timeout=self.patience):
            raise StateUnavailable(
                "All connections to the history are in use.",
                reason="state_busy",
                action="Nothing was written. Try again in a moment.",
                state=self.address.shown,
            )
        try:
            connection = self._take_connection()
            try:
                yield connection
            except SureholdError:
                self._give_back(connection)
                raise
            except BaseException:
                connection.close()
                self._drop_idle()  # they are as old, and mostly as dead
                raise
            self._give_back(connection)
        finally:
            self._free.release()

    def _take_connection(self) -> "Connection":
        if self._closed:
            raise StateUnavailable("The workspace was closed.", reason="closed", action="Open the workspace again.")
        with self._guard:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        connect = self._driver.connect
        return connect(self.address.conninfo, autocommit=True, prepare_threshold=None)

    def _give_back(self, connection: "Connection") -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._guard:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


def fetch_rows(connection: "Connection", statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """Execute one statement of a transaction, and return its rows."""
    cursor = connection.execute(cast("Any", statement), values or None, binary=bool(values))
    return cursor.fetchall() if cursor.description else []


def _load_driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise StateUnavailable(
            "A state in PostgreSQL requires psycopg, which is not installed.",
            reason="missing_extra",
            action='Install it with `pip install "surehold[postgres]"`.',
            cause=str(error),
        ) from None
    return psycopg


def _forget_in_child() -> None:
    for database in tuple(_databases):
        database.forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)

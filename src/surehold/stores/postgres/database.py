"""Connections to PostgreSQL: who may use one, and what happens when one is lost.

1. A connection serves one caller at a time; idle ones wait in a pool, and there are never more than its size.
2. A call is one round trip: one statement that commits by itself. Only rare work takes a transaction of several.
3. A connection that failed is closed. Calls that may be sent twice are sent again for a while: a database that restarts, or
   whose standby takes over, is waited for.
4. A database that says nothing for as long as a call has patience is asked for another connection: if it does not answer that
   either, it is stopped, and the call ends; else it is slow, and has the time that it gives itself for a statement.
5. A connection never crosses a fork: the child opens its own.
"""

import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from surehold.errors import StateUnavailable, SureholdError, WorkspaceClosed
from surehold.stores.postgres.address import PostgresAddress
from surehold.stores.postgres.database_errors import may_succeed_later, server_said_no, translate_error

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

Values = Sequence[object] | Mapping[str, object]
_Result = TypeVar("_Result")

POOL_CONNECTIONS = 8
PATIENCE_SECONDS = 8.0  # less than a lease: what is finished after that may be settled by another process
_CONNECT_SECONDS = (2, 5)
_SHORTEST_WAIT_SECONDS = 0.5
_SHORTEST_SILENCE_SECONDS = 1.0
_PROBE_SECONDS = 3
_LONGEST_STATEMENT_SECONDS = 75.0  # more than `statement_timeout`: the server itself should be the first to end it
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

    def transact(
        self, work: "Callable[[Connection], _Result]", *, twice: bool = True, patience: float | None = None
    ) -> _Result:
        """Do several statements as one transaction; `work` may be called again when another one was in the way."""

        def run(connection: "Connection") -> _Result:
            with connection.transaction():
                return work(connection)

        return self._attempt(run, twice=twice, patience=patience)

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    def forget_connections(self) -> None:
        """Forget every connection without closing it: they belong to the process that forked us."""
        self._guard, self._idle = threading.Lock(), list["Connection"]()
        self._free = threading.BoundedSemaphore(self._size)

    def _attempt(
        self, work: "Callable[[Connection], _Result]", *, twice: bool, patience: float | None = None
    ) -> _Result:
        limit = self.patience if patience is None else patience
        deadline, pause = time.monotonic() + limit, _FIRST_PAUSE_SECONDS
        while True:
            sent = False
            try:
                with self._lend_connection(deadline) as connection:
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
    def _lend_connection(self, deadline: float) -> "Generator[Connection]":
        if not self._free.acquire(timeout=max(deadline - time.monotonic(), _SHORTEST_WAIT_SECONDS)):
            raise StateUnavailable(
                "All connections to the history are in use.",
                reason="state_busy",
                action="Nothing was written. Try again in a moment.",
                state=self.address.shown,
            )
        try:
            connection = self._take_connection(deadline)
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

    def _take_connection(self, deadline: float) -> "Connection":
        if self._closed:
            raise WorkspaceClosed("This workspace is closed.")
        with self._guard:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        seconds = min(max(deadline - time.monotonic(), _CONNECT_SECONDS[0]), _CONNECT_SECONDS[1])
        limit = {} if self.address.has_connect_timeout else {"connect_timeout": math.ceil(seconds)}
        made = _connection_class().connect(self.address.conninfo, autocommit=True, prepare_threshold=None, **limit)
        made.patience, made.is_silent = max(self.patience, _SHORTEST_SILENCE_SECONDS), self._is_silent
        return made

    def _is_silent(self, connection: "Connection") -> bool:
        """Tell whether the server of a connection does not even answer to a new one; a refusal is an answer."""
        info = connection.info
        place = {"host": info.host, "hostaddr": info.hostaddr, "port": info.port, "target_session_attrs": "any"}
        try:
            self._driver.connect(self.address.conninfo, connect_timeout=_PROBE_SECONDS, **place).close()
        except self._driver.Error as error:
            return error.sqlstate is None
        return False

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
    result = cursor.pgresult  # not `description`, which makes an object of each column
    return cursor.fetchall() if result is not None and result.nfields else []


@cache
def _connection_class() -> Any:
    """Return a class of connections that do not wait for ever; made late, since the driver is not always installed."""
    import psycopg

    class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
        patience: float = math.inf
        is_silent: Callable[[Any], bool]

        def wait(self, gen: Any, *words: Any, **options: Any) -> Any:
            return super().wait(self._watch(gen), *words, **options)

        def _watch(self, gen: Any) -> Generator[Any, Any, Any]:
            """Pass on what the driver waits for; several times a second it hears that nothing came."""
            began = asked = 0.0
            try:
                wanted = next(gen)
                while True:
                    if not (ready := (yield wanted)):
                        now = time.monotonic()
                        began, asked = began or now, asked or now
                        is_due = now - asked > self.patience
                        if now - began > _LONGEST_STATEMENT_SECONDS or (is_due and self.is_silent(self)):
                            self.pgconn.finish()  # nothing more is said on it, not even a rollback
                            raise psycopg.OperationalError(f"The server said nothing for {now - began:.0f} seconds.")
                        asked = time.monotonic() if is_due else asked
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    return PatientConnection


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

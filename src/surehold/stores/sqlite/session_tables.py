"""Rows of sessions: their turns, and which server processes served them; a few statements each."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from surehold.stores.conversations import SessionRow, SessionTurn, next_turn_number
from surehold.stores.ledger_entries import text_of, to_key, utc_timestamp
from surehold.stores.owner import is_dead
from surehold.stores.server_runs import ServerRun, choose_session, server_run_columns, server_run_from_row
from surehold.stores.sightings import SightingBuffer, sighting_from_row
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.tables import add_sightings

_MAX_SERVER_RUNS = 200


_SELECT_SESSIONS = (
    "SELECT id, MAX(agent), MIN(opened), MAX(seq) FROM"
    " (SELECT id, agent, opened, 0 AS seq FROM sessions"
    " UNION ALL SELECT session, MAX(agent), MIN(timestamp), MAX(seq) FROM entries WHERE session != x'' GROUP BY session)"
    " GROUP BY id ORDER BY 4 DESC, 3 DESC"
)


def known_sessions(connection: sqlite3.Connection) -> tuple[SessionRow, ...]:
    rows = connection.execute(_SELECT_SESSIONS)
    return tuple(SessionRow(id=text_of(id_), agent=text_of(agent), opened=opened) for id_, agent, opened, _ in rows)


def put_session(connection: sqlite3.Connection, session: SessionRow, *, used: str) -> None:
    """Write a session; one that is known is only marked as used."""
    connection.execute(
        "INSERT INTO sessions (id, agent, opened, used) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET used = excluded.used",
        (to_key(session.id), to_key(session.agent), session.opened, used),
    )


def add_turn(connection: sqlite3.Connection, turn: SessionTurn) -> SessionTurn:
    """Write a turn, under the next number if it has no id; one that is known is returned as it is."""
    known = turns_of_session(connection, turn.session)
    if found := next((one for one in known if one.id == turn.id), None):
        return found
    new = replace(turn, id=turn.id or next_turn_number({one.id for one in known}))
    row = (to_key(new.session), to_key(new.id), to_key(new.title), new.began)
    connection.execute("INSERT INTO turns (session, id, title, began) VALUES (?, ?, ?, ?)", row)
    return new


def turns_of_session(connection: sqlite3.Connection, session: str) -> tuple[SessionTurn, ...]:
    rows = connection.execute(
        "SELECT id, title, began FROM turns WHERE session = ? ORDER BY number", (to_key(session),)
    )
    return tuple(
        SessionTurn(session=session, id=text_of(id_), title=text_of(title), began=began) for id_, title, began in rows
    )


_SELECT_RUNS = "SELECT id, server, parent, roots, began, client, session, ended FROM server_runs"
_PUT_RUN = (
    "INSERT INTO server_runs (id, server, parent, roots, began, client, session, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET ended = excluded.ended"
)
_IDLE_SESSIONS = (
    "SELECT id FROM sessions WHERE used < :cutoff"
    " AND NOT EXISTS (SELECT 1 FROM sightings WHERE session = sessions.id AND shown >= :cutoff)"
)


def put_run(connection: sqlite3.Connection, run: ServerRun) -> None:
    """Write a server's run, or how it ended; those of long ago are forgotten."""
    connection.execute(_PUT_RUN, server_run_columns(run))
    connection.execute(
        "DELETE FROM server_runs WHERE number <= (SELECT MAX(number) FROM server_runs) - ?", (_MAX_SERVER_RUNS,)
    )


def runs_like(connection: sqlite3.Connection, run: ServerRun) -> list[ServerRun]:
    """Return the runs of servers that the same parent started for the same roots, oldest first."""
    place = server_run_columns(run)[2:4]
    rows = connection.execute(f"{_SELECT_RUNS} WHERE parent = ? AND roots = ? ORDER BY number", place)
    return [server_run_from_row(*row) for row in rows]


def all_runs(connection: sqlite3.Connection) -> list[ServerRun]:
    """Return every run that is remembered, newest first."""
    return [server_run_from_row(*row) for row in connection.execute(f"{_SELECT_RUNS} ORDER BY number DESC")]


def join_sessions(connection: sqlite3.Connection, joined: Sequence[str], session: str) -> None:
    """Make what some sessions were shown, and their servers, part of another session."""
    for name in joined:
        rows = connection.execute(
            "SELECT path, sha256, spans, whole, anchored, seq, shown FROM sightings WHERE session = ? ORDER BY number",
            (to_key(name),),
        ).fetchall()
        for path, *facts, shown in rows:
            sighting = sighting_from_row(session, text_of(path), tuple(facts))
            add_sightings(connection, [(sighting, shown)])
        connection.execute("DELETE FROM sightings WHERE session = ?", (to_key(name),))
        connection.execute("UPDATE server_runs SET session = ? WHERE session = ?", (to_key(session), to_key(name)))


def forget_idle(connection: sqlite3.Connection, *, cutoff: str) -> None:
    """Forget what sessions were shown that were not used since, and which servers served them."""
    connection.execute(f"DELETE FROM sightings WHERE session IN ({_IDLE_SESSIONS})", {"cutoff": cutoff})  # noqa: S608 - constants
    connection.execute(f"DELETE FROM server_runs WHERE session IN ({_IDLE_SESSIONS})", {"cutoff": cutoff})  # noqa: S608 - constants


class SessionRecords:
    """The part of the store that remembers sessions, their turns, and the servers that had them."""

    _database: Database
    _buffer: SightingBuffer
    _clock: Callable[[], datetime]
    _idle: timedelta

    def open_session(self, session: SessionRow) -> None:
        """Remember a session; opening it again only shows that it is in use. What idle ones were shown is forgotten."""
        self._buffer.flush()
        with self._database.write_transaction(durable=False) as connection:
            self._forget_idle(connection)
            put_session(connection, session, used=utc_timestamp(self._clock()))

    def find_session(self, session_id: str) -> SessionRow | None:
        with self._database.read_transaction() as connection:
            rows = list(connection.execute("SELECT agent, opened FROM sessions WHERE id = ?", (to_key(session_id),)))
        return SessionRow(id=session_id, agent=text_of(rows[0][0]), opened=rows[0][1]) if rows else None

    def list_sessions(self) -> tuple[SessionRow, ...]:
        with self._database.read_transaction() as connection:
            return known_sessions(connection)

    def begin_turn(self, session_id: str, *, title: str = "", turn_id: str = "") -> SessionTurn:
        began = utc_timestamp(self._clock())
        turn = SessionTurn(session=session_id, id=turn_id, title=title, began=began)
        with self._database.write_transaction(durable=False) as connection:
            return add_turn(connection, turn)

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        with self._database.read_transaction() as connection:
            return turns_of_session(connection, session_id)

    def claim_session(self, run: ServerRun, *, fresh: str) -> str:
        self._buffer.flush()
        with self._database.write_transaction(durable=False) as connection:
            self._forget_idle(connection)
            found = choose_session(run.client, runs_like(connection, run), is_dead=is_dead)
            session = found.session if found is not None else fresh
            join_sessions(connection, found.joined if found is not None else (), session)
            put_run(connection, replace(run, session=session))
            return session

    def list_servers(self) -> tuple[ServerRun, ...]:
        with self._database.read_transaction() as connection:
            return tuple(all_runs(connection))

    def end_server(self, run: ServerRun) -> None:
        with self._database.write_transaction(durable=False) as connection:
            put_run(connection, replace(run, ended=utc_timestamp(self._clock())))

    def _forget_idle(self, connection: sqlite3.Connection) -> None:
        forget_idle(connection, cutoff=utc_timestamp(self._clock() - self._idle))

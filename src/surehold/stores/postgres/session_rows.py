"""Rows of sessions: their turns, what they were shown, and which server processes served them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from surehold.stores.conversations import SessionRow, SessionTurn, next_turn_number
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.owner import is_dead
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.postgres.rows import sighting_documents
from surehold.stores.server_runs import ServerRun, choose_session, server_run_columns, server_run_from_row
from surehold.stores.sightings import PATHS_PER_SESSION, VERSIONS_PER_PATH, sighting_from_row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from surehold.stores.postgres.blobs import BlobColumns
    from surehold.stores.postgres.database import Connection, PostgresDatabase
    from surehold.stores.sightings import ShownSighting

_MAX_SERVER_RUNS = 200
_NOT_WAITED_FOR = "SET LOCAL synchronous_commit = off"
_ONE_AT_A_TIME = "SELECT 1 FROM workspaces WHERE ws = %s FOR UPDATE"
_SELECT_RUNS = "SELECT id, server, parent, roots, began, client, session, ended FROM server_runs WHERE ws = %s"
_PUT_RUN = (
    "INSERT INTO server_runs (ws, id, server, parent, roots, began, client, session, ended)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (ws, id) DO UPDATE SET ended = excluded.ended"
)
_FORGET_RUNS = (
    "DELETE FROM server_runs WHERE ws = %s AND number < (SELECT min(number) FROM (SELECT number FROM server_runs"
    " WHERE ws = %s ORDER BY number DESC LIMIT %s) AS newest)"
)
_IDLE_SESSIONS = (
    "(SELECT id FROM sessions WHERE ws = %(ws)s AND used < %(cutoff)s AND NOT EXISTS (SELECT 1 FROM sightings"
    " WHERE sightings.ws = %(ws)s AND sightings.session = sessions.id AND shown >= %(cutoff)s))"
)
_SELECT_SESSIONS = (
    "SELECT id, (array_agg(agent ORDER BY agent DESC))[1], min(opened), max(seq) FROM"
    " (SELECT id, agent, opened, 0 AS seq FROM sessions WHERE ws = %(ws)s UNION ALL"
    " SELECT session, (array_agg(agent ORDER BY agent DESC))[1], min(timestamp), max(seq) FROM entries"
    " WHERE ws = %(ws)s AND session <> '' GROUP BY session) AS known GROUP BY id ORDER BY 4 DESC, 3 DESC"
)
_NOTE_SIGHTINGS = f"SELECT note_sightings(%s, %s::jsonb, {VERSIONS_PER_PATH}, {PATHS_PER_SESSION})"
_NOTE_SHOWN = (
    f"SELECT note_shown(%s, %s::jsonb, {VERSIONS_PER_PATH}, {PATHS_PER_SESSION}, %s::bytea[], %s::bytea[], %s::bigint[],"
    " %s::bytea[], %s::integer[], %s::bigint[], %s::bytea[], %s::text[], %s)"
)


class SessionRows:
    """The sessions of one workspace."""

    def __init__(self, database: "PostgresDatabase", ws: int) -> None:
        self._database, self._ws = database, ws

    def open(self, session: SessionRow, *, now: str, cutoff: str) -> None:
        """Remember a session, or that it is in use; what idle ones were shown is forgotten."""

        def work(connection: "Connection") -> None:
            self._forget_idle(connection, cutoff)
            fetch_rows(
                connection,
                "INSERT INTO sessions (ws, id, agent, opened, used) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (ws, id) DO UPDATE SET used = excluded.used",
                (self._ws, to_key(session.id), to_key(session.agent), session.opened, now),
            )

        self._database.transact(work)

    def find(self, session_id: str) -> SessionRow | None:
        rows = self._database.rows(
            "SELECT agent, opened FROM sessions WHERE ws = %s AND id = %s", (self._ws, to_key(session_id))
        )
        return SessionRow(id=session_id, agent=text_of(rows[0][0]), opened=rows[0][1]) if rows else None

    def list_known(self) -> tuple[SessionRow, ...]:
        rows = self._database.rows(_SELECT_SESSIONS, {"ws": self._ws})
        return tuple(SessionRow(id=text_of(id_), agent=text_of(agent), opened=opened) for id_, agent, opened, _ in rows)

    def begin_turn(self, turn: SessionTurn) -> SessionTurn:
        """Write a turn, under the next number if it has no id; one that is known is returned as it is."""

        def work(connection: "Connection") -> SessionTurn:
            fetch_rows(connection, _NOT_WAITED_FOR)
            fetch_rows(connection, _ONE_AT_A_TIME, (self._ws,))
            known = self._turns(fetch_rows(connection, *self._select_turns(turn.session)), turn.session)
            if found := next((one for one in known if one.id == turn.id), None):
                return found
            new = replace(turn, id=turn.id or next_turn_number({one.id for one in known}))
            fetch_rows(
                connection,
                "INSERT INTO turns (ws, session, id, title, began) VALUES (%s, %s, %s, %s, %s)",
                (self._ws, to_key(new.session), to_key(new.id), to_key(new.title), new.began),
            )
            return new

        return self._database.transact(work)

    def list_turns(self, session: str) -> tuple[SessionTurn, ...]:
        return self._turns(self._database.rows(*self._select_turns(session)), session)

    def _select_turns(self, session: str) -> tuple[Any, tuple[object, ...]]:
        select = "SELECT id, title, began FROM turns WHERE ws = %s AND session = %s ORDER BY number"
        return select, (self._ws, to_key(session))

    def _turns(self, rows: list[tuple[Any, ...]], session: str) -> tuple[SessionTurn, ...]:
        return tuple(
            SessionTurn(session=session, id=text_of(id_), title=text_of(title), began=began)
            for id_, title, began in rows
        )

    def note_shown(self, sightings: "Sequence[ShownSighting]", packed: "BlobColumns", at: "datetime | None") -> str:
        """Add sightings to those of the same version, with bytes, in one round trip; or name bytes that must be sent."""
        values = (self._ws, sighting_documents(sightings), packed.kept, *packed.arrays, at)
        return self._database.call(_NOTE_SHOWN, values)[0] or ""

    def claim(self, run: ServerRun, *, fresh: str, cutoff: str) -> str:
        """Remember a server, and return the session it serves."""

        def work(connection: "Connection") -> str:
            fetch_rows(connection, _NOT_WAITED_FOR)
            fetch_rows(connection, _ONE_AT_A_TIME, (self._ws,))
            self._forget_idle(connection, cutoff)
            like = f"{_SELECT_RUNS} AND parent = %s AND roots = %s ORDER BY number"
            rows = fetch_rows(connection, like, (self._ws, *server_run_columns(run)[2:4]))
            earlier = [server_run_from_row(*row) for row in rows]
            found = choose_session(run.client, earlier, is_dead=is_dead)
            session = found.session if found is not None else fresh
            for name in found.joined if found is not None else ():
                self._join(connection, name, session)
            self._put_run(connection, replace(run, session=session))
            return session

        return self._database.transact(work)

    def list_runs(self) -> tuple[ServerRun, ...]:
        rows = self._database.rows(f"{_SELECT_RUNS} ORDER BY number DESC", (self._ws,))
        return tuple(server_run_from_row(*row) for row in rows)

    def put_run(self, run: ServerRun) -> None:
        self._database.transact(lambda connection: self._put_run(connection, run))

    def _put_run(self, connection: "Connection", run: ServerRun) -> None:
        fetch_rows(connection, _PUT_RUN, (self._ws, *server_run_columns(run)))
        fetch_rows(connection, _FORGET_RUNS, (self._ws, self._ws, _MAX_SERVER_RUNS))

    def _join(self, connection: "Connection", name: str, session: str) -> None:
        """Make what a session was shown, and its servers, part of another session."""
        rows = fetch_rows(
            connection,
            "SELECT path, sha256, spans, whole, anchored, seq, shown FROM sightings WHERE ws = %s AND session = %s"
            " ORDER BY number",
            (self._ws, to_key(name)),
        )
        moved = [(sighting_from_row(session, text_of(path), tuple(facts)), shown) for path, *facts, shown in rows]
        fetch_rows(connection, _NOTE_SIGHTINGS, (self._ws, sighting_documents(moved)))
        fetch_rows(connection, "DELETE FROM sightings WHERE ws = %s AND session = %s", (self._ws, to_key(name)))
        fetch_rows(
            connection,
            "UPDATE server_runs SET session = %s WHERE ws = %s AND session = %s",
            (to_key(session), self._ws, to_key(name)),
        )

    def _forget_idle(self, connection: "Connection", cutoff: str) -> None:
        """Forget what sessions were shown that were not used since, and which servers served them."""
        values = {"ws": self._ws, "cutoff": cutoff}
        fetch_rows(connection, f"DELETE FROM sightings WHERE ws = %(ws)s AND session IN {_IDLE_SESSIONS}", values)  # noqa: S608 - constants
        fetch_rows(connection, f"DELETE FROM server_runs WHERE ws = %(ws)s AND session IN {_IDLE_SESSIONS}", values)  # noqa: S608 - constants

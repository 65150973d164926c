"""Rows of sessions: their turns, what they were shown, and which server processes served them; a few statements each."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from surehold.stores.base import Sighting
from surehold.stores.conversations import SessionRow, SessionTurn, next_turn_number
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.server_runs import ServerRun, server_run_columns, server_run_from_row
from surehold.stores.sightings import (
    PATHS_PER_SESSION,
    VERSIONS_PER_PATH,
    merge_sightings,
    sighting_from_row,
    versions_to_forget,
)

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


_SELECT_SIGHTINGS = "SELECT sha256, spans, whole, anchored, seq FROM sightings WHERE session = ? AND path = ?"
_INSERT_SIGHTING = (
    "INSERT OR REPLACE INTO sightings (session, path, sha256, spans, whole, anchored, seq, shown)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def add_sightings(connection: sqlite3.Connection, sightings: Iterable[tuple[Sighting, str]]) -> None:
    """Add sightings, each with the moment it was shown, to those of the same version; forget the oldest beyond the bounds."""
    for sighting, shown in sightings:
        place = (to_key(sighting.session), to_key(sighting.path))
        versions = {one.sha256: one for one in sightings_of_path(connection, sighting.session, sighting.path)}
        first = min((one.seq for one in versions.values()), default=sighting.seq)
        known = versions.pop(sighting.sha256, None)
        merged = merge_sightings(known, sighting, seq=first)
        spans, anchored = json.dumps(merged.spans), json.dumps(merged.anchored)
        row = (*place, merged.sha256, spans, int(merged.whole), anchored, merged.seq, shown)
        connection.execute(_INSERT_SIGHTING, row)
        if known is None:
            _forget_surplus(connection, [merged, *versions.values()], place)


def sightings_of_path(connection: sqlite3.Connection, session: str, path: str) -> tuple[Sighting, ...]:
    rows = connection.execute(f"{_SELECT_SIGHTINGS} ORDER BY number DESC", (to_key(session), to_key(path)))
    return tuple(sighting_from_row(session, path, row) for row in rows)


def _forget_surplus(connection: sqlite3.Connection, versions: Sequence[Sighting], place: tuple[bytes, bytes]) -> None:
    """Forget the versions of a path that are too many, newest first; with its first one, paths that are."""
    if len(versions) > VERSIONS_PER_PATH:
        for sha256 in versions_to_forget(versions):
            connection.execute("DELETE FROM sightings WHERE session = ? AND path = ? AND sha256 = ?", (*place, sha256))
    elif len(versions) == 1:
        _forget_paths(connection, place[0])


def _forget_paths(connection: sqlite3.Connection, session: bytes) -> None:
    counted = connection.execute("SELECT COUNT(DISTINCT path) FROM sightings WHERE session = ?", (session,))
    surplus = counted.fetchone()[0] - PATHS_PER_SESSION
    if surplus > 0:
        connection.execute(
            "DELETE FROM sightings WHERE session = ? AND path IN (SELECT path FROM sightings WHERE session = ?"
            " GROUP BY path ORDER BY MAX(number) LIMIT ?)",
            (session, session, surplus),
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

"""Rows of sessions: their turns, what they were shown, and which server processes served them; a few statements each."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

from surehold.stores.base import Sighting
from surehold.stores.conversations import SessionRow, SessionTurn
from surehold.stores.ledger_entries import text_of, to_canonical_json, to_key
from surehold.stores.owner import Owner
from surehold.stores.server_runs import ServerRun
from surehold.text.lines import LineRanges, merge_ranges

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)
_MAX_SERVER_RUNS = 200


def merge_sightings(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    known = known or replace(shown, seq=seq)
    return replace(
        shown,
        spans=merge_ranges((*known.spans, *shown.spans)),
        whole=known.whole or shown.whole,
        anchored=merge_ranges((*known.anchored, *shown.anchored)),
        seq=known.seq,
    )


def with_later_sightings(versions: Sequence[Sighting], later: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Return the versions of one path, newest first, as they are after later sightings (merged ones) were added."""
    found = {one.sha256: one for one in reversed(versions)}
    first = min((one.seq for one in versions), default=None)
    for one in later:
        first = one.seq if first is None else first
        known = found.pop(one.sha256, None)
        found[one.sha256] = one if known is None and one.seq == first else merge_sightings(known, one, seq=first)
        for sha256 in versions_to_forget([*reversed(found.values())]) if len(found) > VERSIONS_PER_PATH else ():
            del found[sha256]
    return tuple(reversed(found.values()))


def versions_to_forget(versions: Sequence[Sighting]) -> list[str]:
    """Name the versions of one path that are too many; they come newest first."""
    best = max(versions, key=lambda one: (one.whole, sum(last - first + 1 for first, last in one.spans)), default=None)
    return [one.sha256 for one in versions[VERSIONS_PER_PATH:] if one is not best]


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
    new = replace(turn, id=turn.id or _next_number({one.id for one in known}))
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


def _next_number(used: set[str]) -> str:
    number = len(used) + 1
    while str(number) in used:
        number += 1
    return str(number)


_SELECT_SIGHTINGS = "SELECT sha256, spans, whole, anchored, seq FROM sightings WHERE session = ? AND path = ?"
_SELECT_FIRST_SEQ = "SELECT MIN(seq) FROM sightings WHERE session = ? AND path = ?"
_INSERT_SIGHTING = (
    "INSERT OR REPLACE INTO sightings (session, path, sha256, spans, whole, anchored, seq, shown)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def add_sightings(connection: sqlite3.Connection, sightings: Iterable[tuple[Sighting, str]]) -> None:
    """Add sightings, each with the moment it was shown, to those of the same version; forget the oldest beyond the bounds."""
    for sighting, shown in sightings:
        place = (to_key(sighting.session), to_key(sighting.path))
        rows = connection.execute(f"{_SELECT_SIGHTINGS} AND sha256 = ?", (*place, sighting.sha256)).fetchall()
        known = _sighting_from_row(sighting.session, sighting.path, rows[0]) if rows else None
        (first,) = connection.execute(_SELECT_FIRST_SEQ, place).fetchone()
        merged = merge_sightings(known, sighting, seq=sighting.seq if first is None else first)
        spans, anchored = json.dumps(merged.spans), json.dumps(merged.anchored)
        row = (*place, merged.sha256, spans, int(merged.whole), anchored, merged.seq, shown)
        connection.execute(_INSERT_SIGHTING, row)
        if known is None:
            _forget_surplus(connection, sighting, place)


def sightings_of_path(connection: sqlite3.Connection, session: str, path: str) -> tuple[Sighting, ...]:
    rows = connection.execute(f"{_SELECT_SIGHTINGS} ORDER BY number DESC", (to_key(session), to_key(path)))
    return tuple(_sighting_from_row(session, path, row) for row in rows)


def _sighting_from_row(session: str, path: str, row: tuple[str, str, int, str, int]) -> Sighting:
    sha256, spans, whole, anchored, seq = row
    return Sighting(
        session=session,
        path=path,
        sha256=sha256,
        spans=_ranges_from_text(spans),
        whole=bool(whole),
        anchored=_ranges_from_text(anchored),
        seq=seq,
    )


@lru_cache(maxsize=512)  # most versions of a file were shown in the same lines as the one before
def _ranges_from_text(text: str) -> LineRanges:
    return tuple((first, last) for first, last in json.loads(text))


def _forget_surplus(connection: sqlite3.Connection, sighting: Sighting, place: tuple[bytes, bytes]) -> None:
    counted = connection.execute("SELECT COUNT(*) FROM sightings WHERE session = ? AND path = ?", place)
    versions = counted.fetchone()[0]
    if versions > VERSIONS_PER_PATH:
        for sha256 in versions_to_forget(sightings_of_path(connection, sighting.session, sighting.path)):
            connection.execute("DELETE FROM sightings WHERE session = ? AND path = ? AND sha256 = ?", (*place, sha256))
    elif versions == 1:
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
    server, parent = (to_canonical_json(asdict(one)) for one in (run.server, run.parent))
    facts = (to_key(run.id), server, parent, _roots_key(run), run.began)
    connection.execute(_PUT_RUN, (*facts, to_key(run.client), to_key(run.session), run.ended))
    connection.execute(
        "DELETE FROM server_runs WHERE number <= (SELECT MAX(number) FROM server_runs) - ?", (_MAX_SERVER_RUNS,)
    )


def runs_like(connection: sqlite3.Connection, run: ServerRun) -> list[ServerRun]:
    """Return the runs of servers that the same parent started for the same roots, oldest first."""
    place = (to_canonical_json(asdict(run.parent)), _roots_key(run))
    rows = connection.execute(f"{_SELECT_RUNS} WHERE parent = ? AND roots = ? ORDER BY number", place)
    return [_run_from_row(*row) for row in rows]


def all_runs(connection: sqlite3.Connection) -> list[ServerRun]:
    """Return every run that is remembered, newest first."""
    return [_run_from_row(*row) for row in connection.execute(f"{_SELECT_RUNS} ORDER BY number DESC")]


def _run_from_row(id_: bytes, server: str, parent: str, roots: bytes, *others: Any) -> ServerRun:
    began, client, session, ended = others
    return ServerRun(
        id=text_of(id_),
        server=Owner(**json.loads(server)),
        parent=Owner(**json.loads(parent)),
        roots=tuple(text_of(roots).split("\0")),
        began=began,
        client=text_of(client),
        session=text_of(session),
        ended=ended,
    )


def _roots_key(run: ServerRun) -> bytes:
    return to_key("\0".join(run.roots))


def join_sessions(connection: sqlite3.Connection, joined: Sequence[str], session: str) -> None:
    """Make what some sessions were shown, and their servers, part of another session."""
    for name in joined:
        rows = connection.execute(
            "SELECT path, sha256, spans, whole, anchored, seq, shown FROM sightings WHERE session = ? ORDER BY number",
            (to_key(name),),
        ).fetchall()
        for path, *facts, shown in rows:
            sighting = _sighting_from_row(session, text_of(path), tuple(facts))
            add_sightings(connection, [(sighting, shown)])
        connection.execute("DELETE FROM sightings WHERE session = ?", (to_key(name),))
        connection.execute("UPDATE server_runs SET session = ? WHERE session = ?", (to_key(session), to_key(name)))


def forget_idle(connection: sqlite3.Connection, *, cutoff: str) -> None:
    """Forget what sessions were shown that were not used since, and which servers served them."""
    connection.execute(f"DELETE FROM sightings WHERE session IN ({_IDLE_SESSIONS})", {"cutoff": cutoff})  # noqa: S608 - constants
    connection.execute(f"DELETE FROM server_runs WHERE session IN ({_IDLE_SESSIONS})", {"cutoff": cutoff})  # noqa: S608 - constants

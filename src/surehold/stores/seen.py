"""Sightings in SQLite; every function works inside the caller's transaction."""

import json
import sqlite3
from collections.abc import Sequence

from surehold.stores.base import Sighting
from surehold.stores.rows import key
from surehold.stores.sightings import PATHS_PER_SESSION, VERSIONS_PER_PATH, merge, to_forget

_SELECT = "SELECT sha256, spans, whole, anchored, seq FROM sightings WHERE session = ? AND path = ?"
_PUT = (
    "INSERT OR REPLACE INTO sightings (session, path, sha256, spans, whole, anchored, seq, shown)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def put(connection: sqlite3.Connection, sightings: Sequence[Sighting], *, seq: int, shown: str) -> None:
    """Add sightings to those of the same version, and forget the oldest beyond the bounds."""
    for sighting in sightings:
        place = (key(sighting.session), key(sighting.path))
        rows = connection.execute(f"{_SELECT} AND sha256 = ?", (*place, sighting.sha256)).fetchall()
        known = _sighting(sighting.session, sighting.path, rows[0]) if rows else None
        merged = merge(known, sighting, seq=seq)
        spans, anchored = json.dumps(merged.spans), json.dumps(merged.anchored)
        connection.execute(_PUT, (*place, merged.sha256, spans, int(merged.whole), anchored, seq, shown))
        if known is None:
            _forget(connection, sighting, place)


def of_path(connection: sqlite3.Connection, session: str, path: str) -> tuple[Sighting, ...]:
    """List what a session was shown of a path, newest version first."""
    rows = connection.execute(f"{_SELECT} ORDER BY number DESC", (key(session), key(path)))
    return tuple(_sighting(session, path, row) for row in rows)


def _sighting(session: str, path: str, row: tuple[str, str, int, str, int]) -> Sighting:
    sha256, spans, whole, anchored, seq = row
    return Sighting(
        session=session,
        path=path,
        sha256=sha256,
        spans=tuple(map(tuple, json.loads(spans))),
        whole=bool(whole),
        anchored=tuple(map(tuple, json.loads(anchored))),
        seq=seq,
    )


def _forget(connection: sqlite3.Connection, sighting: Sighting, place: tuple[bytes, bytes]) -> None:
    counted = connection.execute("SELECT COUNT(*) FROM sightings WHERE session = ? AND path = ?", place)
    versions = counted.fetchone()[0]
    if versions > VERSIONS_PER_PATH:
        for sha256 in to_forget(of_path(connection, sighting.session, sighting.path)):
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

"""Stores which lines a session was shown: how sightings merge, how many are remembered, and their rows in SQLite.

1. Losing a sighting is safe: the agent reads again. So their number is bounded and the oldest is dropped first; but the
   version of which the most was shown is kept: an agent that edits repeatedly after one reading works from it.
2. Every function that takes a connection works inside the caller's transaction.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from surehold.stores.base import Sighting
from surehold.stores.sqlite.codec import to_key
from surehold.text.line_ranges import merge_ranges

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)


def merge_sightings(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    """Add what was shown now to what was known of the same version."""
    if known is None:
        return replace(shown, spans=merge_ranges(shown.spans), anchored=merge_ranges(shown.anchored), seq=seq)
    return replace(
        shown,
        spans=merge_ranges((*known.spans, *shown.spans)),
        whole=known.whole or shown.whole,
        anchored=merge_ranges((*known.anchored, *shown.anchored)),
        seq=seq,
    )


def versions_to_forget(versions: Sequence[Sighting]) -> list[str]:
    """Name the versions of one path that are too many; they come newest first."""
    surplus = versions[VERSIONS_PER_PATH:]
    if not surplus:
        return []
    best = max(versions, key=lambda one: (one.whole, sum(last - first + 1 for first, last in one.spans)))
    return [one.sha256 for one in surplus if one is not best]


_SELECT = "SELECT sha256, spans, whole, anchored, seq FROM sightings WHERE session = ? AND path = ?"
_INSERT = (
    "INSERT OR REPLACE INTO sightings (session, path, sha256, spans, whole, anchored, seq, shown)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def add_sightings(connection: sqlite3.Connection, sightings: Sequence[Sighting], *, seq: int, shown: str) -> None:
    """Add sightings to those of the same version, and forget the oldest beyond the bounds."""
    for sighting in sightings:
        place = (to_key(sighting.session), to_key(sighting.path))
        rows = connection.execute(f"{_SELECT} AND sha256 = ?", (*place, sighting.sha256)).fetchall()
        known = _sighting_from_row(sighting.session, sighting.path, rows[0]) if rows else None
        merged = merge_sightings(known, sighting, seq=seq)
        spans, anchored = json.dumps(merged.spans), json.dumps(merged.anchored)
        connection.execute(_INSERT, (*place, merged.sha256, spans, int(merged.whole), anchored, seq, shown))
        if known is None:
            _forget_surplus(connection, sighting, place)


def sightings_of_path(connection: sqlite3.Connection, session: str, path: str) -> tuple[Sighting, ...]:
    """List what a session was shown of a path, newest version first."""
    rows = connection.execute(f"{_SELECT} ORDER BY number DESC", (to_key(session), to_key(path)))
    return tuple(_sighting_from_row(session, path, row) for row in rows)


def _sighting_from_row(session: str, path: str, row: tuple[str, str, int, str, int]) -> Sighting:
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

"""Open intents in SQLite; every function works inside the caller's transaction."""

import sqlite3
from datetime import datetime

from surehold.stores import chain, outcome
from surehold.stores.base import Busy, Intent
from surehold.stores.owner import is_dead
from surehold.stores.refusals import gone
from surehold.stores.rows import key

_SELECT = "SELECT body, expires FROM intents"


def add(connection: sqlite3.Connection, intent: Intent, *, expires: float) -> None:
    """Open an intent and lock its paths."""
    connection.execute(
        "INSERT INTO intents (id, idempotency_key, expires, body) VALUES (?, ?, ?, ?)",
        (key(intent.id), key(intent.call.idempotency_key), expires, chain.dumps(chain.intent_to_json(intent))),
    )
    connection.executemany(
        "INSERT INTO locks (path, intent) VALUES (?, ?)",
        [(key(path), key(intent.id)) for path in outcome.paths(intent.changes)],
    )


def take(connection: sqlite3.Connection, intent_id: str, *, known: Intent | None = None) -> Intent:
    """Remove an open intent and its locks, and return it; the one that is known is only removed."""
    intent = known if known and known.id == intent_id else _read(connection, intent_id)
    if not connection.execute("DELETE FROM intents WHERE id = ?", (key(intent_id),)).rowcount:
        raise gone(intent_id)
    connection.executemany("DELETE FROM locks WHERE path = ?", [(key(path),) for path in outcome.paths(intent.changes)])
    return intent


def renew(connection: sqlite3.Connection, intent_id: str, *, expires: float) -> bool:
    """Extend a lease; False when there is no such intent any more."""
    changed = connection.execute("UPDATE intents SET expires = ? WHERE id = ?", (expires, key(intent_id)))
    return changed.rowcount > 0


def in_the_way(connection: sqlite3.Connection, intent: Intent, *, now: datetime) -> Busy | None:
    """Find an open intent that has the same key, a path in common, or the same id."""
    if connection.execute("SELECT 1 FROM intents LIMIT 1").fetchone() is None:
        return None
    same = of_key(connection, intent.call.idempotency_key, now)
    if same is not None:
        return same
    for path in outcome.paths(intent.changes):
        row = connection.execute(
            f"{_SELECT} WHERE id = (SELECT intent FROM locks WHERE path = ?)",  # noqa: S608 - constants
            (key(path),),
        ).fetchone()
        if row is not None:
            return _busy(row, now)
    row = connection.execute(f"{_SELECT} WHERE id = ?", (key(intent.id),)).fetchone()
    return None if row is None else _busy(row, now)


def of_key(connection: sqlite3.Connection, idempotency_key: str, now: datetime) -> Busy | None:
    """Find the open intent of a call that may be repeated."""
    if not idempotency_key:
        return None
    row = connection.execute(f"{_SELECT} WHERE idempotency_key = ?", (key(idempotency_key),)).fetchone()
    return None if row is None else _busy(row, now)


def every(connection: sqlite3.Connection, *, now: datetime) -> tuple[Busy, ...]:
    """List all open intents, oldest first."""
    return tuple(_busy(row, now) for row in connection.execute(f"{_SELECT} ORDER BY number").fetchall())


def _read(connection: sqlite3.Connection, intent_id: str) -> Intent:
    row = connection.execute(f"{_SELECT} WHERE id = ?", (key(intent_id),)).fetchone()
    if row is None:
        raise gone(intent_id)
    return chain.intent_from_json(chain.loads(row[0]))


def _busy(row: tuple[str, float], now: datetime) -> Busy:
    body, expires = row
    intent = chain.intent_from_json(chain.loads(body))
    return Busy(intent=intent, owner_is_dead=expires <= now.timestamp() or is_dead(intent.owner))

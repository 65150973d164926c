"""Stores open intents in SQLite; every function works inside the caller's transaction."""

import sqlite3
from datetime import datetime

from surehold.stores import ledger_entries
from surehold.stores.base import Busy, Intent
from surehold.stores.owner import is_dead
from surehold.stores.sqlite import codec
from surehold.stores.sqlite.codec import to_key
from surehold.stores.sqlite.state_errors import intent_gone_error

_SELECT = "SELECT body, expires FROM intents"


def add_intent(connection: sqlite3.Connection, intent: Intent, *, expires: float) -> None:
    """Open an intent and lock its paths."""
    connection.execute(
        "INSERT INTO intents (id, idempotency_key, expires, body) VALUES (?, ?, ?, ?)",
        (
            to_key(intent.id),
            to_key(intent.call.idempotency_key),
            expires,
            codec.to_canonical_json(codec.intent_to_json(intent)),
        ),
    )
    connection.executemany(
        "INSERT INTO locks (path, intent) VALUES (?, ?)",
        [(to_key(path), to_key(intent.id)) for path in ledger_entries.touched_paths(intent.changes)],
    )


def take_intent(connection: sqlite3.Connection, intent_id: str, *, known: Intent | None = None) -> Intent:
    """Remove an open intent and its locks, and return it; the one that is known is only removed."""
    intent = known if known and known.id == intent_id else _read_intent(connection, intent_id)
    if not connection.execute("DELETE FROM intents WHERE id = ?", (to_key(intent_id),)).rowcount:
        raise intent_gone_error(intent_id)
    connection.executemany(
        "DELETE FROM locks WHERE path = ?", [(to_key(path),) for path in ledger_entries.touched_paths(intent.changes)]
    )
    return intent


def renew_lease(connection: sqlite3.Connection, intent_id: str, *, expires: float) -> bool:
    """Extend a lease; False when there is no such intent any more."""
    changed = connection.execute("UPDATE intents SET expires = ? WHERE id = ?", (expires, to_key(intent_id)))
    return changed.rowcount > 0


def find_conflict(connection: sqlite3.Connection, intent: Intent, *, now: datetime) -> Busy | None:
    """Find an open intent that has the same key, a path in common, or the same id."""
    if connection.execute("SELECT 1 FROM intents LIMIT 1").fetchone() is None:
        return None
    same = find_by_key(connection, intent.call.idempotency_key, now)
    if same is not None:
        return same
    for path in ledger_entries.touched_paths(intent.changes):
        row = connection.execute(
            f"{_SELECT} WHERE id = (SELECT intent FROM locks WHERE path = ?)",  # noqa: S608 - constants
            (to_key(path),),
        ).fetchone()
        if row is not None:
            return _busy_from_row(row, now)
    row = connection.execute(f"{_SELECT} WHERE id = ?", (to_key(intent.id),)).fetchone()
    return None if row is None else _busy_from_row(row, now)


def find_by_key(connection: sqlite3.Connection, idempotency_key: str, now: datetime) -> Busy | None:
    """Find the open intent of a call that may be repeated."""
    if not idempotency_key:
        return None
    row = connection.execute(f"{_SELECT} WHERE idempotency_key = ?", (to_key(idempotency_key),)).fetchone()
    return None if row is None else _busy_from_row(row, now)


def list_open(connection: sqlite3.Connection, *, now: datetime) -> tuple[Busy, ...]:
    """List all open intents, oldest first."""
    return tuple(_busy_from_row(row, now) for row in connection.execute(f"{_SELECT} ORDER BY number").fetchall())


def _read_intent(connection: sqlite3.Connection, intent_id: str) -> Intent:
    row = connection.execute(f"{_SELECT} WHERE id = ?", (to_key(intent_id),)).fetchone()
    if row is None:
        raise intent_gone_error(intent_id)
    return codec.intent_from_json(codec.from_json(row[0]))


def _busy_from_row(row: tuple[str, float], now: datetime) -> Busy:
    body, expires = row
    intent = codec.intent_from_json(codec.from_json(body))
    return Busy(intent=intent, owner_is_dead=expires <= now.timestamp() or is_dead(intent.owner))

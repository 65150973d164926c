"""Rows of the database: ledger entries and heads, open intents. Each function is a few statements."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from surehold.stores import ledger_entries
from surehold.stores.base import Busy, Entry, Head, Intent, LedgerQuery, TrashItem, WriterSpan
from surehold.stores.ledger_entries import entry_columns, text_of, to_key, version_from_text, version_text
from surehold.stores.owner import is_dead, was_dead_lately
from surehold.stores.sqlite.state_errors import intent_gone_error
from surehold.stores.upkeep import LedgerCheck
from surehold.text.snapshot import Version

_COLUMNS = "seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp"
_INSERT_ENTRY = f"INSERT INTO entries ({_COLUMNS}, previous, hash, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
# As bytes: a damaged body need not be text any more.
_SELECT_CHAIN = f"SELECT {_COLUMNS}, previous, hash, CAST(body AS BLOB) FROM entries ORDER BY seq"  # noqa: S608 - constants
_SELECT_WRITERS = (
    "SELECT json_extract(body, '$.call.writer') AS writer, MIN(seq) AS first, MAX(seq) FROM entries WHERE ok = 1 AND seq > :after"
    " AND seq IN (SELECT seq FROM entries WHERE path = :path"
    " UNION SELECT seq FROM entries WHERE to_path = :path AND to_path != x'')"
    " GROUP BY writer ORDER BY first"
)
_UNDOES = (
    "seq IN (SELECT seq FROM entries WHERE undoes = :undoes AND undoes != x'' UNION SELECT seq FROM entries"
    " WHERE change_id IN (SELECT made_by FROM switches WHERE change_id = :undoes))"
)
_PLAIN_CONDITIONS = {
    "operation": "operation = :operation",
    "before_seq": "seq < :before_seq",
    "after_seq": "seq > :after_seq",
    "ok_only": "ok = 1",
    "since": "timestamp >= :since",
    "until": "timestamp < :until",
}
_LOOK_AT_PATH = (
    "SELECT version, writer, seq, timestamp, intent FROM (SELECT ? AS path)"
    " LEFT JOIN heads USING (path) LEFT JOIN locks USING (path)"
)
_PUT_HEAD = "INSERT OR REPLACE INTO heads (path, version, writer, seq, timestamp) VALUES (?, ?, ?, ?, ?)"
SELECT_TRASH = "SELECT id, path, version, change_id, trashed, agent, session, state FROM trash"
_PUT_TRASH = (
    "INSERT OR REPLACE INTO trash (id, path, version, change_id, trashed, agent, session, state)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def read_tip(connection: sqlite3.Connection) -> ledger_entries.ChainTip:
    seq, last = connection.execute("SELECT seq, hash FROM tip WHERE id = 1").fetchone()
    return ledger_entries.ChainTip(seq=seq, hash=last)


def append_entry(connection: sqlite3.Connection, draft: Entry) -> Entry:
    """Write one entry, and the heads, versions and trash items that follow from it."""
    entry, body = ledger_entries.seal_entry(read_tip(connection), draft)
    connection.execute(_INSERT_ENTRY, (*entry_columns(entry), entry.previous, entry.hash, body))
    connection.execute("UPDATE tip SET seq = ?, hash = ? WHERE id = 1", (entry.seq, entry.hash))
    if ledger_entries.makes_heads(entry):
        _put_heads(connection, entry)
        if entry.change.undoes:
            _put_switches(connection, entry)
        _put_trash(connection, entry)
    return entry


def append_entries(connection: sqlite3.Connection, drafts: Iterable[Entry]) -> tuple[Entry, ...]:
    """Write many entries of one change; the end of the chain is written once."""
    tip, rows = read_tip(connection), list[tuple[object, ...]]()
    entries = list[Entry]()
    for draft in drafts:
        entry, body = ledger_entries.seal_entry(tip, draft)
        tip = ledger_entries.ChainTip(seq=entry.seq, hash=entry.hash)
        rows.append((*entry_columns(entry), entry.previous, entry.hash, body))
        entries.append(entry)
    connection.executemany(_INSERT_ENTRY, rows)
    connection.execute("UPDATE tip SET seq = ?, hash = ? WHERE id = 1", (tip.seq, tip.hash))
    for entry in entries:
        _put_heads(connection, entry)
        _put_trash(connection, entry)
    return tuple(entries)


def append_run(connection: sqlite3.Connection, intent: Intent, *, timestamp: str) -> tuple[Entry, ...]:
    """Record what a command changed, after what others did to the same paths before it."""
    heads = {
        path: head for path in ledger_entries.touched_paths(intent.changes) if (head := read_head(connection, path))
    }
    for one in list(ledger_entries.find_outside_edits(intent, heads)):
        append_outside(connection, one.head, one.found, timestamp=timestamp)
    return append_entries(connection, ledger_entries.entries_of(intent, timestamp=timestamp))


def append_outside(connection: sqlite3.Connection, head: Head, found: Version | None, *, timestamp: str) -> Entry:
    """Record what an outside program made of a path."""
    seq = read_tip(connection).seq + 1
    draft = ledger_entries.outside_entry(head.path, head.version, found, seq=seq, timestamp=timestamp)
    return append_entry(connection, draft)


def append_kept(connection: sqlite3.Connection, path: str, kept: Version, *, timestamp: str) -> tuple[Entry, ...]:
    """Record that an outside program wrote a version, and that it had to leave the path; the head stays what it was."""
    head, seq = read_head(connection, path), read_tip(connection).seq + 1
    there = head.version if head else None
    wrote = ledger_entries.outside_entry(path, there, kept, seq=seq, timestamp=timestamp)
    left = ledger_entries.kept_entry(path, kept, there, seq=seq + 1, timestamp=timestamp)
    entries = append_entry(connection, wrote), append_entry(connection, left)
    if head is None:
        connection.execute("DELETE FROM heads WHERE path = ?", (to_key(path),))  # what is there now is not known
    return entries


def read_head(connection: sqlite3.Connection, path: str) -> Head | None:
    return look_at_path(connection, path)[0]


def look_at_path(connection: sqlite3.Connection, path: str) -> tuple[Head | None, bytes | None]:
    """Return what the ledger last knew of a path, and which open intent holds it."""
    version, writer, seq, timestamp, intent = connection.execute(_LOOK_AT_PATH, (to_key(path),)).fetchone()
    if seq is None:
        return None, intent
    return Head(path=path, version=version_from_text(version), writer=writer, seq=seq, timestamp=timestamp), intent


def read_heads(connection: sqlite3.Connection) -> tuple[Head, ...]:
    rows = connection.execute("SELECT path, version, writer, seq, timestamp FROM heads ORDER BY path")
    return tuple(
        Head(
            path=ledger_entries.text_of(path),
            version=version_from_text(version),
            writer=writer,
            seq=seq,
            timestamp=when,
        )
        for path, version, writer, seq, when in rows
    )


def knows_version(connection: sqlite3.Connection, path: str, sha256: str) -> bool:
    found = connection.execute("SELECT 1 FROM versions WHERE path = ? AND sha256 = ?", (to_key(path), sha256))
    return found.fetchone() is not None


def entries_of_change(connection: sqlite3.Connection, change_id: str) -> tuple[Entry, ...]:
    """List the entries of a change that succeeded, in the order of its call."""
    rows = connection.execute(
        "SELECT body, previous, hash FROM entries WHERE change_id = ? AND ok = 1 ORDER BY seq", (to_key(change_id),)
    )
    return tuple(_entry_from_row(*row) for row in rows)


def find_entries(connection: sqlite3.Connection, query: LedgerQuery) -> tuple[Entry, ...]:
    where, values = _build_conditions(query)
    limit = max(query.limit, 0)
    newest = "ORDER BY seq DESC LIMIT :limit"
    if query.path:
        # One index per half, each read backwards and only as far as needed; an OR would read all, then sort.
        halves = " UNION ".join(
            f"SELECT seq FROM (SELECT seq FROM entries WHERE {half} AND {where} {newest})"  # noqa: S608 - constants
            for half in ("path = :path", "to_path = :path AND to_path != x''")
        )
        where = f"seq IN ({halves})"
    rows = connection.execute(
        f"SELECT body, previous, hash FROM entries WHERE {where} {newest}",  # noqa: S608 - constants
        values | {"limit": limit},
    )
    return tuple(_entry_from_row(*row) for row in rows)


def find_writers(connection: sqlite3.Connection, key: str, after_seq: int) -> tuple[WriterSpan, ...]:
    rows = connection.execute(_SELECT_WRITERS, {"path": to_key(key), "after": after_seq})
    return tuple(WriterSpan(writer=writer, first_seq=first, last_seq=last) for writer, first, last in rows)


def verify_chain(connection: sqlite3.Connection) -> LedgerCheck:
    """Walk the whole chain and say where it first breaks; memory does not grow with its length."""
    end = read_tip(connection)
    at = ledger_entries.ChainTip()
    for row in connection.execute(_SELECT_CHAIN):
        problem = _find_problem(at, row)
        if problem:
            return LedgerCheck(entries=at.seq, blobs=0, broken_seq=at.seq + 1, problem=problem)
        at = ledger_entries.ChainTip(seq=at.seq + 1, hash=row[-2])
    broken, problem = 0, ""
    if at.seq < end.seq:
        broken = at.seq + 1
        problem = f"Entry {broken} is missing: the ledger had {end.seq} entries."
    elif at != end:
        broken = min(at.seq, end.seq + 1)
        problem = f"Entry {broken} is not the one that ended the ledger."
    return LedgerCheck(entries=at.seq, blobs=0, broken_seq=broken, problem=problem)


def hashes_since(connection: sqlite3.Connection, before: str) -> Iterator[str]:
    """Name all bytes that entries since a moment speak of."""
    yield from _hashes_of(connection.execute("SELECT body FROM entries WHERE timestamp >= ?", (before,)))


def hashes_after(connection: sqlite3.Connection, seq: int) -> Iterator[str]:
    """Name all bytes that the entries after another one speak of."""
    yield from _hashes_of(connection.execute("SELECT body FROM entries WHERE seq > ?", (seq,)))


def _hashes_of(rows: Iterable[tuple[str]]) -> Iterator[str]:
    for (body,) in rows:
        yield from ledger_entries.version_hashes(
            ledger_entries.change_from_json(ledger_entries.from_json(body)["change"])
        )


def _find_problem(at: ledger_entries.ChainTip, row: tuple[Any, ...]) -> str:
    *columns, previous, own, body = row
    seq = at.seq + 1
    if columns[0] != seq:
        return f"Entry {seq} is missing."
    if previous != at.hash:
        return f"Entry {seq} does not follow the one before it."
    if own != ledger_entries.chain_hash(previous, body):
        return f"Entry {seq} was changed: its hash does not match."
    if tuple(columns) != ledger_entries.columns_of_json(ledger_entries.from_json(body.decode("ascii"))):
        return f"Entry {seq} is filed under other words than it says."
    return ""


def _put_heads(connection: sqlite3.Connection, entry: Entry) -> None:
    for path, before, after in entry.change.transitions():
        stored = to_key(path)
        writer = entry.call.writer
        connection.execute(_PUT_HEAD, (stored, version_text(after), writer, entry.seq, entry.timestamp))
        versions = [(stored, version.sha256) for version in (before, after) if version is not None]
        connection.executemany("INSERT OR IGNORE INTO versions (path, sha256) VALUES (?, ?)", versions)


def _put_switches(connection: sqlite3.Connection, entry: Entry) -> None:
    names = [to_key(name) for name in ledger_entries.switched_changes(entry.change)]
    put = "INSERT OR IGNORE INTO switches (change_id, made_by) VALUES (?, ?)"
    connection.executemany(put, [(name, to_key(entry.change_id)) for name in names])
    for path in (to_key(path) for path, _, after in entry.change.transitions() if after):
        restored = "UPDATE trash SET state = 'restored' WHERE change_id = ? AND path = ? AND state = 'kept'"
        connection.executemany(restored, [(name, path) for name in names])


def _put_trash(connection: sqlite3.Connection, entry: Entry) -> None:
    if item := ledger_entries.trash_item(entry):
        values = (to_key(item.id), to_key(item.path), version_text(item.version), to_key(item.change_id), item.trashed)
        connection.execute(_PUT_TRASH, (*values, to_key(item.agent), to_key(item.session), item.state))
    for column, name in (("change_id", entry.call.undoes), ("id", entry.call.restores)):
        if name:
            update = f"UPDATE trash SET state = 'restored' WHERE {column} = ? AND state = 'kept'"  # noqa: S608 - constants
            connection.execute(update, (to_key(name),))


def trash_item_from_row(row: tuple[bytes, bytes, str, bytes, str, bytes, bytes, str]) -> TrashItem:
    version = version_from_text(row[2])
    assert version is not None
    return TrashItem(
        id=text_of(row[0]),
        path=text_of(row[1]),
        version=version,
        change_id=text_of(row[3]),
        trashed=row[4],
        agent=text_of(row[5]),
        session=text_of(row[6]),
        state=row[7],  # pyright: ignore[reportArgumentType] - only those three words are ever written
    )


def _build_conditions(query: LedgerQuery) -> tuple[str, dict[str, object]]:
    conditions = ["1"]
    values: dict[str, object] = {"path": to_key(query.path)}
    if query.undoes:
        conditions.append(_UNDOES)
        values["undoes"] = to_key(query.undoes)
    for name in ("session", "change_id"):
        if value := getattr(query, name):
            conditions.append(f"{name} = :{name} AND {name} != x''")
            values[name] = to_key(value)
    for name, condition in _PLAIN_CONDITIONS.items():
        if value := getattr(query, name):
            conditions.append(condition)
            values[name] = value
    if query.agent:
        conditions.append("substr(agent, 1, :agent_bytes) = :agent")
        values |= {"agent": to_key(query.agent), "agent_bytes": len(to_key(query.agent))}
    if query.under:
        conditions.append("(path >= :low AND path < :high OR to_path >= :low AND to_path < :high)")
        directory = to_key(query.under.rstrip("/"))
        values |= {"low": directory + b"/", "high": directory + b"0"}  # "0" is the byte after "/"
    return " AND ".join(conditions), values


def _entry_from_row(body: str | bytes, previous: str, own: str) -> Entry:
    return ledger_entries.entry_from_json(ledger_entries.from_json(body), previous=previous, hash=own)


def add_intent(connection: sqlite3.Connection, intent: Intent, *, expires: float) -> None:
    key = to_key(intent.id)
    connection.execute(
        "INSERT INTO intents (id, idempotency_key, expires, owner, body) VALUES (?, ?, ?, ?, ?)",
        (
            key,
            to_key(intent.call.idempotency_key),
            expires,
            ledger_entries.owner_text(intent.owner),
            ledger_entries.intent_text(intent),
        ),
    )
    connection.executemany(
        "INSERT INTO locks (path, intent) VALUES (?, ?)",
        [(to_key(path), key) for path in ledger_entries.touched_paths(intent.changes)],
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


def is_open(connection: sqlite3.Connection, intent_id: str) -> bool:
    return connection.execute("SELECT 1 FROM intents WHERE id = ?", (to_key(intent_id),)).fetchone() is not None


def renew_lease(connection: sqlite3.Connection, intent_id: str, *, expires: float) -> bool:
    """Extend a lease; False when there is no such intent any more."""
    changed = connection.execute("UPDATE intents SET expires = ? WHERE id = ?", (expires, to_key(intent_id)))
    return changed.rowcount > 0


def find_by_id(connection: sqlite3.Connection, intent_id: bytes, now: datetime) -> Busy | None:
    return next(iter(_select_intents(connection, now, "id = ?", intent_id)), None)


def find_by_key(connection: sqlite3.Connection, idempotency_key: str, now: datetime) -> Busy | None:
    if not idempotency_key:
        return None
    where = "idempotency_key = ? AND idempotency_key != x''"  # as the index says it
    return next(iter(_select_intents(connection, now, where, to_key(idempotency_key))), None)


def list_open(connection: sqlite3.Connection, *, now: datetime) -> tuple[Busy, ...]:
    """List all open intents, oldest first; what is said of their owners is true now."""
    return tuple(
        replace(busy, owner_is_dead=busy.owner_is_dead or is_dead(busy.intent.owner))
        for busy in _select_intents(connection, now, "1")
    )


def list_dead(connection: sqlite3.Connection, *, now: datetime, limit: int, skip: Collection[str]) -> tuple[Busy, ...]:
    """List the oldest open intents whose owner is dead; the bodies of others are not read."""
    owners = [owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM intents WHERE owner != ''")]
    dead = {owner for owner in owners if was_dead_lately(ledger_entries.owner_from_text(owner))}
    found = list[Busy]()
    for number, key, owner, expires in connection.execute(
        "SELECT number, id, owner, expires FROM intents ORDER BY number"
    ):
        if (expires <= now.timestamp() or owner in dead) and text_of(key) not in skip:
            (body,) = connection.execute("SELECT body FROM intents WHERE number = ?", (number,)).fetchone()
            found.append(Busy(intent=ledger_entries.intent_from_text(body), owner_is_dead=True))
            if len(found) >= limit:
                break
    return tuple(found)


def _read_intent(connection: sqlite3.Connection, intent_id: str) -> Intent:
    row = connection.execute("SELECT body FROM intents WHERE id = ?", (to_key(intent_id),)).fetchone()
    if row is None:
        raise intent_gone_error(intent_id)
    return ledger_entries.intent_from_text(row[0])


def _select_intents(connection: sqlite3.Connection, now: datetime, where: str, *values: bytes) -> tuple[Busy, ...]:
    query = f"SELECT body, expires FROM intents WHERE {where} ORDER BY number"  # noqa: S608 - constants
    found = list[Busy]()
    for body, expires in connection.execute(query, values).fetchall():
        intent = ledger_entries.intent_from_text(body)
        found.append(Busy(intent=intent, owner_is_dead=expires <= now.timestamp() or was_dead_lately(intent.owner)))
    return tuple(found)

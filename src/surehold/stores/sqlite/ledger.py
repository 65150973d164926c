"""The ledger in SQLite: appends an entry with everything that follows from it, lists entries, verifies the chain.

1. Every function works inside the caller's transaction.
2. The end of the chain is a row of its own. Appending costs the same after ten entries as after a million, and a cut
   tail stays visible, also after later entries: they leave a gap.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from surehold.stores import ledger_entries
from surehold.stores.base import Entry, Head, LedgerCheck, LedgerQuery, WriterSpan
from surehold.stores.sqlite import codec
from surehold.stores.sqlite.codec import entry_columns, to_key, version_from_text, version_text
from surehold.text.snapshot import Version

_COLUMNS = "seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp"
_INSERT = f"INSERT INTO entries ({_COLUMNS}, previous, hash, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
# As bytes: a damaged body need not be text any more.
_SELECT_CHAIN = f"SELECT {_COLUMNS}, previous, hash, CAST(body AS BLOB) FROM entries ORDER BY seq"  # noqa: S608 - constants
_SELECT_WRITERS = (
    "SELECT json_extract(body, '$.call.writer') AS writer, MIN(seq) AS first, MAX(seq) FROM entries WHERE ok = 1 AND seq > :after"
    " AND seq IN (SELECT seq FROM entries WHERE path = :path"
    " UNION SELECT seq FROM entries WHERE to_path = :path AND to_path != x'')"
    " GROUP BY writer ORDER BY first"
)
_PUT_HEAD = "INSERT OR REPLACE INTO heads (path, version, writer, seq, timestamp) VALUES (?, ?, ?, ?, ?)"
_PUT_TRASH = (
    "INSERT OR REPLACE INTO trash (id, path, version, change_id, trashed, agent, session, state)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def read_tip(connection: sqlite3.Connection) -> codec.ChainTip:
    """Return the end of the chain."""
    seq, last = connection.execute("SELECT seq, hash FROM tip WHERE id = 1").fetchone()
    return codec.ChainTip(seq=seq, hash=last)


def append_entry(connection: sqlite3.Connection, draft: Entry) -> Entry:
    """Write one entry, and the heads, versions and trash items that follow from it."""
    entry, body = codec.seal_entry(read_tip(connection), draft)
    connection.execute(_INSERT, (*entry_columns(entry), entry.previous, entry.hash, body))
    connection.execute("UPDATE tip SET seq = ?, hash = ? WHERE id = 1", (entry.seq, entry.hash))
    if ledger_entries.makes_heads(entry):
        _put_heads(connection, entry)
        _put_trash(connection, entry)
    return entry


def read_head(connection: sqlite3.Connection, path: str) -> Head | None:
    """Return what the ledger last knew of a path."""
    row = connection.execute(
        "SELECT version, writer, seq, timestamp FROM heads WHERE path = ?", (to_key(path),)
    ).fetchone()
    if row is None:
        return None
    return Head(path=path, version=version_from_text(row[0]), writer=row[1], seq=row[2], timestamp=row[3])


def knows_version(connection: sqlite3.Connection, path: str, sha256: str) -> bool:
    """Tell whether these bytes were ever a version of this path."""
    found = connection.execute("SELECT 1 FROM versions WHERE path = ? AND sha256 = ?", (to_key(path), sha256))
    return found.fetchone() is not None


def entries_of_change(connection: sqlite3.Connection, change_id: str) -> tuple[Entry, ...]:
    """List the entries of a change that succeeded, in the order of its call."""
    rows = connection.execute(
        "SELECT body, previous, hash FROM entries WHERE change_id = ? AND ok = 1 ORDER BY seq", (to_key(change_id),)
    )
    return tuple(_entry_from_row(*row) for row in rows)


def find_entries(connection: sqlite3.Connection, query: LedgerQuery) -> tuple[Entry, ...]:
    """List entries, newest first."""
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
    """List who changed a path after an entry, each once, in the order of their first change."""
    rows = connection.execute(_SELECT_WRITERS, {"path": to_key(key), "after": after_seq})
    return tuple(WriterSpan(writer=writer, first_seq=first, last_seq=last) for writer, first, last in rows)


def verify_chain(connection: sqlite3.Connection) -> LedgerCheck:
    """Walk the whole chain and say where it first breaks; memory does not grow with its length."""
    end = read_tip(connection)
    at = codec.ChainTip()
    for row in connection.execute(_SELECT_CHAIN):
        problem = _find_problem(at, row)
        if problem:
            return LedgerCheck(entries=at.seq, blobs=0, broken_seq=at.seq + 1, problem=problem)
        at = codec.ChainTip(seq=at.seq + 1, hash=row[-2])
    if at.seq < end.seq:
        problem = f"Entry {at.seq + 1} is missing: the ledger had {end.seq} entries."
        return LedgerCheck(entries=at.seq, blobs=0, broken_seq=at.seq + 1, problem=problem)
    if at != end:
        broken = min(at.seq, end.seq + 1) if at.seq > end.seq else at.seq
        problem = f"Entry {broken} is not the one that ended the ledger."
        return LedgerCheck(entries=at.seq, blobs=0, broken_seq=broken, problem=problem)
    return LedgerCheck(entries=at.seq, blobs=0)


def hashes_since(connection: sqlite3.Connection, before: str) -> Iterator[str]:
    """List the versions that entries since a moment name."""
    for (body,) in connection.execute("SELECT body FROM entries WHERE timestamp >= ?", (before,)):
        yield from ledger_entries.version_hashes(codec.change_from_json(codec.from_json(body)["change"]))


def _find_problem(at: codec.ChainTip, row: tuple[Any, ...]) -> str:
    *columns, previous, own, body = row
    seq = at.seq + 1
    if columns[0] != seq:
        return f"Entry {seq} is missing."
    if previous != at.hash:
        return f"Entry {seq} does not follow the one before it."
    if own != codec.chain_hash(previous, body):
        return f"Entry {seq} was changed: its hash does not match."
    if tuple(columns) != entry_columns(_entry_from_row(body, previous, own)):
        return f"Entry {seq} is filed under other words than it says."
    return ""


def _put_heads(connection: sqlite3.Connection, entry: Entry) -> None:
    for path, before, after in entry.change.transitions():
        stored = to_key(path)
        writer = entry.call.writer
        connection.execute(_PUT_HEAD, (stored, version_text(after), writer, entry.seq, entry.timestamp))
        for version in (before, after):
            _put_version(connection, stored, version)


def _put_version(connection: sqlite3.Connection, path: bytes, version: Version | None) -> None:
    if version is not None:
        connection.execute("INSERT OR IGNORE INTO versions (path, sha256) VALUES (?, ?)", (path, version.sha256))


def _put_trash(connection: sqlite3.Connection, entry: Entry) -> None:
    if item := ledger_entries.trash_item(entry):
        values = (to_key(item.id), to_key(item.path), version_text(item.version), to_key(item.change_id), item.trashed)
        connection.execute(_PUT_TRASH, (*values, to_key(item.agent), to_key(item.session), item.state))
    if entry.call.undoes:
        connection.execute(
            "UPDATE trash SET state = 'restored' WHERE change_id = ? AND state = 'kept'", (to_key(entry.call.undoes),)
        )
    if entry.call.restores:
        connection.execute(
            "UPDATE trash SET state = 'restored' WHERE id = ? AND state = 'kept'", (to_key(entry.call.restores),)
        )


def _build_conditions(query: LedgerQuery) -> tuple[str, dict[str, object]]:
    """Return a condition and its values, without the exact path."""
    conditions = ["1"]
    values: dict[str, object] = {"path": to_key(query.path)}
    for name in ("session", "agent", "change_id", "undoes"):
        if value := getattr(query, name):
            conditions.append(f"{name} = :{name} AND {name} != x''")
            values[name] = to_key(value)
    if query.operation:
        conditions.append("operation = :operation")
        values["operation"] = query.operation
    if query.before_seq:
        conditions.append("seq < :before_seq")
        values["before_seq"] = query.before_seq
    if query.after_seq:
        conditions.append("seq > :after_seq")
        values["after_seq"] = query.after_seq
    if query.ok_only:
        conditions.append("ok = 1")
    if query.under:
        conditions.append("(path >= :low AND path < :high OR to_path >= :low AND to_path < :high)")
        directory = to_key(query.under.rstrip("/"))
        values |= {"low": directory + b"/", "high": directory + b"0"}  # "0" is the byte after "/"
    return " AND ".join(conditions), values


def _entry_from_row(body: str | bytes, previous: str, own: str) -> Entry:
    return codec.entry_from_json(codec.from_json(body), previous=previous, hash=own)

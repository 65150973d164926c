"""Rows of the database: ledger entries and heads, open intents, sightings. Each function is a few statements."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import Busy, Entry, Head, Intent, LedgerQuery, Replay, Sighting
from surehold.stores.ledger_entries import text_of, to_key, version_from_text, version_text
from surehold.stores.owner import counts_as_dead, is_dead
from surehold.stores.sightings import (
    PATHS_PER_SESSION,
    VERSIONS_PER_PATH,
    SightingRow,
    StoredSightings,
    merge_sightings,
    ranges_to_text,
    rows_to_forget,
    sighting_from_row,
)
from surehold.stores.sqlite import archive, entry_rows
from surehold.stores.sqlite.database import select_keys
from surehold.stores.store_errors import intent_gone_error
from surehold.stores.upkeep import LedgerCheck, TrashItem, TrashQuery
from surehold.text.snapshot import Version

_ALL_ENTRIES = 1 << 62

_LOOK_AT_PATH = (
    "SELECT version, writer, seq, timestamp, intent FROM (SELECT ? AS path)"
    " LEFT JOIN heads USING (path) LEFT JOIN locks USING (path)"
)
_SELECT_HEADS = "SELECT path, version, writer, seq, timestamp FROM heads WHERE path IN"
_SELECT_HOLDERS = "SELECT path, intent FROM locks WHERE path IN"
_FEW_PATHS = 8
_PUT_HEAD = "INSERT OR REPLACE INTO heads (path, version, writer, seq, timestamp) VALUES (?, ?, ?, ?, ?)"
_PUT_WRITER = (
    "INSERT INTO path_writers (path, writer, first, last) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (path, writer) DO UPDATE SET last = excluded.last"
)
SELECT_TRASH = "SELECT id, path, version, change_id, trashed, agent, session, state FROM trash"
_PUT_TRASH = (
    "INSERT OR REPLACE INTO trash (id, path, version, change_id, trashed, agent, session, state)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT_SIGHTINGS = (
    "SELECT sha256, spans, whole, anchored, seq FROM sightings WHERE session = ? AND path = ? ORDER BY number DESC"
)
_INSERT_SIGHTING = (
    "INSERT OR REPLACE INTO sightings (session, path, sha256, spans, whole, anchored, seq, shown)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def read_tip(connection: sqlite3.Connection) -> ledger_entries.ChainTip:
    seq, last = connection.execute("SELECT seq, hash FROM tip WHERE id = 1").fetchone()
    return ledger_entries.ChainTip(seq=seq, hash=last)


def append_entry(connection: sqlite3.Connection, draft: Entry) -> Entry:
    """Write one entry, and the heads, versions and trash items that follow from it."""
    entry, body = ledger_entries.seal_entry(read_tip(connection), draft)
    entry_rows.insert_entries(connection, [(entry, body)])
    connection.execute("UPDATE tip SET seq = ?, hash = ? WHERE id = 1", (entry.seq, entry.hash))
    if ledger_rules.makes_heads(entry):
        _put_heads(connection, entry)
        if entry.change.undoes:
            _put_switches(connection, entry)
        _put_trash(connection, entry)
    return entry


def append_entries(connection: sqlite3.Connection, drafts: Iterable[Entry]) -> tuple[Entry, ...]:
    """Write many entries of one change; the end of the chain is written once."""
    tip, sealed = read_tip(connection), list[tuple[Entry, str]]()
    for draft in drafts:
        entry, body = ledger_entries.seal_entry(tip, draft)
        tip = ledger_entries.ChainTip(seq=entry.seq, hash=entry.hash)
        sealed.append((entry, body))
    entry_rows.insert_entries(connection, sealed)
    connection.execute("UPDATE tip SET seq = ?, hash = ? WHERE id = 1", (tip.seq, tip.hash))
    _put_many_heads(connection, [entry for entry, _ in sealed])
    for entry, _ in sealed:
        if entry.change.trash_id or entry.call.undoes or entry.call.restores:
            _put_trash(connection, entry)
    return tuple(entry for entry, _ in sealed)


def append_run(connection: sqlite3.Connection, intent: Intent, *, timestamp: str) -> tuple[Entry, ...]:
    """Record what a command changed, after what others did to the same paths before it."""
    found = look_at_paths(connection, ledger_rules.touched_paths(intent.changes))
    heads = {path: head for path, (head, _) in found.items()}
    for one in list(ledger_rules.find_outside_edits(intent, heads)):
        append_outside(connection, one.head, one.found, timestamp=timestamp)
    return append_entries(connection, ledger_rules.entries_of(intent, timestamp=timestamp))


def append_outside(connection: sqlite3.Connection, head: Head, found: Version | None, *, timestamp: str) -> Entry:
    """Record what an outside program made of a path."""
    seq = read_tip(connection).seq + 1
    draft = ledger_rules.outside_entry(head.path, head.version, found, seq=seq, timestamp=timestamp)
    return append_entry(connection, draft)


def append_kept(connection: sqlite3.Connection, path: str, kept: Version, *, timestamp: str) -> tuple[Entry, ...]:
    """Record that an outside program wrote a version, and that it had to leave the path; the head stays what it was."""
    head, seq = read_head(connection, path), read_tip(connection).seq + 1
    there = head.version if head else None
    wrote = ledger_rules.outside_entry(path, there, kept, seq=seq, timestamp=timestamp)
    left = ledger_rules.kept_entry(path, kept, there, seq=seq + 1, timestamp=timestamp)
    entries = append_entry(connection, wrote), append_entry(connection, left)
    if head is None:
        connection.execute(_PUT_WRITER, (to_key(path), ledger_rules.EXTERNAL.writer, seq, seq + 1))
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


def look_at_paths(connection: sqlite3.Connection, paths: Sequence[str]) -> dict[str, tuple[Head | None, bytes | None]]:
    """Look at many paths at the cost of a few statements."""
    if len(paths) <= _FEW_PATHS:
        return {path: look_at_path(connection, path) for path in paths}
    names = {to_key(path): path for path in paths}
    heads = {
        names[key]: Head(path=names[key], version=version_from_text(version), writer=writer, seq=seq, timestamp=when)
        for key, version, writer, seq, when in select_keys(connection, _SELECT_HEADS, list(names))
    }
    holders = {names[key]: intent for key, intent in select_keys(connection, _SELECT_HOLDERS, list(names))}
    return {path: (heads.get(path), holders.get(path)) for path in paths}


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


def verify_chain(connection: sqlite3.Connection) -> LedgerCheck:
    """Walk the whole chain and say where it first breaks; memory does not grow with its length."""
    end = read_tip(connection)
    at, problem = archive.verify_archive(connection)
    if problem:
        return LedgerCheck(entries=at.seq, blobs=0, broken_seq=at.seq + 1, problem=problem)
    for row in entry_rows.rows_between(connection):
        problem = entry_rows.find_problem(at, row)
        if problem:
            return LedgerCheck(entries=at.seq, blobs=0, broken_seq=at.seq + 1, problem=problem)
        at = ledger_entries.ChainTip(seq=at.seq + 1, hash=entry_rows.hash_of_row(row))
    broken, problem = 0, ""
    if at.seq < end.seq:
        broken = at.seq + 1
        problem = f"Entry {broken} is missing: the ledger had {end.seq} entries."
    elif at != end:
        broken = min(at.seq, end.seq + 1)
        problem = f"Entry {broken} is not the one that ended the ledger."
    return LedgerCheck(entries=at.seq, blobs=0, broken_seq=broken, problem=problem)


def _put_heads(connection: sqlite3.Connection, entry: Entry) -> None:
    writer, seq = entry.call.writer, entry.seq
    for path, _, after in entry.change.transitions():
        key = to_key(path)
        last = connection.execute("SELECT writer, seq FROM heads WHERE path = ?", (key,)).fetchone()
        if last is None or last[0] != writer:  # as long as one goes on, the head says it
            rows = [(key, *last, last[1])] if last else []
            connection.executemany(_PUT_WRITER, [*rows, (key, writer, seq, seq)])
        connection.execute(_PUT_HEAD, (key, version_text(after), writer, seq, entry.timestamp))


def _put_many_heads(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Do what `_put_heads` does, for many entries at the cost of a few statements."""
    steps = [(to_key(path), after, entry) for entry in entries for path, _, after in entry.change.transitions()]
    keys = list(dict.fromkeys(key for key, _, _ in steps))
    last: dict[bytes, tuple[str, int]] = {
        key: (writer, seq) for key, _, writer, seq, _ in select_keys(connection, _SELECT_HEADS, keys)
    }
    writers, heads = list[tuple[bytes, str, int, int]](), dict[bytes, tuple[object, ...]]()
    for key, after, entry in steps:
        writer, seq, before = entry.call.writer, entry.seq, last.get(key)
        if before is None or before[0] != writer:
            writers += [(key, *before, before[1])] if before else []
            writers.append((key, writer, seq, seq))
        last[key] = writer, seq
        heads[key] = (key, version_text(after), writer, seq, entry.timestamp)
    connection.executemany(_PUT_WRITER, writers)
    connection.executemany(_PUT_HEAD, list(heads.values()))


def _put_switches(connection: sqlite3.Connection, entry: Entry) -> None:
    names = [to_key(name) for name in ledger_rules.switched_changes(entry.change)]
    put = "INSERT OR IGNORE INTO switches (change_id, made_by) VALUES (?, ?)"
    connection.executemany(put, [(name, to_key(entry.change_id)) for name in names])
    for path in (to_key(path) for path, _, after in entry.change.transitions() if after):
        restored = "UPDATE trash SET state = 'restored' WHERE change_id = ? AND path = ? AND state = 'kept'"
        connection.executemany(restored, [(name, path) for name in names])


def list_trash(connection: sqlite3.Connection, query: TrashQuery) -> tuple[TrashItem, ...]:
    conditions, values = ["state = ?"], list[object]([query.state])
    if query.path:
        conditions.append("path = ?")
        values.append(to_key(query.path))
    if query.after:
        conditions.append("number < (SELECT number FROM trash WHERE id = ?)")
        values.append(to_key(query.after))
    select = f"{SELECT_TRASH} WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?"
    return tuple(ledger_rules.trash_item_from_row(row) for row in connection.execute(select, (*values, query.limit)))


def _put_trash(connection: sqlite3.Connection, entry: Entry) -> None:
    if item := ledger_rules.trash_item(entry):
        values = (to_key(item.id), to_key(item.path), version_text(item.version), to_key(item.change_id), item.trashed)
        connection.execute(_PUT_TRASH, (*values, to_key(item.agent), to_key(item.session), item.state))
    for column, name in (("change_id", entry.call.undoes), ("id", entry.call.restores)):
        if name:
            update = f"UPDATE trash SET state = 'restored' WHERE {column} = ? AND state = 'kept'"  # noqa: S608 - constants
            connection.execute(update, (to_key(name),))


def add_intent(connection: sqlite3.Connection, intent: Intent, *, opened: int, expires: float) -> None:
    key = to_key(intent.id)
    connection.execute(
        "INSERT INTO intents (id, opened, idempotency_key, expires, owner, body) VALUES (?, ?, ?, ?, ?, ?)",
        (
            key,
            opened,
            to_key(intent.call.idempotency_key),
            expires,
            ledger_entries.owner_text(intent.owner),
            entry_rows.pack_intent(intent),
        ),
    )
    connection.executemany(
        "INSERT INTO locks (path, intent) VALUES (?, ?)",
        [(to_key(path), key) for path in ledger_rules.touched_paths(intent.changes)],
    )


def take_intent(connection: sqlite3.Connection, intent_id: str, *, known: Intent | None = None) -> Intent:
    """Remove an open intent and its locks, and return it; the one that is known is only removed."""
    intent = known if known and known.id == intent_id else _read_intent(connection, intent_id)
    if not connection.execute("DELETE FROM intents WHERE id = ?", (to_key(intent_id),)).rowcount:
        raise intent_gone_error(intent_id)
    connection.executemany(
        "DELETE FROM locks WHERE path = ?", [(to_key(path),) for path in ledger_rules.touched_paths(intent.changes)]
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


def earlier_attempt(connection: sqlite3.Connection, idempotency_key: str, now: datetime) -> Replay | Busy | None:
    if not idempotency_key:
        return None
    row = connection.execute(
        "SELECT change_id FROM answers WHERE idempotency_key = ?", (to_key(idempotency_key),)
    ).fetchone()
    if row is None:
        # The id of a change is its key too, where it was given none: a call of unknown fate is told to use it.
        made = entry_rows.find_entries(
            connection, LedgerQuery(change_id=idempotency_key, ok_only=True, limit=_ALL_ENTRIES)
        )
        same = find_by_key(connection, idempotency_key, now) or find_by_id(connection, to_key(idempotency_key), now)
        return Replay(entries=made[::-1]) if made else same
    return Replay(entries=archive.entries_of_change(connection, text_of(row[0])))


def list_open(connection: sqlite3.Connection, *, now: datetime) -> tuple[Busy, ...]:
    """List all open intents, oldest first; what is said of their owners is true now."""
    return tuple(
        replace(busy, owner_is_dead=busy.owner_is_dead or is_dead(busy.intent.owner))
        for busy in _select_intents(connection, now, "1")
    )


def list_dead(connection: sqlite3.Connection, *, now: datetime, limit: int, skip: Collection[str]) -> tuple[Busy, ...]:
    """List the oldest open intents whose owner is dead; the bodies of others are not read."""
    named = "SELECT DISTINCT owner FROM intents WHERE owner != ''"
    owners = {owner: ledger_entries.owner_from_text(owner) for (owner,) in connection.execute(named)}
    found = list[Busy]()
    for key, name, expires in connection.execute("SELECT id, owner, expires FROM intents ORDER BY opened, id"):
        over, owner = expires <= now.timestamp(), owners.get(name)
        if (counts_as_dead(owner, lease_over=over) if owner else over) and text_of(key) not in skip:
            (body,) = connection.execute("SELECT body FROM intents WHERE id = ?", (key,)).fetchone()
            found.append(Busy(intent=entry_rows.unpack_intent(body), owner_is_dead=True))
            if len(found) >= limit:
                break
    return tuple(found)


def _read_intent(connection: sqlite3.Connection, intent_id: str) -> Intent:
    row = connection.execute("SELECT body FROM intents WHERE id = ?", (to_key(intent_id),)).fetchone()
    if row is None:
        raise intent_gone_error(intent_id)
    return entry_rows.unpack_intent(row[0])


def _select_intents(connection: sqlite3.Connection, now: datetime, where: str, *values: bytes) -> tuple[Busy, ...]:
    query = f"SELECT body, expires FROM intents WHERE {where} ORDER BY opened, id"  # noqa: S608 - constants
    found = list[Busy]()
    for body, expires in connection.execute(query, values).fetchall():
        intent = entry_rows.unpack_intent(body)
        over = expires <= now.timestamp()
        found.append(Busy(intent=intent, owner_is_dead=counts_as_dead(intent.owner, lease_over=over)))
    return tuple(found)


def add_sightings(connection: sqlite3.Connection, sightings: Iterable[tuple[Sighting, str]]) -> None:
    """Add sightings, each with the moment it was shown, to those of the same version; forget the oldest beyond the bounds."""
    for sighting, shown in sightings:
        place = (to_key(sighting.session), to_key(sighting.path))
        rows: list[SightingRow] = connection.execute(_SELECT_SIGHTINGS, place).fetchall()
        first = min([row[4] for row in rows], default=sighting.seq)
        known = next((row for row in rows if row[0] == sighting.sha256), None)
        earlier = sighting_from_row(sighting.session, sighting.path, known) if known else None
        merged = merge_sightings(earlier, sighting, seq=first)
        spans, anchored = ranges_to_text(merged.spans), ranges_to_text(merged.anchored)
        new = (merged.sha256, spans, int(merged.whole), anchored, merged.seq)
        connection.execute(_INSERT_SIGHTING, (*place, *new, shown))
        if known is None:
            _forget_surplus(connection, [new, *rows], place)


def sightings_of_path(connection: sqlite3.Connection, session: str, path: str) -> Sequence[Sighting]:
    rows = connection.execute(_SELECT_SIGHTINGS, (to_key(session), to_key(path))).fetchall()
    return StoredSightings(session, path, rows) if rows else ()


def _forget_surplus(connection: sqlite3.Connection, rows: Sequence[SightingRow], place: tuple[bytes, bytes]) -> None:
    """Forget the versions of a path that are too many, newest first; with its first one, paths that are."""
    if len(rows) > VERSIONS_PER_PATH:
        for sha256 in rows_to_forget(rows):
            connection.execute("DELETE FROM sightings WHERE session = ? AND path = ? AND sha256 = ?", (*place, sha256))
    elif len(rows) == 1:
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

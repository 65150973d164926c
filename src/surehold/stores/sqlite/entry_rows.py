"""Ledger entries as rows: how they are packed, and how they are found by what they say.

1. The body is the canonical JSON that the hash covers. It is packed with the row's own columns as a dictionary, so that what
   they repeat of it costs nothing. Bodies of earlier versions of Surehold are plain text.
2. A word (a session, an agent, an operation) is found by the blocks of entries that speak of it: writing an entry nearly
   never writes one of those rows.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from typing import Any

from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import Entry, Intent, LedgerQuery, WriterSpan
from surehold.stores.ledger_entries import to_key
from surehold.stores.store_errors import entry_damaged_error

_COLUMNS = "seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp"
_INSERT_ENTRY = f"INSERT INTO entries ({_COLUMNS}, previous, hash, writer, body) VALUES ({', '.join('?' * 14)})"  # noqa: S608 - constants
_INSERT_WORD = "INSERT OR IGNORE INTO entry_words (kind, word, block) VALUES (?, ?, ?)"
# The body as bytes: a damaged one need not be text any more.
_SELECT = f"SELECT {_COLUMNS}, previous, hash, writer, typeof(body) = 'text', CAST(body AS BLOB) FROM entries"  # noqa: S608 - constants
_OF_PATH = (
    "ok = 1 AND seq IN (SELECT seq FROM entries WHERE path = :path AND seq > :after"
    " UNION SELECT seq FROM entries WHERE to_path = :path AND to_path != x'' AND seq > :after)"
)
_SELECT_WRITERS = (
    f"SELECT writer, MIN(seq), MAX(seq) FROM entries WHERE writer IS NOT NULL AND {_OF_PATH} GROUP BY writer"  # noqa: S608 - constants
)
_SELECT_PATH_WRITERS = (
    "SELECT ours.writer, ours.first, MAX(ours.last, CASE heads.writer WHEN ours.writer THEN heads.seq ELSE 0 END)"
    " FROM path_writers AS ours LEFT JOIN heads USING (path) WHERE ours.path = ? ORDER BY ours.first"
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
_WORD_KINDS = {"session": 4, "agent": 5, "operation": 6}
"""The columns whose words are found by blocks, and where they are in a row."""
BLOCK_BITS = 8
"""How many of the last bits of their numbers the entries of a block differ in."""
LAST_SEQ = (1 << 62) - 1
_WINDOW_BITS, _MEMORY_LEVEL, _PACK_LEVEL = -13, 6, 6
_COMMON_WORDS = (
    b'"argv":["bash","-c","call_id":"","diff_truncated":true,"displaced":{"error_kind":"not_found","idempotency_key":"'
    b'"in_place":true,"kind":"directory","links":["message":"Nothing was written.","reason":"","restores":"","to_path":"'
    b'"trash_id":"","turn":"1","undoes":["","writer":"external"},"whole":true,"writer":"write_file"},"writer":"undo"},'
    b'\\n+\\n-\\n \\n    return self.\\n    def \\"\\", not None, if else for import from class True False'
    b'"rule":"mode acceptEdits"},"operation":"write","session":"","tool":"write_file","writer":"write"},'
    b'{"call":{"agent":"","approval":{"rule":"mode acceptEdits"},"operation":"edit","session":"","tool":"edit",'
    b'"writer":"edit"},"change":{"after":{"meta":{"gid":1000,"mode":420,"mtime_ns":17,"uid":1000,"xattrs":[]},'
    b'"sha256":"0123456789abcdef","size":1},"before":{"meta":{"gid":0,"mode":420,"mtime_ns":17,"uid":0,"xattrs":[]},'
    b'"sha256":"fedcba9876543210","size":1},"diff":"--- \\n+++ \\n@@ -1,7 +1,7 @@\\n ","path":""},'
    b'"change_id":"","index":0,"ok":true,"seq":1,"timestamp":"'
)
"""What bodies have in common, the most frequent last; packed rows depend on every byte of it."""

_KEPT_ENTRIES, _KEPT_BODY_BYTES = 1024, 4096
"""How many entries that were read are kept twice over, and how long one may be: together some megabytes at most."""

EntryRow = tuple[Any, ...]
"""The columns, then the hash before, its own hash, the writer, whether the body is plain, and the body as stored."""


def insert_entries(connection: sqlite3.Connection, entries: list[tuple[Entry, str]]) -> None:
    """Write sealed entries, each with its body."""
    rows = [(_columns_of(entry), entry, body) for entry, body in entries]
    connection.executemany(
        _INSERT_ENTRY,
        [
            (
                *columns,
                bytes.fromhex(entry.previous),
                bytes.fromhex(entry.hash),
                entry.call.writer,
                _pack(body.encode("ascii"), columns),
            )
            for columns, entry, body in rows
        ],
    )
    words = {
        (kind, to_key(str(word)) if kind == "operation" else word, entry.seq >> BLOCK_BITS)
        for columns, entry, _ in rows
        for kind, at in _WORD_KINDS.items()
        if (word := columns[at])
    }
    connection.executemany(_INSERT_WORD, list(words))


def _columns_of(entry: Entry) -> tuple[object, ...]:
    """Return the columns that repeat parts of an entry's body, in the table's order."""
    call, change = entry.call, entry.change
    names = entry.change_id, change.path, change.to_path, call.session, call.agent, call.undoes
    *keys, undoes = [to_key(name) for name in names]
    return (entry.seq, *keys, call.operation, undoes, int(entry.ok), entry.timestamp)


def _pack(body: bytes, columns: tuple[object, ...]) -> bytes:
    deflate = zlib.compressobj(
        _PACK_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, _dictionary(columns)
    )
    return deflate.compress(body) + deflate.flush()


def _unpack(packed: bytes, columns: tuple[Any, ...]) -> bytes:
    inflate = zlib.decompressobj(_WINDOW_BITS, _dictionary(columns))
    body = inflate.decompress(packed)
    if not inflate.eof:
        raise zlib.error("The packed bytes end early.")
    return body


def _dictionary(columns: tuple[Any, ...]) -> bytes:
    _, change_id, path, to_path, session, agent, _, _, _, timestamp = columns
    return b" ".join((_COMMON_WORDS, to_path, agent, session, path, change_id, timestamp.encode("ascii", "replace")))


def pack_intent(intent: Intent) -> bytes:
    """Return an intent for its row; small enough for the page that the row is in, where that is possible."""
    deflate = zlib.compressobj(
        _PACK_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, _COMMON_WORDS
    )
    return deflate.compress(ledger_entries.intent_text(intent).encode("ascii")) + deflate.flush()


def unpack_intent(stored: str | bytes) -> Intent:
    """Return the intent of a row; those of earlier versions of Surehold are plain text."""
    if isinstance(stored, bytes):
        stored = zlib.decompressobj(_WINDOW_BITS, _COMMON_WORDS).decompress(stored).decode("ascii")
    return ledger_entries.intent_from_text(stored)


def body_of_row(row: EntryRow) -> bytes:
    """Return the canonical JSON of an entry; `StateCorrupt` when it cannot be unpacked."""
    *columns, _, _, _, plain, body = row
    if plain:
        return body
    try:
        return _unpack(body, tuple(columns))
    except (zlib.error, TypeError, AttributeError) as error:
        raise entry_damaged_error(row[0]) from error


class ReadEntries:
    """Entries that were read lately, with their rows: one command, page or undo reads the same ones several times.

    A row that differs from the one that was read, in any byte, is read again.
    """

    def __init__(self) -> None:
        self._newer: dict[object, tuple[EntryRow, Entry]] = {}
        self._older: dict[object, tuple[EntryRow, Entry]] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def entry_of(self, row: EntryRow) -> Entry:
        own = row[11]
        kept = self._newer.get(own) or self._older.get(own)
        if kept and kept[0] == row:
            return kept[1]
        body = body_of_row(row)
        data = ledger_entries.from_json(body)
        entry = ledger_entries.entry_from_json(data, previous=_hex(row[10]), hash=_hex(own))
        if len(body) <= _KEPT_BODY_BYTES:
            if len(self._newer) >= _KEPT_ENTRIES:
                self._older, self._newer = self._newer, {}
            self._newer[own] = row, entry
        return entry


entry_of_row = ReadEntries().entry_of


def _hex(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.hex()


def rows_between(connection: sqlite3.Connection, first: int = 0, last: int = LAST_SEQ) -> Iterator[EntryRow]:
    """Return rows in the order of the chain, one at a time."""
    yield from connection.execute(f"{_SELECT} WHERE seq BETWEEN ? AND ? ORDER BY seq", (first, last))


def find_problem(at: ledger_entries.ChainTip, row: EntryRow) -> str:
    """Say what is wrong with the row that follows this end of the chain; empty when nothing is."""
    seq, columns = at.seq + 1, row[:10]
    if columns[0] != seq:
        return f"Entry {seq} is missing."
    if _hex(row[10]) != at.hash:
        return f"Entry {seq} does not follow the one before it."
    try:
        body = row[14] if row[13] else _unpack(row[14], columns)
    except (zlib.error, TypeError, AttributeError):
        body = b""
    if _hex(row[11]) != ledger_entries.chain_hash(at.hash, body):
        return f"Entry {seq} was changed: its hash does not match."
    data = ledger_entries.from_json(body.decode("ascii"))
    if columns != ledger_entries.columns_of_json(data) or row[12] not in {None, data["call"]["writer"]}:
        return f"Entry {seq} is filed under other words than it says."
    return ""


def hash_of_row(row: EntryRow) -> str:
    return _hex(row[11])


def find_entries(connection: sqlite3.Connection, query: LedgerQuery) -> tuple[Entry, ...]:
    where, values = _build_conditions(query)
    newest = "ORDER BY seq DESC LIMIT :limit"
    spans = [(0, LAST_SEQ)]
    if query.path:
        # One index per half, each read backwards and only as far as needed; an OR would read all, then sort.
        halves = " UNION ".join(
            f"SELECT seq FROM (SELECT seq FROM entries WHERE {half} AND {where} {newest})"  # noqa: S608 - constants
            for half in ("path = :path", "to_path = :path AND to_path != x''")
        )
        where = f"seq IN ({halves})"
    elif not (query.change_id or query.undoes):
        spans = _spans_of_blocks(blocks_of_words(connection, query))
    found = list[Entry]()
    for low, high in spans:
        limits = {"low": low, "high": high, "limit": max(query.limit - len(found), 0)}
        rows = connection.execute(f"{_SELECT} WHERE seq BETWEEN :low AND :high AND {where} {newest}", values | limits)
        found += [entry_of_row(row) for row in rows]
        if len(found) >= query.limit:
            break
    return tuple(found)


def blocks_of_words(connection: sqlite3.Connection, query: LedgerQuery) -> set[int] | None:
    """Return which blocks may speak of all words of a query; None if it has none."""
    blocks: set[int] | None = None
    for kind in _WORD_KINDS:
        if word := to_key(getattr(query, kind)):
            after = _word_after(word) if kind == "agent" else word + b"\0"
            select = "SELECT block FROM entry_words WHERE kind = ? AND word >= ? AND word < ?"
            found = {block for (block,) in connection.execute(select, (kind, word, after))}
            blocks = found if blocks is None else blocks & found
    return blocks


def _spans_of_blocks(blocks: set[int] | None) -> list[tuple[int, int]]:
    """Return the entries of some blocks, or all, as first and last, newest first."""
    if blocks is None:
        return [(0, LAST_SEQ)]
    spans = list[tuple[int, int]]()
    for block in sorted(blocks, reverse=True):
        first, last = block << BLOCK_BITS, (block + 1 << BLOCK_BITS) - 1
        if spans and spans[-1][0] == last + 1:
            spans[-1] = (first, spans[-1][1])
        else:
            spans.append((first, last))
    return spans


def _word_after(beginning: bytes) -> bytes:
    """Return what comes after every word with this beginning."""
    shorter = beginning.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else beginning + b"\xff" * 64


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
        conditions.append("(path >= :low_path AND path < :high_path OR to_path >= :low_path AND to_path < :high_path)")
        directory = to_key(query.under.rstrip("/"))
        values |= {"low_path": directory + b"/", "high_path": directory + b"0"}  # "0" is the byte after "/"
    return " AND ".join(conditions), values


def writers_of_path(connection: sqlite3.Connection, key: str) -> tuple[WriterSpan, ...]:
    """List who ever changed a path, in the order of their first change; no entry is read for that."""
    rows = connection.execute(_SELECT_PATH_WRITERS, (to_key(key),))
    return tuple(WriterSpan(writer=writer, first_seq=first, last_seq=last) for writer, first, last in rows)


def find_writers(connection: sqlite3.Connection, key: str, after_seq: int) -> tuple[WriterSpan, ...]:
    place = {"path": to_key(key), "after": after_seq}
    spans = {writer: (first, last) for writer, first, last in connection.execute(_SELECT_WRITERS, place)}
    for row in connection.execute(f"{_SELECT} WHERE writer IS NULL AND {_OF_PATH}", place):
        writer, seq = ledger_entries.from_json(body_of_row(row))["call"]["writer"], row[0]
        first, last = spans.get(writer, (seq, seq))
        spans[writer] = (min(first, seq), max(last, seq))
    found = [WriterSpan(writer=writer, first_seq=first, last_seq=last) for writer, (first, last) in spans.items()]
    return tuple(sorted(found, key=lambda one: one.first_seq))


def knows_version(connection: sqlite3.Connection, path: str, sha256: str) -> bool:
    """Tell whether these bytes were ever a version of a path; newest first, as a stale cache is rarely old."""
    rows = connection.execute(f"{_SELECT} WHERE {_OF_PATH} ORDER BY seq DESC", {"path": to_key(path), "after": 0})
    for entry in map(entry_of_row, rows):
        for place, *versions in entry.change.transitions() if ledger_rules.makes_heads(entry) else ():
            if place == path and any(version is not None and version.sha256 == sha256 for version in versions):
                return True
    return False


def hashes_since(connection: sqlite3.Connection, before: str) -> Iterator[str]:
    """Name all bytes that entries since a moment speak of."""
    yield from _hashes_of(connection.execute(f"{_SELECT} WHERE timestamp >= ?", (before,)))


def hashes_after(connection: sqlite3.Connection, seq: int) -> Iterator[str]:
    """Name all bytes that the entries after another one speak of."""
    yield from _hashes_of(connection.execute(f"{_SELECT} WHERE seq > ?", (seq,)))


def _hashes_of(rows: sqlite3.Cursor) -> Iterator[str]:
    for row in rows:
        data = ledger_entries.from_json(body_of_row(row))
        yield from ledger_rules.version_hashes(ledger_entries.change_from_json(data["change"]))

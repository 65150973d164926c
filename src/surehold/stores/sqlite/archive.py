"""The archive: entries older than the retention, sealed in blocks that are compressed as one.

1. A block has the entries whose numbers differ in the last 8 bits only, as in `entry_words`. Blocks are sealed in order.
2. A block comes and the rows of its entries go in one transaction, so whoever looks sees each entry once. A process that
   dies, or a full disk, leaves that block and all later ones as they were.
3. A block keeps bodies. Their hashes follow from them and from the end of the block before: the chain goes on from block
   to block and into the rows. A block that does not end in its hash is not read.
4. Queries go on here where the rows end. What they name is found by words, which are written before their block: a word
   of a block that is not there says nothing.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from surehold.errors import StateCorrupt
from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import Entry, LedgerQuery, WriterSpan
from surehold.stores.ledger_entries import ChainTip, Json, chain_hash, to_canonical_json, to_key
from surehold.stores.packing import UnpackError, pack_full, unpack_blob
from surehold.stores.sqlite import entry_rows
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.state_errors import archive_damaged_error
from surehold.stores.store_errors import entry_damaged_error

_SELECT = "SELECT block, hash, oldest, newest, size, sha256, data FROM archive"
_SELECT_OLDER = f"{_SELECT} WHERE block BETWEEN :low AND :high AND newest >= :since AND oldest < :until"
_PUT_BLOCK = "INSERT INTO archive (block, hash, oldest, newest, size, sha256, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_PUT_WORD = "INSERT OR IGNORE INTO archive_words (word, block) VALUES (?, ?)"
_AFTER_ALL_TIMES = "~"
_LAST_BLOCK = 1 << 54
_ALL = 1 << 62
_SLASH = ord("/")
_ARCHIVED_AFTER = timedelta(hours=1)  # whatever is asked for: the newest entries are needed at every edit

_BlockRow = tuple[Any, ...]
_Link = tuple[bytes, str, str]
"""The body of an entry, the hash before it, and its own."""


def span_of_block(block: int) -> tuple[int, int]:
    """Return the first and the last entry of a block; there is no entry 0."""
    first = block << entry_rows.BLOCK_BITS
    return max(first, 1), first + (1 << entry_rows.BLOCK_BITS) - 1


def read_end(connection: sqlite3.Connection) -> ChainTip:
    """Return the last archived entry; the rows go on after it."""
    row = connection.execute("SELECT block, hash FROM archive ORDER BY block DESC LIMIT 1").fetchone()
    return ChainTip() if row is None else ChainTip(seq=span_of_block(row[0])[1], hash=row[1].hex())


def find_entries(connection: sqlite3.Connection, query: LedgerQuery) -> tuple[Entry, ...]:
    """List entries, newest first: the rows, then the archive as far as it is needed."""
    found = entry_rows.find_entries(connection, query)
    if len(found) >= query.limit or query.after_seq >= read_end(connection).seq:
        return found
    return (*found, *islice(_find_archived(connection, query), query.limit - len(found)))


def entries_of_change(connection: sqlite3.Connection, change_id: str) -> tuple[Entry, ...]:
    """List the entries of a change that succeeded, in the order of its call."""
    return find_entries(connection, LedgerQuery(change_id=change_id, ok_only=True, limit=_ALL))[::-1]


def find_writers(connection: sqlite3.Connection, key: str, after_seq: int) -> tuple[WriterSpan, ...]:
    """List who changed a path after an entry, in the order of their first change."""
    later = entry_rows.find_writers(connection, key, after_seq)
    if after_seq >= read_end(connection).seq:
        return later
    spans = {one.writer: (one.first_seq, one.last_seq) for one in later}
    for entry in _find_archived(connection, LedgerQuery(path=key, ok_only=True, after_seq=after_seq)):
        _, last = spans.get(entry.call.writer, (0, entry.seq))
        spans[entry.call.writer] = (entry.seq, last)
    found = [WriterSpan(writer=writer, first_seq=first, last_seq=last) for writer, (first, last) in spans.items()]
    return tuple(sorted(found, key=lambda one: one.first_seq))


def hashes_since(connection: sqlite3.Connection, before: str) -> Iterator[str]:
    """Name all bytes that archived entries since a moment speak of; a longer retention may be asked for than the last time."""
    for entry in _find_archived(connection, LedgerQuery(since=before)):
        yield from ledger_rules.version_hashes(entry.change)


def verify_archive(connection: sqlite3.Connection) -> tuple[ChainTip, str]:
    """Walk all blocks; return where the rows must go on, or the last entry that is right and what is wrong after it."""
    at = ChainTip()
    for row in connection.execute(f"{_SELECT} ORDER BY block"):
        first, last = span_of_block(row[0])
        if first != at.seq + 1:
            return at, f"Entry {at.seq + 1} is missing."
        try:
            links = _read_links(row, at.hash)
        except StateCorrupt as error:
            return at, f"{error.message} {error.details['cause']}"
        bodies = [ledger_entries.from_json(body) for body, _, _ in links]
        if [one["seq"] for one in bodies] != list(range(first, last + 1)) or row[2:4] != _time_span(bodies):
            return at, f"The archive of the entries {first} to {last} is filed under other words than it says."
        at = ChainTip(seq=last, hash=links[-1][2])
    return at, ""


def _find_archived(connection: sqlite3.Connection, query: LedgerQuery) -> Iterator[Entry]:
    """Find all archived entries that a query means, newest first, whatever its limit."""
    select = "SELECT made_by FROM switches WHERE change_id = ? AND change_id != x''"
    switching: set[bytes] = {made_by for (made_by,) in connection.execute(select, (to_key(query.undoes),))}
    # What is said word for word is in the body as its JSON: most bodies need not be parsed.
    spoken = [to_canonical_json(word).encode("ascii") for word in (query.path, query.change_id, query.session) if word]
    for row in _candidate_rows(connection, query, switching):
        start = connection.execute("SELECT hash FROM archive WHERE block = ?", (row[0] - 1,)).fetchone()
        for body, previous, own in reversed(_read_links(row, start[0].hex() if start else "")):
            if all(word in body for word in spoken):
                data = ledger_entries.from_json(body)
                if _is_meant(data, query, switching):
                    yield ledger_entries.entry_from_json(data, previous=previous, hash=own)


def _candidate_rows(
    connection: sqlite3.Connection, query: LedgerQuery, switching: Collection[bytes]
) -> Iterator[_BlockRow]:
    """Read the blocks that may have what a query means, newest first."""
    named = [[to_key(name)] for name in (query.path, query.change_id) if name]
    named += [[to_key(query.under.rstrip("/")) + b"/"]] if query.under else []
    named += [[to_key(query.undoes), *switching]] if query.undoes else []
    wanted = [{block for name in names for block in _blocks_of_name(connection, name)} for names in named]
    if (spoken := entry_rows.blocks_of_words(connection, query)) is not None:
        wanted.append(spoken)
    low = query.after_seq + 1 >> entry_rows.BLOCK_BITS
    high = query.before_seq - 1 >> entry_rows.BLOCK_BITS if query.before_seq else _LAST_BLOCK
    limits = {"low": low, "high": high, "since": query.since, "until": query.until or _AFTER_ALL_TIMES}
    if not wanted:
        yield from connection.execute(f"{_SELECT_OLDER} ORDER BY block DESC", limits)
        return
    for block in sorted(wanted[0].intersection(*wanted[1:]), reverse=True):
        if low <= block <= high:
            yield from connection.execute(_SELECT_OLDER, limits | {"low": block, "high": block})


def _blocks_of_name(connection: sqlite3.Connection, name: bytes) -> list[int]:
    rows = connection.execute("SELECT block FROM archive_words WHERE word = ?", (_word_of(name),))
    return [block for (block,) in rows]


def _is_meant(data: Json, query: LedgerQuery, switching: Collection[bytes]) -> bool:
    """Tell whether a query means the entry with this body, as the conditions on rows do."""
    columns: tuple[Any, ...] = ledger_entries.columns_of_json(data)
    seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp = columns
    directory = to_key(query.under.rstrip("/")) + b"/"
    return (
        (not query.path or to_key(query.path) in {path, to_path})
        and (not query.under or path.startswith(directory) or to_path.startswith(directory))
        and (not query.session or session == to_key(query.session))
        and agent.startswith(to_key(query.agent))
        and (not query.change_id or change_id == to_key(query.change_id))
        and (not query.operation or operation == query.operation)
        and (not query.undoes or undoes == to_key(query.undoes) or change_id in switching)
        and query.after_seq < seq < (query.before_seq or _ALL)
        and query.since <= timestamp < (query.until or _AFTER_ALL_TIMES)
        and (bool(ok) or not query.ok_only)
    )


def _read_links(row: _BlockRow, start: str) -> list[_Link]:
    """Return the entries of a block whose chain goes on from a hash; `StateCorrupt` if anything is not as it was sealed."""
    block, end, _, _, size, sha256, data = row
    first, last = span_of_block(block)
    try:
        if hashlib.sha256(data).digest() != sha256:
            raise archive_damaged_error(first, last, "The packed bytes have another hash.")
        bodies = unpack_blob(data, size=size).split(b"\n")
        ending = end.hex()
    except (UnpackError, TypeError, AttributeError) as error:
        raise archive_damaged_error(first, last, str(error)) from error
    links, previous = list[_Link](), start
    for body in bodies:
        own = chain_hash(previous, body)
        links.append((body, previous, own))
        previous = own
    if previous != ending:
        raise archive_damaged_error(first, last, "The chain does not end in its hash.")
    return links


def _time_span(bodies: list[Json]) -> tuple[str, str]:
    times = [one["timestamp"] for one in bodies]
    return min(times), max(times)


def _word_of(name: bytes) -> int:
    return int.from_bytes(hashlib.sha256(name).digest()[:4], "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryArchiver:
    """Seals all blocks whose entries are from before a moment."""

    database: Database
    before: str

    @classmethod
    def until(cls, database: Database, before: str, *, now: datetime) -> "EntryArchiver":
        """Return one for a retention; entries of the last hour stay in rows in any case."""
        return cls(database=database, before=min(before, ledger_entries.utc_timestamp(now - _ARCHIVED_AFTER)))

    def count_entries(self, connection: sqlite3.Connection) -> int:
        """Say how many entries can be sealed."""
        young = "SELECT seq FROM entries WHERE timestamp >= ? ORDER BY seq LIMIT 1"
        row = connection.execute(young, (self.before,)).fetchone()
        if row is None:
            row = connection.execute("SELECT COALESCE(MAX(seq), 0) + 1 FROM entries").fetchone()
        first_young_block: int = row[0] >> entry_rows.BLOCK_BITS
        return max(span_of_block(first_young_block - 1)[1] - read_end(connection).seq, 0)

    def seal_entries(self) -> int:
        """Seal one block after the other, in short turns; return how many entries that were."""
        with self.database.read_transaction() as connection:
            start, number = read_end(connection), self.count_entries(connection)
        for block in range(start.seq + 1 >> entry_rows.BLOCK_BITS, start.seq + 1 + number >> entry_rows.BLOCK_BITS):
            self._seal_block(block)
        return number

    def _seal_block(self, block: int) -> None:
        first, last = span_of_block(block)
        with self.database.read_transaction() as connection:
            start, rows = read_end(connection), list(entry_rows.rows_between(connection, first, last))
        if start.seq + 1 != first:
            return  # another clean-up sealed it
        bodies = _check_rows(start, rows)
        if len(bodies) <= last - first:
            raise entry_damaged_error(first + len(bodies))
        words = [(_word_of(name), block) for name in sorted(_names_of(rows))]
        with self.database.short_turn() as connection:
            connection.executemany(_PUT_WORD, words)
        text, end, times = b"\n".join(bodies), bytes.fromhex(entry_rows.hash_of_row(rows[-1])), [row[9] for row in rows]
        packed = pack_full(text)
        facts = (block, end, min(times), max(times), len(text), hashlib.sha256(packed).digest(), packed)
        with self.database.short_turn() as connection:
            if read_end(connection) == start:
                connection.execute(_PUT_BLOCK, facts)
                connection.execute("DELETE FROM entries WHERE seq BETWEEN ? AND ?", (first, last))


def _check_rows(at: ChainTip, rows: Iterable[entry_rows.EntryRow]) -> list[bytes]:
    """Return the bodies of rows that go on from the end of the chain; what was altered is not sealed."""
    bodies = list[bytes]()
    for row in rows:
        if entry_rows.find_problem(at, row):
            raise entry_damaged_error(at.seq + 1)
        bodies.append(entry_rows.body_of_row(row))
        at = ChainTip(seq=at.seq + 1, hash=entry_rows.hash_of_row(row))
    return bodies


def _names_of(rows: Iterable[entry_rows.EntryRow]) -> set[bytes]:
    """Return everything that entries are looked for by, beside their words: changes, paths and directories."""
    paths = {path for row in rows for path in row[2:4]}
    directories = {path[: at + 1] for path in paths for at, byte in enumerate(path) if byte == _SLASH}
    changes = {name for row in rows for name in (row[1], row[7])}
    return (paths | directories | changes) - {b""}

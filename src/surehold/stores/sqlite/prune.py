"""Removes bytes that are no longer needed and sessions that are no longer used, while others go on writing.

1. Needed are the bytes of heads, of entries inside the retention, of kept trash, of open intents and of sightings,
   and those that were stored inside the retention, even if nothing refers to them yet.
2. What is needed is looked up without a lock. Then rows are dropped in short turns, and each turn first looks at what came
   to be needed since: new entries, open intents and new sightings. Heads and trash only change with an entry.
3. Bytes that a needed delta depends on are dropped only after that delta was packed again, alone. A delta is dropped
   before what it depends on, so that no row is ever left without its base.
4. Files are removed after their rows, in turns of their own: a writer that stores such bytes in between writes the file
   again. Objects of a blob store are removed after a day without a row; no row ever refers to one that is older.
5. A clean-up that is interrupted has dropped less; nothing of it is waited for but the entry that records it.
6. Entries are dropped by no one: those older than the retention are sealed in the archive, which is searched and verified
   like their rows were.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from surehold.errors import BlobsUnavailable, NotFound, StateCorrupt
from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.ledger_entries import microseconds
from surehold.stores.sightings import FORGOTTEN_AFTER
from surehold.stores.sqlite import archive, entry_rows, tables
from surehold.stores.sqlite.archive import EntryArchiver
from surehold.stores.sqlite.blobs import Blobs, PackedAlone
from surehold.stores.sqlite.database import Database
from surehold.stores.upkeep import Pruned

_TEMPORARY_AFTER = timedelta(days=1)  # no write takes that long; the temporary file of a dead one may go

_KEPT_VERSIONS = """
    SELECT version FROM heads WHERE version IS NOT NULL
    UNION ALL SELECT version FROM trash WHERE state = 'kept'
"""
_OLD_SESSIONS = """
    SELECT id FROM sessions WHERE used < :cutoff
    EXCEPT SELECT session FROM sightings WHERE shown >= :cutoff
"""
_OLD_SIGHTINGS = """
    FROM sightings WHERE session NOT IN (SELECT session FROM sightings WHERE shown >= :cutoff)
    AND session NOT IN (SELECT id FROM sessions WHERE used >= :cutoff)
"""
_OLD_ANSWERS = "SELECT idempotency_key FROM answers WHERE timestamp < :before"

_INCREMENTAL = 2  # as SQLite numbers the ways to make a file shorter
_TURN_SECONDS = 0.01  # then others are let in
_BLOBS_PER_TURN = 500
_PACKED_BYTES = 4 << 20  # how much is packed before its turn
_ROWS_PER_TURN = 500
_FILES_PER_TURN = 50
_VACUUMED_PAGES = 500


@dataclass(slots=True, kw_only=True)
class _Unneeded:
    """What may go, as of one moment, and how far that moment reached."""

    dead: dict[str, int]
    """The packed size of each, those that depend on others first."""
    dependents: dict[str, list[str]]
    """What is packed as a difference to one of them."""
    needed: set[str]
    """What came to be needed since."""
    alone: dict[str, PackedAlone | None]
    """What depends on them, packed alone; None if it cannot be read."""
    seq: int
    sighting: int
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobPruner:
    """One clean-up: what was stored before `before` and is not needed goes."""

    database: Database
    blobs: Blobs
    before: str
    now: datetime

    def prune(self, *, dry_run: bool) -> Pruned:
        with self.database.read_transaction() as connection:
            found = self._find_unneeded(connection)
            counted = self._count_rows(connection, found)
        if dry_run:
            return counted
        dropped = self._drop_blobs(found)
        details = counted.details | {"rebased": dropped.details["rebased"]}
        pruned = replace(dropped, sightings=counted.sightings, details=details)
        if pruned.blobs or pruned.sightings or details["sessions"] or details["answers"]:
            self._drop_rows("sessions", "id", f"SELECT id FROM ({_OLD_SESSIONS})")  # noqa: S608 - constants
            self._drop_rows("sightings", "number", f"SELECT number {_OLD_SIGHTINGS}")
            self._drop_rows("answers", "idempotency_key", _OLD_ANSWERS)
            with self.database.write_transaction() as connection:
                self._record_pruning(connection, pruned)
        sealed = self._archiver.seal_entries()
        self._drop_files()
        self._drop_objects()
        self._give_back_space()
        return replace(pruned, details=details | {"archived": sealed})

    @property
    def _archiver(self) -> EntryArchiver:
        return EntryArchiver.until(self.database, self.before, now=self.now)

    @property
    def _cutoff(self) -> dict[str, object]:
        return {"cutoff": ledger_entries.utc_timestamp(self.now - FORGOTTEN_AFTER), "before": self.before}

    def _drop_rows(self, table: str, key: str, old: str) -> None:
        """Drop what a query finds, in short turns."""
        delete = f"DELETE FROM {table} WHERE {key} IN ({old} LIMIT {_ROWS_PER_TURN})"  # noqa: S608 - constants
        dropped = _ROWS_PER_TURN
        while dropped == _ROWS_PER_TURN:
            with self.database.short_turn() as connection:
                dropped = connection.execute(delete, self._cutoff).rowcount

    def _count_rows(self, connection: sqlite3.Connection, found: _Unneeded) -> Pruned:
        details = {
            "rebased": sum(child not in found.dead for children in found.dependents.values() for child in children),
            "sessions": _count(connection, f"SELECT COUNT(*) FROM ({_OLD_SESSIONS})", self._cutoff),  # noqa: S608 - constants
            "answers": _count(connection, f"SELECT COUNT(*) FROM ({_OLD_ANSWERS})", self._cutoff),  # noqa: S608 - constants
            "archived": self._archiver.count_entries(connection),
        }
        sightings = _count(connection, f"SELECT COUNT(*) {_OLD_SIGHTINGS}", self._cutoff)
        return Pruned(blobs=len(found.dead), bytes=sum(found.dead.values()), sightings=sightings, details=details)

    def _find_unneeded(self, connection: sqlite3.Connection) -> _Unneeded:
        needed = self._needed_hashes(connection)
        rows = connection.execute(
            "SELECT sha256, packed FROM blobs WHERE stored < ? ORDER BY depth DESC", (microseconds(self.before),)
        )
        dead = {sha256.hex(): packed for sha256, packed in rows if sha256.hex() not in needed}
        dependents = dict[str, list[str]]()
        for sha256, base in connection.execute("SELECT sha256, base FROM blobs WHERE base IS NOT NULL"):
            if base.hex() in dead:
                dependents.setdefault(base.hex(), []).append(sha256.hex())
        return _Unneeded(
            dead=dead,
            dependents=dependents,
            needed=set(),
            alone={},
            seq=tables.read_tip(connection).seq,
            sighting=_count(connection, "SELECT COALESCE(MAX(number), 0) FROM sightings", {}),
            row=_count(connection, "SELECT COALESCE(MAX(rowid), 0) FROM blobs", {}),
        )

    def _needed_hashes(self, connection: sqlite3.Connection) -> set[str]:
        needed = set(entry_rows.hashes_since(connection, self.before))
        needed.update(archive.hashes_since(connection, self.before))
        versions = connection.execute(_KEPT_VERSIONS)
        needed.update(ledger_entries.from_json(version)["sha256"] for (version,) in versions)
        needed.update(_hashes_of_intents(connection))
        kept = f"SELECT sha256 FROM sightings WHERE number NOT IN (SELECT number {_OLD_SIGHTINGS})"  # noqa: S608 - constants
        needed.update(sha256 for (sha256,) in connection.execute(kept, self._cutoff))
        return needed

    def _drop_blobs(self, found: _Unneeded) -> Pruned:
        waiting = list(found.dead)[::-1]
        blobs = size = rebased = 0
        while waiting:
            ready = self._pack_dependents(found, waiting[: -_BLOBS_PER_TURN - 1 : -1])
            with self.database.short_turn() as connection:
                end = time.monotonic() + _TURN_SECONDS
                self._look_again(connection, found)
                intents = set(_hashes_of_intents(connection))
                for _ in range(ready):
                    sha256 = waiting.pop()
                    if sha256 not in found.needed and sha256 not in intents and self._is_old(connection, sha256):
                        rebased += self._free_dependents(connection, found, sha256)
                        connection.execute("DELETE FROM blobs WHERE sha256 = ?", (bytes.fromhex(sha256),))
                        blobs += 1
                        size += found.dead[sha256]
                    if time.monotonic() >= end:
                        break
        return Pruned(blobs=blobs, bytes=size, sightings=0, details={"rebased": rebased})

    def _pack_dependents(self, found: _Unneeded, names: list[str]) -> int:
        """Pack alone what depends on the next to go, before it is their turn; return for how many of them that is done."""
        size = sum(len(alone.packed) for alone in found.alone.values() if alone)
        for number, name in enumerate(names):
            for child in found.dependents.get(name, ()):
                if child not in found.alone and child not in found.dead:
                    alone = found.alone[child] = self._pack_alone(child)
                    size += len(alone.packed) if alone else 0
            if size > _PACKED_BYTES:
                return number + 1
        return len(names)

    def _pack_alone(self, sha256: str) -> PackedAlone | None:
        with self.database.read_transaction() as connection, suppress(NotFound, StateCorrupt):
            return self.blobs.pack_alone(connection, sha256)
        return None  # it cannot be read with its base either; `verify` names it

    def _is_old(self, connection: sqlite3.Connection, sha256: str) -> bool:
        """Tell whether bytes are still there, and were not stored again."""
        query = "SELECT COUNT(*) FROM blobs WHERE sha256 = :sha256 AND stored < :before"
        return _count(connection, query, {"sha256": bytes.fromhex(sha256), "before": microseconds(self.before)}) > 0

    def _look_again(self, connection: sqlite3.Connection, found: _Unneeded) -> None:
        """Add what came to be needed since this was asked last."""
        found.needed.update(entry_rows.hashes_after(connection, found.seq))
        found.seq = tables.read_tip(connection).seq
        shown = connection.execute(
            "SELECT number, sha256 FROM sightings WHERE number > ?", (found.sighting,)
        ).fetchall()
        found.needed.update(sha256 for _, sha256 in shown)
        found.sighting = max((number for number, _ in shown), default=found.sighting)
        stored = connection.execute("SELECT rowid, sha256, base FROM blobs WHERE rowid > ?", (found.row,)).fetchall()
        for number, sha256, base in stored:
            found.row = max(number, found.row)
            if base is not None:
                found.dependents.setdefault(base.hex(), []).append(sha256.hex())

    def _free_dependents(self, connection: sqlite3.Connection, found: _Unneeded, sha256: str) -> int:
        """Pack alone what depends on bytes that are about to go; return how many that were."""
        freed = 0
        for child in found.dependents.get(sha256, ()):
            select = "SELECT base, stored FROM blobs WHERE sha256 = ?"
            row = connection.execute(select, (bytes.fromhex(child),)).fetchone()
            alone = found.alone.pop(child) if child in found.alone else self._pack_alone(child)
            if row is not None and row[0] == bytes.fromhex(sha256):
                if alone is not None:
                    self.blobs.put_alone(connection, alone, stored=row[1])
                freed += 1
        return freed

    def _drop_files(self) -> None:
        abandoned = (self.now - _TEMPORARY_AFTER).timestamp()
        surplus = list[Path]()
        with self.database.read_transaction() as connection:
            for path in self.blobs.folder.glob("??/*"):
                if path.suffix == ".tmp":
                    with suppress(OSError):
                        if path.stat().st_mtime < abandoned:
                            path.unlink()
                elif not _has_file(connection, path):
                    surplus.append(path)
        if surplus:
            self.database.sync()  # a row that a power failure brought back would miss its file
        for at in range(0, len(surplus), _FILES_PER_TURN):
            with self.database.short_turn() as connection:
                for path in surplus[at : at + _FILES_PER_TURN]:
                    if not _has_file(connection, path):
                        with suppress(OSError):  # it stays until the next time
                            path.unlink()

    def _drop_objects(self) -> None:
        if self.blobs.outside is not None:
            self.database.sync()  # as for files
            with suppress(BlobsUnavailable):  # they stay until the next time
                self.blobs.outside.sweep(self._object_names, now=datetime.now(UTC))

    def _object_names(self) -> set[str]:
        with self.database.read_transaction() as connection:
            return {name for (name,) in connection.execute("SELECT object FROM blobs WHERE object IS NOT NULL")}

    def _give_back_space(self) -> None:
        """Make the file of the database shorter, where it was made for that."""
        free, before = 1, 0
        while free not in (0, before):
            with self.database.short_turn() as connection:
                if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
                    return
                before, end = _count(connection, "PRAGMA freelist_count", {}), time.monotonic() + _TURN_SECONDS
                for _ in range(min(before, _VACUUMED_PAGES)):
                    connection.execute("PRAGMA incremental_vacuum(1)")  # a page at a time, whatever number is given
                    if time.monotonic() >= end:
                        break
                free = _count(connection, "PRAGMA freelist_count", {})

    def _record_pruning(self, connection: sqlite3.Connection, pruned: Pruned) -> None:
        entry = ledger_rules.gc_entry(
            blobs=pruned.blobs,
            sightings=pruned.sightings,
            before=self.before,
            seq=tables.read_tip(connection).seq + 1,
            timestamp=ledger_entries.utc_timestamp(self.now),
        )
        tables.append_entry(connection, entry)


def _hashes_of_intents(connection: sqlite3.Connection) -> Iterator[str]:
    for (body,) in connection.execute("SELECT body FROM intents"):
        for change in entry_rows.unpack_intent(body).changes:
            yield from ledger_rules.version_hashes(change)


def _has_file(connection: sqlite3.Connection, path: Path) -> bool:
    query = "SELECT COUNT(*) FROM blobs WHERE sha256 = :name AND data IS NULL AND object IS NULL"
    try:
        name = bytes.fromhex(path.name)
    except ValueError:
        return False
    return _count(connection, query, {"name": name}) > 0


def _count(connection: sqlite3.Connection, query: str, values: Mapping[str, object]) -> int:
    return connection.execute(query, values).fetchone()[0]

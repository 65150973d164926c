"""Removes bytes that are no longer needed and sessions that are no longer used, while others go on writing.

1. Needed are the bytes of heads, of entries inside the retention, of kept trash, of open intents and of sightings,
   and those that were stored inside the retention, even if nothing refers to them yet.
2. What is needed is looked up without a lock. Then rows are dropped in short turns, and each turn first looks at what came
   to be needed since: new entries, open intents and new sightings. Heads and trash only change with an entry.
3. Bytes that a needed delta depends on are dropped only after that delta was packed again, alone. A delta is dropped
   before what it depends on, so that no row is ever left without its base.
4. Files are removed after their rows, in turns of their own: a writer that stores such bytes in between writes the file
   again.
5. A clean-up that is interrupted has dropped less; nothing of it is waited for but the entry that records it.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from surehold.errors import StateCorrupt
from surehold.stores import ledger_entries
from surehold.stores.ledger_entries import microseconds
from surehold.stores.sqlite import entry_rows, tables
from surehold.stores.sqlite.blobs import Blobs
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.packing import pack_full
from surehold.stores.sqlite.session_tables import FORGOTTEN_AFTER
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


_INCREMENTAL = 2  # as SQLite numbers the ways to make a file shorter
_TURN_SECONDS = 0.02  # then others are let in
_FILES_PER_TURN = 50
_VACUUMED_PAGES = 100


@dataclass(slots=True, kw_only=True)
class _Unneeded:
    """What may go, as of one moment, and how far that moment reached."""

    dead: dict[str, int]
    """The packed size of each, those that depend on others first."""
    dependents: dict[str, list[str]]
    """What is packed as a difference to one of them."""
    needed: set[str]
    """What came to be needed since."""
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
            with self.database.write_transaction() as connection:
                connection.execute(f"DELETE FROM sessions WHERE id IN ({_OLD_SESSIONS})", self._cutoff)  # noqa: S608 - constants
                connection.execute(f"DELETE {_OLD_SIGHTINGS}", self._cutoff)
                connection.execute("DELETE FROM answers WHERE timestamp < ?", (self.before,))
                self._record_pruning(connection, pruned)
        self._drop_files()
        self._give_back_space()
        return pruned

    @property
    def _cutoff(self) -> dict[str, str]:
        return {"cutoff": ledger_entries.utc_timestamp(self.now - FORGOTTEN_AFTER)}

    def _count_rows(self, connection: sqlite3.Connection, found: _Unneeded) -> Pruned:
        old_answers = "SELECT COUNT(*) FROM answers WHERE timestamp < :before"
        details = {
            "rebased": sum(child not in found.dead for children in found.dependents.values() for child in children),
            "sessions": _count(connection, f"SELECT COUNT(*) FROM ({_OLD_SESSIONS})", self._cutoff),  # noqa: S608 - constants
            "answers": _count(connection, old_answers, {"before": self.before}),
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
            seq=tables.read_tip(connection).seq,
            sighting=_count(connection, "SELECT COALESCE(MAX(number), 0) FROM sightings", {}),
            row=_count(connection, "SELECT COALESCE(MAX(rowid), 0) FROM blobs", {}),
        )

    def _needed_hashes(self, connection: sqlite3.Connection) -> set[str]:
        needed = set(entry_rows.hashes_since(connection, self.before))
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
            with self.database.write_transaction(durable=False) as connection:
                end = time.monotonic() + _TURN_SECONDS
                self._look_again(connection, found)
                intents = set(_hashes_of_intents(connection))
                while waiting:
                    sha256 = waiting.pop()
                    if sha256 not in found.needed and sha256 not in intents and self._is_old(connection, sha256):
                        rebased += self._free_dependents(connection, found, sha256)
                        connection.execute("DELETE FROM blobs WHERE sha256 = ?", (bytes.fromhex(sha256),))
                        blobs += 1
                        size += found.dead[sha256]
                    if time.monotonic() >= end:
                        break
        return Pruned(blobs=blobs, bytes=size, sightings=0, details={"rebased": rebased})

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
            row = connection.execute("SELECT base FROM blobs WHERE sha256 = ?", (bytes.fromhex(child),)).fetchone()
            if row is not None and row[0] == bytes.fromhex(sha256):
                self._repack_alone(connection, child)
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
            with self.database.write_transaction(durable=False) as connection:
                for path in surplus[at : at + _FILES_PER_TURN]:
                    if not _has_file(connection, path):
                        with suppress(OSError):  # it stays until the next time
                            path.unlink()

    def _give_back_space(self) -> None:
        """Make the file of the database shorter, where it was made for that."""
        while True:
            with self.database.write_transaction(durable=False) as connection:
                if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
                    return
                before = _count(connection, "PRAGMA freelist_count", {})
                connection.execute(f"PRAGMA incremental_vacuum({_VACUUMED_PAGES})").fetchall()
                if _count(connection, "PRAGMA freelist_count", {}) in (0, before):
                    return

    def _repack_alone(self, connection: sqlite3.Connection, sha256: str) -> None:
        key = (bytes.fromhex(sha256),)
        (stored,) = connection.execute("SELECT stored FROM blobs WHERE sha256 = ?", key).fetchone()
        try:
            data = self.blobs.load_blob(connection, sha256)
        except StateCorrupt:
            return  # it cannot be read with its base either; `verify` names it
        self.blobs.put_row(connection, sha256, len(data), pack_full(data), depth=0, stored=stored)

    def _record_pruning(self, connection: sqlite3.Connection, pruned: Pruned) -> None:
        entry = ledger_entries.gc_entry(
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
            yield from ledger_entries.version_hashes(change)


def _has_file(connection: sqlite3.Connection, path: Path) -> bool:
    query = "SELECT COUNT(*) FROM blobs WHERE sha256 = :name AND data IS NULL"
    try:
        name = bytes.fromhex(path.name)
    except ValueError:
        return False
    return _count(connection, query, {"name": name}) > 0


def _count(connection: sqlite3.Connection, query: str, values: Mapping[str, object]) -> int:
    return connection.execute(query, values).fetchone()[0]

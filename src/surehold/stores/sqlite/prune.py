"""Removes bytes that are no longer needed and sessions that are no longer used.

1. Needed are the bytes of heads, of entries inside the retention, of kept trash, of open intents and of sightings,
   and those that were stored inside the retention, even if nothing refers to them yet.
2. Bytes that a needed delta depends on are dropped only after that delta was packed again, alone.
3. Marking and dropping are one write transaction, so nothing can begin to need a blob in between.
4. Files are removed after their rows, in a transaction of their own: a writer that stores such bytes in between writes
   the file again.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from surehold.errors import StateCorrupt
from surehold.stores import ledger_entries
from surehold.stores.base import Pruned
from surehold.stores.sqlite import tables
from surehold.stores.sqlite.blobs import Blobs, pack_full
from surehold.stores.sqlite.session_tables import FORGOTTEN_AFTER

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobPruner:
    """One clean-up: what was stored before `before` and is not needed goes."""

    blobs: Blobs
    before: str
    now: datetime

    def drop_rows(self, connection: sqlite3.Connection, *, dry_run: bool) -> Pruned:
        """Drop rows inside the caller's write transaction, and record it; or only count."""
        cutoff = {"cutoff": ledger_entries.utc_timestamp(self.now - FORGOTTEN_AFTER)}
        sightings = _count_rows(connection, f"SELECT COUNT(*) {_OLD_SIGHTINGS}", cutoff)
        sessions = _count_rows(connection, f"SELECT COUNT(*) FROM ({_OLD_SESSIONS})", cutoff)  # noqa: S608 - constants
        answers = _count_rows(
            connection, "SELECT COUNT(*) FROM answers WHERE timestamp < :before", {"before": self.before}
        )
        dead, size = self._find_unneeded(connection, cutoff)
        deltas = connection.execute("SELECT sha256, base FROM blobs WHERE base IS NOT NULL")
        orphaned = [sha256 for sha256, base in deltas if base in dead and sha256 not in dead]
        details = {"rebased": len(orphaned), "sessions": sessions, "answers": answers}
        pruned = Pruned(blobs=len(dead), bytes=size, sightings=sightings, details=details)
        if dry_run or not (dead or sightings or sessions or answers):
            return pruned
        for sha256 in orphaned:
            self._repack_alone(connection, sha256)
        connection.executemany("DELETE FROM blobs WHERE sha256 = ?", [(sha256,) for sha256 in dead])
        connection.execute(f"DELETE FROM sessions WHERE id IN ({_OLD_SESSIONS})", cutoff)  # noqa: S608 - constants
        connection.execute(f"DELETE {_OLD_SIGHTINGS}", cutoff)
        connection.execute("DELETE FROM answers WHERE timestamp < ?", (self.before,))
        self._record_pruning(connection, pruned)
        return pruned

    def drop_files(self, connection: sqlite3.Connection) -> None:
        abandoned = (self.now - _TEMPORARY_AFTER).timestamp()
        for path in self.blobs.folder.glob("??/*"):
            if path.suffix == ".tmp":
                with suppress(OSError):
                    if path.stat().st_mtime < abandoned:
                        path.unlink()
            elif not _count_rows(
                connection, "SELECT COUNT(*) FROM blobs WHERE sha256 = ? AND data IS NULL", (path.name,)
            ):
                with suppress(OSError):  # it stays until the next time
                    path.unlink()

    def _find_unneeded(self, connection: sqlite3.Connection, cutoff: dict[str, str]) -> tuple[set[str], int]:
        needed = self._needed_hashes(connection, cutoff)
        rows = connection.execute("SELECT sha256, packed FROM blobs WHERE stored < ?", (self.before,))
        dead = {sha256: packed for sha256, packed in rows if sha256 not in needed}
        return set(dead), sum(dead.values())

    def _needed_hashes(self, connection: sqlite3.Connection, cutoff: dict[str, str]) -> set[str]:
        needed = set(tables.hashes_since(connection, self.before))
        versions = connection.execute(_KEPT_VERSIONS)
        needed.update(ledger_entries.from_json(version)["sha256"] for (version,) in versions)
        for (body,) in connection.execute("SELECT body FROM intents"):
            for change in ledger_entries.intent_from_text(body).changes:
                needed.update(ledger_entries.version_hashes(change))
        kept = f"SELECT sha256 FROM sightings WHERE number NOT IN (SELECT number {_OLD_SIGHTINGS})"  # noqa: S608 - constants
        needed.update(sha256 for (sha256,) in connection.execute(kept, cutoff))
        return needed

    def _repack_alone(self, connection: sqlite3.Connection, sha256: str) -> None:
        try:
            data = self.blobs.load_blob(connection, sha256)
        except StateCorrupt:
            return  # it cannot be read with its base either; `verify` names it
        stored = connection.execute("SELECT stored FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()[0]
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


def _count_rows(connection: sqlite3.Connection, query: str, values: dict[str, str] | tuple[str, ...]) -> int:
    return connection.execute(query, values).fetchone()[0]

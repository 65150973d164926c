"""The clean-up: drop bytes that nobody needs any more, and sessions that nobody uses.

1. Needed are the bytes of heads, of entries inside the retention, of kept trash, of open intents and of sightings,
   and those that were stored inside the retention and may not be named by anything yet.
2. Bytes that a needed delta rests on are dropped only after that delta was packed anew, alone.
3. Marking and dropping are one write transaction, so nothing can begin to need a blob in between.
4. Files go after their rows, in a transaction of their own: whoever stores such bytes meanwhile writes the file again.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from surehold.errors import StateCorrupt
from surehold.stores import chain, deltas, ledger, outcome
from surehold.stores.base import Pruned
from surehold.stores.blobs import Blobs
from surehold.stores.sightings import FORGOTTEN_AFTER

_TEMPORARY_AFTER = timedelta(days=1)  # no write takes that long; the temporary file of a dead one may go

_OLD_SESSIONS = """
    SELECT id FROM sessions WHERE used < :cutoff
    EXCEPT SELECT session FROM sightings WHERE shown >= :cutoff
"""
_OLD_SIGHTINGS = """
    FROM sightings WHERE session NOT IN (SELECT session FROM sightings WHERE shown >= :cutoff)
    AND session NOT IN (SELECT id FROM sessions WHERE used >= :cutoff)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One clean-up: what was stored before `before` and is not needed goes."""

    blobs: Blobs
    before: str
    now: datetime

    def rows(self, connection: sqlite3.Connection, *, dry_run: bool) -> Pruned:
        """Drop rows inside the caller's write transaction, and record it; or only count."""
        cutoff = {"cutoff": outcome.stamp(self.now - FORGOTTEN_AFTER)}
        sightings = _count(connection, f"SELECT COUNT(*) {_OLD_SIGHTINGS}", cutoff)
        sessions = _count(connection, f"SELECT COUNT(*) FROM ({_OLD_SESSIONS})", cutoff)  # noqa: S608 - constants
        answers = _count(connection, "SELECT COUNT(*) FROM answers WHERE timestamp < :before", {"before": self.before})
        dead, size = self._dead(connection, cutoff)
        orphaned = [sha256 for sha256, base in _deltas(connection) if base in dead and sha256 not in dead]
        details = {"rebased": len(orphaned), "sessions": sessions, "answers": answers}
        pruned = Pruned(blobs=len(dead), bytes=size, sightings=sightings, details=details)
        if dry_run or not (dead or sightings or sessions or answers):
            return pruned
        for sha256 in orphaned:
            self._rebase(connection, sha256)
        connection.executemany("DELETE FROM blobs WHERE sha256 = ?", [(sha256,) for sha256 in dead])
        connection.execute(f"DELETE FROM sessions WHERE id IN ({_OLD_SESSIONS})", cutoff)  # noqa: S608 - constants
        connection.execute(f"DELETE {_OLD_SIGHTINGS}", cutoff)
        connection.execute("DELETE FROM answers WHERE timestamp < ?", (self.before,))
        self._record(connection, pruned)
        return pruned

    def files(self, connection: sqlite3.Connection) -> None:
        """Remove files that no row names, inside a write transaction."""
        abandoned = (self.now - _TEMPORARY_AFTER).timestamp()
        for path in self.blobs.folder.glob("??/*"):
            if path.suffix == ".tmp":
                with suppress(OSError):
                    if path.stat().st_mtime < abandoned:
                        path.unlink()
            elif not _count(connection, "SELECT COUNT(*) FROM blobs WHERE sha256 = ? AND data IS NULL", (path.name,)):
                with suppress(OSError):  # it stays until the next time
                    path.unlink()

    def _dead(self, connection: sqlite3.Connection, cutoff: dict[str, str]) -> tuple[set[str], int]:
        needed = self._needed(connection, cutoff)
        dead: set[str] = set()
        size = 0
        for sha256, packed in connection.execute("SELECT sha256, packed FROM blobs WHERE stored < ?", (self.before,)):
            if sha256 not in needed:
                dead.add(sha256)
                size += packed
        return dead, size

    def _needed(self, connection: sqlite3.Connection, cutoff: dict[str, str]) -> set[str]:
        needed = set(ledger.hashes_since(connection, self.before))
        for table, column in (("heads", "version"), ("trash", "version")):
            condition = "state = 'kept'" if table == "trash" else "version IS NOT NULL"
            rows = connection.execute(f"SELECT {column} FROM {table} WHERE {condition}")  # noqa: S608 - constants
            needed.update(chain.loads(version)["sha256"] for (version,) in rows)
        for (body,) in connection.execute("SELECT body FROM intents"):
            for change in chain.intent_from_json(chain.loads(body)).changes:
                needed.update(outcome.hashes(change))
        kept = f"SELECT sha256 FROM sightings WHERE number NOT IN (SELECT number {_OLD_SIGHTINGS})"  # noqa: S608 - constants
        needed.update(sha256 for (sha256,) in connection.execute(kept, cutoff))
        return needed

    def _rebase(self, connection: sqlite3.Connection, sha256: str) -> None:
        try:
            data = self.blobs.load(connection, sha256)
        except StateCorrupt:
            return  # it cannot be read with its base either; `verify` names it
        stored = connection.execute("SELECT stored FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()[0]
        self.blobs.put(connection, sha256, len(data), deltas.pack_full(data), depth=0, stored=stored)

    def _record(self, connection: sqlite3.Connection, pruned: Pruned) -> None:
        entry = outcome.gc_entry(
            blobs=pruned.blobs,
            sightings=pruned.sightings,
            before=self.before,
            seq=ledger.tip(connection).seq + 1,
            timestamp=outcome.stamp(self.now),
        )
        ledger.append(connection, entry)


def _deltas(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT sha256, base FROM blobs WHERE base IS NOT NULL").fetchall()


def _count(connection: sqlite3.Connection, query: str, values: dict[str, str] | tuple[str, ...]) -> int:
    return connection.execute(query, values).fetchone()[0]

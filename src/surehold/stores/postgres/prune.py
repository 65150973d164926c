"""Removes bytes that are no longer needed and sessions that are no longer used, while others go on writing.

1. Needed are the bytes of heads, of entries inside the retention, of kept trash, of open intents and of sightings, and those
   that were stored inside the retention, even if nothing refers to them yet.
2. Rows are dropped in pages, a short transaction each. It locks its rows first, which a writer that relies on one of them
   holds until its intent can be seen, and then looks at what came to be needed since.
3. What is packed as a difference to one of them is packed again, alone, before that goes.
4. Entries are dropped by no one.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from surehold.errors import StateCorrupt
from surehold.stores import ledger_entries
from surehold.stores.packing import pack_full
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.sightings import FORGOTTEN_AFTER
from surehold.stores.upkeep import Pruned

if TYPE_CHECKING:
    from surehold.stores.postgres.blobs import BlobRows
    from surehold.stores.postgres.database import Connection, PostgresDatabase

_PAGE_ROWS = 500
_OLD_SESSIONS = (
    "(SELECT id FROM sessions WHERE ws = %(ws)s AND used < %(cutoff)s"
    " EXCEPT SELECT session FROM sightings WHERE ws = %(ws)s AND shown >= %(cutoff)s)"
)
_OLD_SIGHTINGS = (
    "sightings WHERE ws = %(ws)s AND session NOT IN (SELECT session FROM sightings WHERE ws = %(ws)s AND shown >= %(cutoff)s)"
    " AND session NOT IN (SELECT id FROM sessions WHERE ws = %(ws)s AND used >= %(cutoff)s)"
)
_HASHES_OF_ENTRIES = (
    "SELECT unnest(ARRAY[before, after, displaced, proposal]) AS name FROM entries WHERE ws = %(ws)s AND {}"
)
_HASHES_OF_INTENTS = "SELECT unnest(versions) FROM intents WHERE ws = %(ws)s"
_NEEDED = (
    f"{_HASHES_OF_ENTRIES.format('timestamp >= %(before)s')} UNION ALL {_HASHES_OF_INTENTS}"  # noqa: S608 - constants
    " UNION ALL SELECT decode(sha256, 'hex') FROM paths WHERE ws = %(ws)s AND sha256 <> ''"
    " UNION ALL SELECT decode((version::json)->>'sha256', 'hex') FROM trash WHERE ws = %(ws)s AND state = 'kept'"
    " UNION ALL SELECT decode(sha256, 'hex') FROM sightings WHERE ws = %(ws)s"
    f" AND session NOT IN (SELECT session FROM {_OLD_SIGHTINGS})"
)
_UNNEEDED = (
    f"SELECT sha256, packed FROM blobs WHERE ws = %(ws)s AND stored < %(moment)s"  # noqa: S608 - constants
    f" AND sha256 NOT IN (SELECT name FROM ({_NEEDED}) AS needed WHERE name IS NOT NULL) ORDER BY depth DESC"
)
_LOCK_PAGE = (
    "SELECT sha256 FROM blobs WHERE ws = %(ws)s AND sha256 = ANY(%(names)s) AND stored < %(moment)s"
    " FOR UPDATE SKIP LOCKED"
)
_DROP_PAGE = (
    "DELETE FROM blobs WHERE ws = %(ws)s AND sha256 = ANY(%(names)s) AND sha256 NOT IN (SELECT name FROM ("  # noqa: S608 - constants
    f"{_HASHES_OF_ENTRIES.format('seq > %(seq)s')} UNION ALL {_HASHES_OF_INTENTS}"
    " UNION ALL SELECT decode(sha256, 'hex') FROM sightings WHERE ws = %(ws)s AND number > %(sighting)s"
    ") AS needed WHERE name IS NOT NULL)"
    " AND NOT EXISTS (SELECT 1 FROM blobs AS other WHERE other.ws = %(ws)s AND other.base = blobs.sha256)"
    " RETURNING sha256, packed"
)
_DEPENDENTS = "SELECT sha256, base FROM blobs WHERE ws = %(ws)s AND base = ANY(%(names)s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPruner:
    """One clean-up: what was stored before `before` and is not needed goes."""

    database: "PostgresDatabase"
    blobs: "BlobRows"
    ws: int
    before: str
    now: datetime

    def prune(self, *, dry_run: bool) -> Pruned:
        horizon = self.database.call(
            "SELECT COALESCE((SELECT max(seq) FROM entries WHERE ws = %(ws)s), 0) AS seq,"
            " COALESCE((SELECT max(number) FROM sightings WHERE ws = %(ws)s), 0)",
            self._values,
        )
        dead = dict(self.database.rows(_UNNEEDED, self._values))
        rebased = self._surviving_dependents(dead)
        details = {
            "rebased": len(rebased),
            "sessions": self._count(f"{_OLD_SESSIONS} AS old"),
            "answers": self._count("answers WHERE ws = %(ws)s AND timestamp < %(before)s"),
            "archived": 0,
        }
        found = Pruned(
            blobs=len(dead), bytes=sum(dead.values()), sightings=self._count(_OLD_SIGHTINGS), details=details
        )
        self.blobs.sweep(now=self.now, dry_run=dry_run)
        if dry_run or not (dead or found.sightings or details["sessions"] or details["answers"]):
            return found
        for name in rebased:
            self._pack_alone(name)
        dropped = self._drop_blobs(list(dead), horizon)
        self._drop_rows()
        return replace(found, blobs=len(dropped), bytes=sum(dropped.values()))

    @property
    def _values(self) -> dict[str, object]:
        return {
            "ws": self.ws,
            "before": self.before,
            "moment": datetime.fromisoformat(self.before),
            "cutoff": ledger_entries.utc_timestamp(self.now - FORGOTTEN_AFTER),
        }

    def _count(self, rows: str) -> int:
        return self.database.call(f"SELECT count(*) FROM {rows}", self._values)[0]  # noqa: S608 - constants

    def _surviving_dependents(self, dead: dict[bytes, int]) -> list[bytes]:
        """Name what stays and is packed as a difference to something that goes."""
        rows = self.database.rows(_DEPENDENTS, self._values | {"names": list(dead)})
        return [name for name, _ in rows if name not in dead]

    def _pack_alone(self, name: bytes) -> None:
        """Pack stored bytes without their base; those that cannot be read stay as they are, and keep their base."""
        try:
            packed = pack_full(self.blobs.load(name.hex()))
        except StateCorrupt:
            return
        update = "UPDATE blobs SET base = NULL, depth = 0, packed = %s, data = %s WHERE ws = %s AND sha256 = %s"
        self.database.change(update, (len(packed), packed, self.ws, name))

    def _drop_blobs(self, names: list[bytes], horizon: tuple[Any, ...]) -> dict[bytes, int]:
        """Drop pages of names, those that depend on others first."""
        dropped = dict[bytes, int]()
        seen = {"seq": horizon[0], "sighting": horizon[1]}

        def drop(connection: "Connection", page: list[bytes]) -> list[tuple[Any, ...]]:
            values = self._values | seen | {"names": page}
            locked = fetch_rows(connection, _LOCK_PAGE, values)
            values |= {"names": [name for (name,) in locked]}
            return fetch_rows(connection, _DROP_PAGE, values)

        for first in range(0, len(names), _PAGE_ROWS):
            page = names[first : first + _PAGE_ROWS]
            while page:  # one that was only kept by another of the same page goes with the next round
                gone = dict(self.database.transact(lambda connection, page=page: drop(connection, page)))
                dropped |= gone
                page = [name for name in page if name not in gone] if gone else []
        self.blobs.forget(dropped)
        return dropped

    def _drop_rows(self) -> None:
        for table, key, old in (
            ("sightings", "session", f"SELECT session FROM {_OLD_SIGHTINGS}"),  # noqa: S608 - constants
            ("sessions", "id", _OLD_SESSIONS),
            ("answers", "key", "SELECT key FROM answers WHERE ws = %(ws)s AND timestamp < %(before)s"),
        ):
            self.database.change(f"DELETE FROM {table} WHERE ws = %(ws)s AND {key} IN ({old})", self._values)  # noqa: S608 - constants

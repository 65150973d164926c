"""Writes the ledger of one workspace: entries with what follows from them, and what other programs did to files.

1. Moments are those of the database's clock.
2. Work of several statements locks the rows of its paths first; a number of an entry is drawn after that.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from surehold.stores import ledger_rules
from surehold.stores.base import Blob, Entry, Head
from surehold.stores.ledger_entries import to_key
from surehold.stores.postgres import rows
from surehold.stores.postgres.blobs import PUT_BLOBS, BlobRows
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.postgres.ledger_rows import LedgerRows
from surehold.stores.upkeep import Pruned
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase
    from surehold.stores.postgres.refusals import RefusedCall

NOT_WAITED_FOR = "set_config('synchronous_commit', 'off', true)"
_APPEND = "append_entries(%s, %s::jsonb, %s)"


class LedgerWriter:
    """Appends to the ledger of one workspace."""

    def __init__(
        self,
        database: "PostgresDatabase",
        ws: int,
        *,
        blobs: BlobRows,
        ledger: LedgerRows,
        clock: Callable[[], datetime] | None,
    ) -> None:
        self._database, self._ws, self._clock = database, ws, clock
        self.blobs, self._ledger = blobs, ledger

    @property
    def at(self) -> datetime | None:
        return self._clock() if self._clock else None

    def process_now(self) -> datetime:
        """Return the moment for what only people look at."""
        return self._clock() if self._clock else datetime.now(UTC)

    def now(self, connection: "Connection") -> datetime:
        return self._clock() if self._clock else fetch_rows(connection, "SELECT clock_timestamp()", ())[0][0]

    def lock_paths(self, connection: "Connection", paths: Sequence[str]) -> dict[str, tuple[Head | None, bytes | None]]:
        """Lock the rows of paths; return what the ledger last knew of each, and which open intent holds it."""
        keys = [to_key(path) for path in paths]
        fetch_rows(connection, "SELECT lock_paths(%s, %s::bytea[])", (self._ws, keys))
        select = f"SELECT path, intent, {rows.HEAD_COLUMNS} FROM paths WHERE ws = %s AND path = ANY(%s::bytea[])"  # noqa: S608 - constants
        found = {path: facts for path, *facts in fetch_rows(connection, select, (self._ws, keys))}
        return {
            path: (rows.head_of(path, found[key][1:]), found[key][0]) for path, key in zip(paths, keys, strict=True)
        }

    def draw_numbers(self, connection: "Connection", count: int) -> list[int]:
        draw = "SELECT nextval('entry_numbers') FROM generate_series(1, %s)"
        return [number for (number,) in fetch_rows(connection, draw, (count,))]

    def append(self, connection: "Connection", drafts: Sequence[Entry]) -> tuple[Entry, ...]:
        ((made,),) = fetch_rows(connection, f"SELECT {_APPEND}", (self._ws, rows.entry_documents(drafts), self.at))
        return rows.sealed_entries(drafts, made)

    def append_outside(self, connection: "Connection", head: Head, found: Version | None) -> Entry:
        """Record what an outside program made of a path that is locked."""
        (seq,) = self.draw_numbers(connection, 1)
        draft = ledger_rules.outside_entry(head.path, head.version, found, seq=seq, timestamp="")
        return self.append(connection, [replace(draft, seq=seq)])[0]

    def put_blobs(self, connection: "Connection", blobs: Sequence[Blob], *, younger: bool = False) -> None:
        now = self.now(connection)
        packed = self.blobs.pack(blobs)
        while (
            packed.kept
            and fetch_rows(connection, "SELECT missing_blob(%s, %s::bytea[])", (self._ws, packed.kept))[0][0]
        ):
            self.blobs.forget(packed.kept)
            packed = self.blobs.pack(blobs)
        fetch_rows(connection, f"SELECT {PUT_BLOBS}", (self._ws, *packed.arrays, now))
        if younger:
            names = [*packed.kept, *packed.names]
            update = "UPDATE blobs SET stored = %s WHERE ws = %s AND sha256 = ANY(%s::bytea[])"
            fetch_rows(connection, update, (now, self._ws, names))
        self.blobs.remember(packed)

    def record(self, draft: Entry) -> Entry:
        """Write one entry in one round trip; a refusal is not waited for."""
        append = f"SELECT {_APPEND}" if draft.ok else f"SELECT {_APPEND}, {NOT_WAITED_FOR}"
        made = self._database.call(append, (self._ws, rows.entry_documents([draft]), self.at), twice=False)[0]
        return rows.sealed_entries([draft], made)[0]

    def record_refused(self, refused: "Sequence[RefusedCall]") -> None:
        """Write refused calls, but for those that are open or have an entry; one attempt, not waited for."""
        known = (
            "SELECT id FROM intents WHERE ws = %(ws)s AND id = ANY(%(ids)s::bytea[])"
            " UNION SELECT change_id FROM entries WHERE ws = %(ws)s AND change_id = ANY(%(ids)s::bytea[])"
        )
        ids = [to_key(one.change_id) for one in refused]

        def work(connection: "Connection") -> None:
            fetch_rows(connection, f"SELECT {NOT_WAITED_FOR}")
            there = {name for (name,) in fetch_rows(connection, known, {"ws": self._ws, "ids": ids})}
            new = [one for one, name in zip(refused, ids, strict=True) if name not in there]
            if drafts := [draft for one in new for draft in one.make_entries()]:
                self.append(connection, drafts)

        self._database.transact(work, patience=0)

    def note_outside(
        self, path: str, found: Version | None, blobs: Sequence[Blob], *, fence: float, shown: Head | None = None
    ) -> Entry | None:
        def work(connection: "Connection") -> Entry | None:
            head, holder = self.lock_paths(connection, [path])[path]
            if (head := head or shown) is None or holder is not None or head.has_bytes(found and found.sha256):
                return None
            edit, now = ledger_rules.OutsideEdit(head=head, found=found), self.now(connection)
            knows = partial(self._ledger.knows_in, connection)
            if ledger_rules.is_stale_read(edit, now=now, fence=fence, knows=knows):
                return None
            self.put_blobs(connection, blobs)
            return self.append_outside(connection, head, found)

        return self._database.transact(work)

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        version = Version(sha256=blob.sha256, size=len(blob.data))

        def work(connection: "Connection") -> tuple[Entry, ...]:
            self.put_blobs(connection, (blob,), younger=True)
            head, _ = self.lock_paths(connection, [path])[path]
            if self._ledger.knows_in(connection, path, blob.sha256):
                return ()
            there, (first, second) = head.version if head else None, self.draw_numbers(connection, 2)
            wrote = ledger_rules.outside_entry(path, there, version, seq=first, timestamp="")
            left = ledger_rules.kept_entry(path, version, there, seq=second, timestamp="")
            entries = self.append(connection, [replace(wrote, seq=first), replace(left, seq=second)])
            if head is None:  # what is there now is not known
                fetch_rows(
                    connection,
                    "UPDATE paths SET seq = NULL, version = NULL, sha256 = '' WHERE ws = %s AND path = %s",
                    (self._ws, to_key(path)),
                )
            return entries

        return self._database.transact(work)

    def record_pruning(self, pruned: Pruned, before: str, connection: "Connection") -> None:
        (seq,) = self.draw_numbers(connection, 1)
        draft = ledger_rules.gc_entry(
            blobs=pruned.blobs, sightings=pruned.sightings, before=before, seq=seq, timestamp=""
        )
        self.append(connection, [replace(draft, seq=seq)])

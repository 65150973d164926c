"""The store in SQLite: one file for the history of one workspace, safe from many threads and processes.

1. `begin`, `finish`, `abort`, `record`, `keep` and `prune` are one durable transaction each. Sightings, sessions and
   renewed leases are not waited for: a later durable transaction, or the operating system, brings them to the disk.
2. Nothing that takes long happens inside a write transaction: bytes are packed, and large ones written, before it.
3. Time comes from the clock that was given, for entries and for leases alike.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from surehold.errors import NotFound, StateCorrupt
from surehold.stores import intents, ledger, outcome, seen
from surehold.stores.base import (
    Begun,
    Blob,
    Busy,
    Call,
    Change,
    Entry,
    Fenced,
    Head,
    Intent,
    Pruned,
    Query,
    Replay,
    SessionRow,
    Sighting,
    TrashItem,
    Verdict,
)
from surehold.stores.blobs import Blobs, Prepared
from surehold.stores.database import Database, Durability
from surehold.stores.rows import key, text_of, version_of

_TRASH = "SELECT id, path, version, change_id, trashed, agent, session, state FROM trash"
_PAGE = 200


class SqliteStore:
    """The memory of a workspace, in a directory of its own."""

    def __init__(self, state_dir: Path, *, clock: Callable[[], datetime], durability: Durability = "full") -> None:
        self._clock = clock
        self._database = Database(state_dir, durability=durability)
        self._blobs = Blobs(state_dir / "blobs", fsync=durability == "full")
        self._newest: Intent | None = None
        """The intent opened last: nearly always the next to be finished, which then need not be read again."""

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float
    ) -> Begun | Replay | Busy | Fenced:
        """Open an intent, or say why not."""
        prepared = self._prepare(blobs)
        with self._database.writing() as connection:
            now = self._clock()
            timestamp = outcome.stamp(now)
            refusal = _taken(connection, intent, now=now)
            if refusal is not None:
                return refusal
            surprises = list(outcome.surprises(intent, lambda path: ledger.head(connection, path)))
            for surprise in surprises:
                if outcome.is_fenced(
                    surprise, now=now, fence=fence, knows=lambda path, sha256: ledger.knows(connection, path, sha256)
                ):
                    return Fenced(path=surprise.head.path, head=surprise.head)
            external = tuple(
                ledger.append(connection, entry)
                for entry in outcome.external_entries(intent, surprises, timestamp=timestamp)
            )
            self._blobs.insert(connection, prepared, stored=timestamp)
            intents.add(connection, intent, expires=now.timestamp() + lease)
        self._newest = intent
        return Begun(external=external)

    def renew(self, intent_id: str, *, lease: float) -> bool:
        """Extend the lease; False when the intent was settled by somebody else."""
        with self._database.writing(durable=False) as connection:
            return intents.renew(connection, intent_id, expires=self._clock().timestamp() + lease)

    def finish(self, intent_id: str, *, sightings: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        """Turn the intent into ledger entries, heads, trash items and sightings."""
        with self._database.writing() as connection:
            timestamp = outcome.stamp(self._clock())
            intent = intents.take(connection, intent_id, known=self._newest)
            entries = tuple(
                ledger.append(connection, entry) for entry in outcome.entries_of(intent, timestamp=timestamp)
            )
            if intent.call.idempotency_key:
                connection.execute(
                    "INSERT OR REPLACE INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)",
                    (key(intent.call.idempotency_key), key(intent.id), timestamp),
                )
            if sightings:
                seq = entries[-1].seq if entries else ledger.tip(connection).seq
                seen.put(connection, sightings, seq=seq, shown=timestamp)
            return entries

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        """Close the intent as failed and record that."""
        with self._database.writing() as connection:
            timestamp = outcome.stamp(self._clock())
            intent = intents.take(connection, intent_id, known=self._newest)
            failed = outcome.entries_of(intent, timestamp=timestamp, error_kind=error_kind, message=message, ok=False)
            return tuple(ledger.append(connection, entry) for entry in failed)

    def answer(self, idempotency_key: str) -> Replay | Busy | None:
        """Return the first answer to a repeated call, or the attempt that is still under way."""
        with self._database.reading() as connection:
            return _answer(connection, idempotency_key) or intents.of_key(connection, idempotency_key, self._clock())

    def open_intents(self) -> tuple[Busy, ...]:
        """List every open intent, oldest first, with whether its owner is dead."""
        with self._database.reading() as connection:
            return intents.every(connection, now=self._clock())

    def head(self, path: str) -> Head | None:
        """Return what the ledger last knew of a path."""
        with self._database.reading() as connection:
            return ledger.head(connection, path)

    def knows(self, path: str, sha256: str) -> bool:
        """Tell whether these bytes were ever a version of this path."""
        with self._database.reading() as connection:
            return ledger.knows(connection, path, sha256)

    def record(
        self, call: Call, change: Change, *, change_id: str, ok: bool, error_kind: str = "", message: str = ""
    ) -> Entry:
        """Write an entry for something that had no intent."""
        with self._database.writing() as connection:
            entry = outcome.draft(
                call,
                change,
                change_id=change_id,
                timestamp=outcome.stamp(self._clock()),
                ok=ok,
                error_kind=error_kind,
                message=message,
            )
            return ledger.append(connection, entry)

    def entries(self, query: Query) -> tuple[Entry, ...]:
        """List entries, newest first."""
        with self._database.reading() as connection:
            return ledger.find(connection, query)

    def verify(self, *, blobs: bool = True) -> Verdict:
        """Check the whole chain, and every blob against its name."""
        with self._database.reading() as connection:
            verdict = ledger.verify_chain(connection)
        if not blobs:
            return verdict
        checked, broken = self._check_blobs()
        return Verdict(
            entries=verdict.entries,
            blobs=checked,
            broken_seq=verdict.broken_seq,
            broken_blobs=broken,
            problem=verdict.problem or (f"{len(broken)} blobs are damaged." if broken else ""),
        )

    def keep(self, blob: Blob) -> None:
        """Store bytes durably; storing them twice only makes them younger."""
        prepared = self._prepare((blob,))
        with self._database.writing() as connection:
            stored = outcome.stamp(self._clock())
            self._blobs.insert(connection, prepared, stored=stored)
            connection.execute("UPDATE blobs SET stored = ? WHERE sha256 = ?", (stored, blob.sha256))

    def blob(self, sha256: str) -> bytes:
        """Return stored bytes."""
        try:
            with self._database.reading() as connection:
                return self._blobs.load(connection, sha256)
        except StateCorrupt:
            # A clean-up may have come between the row and the file it named; then the rows now say something else.
            with self._database.reading() as connection:
                return self._blobs.load(connection, sha256)

    def has_blob(self, sha256: str) -> bool:
        """Tell whether these bytes are stored."""
        with self._database.reading() as connection:
            return self._blobs.has(connection, sha256)

    def prune(self, *, before: str, dry_run: bool = False) -> Pruned:
        """Drop bytes that only entries older than `before` need."""
        from surehold.stores.sweep import Sweep

        sweep = Sweep(blobs=self._blobs, before=outcome.normal_stamp(before), now=self._clock())
        with self._database.writing() as connection:
            pruned = sweep.rows(connection, dry_run=dry_run)
        if not dry_run:
            with self._database.writing(durable=False) as connection:
                sweep.files(connection)
        return pruned

    def trash(self, *, state: str = "kept") -> tuple[TrashItem, ...]:
        """List trash items, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_TRASH} WHERE state = ? ORDER BY number DESC", (state,))
            return tuple(_trash_item(row) for row in rows)

    def trash_item(self, trash_id: str) -> TrashItem | None:
        """Return one item."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_TRASH} WHERE id = ?", (key(trash_id),)).fetchone()
        return None if row is None else _trash_item(row)

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        """Mark items as emptied, so that `prune` may drop their bytes; return how many there were."""
        update = "UPDATE trash SET state = 'emptied' WHERE id = ? AND state = 'kept'"
        with self._database.writing() as connection:
            return sum(connection.execute(update, (key(trash_id),)).rowcount for trash_id in trash_ids)

    def open_session(self, session: SessionRow) -> None:
        """Remember a session; opening it again only shows that it is in use."""
        with self._database.writing(durable=False) as connection:
            connection.execute(
                "INSERT INTO sessions (id, agent, opened, used) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET used = excluded.used",
                (key(session.id), key(session.agent), session.opened, outcome.stamp(self._clock())),
            )

    def session(self, session_id: str) -> SessionRow | None:
        """Return one session."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT agent, opened FROM sessions WHERE id = ?", (key(session_id),)).fetchone()
        return None if row is None else SessionRow(id=session_id, agent=text_of(row[0]), opened=row[1])

    def see(self, sightings: Sequence[Sighting], blobs: Sequence[Blob] = ()) -> None:
        """Remember what was shown."""
        prepared = self._prepare(blobs)
        with self._database.writing(durable=False) as connection:
            now = outcome.stamp(self._clock())
            self._blobs.insert(connection, prepared, stored=now)
            seen.put(connection, sightings, seq=ledger.tip(connection).seq, shown=now)

    def sightings(self, session: str, path: str) -> tuple[Sighting, ...]:
        """List what a session was shown of a path, newest version first."""
        with self._database.reading() as connection:
            return seen.of_path(connection, session, path)

    def close(self) -> None:
        """Let go of files and connections."""
        self._database.close()

    def _prepare(self, blobs: Sequence[Blob]) -> list[Prepared]:
        if not blobs:
            return []
        with self._database.reading() as connection:
            return self._blobs.prepare(connection, blobs)

    def _check_blobs(self) -> tuple[int, tuple[str, ...]]:
        checked = 0
        broken: list[str] = []
        last = ""
        while True:
            with self._database.reading() as connection:
                page = connection.execute(
                    "SELECT sha256 FROM blobs WHERE sha256 > ? ORDER BY sha256 LIMIT ?", (last, _PAGE)
                ).fetchall()
            if not page:
                return checked, tuple(broken)
            for (last,) in page:
                try:
                    self.blob(last)
                except NotFound:
                    continue  # pruned since the page was read
                except StateCorrupt:
                    broken.append(last)
                checked += 1


def _taken(connection: sqlite3.Connection, intent: Intent, *, now: datetime) -> Replay | Busy | None:
    return _answer(connection, intent.call.idempotency_key) or intents.in_the_way(connection, intent, now=now)


def _answer(connection: sqlite3.Connection, idempotency_key: str) -> Replay | None:
    if not idempotency_key:
        return None
    row = connection.execute(
        "SELECT change_id FROM answers WHERE idempotency_key = ?", (key(idempotency_key),)
    ).fetchone()
    return None if row is None else Replay(entries=ledger.of_change(connection, text_of(row[0])))


def _trash_item(row: tuple[bytes, bytes, str, bytes, str, bytes, bytes, str]) -> TrashItem:
    version = version_of(row[2])
    assert version is not None
    return TrashItem(
        id=text_of(row[0]),
        path=text_of(row[1]),
        version=version,
        change_id=text_of(row[3]),
        trashed=row[4],
        agent=text_of(row[5]),
        session=text_of(row[6]),
        state=row[7],  # pyright: ignore[reportArgumentType] - only those three words are ever written
    )

"""The store in SQLite: one file for the history of one workspace, safe to use from many threads and processes.

1. `begin`, `finish`, `abort`, `keep_blob`, `prune` and what `record` says of a change are one durable transaction each.
   Refusals, sightings, sessions and renewed leases are not waited for: a later durable transaction, or the operating
   system, writes them to the disk.
2. Nothing slow happens inside a write transaction: bytes are packed, and large ones written, before it.
3. Time comes from the clock that was passed in, for entries and for leases alike.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.errors import LockTimeout, StateCorrupt, SureholdError
from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import (
    Begun,
    Blob,
    Busy,
    Call,
    Change,
    Entry,
    Head,
    Intent,
    LedgerQuery,
    PathRecord,
    Replay,
    Sighting,
    StaleRead,
    StoreView,
    WriterSpan,
)
from surehold.stores.blobs.large_versions import LargeVersions
from surehold.stores.ledger_entries import to_key
from surehold.stores.run_records import OneWriterAtATime
from surehold.stores.sightings import ShownSighting, SightingBuffer, with_later_sightings
from surehold.stores.sqlite import archive, entry_rows, session_tables, tables
from surehold.stores.sqlite.blobs import Blobs, PreparedBlob, check_blobs
from surehold.stores.sqlite.database import Database, Durability
from surehold.stores.sqlite.question_table import QuestionTable
from surehold.stores.upkeep import ALL_TRASH, LedgerCheck, Pruned, TrashItem, TrashQuery
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.migration import WholeHistory

BeginOutcome = Begun | Replay | Busy | StaleRead


class SqliteStore(session_tables.SessionRecords, OneWriterAtATime):
    """The memory of a workspace, in a directory of its own; `Store` says what its methods promise."""

    def __init__(
        self,
        state_dir: Path,
        *,
        clock: Callable[[], datetime],
        durability: Durability = "full",
        idle: timedelta = timedelta(hours=24),
        open_blobs: Callable[[str], LargeVersions] | None = None,
    ) -> None:
        self._clock, self._idle = clock, idle
        self._database = Database(state_dir, durability=durability)
        outside = open_blobs and open_blobs(self._database.read_name())
        self._blobs = Blobs(state_dir / "blobs", fsync=durability == "full", outside=outside)
        self._buffer = SightingBuffer(self._write_sightings)
        self.questions = QuestionTable(self._database, clock)
        self._opened = 0  # when the last intent was opened: no two at the same moment
        self._newest: Intent | None = None  # opened last: most often the next to be finished, and then not read again

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, early: bool = False
    ) -> BeginOutcome:
        later = list[int]() if early else None
        try:
            outcome = self._begin(intent, blobs, lease=lease, fence=fence, later=later)
        except SureholdError as error:
            self._take_back(intent.id, error)
            raise
        if isinstance(outcome, Replay):
            self.confirm()
        if later and isinstance(outcome, Begun):
            return replace(outcome, reach_disk=partial(self._reach_disk, intent.id, later[0]))
        return outcome

    def _take_back(self, intent_id: str, error: SureholdError) -> None:
        """Close an intent that may be committed and not on the disk."""
        with suppress(SureholdError):
            if not isinstance(error, LockTimeout):  # without its turn, nothing was committed
                self.withdraw(intent_id)

    def _reach_disk(self, intent_id: str, ticket: int) -> None:
        try:
            self._database.sync_ticket(ticket)
        except SureholdError as error:
            self._take_back(intent_id, error)
            raise

    def _begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, later: list[int] | None
    ) -> BeginOutcome:
        prepared = self._prepare_blobs(blobs)
        with self._database.write_transaction(later=later) as connection:
            now = self._clock()
            timestamp = ledger_entries.utc_timestamp(now)
            seen = {path: tables.look_at_path(connection, path) for path in ledger_rules.touched_paths(intent.changes)}
            holding = (tables.find_by_id(connection, holder, now) for _, holder in seen.values() if holder)
            earlier = tables.earlier_attempt(connection, intent.call.idempotency_key, now)
            if refusal := earlier or next(holding, None):
                return refusal
            heads = {path: head for path, (head, _) in seen.items()}
            surprises = list(ledger_rules.find_outside_edits(intent, heads))
            knows = partial(entry_rows.knows_version, connection)
            for surprise in surprises:
                if ledger_rules.is_stale_read(surprise, now=now, fence=fence, knows=knows):
                    return StaleRead(path=surprise.head.path, head=surprise.head)
            try:
                self._opened = max(self._opened + 1, ledger_entries.microseconds(now))
                tables.add_intent(connection, intent, opened=self._opened, expires=now.timestamp() + lease)
            except sqlite3.IntegrityError:
                if same := tables.find_by_id(connection, to_key(intent.id), now):
                    return same
                raise
            external = tuple(
                tables.append_outside(connection, one.head, one.found, timestamp=timestamp) for one in surprises
            )
            self._blobs.insert_blobs(connection, prepared, stored=timestamp)
        self._newest = intent
        return Begun(external=external)

    def renew(self, intent_id: str, *, lease: float) -> bool:
        with self._database.write_transaction(durable=False) as connection:
            return tables.renew_lease(connection, intent_id, expires=self._clock().timestamp() + lease)

    def finish(self, intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        with self._buffer.lend() as waiting, self._database.write_transaction() as connection:
            timestamp = ledger_entries.utc_timestamp(self._clock())
            intent = tables.take_intent(connection, intent_id, known=self._newest)
            entries = tuple(
                tables.append_entry(connection, entry) for entry in ledger_rules.entries_of(intent, timestamp=timestamp)
            )
            if intent.call.idempotency_key:
                connection.execute(
                    "INSERT OR REPLACE INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)",
                    (to_key(intent.call.idempotency_key), to_key(intent.id), timestamp),
                )
            rows = [(replace(one, seq=entries[0].seq - 1 if entries else 0), timestamp) for one in shown]
            if waiting is not None:
                tables.add_sightings(connection, [*waiting, *rows])
        if waiting is None:
            self._buffer.add(rows, (), at_once=any(one.anchored for one in shown))
        return entries

    def finish_run(self, intent_id: str, call: Call, changes: Sequence[Change]) -> tuple[Entry, ...]:
        with self._database.write_transaction() as connection:
            opened = tables.take_intent(connection, intent_id, known=self._newest)
            intent = replace(opened, call=call, changes=tuple(changes))
            return tables.append_run(connection, intent, timestamp=ledger_entries.utc_timestamp(self._clock()))

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        with self._database.write_transaction() as connection:
            timestamp = ledger_entries.utc_timestamp(self._clock())
            intent = tables.take_intent(connection, intent_id, known=self._newest)
            return tuple(
                tables.append_entry(connection, replace(entry, ok=False, error_kind=error_kind, message=message))
                for entry in ledger_rules.entries_of(intent, timestamp=timestamp)
            )

    def withdraw(self, intent_id: str) -> None:
        with self._database.write_transaction(durable=False) as connection:
            tables.take_intent(connection, intent_id, known=self._newest)

    def look(self, paths: Sequence[str], *, session: str = "", idempotency_key: str = "") -> StoreView:
        now = self._clock()
        # Before the rows: what is written in between is then seen twice, which changes nothing, but not missed.
        watched = paths if session else ()
        unwritten = {path: self._buffer.sightings_of(session, path) for path in watched}
        with self._database.read_transaction() as connection:
            seen = tables.look_at_paths(connection, paths)
            shown = {path: tables.sightings_of_path(connection, session, path) for path in watched}
            earlier = tables.earlier_attempt(connection, idempotency_key, now)
            holders = dict.fromkeys(holder for _, holder in seen.values() if holder is not None)
            holding = [tables.find_by_id(connection, holder, now) for holder in holders]
        if isinstance(earlier, Replay):
            self.confirm()
        records = {
            path: PathRecord(
                key=path,
                head=head,
                sightings=with_later_sightings(shown[path], unwritten[path]) if path in shown else (),
            )
            for path, (head, _) in seen.items()
        }
        return StoreView(holding=tuple(filter(None, holding)), earlier=earlier, records=records)

    def confirm(self) -> None:
        self._database.sync()

    def open_intents(self) -> tuple[Busy, ...]:
        with self._database.read_transaction() as connection:
            return tables.list_open(connection, now=self._clock())

    def dead_intents(self, *, limit: int, skip: Collection[str] = ()) -> tuple[Busy, ...]:
        with self._database.read_transaction() as connection:
            return tables.list_dead(connection, now=self._clock(), limit=limit, skip=skip)

    def is_open(self, intent_id: str) -> bool:
        with self._database.read_transaction() as connection:
            return tables.is_open(connection, intent_id)

    def head_of(self, path: str) -> Head | None:
        with self._database.read_transaction() as connection:
            return tables.read_head(connection, path)

    def knows_version(self, path: str, sha256: str) -> bool:
        with self._database.read_transaction() as connection:
            return entry_rows.knows_version(connection, path, sha256)

    def record(
        self, call: Call, change: Change, *, change_id: str, ok: bool, error_kind: str = "", message: str = ""
    ) -> Entry:
        with self._database.write_transaction(durable=ok) as connection:
            now = ledger_entries.utc_timestamp(self._clock())
            entry = Entry(change_id=change_id, timestamp=now, call=call, change=change, ok=ok)
            return tables.append_entry(connection, replace(entry, error_kind=error_kind, message=message))

    def note_outside(
        self, path: str, found: Version | None, blobs: Sequence[Blob], *, fence: float, shown: Head | None = None
    ) -> Entry | None:
        prepared = self._prepare_blobs(blobs)
        with self._database.write_transaction() as connection:
            (head, holder), now = tables.look_at_path(connection, path), self._clock()
            if (head := head or shown) is None or holder is not None or head.has_bytes(found and found.sha256):
                return None
            edit = ledger_rules.OutsideEdit(head=head, found=found)
            knows = partial(entry_rows.knows_version, connection)
            if ledger_rules.is_stale_read(edit, now=now, fence=fence, knows=knows):
                return None
            timestamp = ledger_entries.utc_timestamp(now)
            self._blobs.insert_blobs(connection, prepared, stored=timestamp)
            return tables.append_outside(connection, head, found, timestamp=timestamp)

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        prepared = self._prepare_blobs((blob,))
        with self._database.write_transaction() as connection:
            timestamp = ledger_entries.utc_timestamp(self._clock())
            known = self._blobs.insert_blobs(connection, prepared, stored=timestamp)
            self._blobs.make_younger(connection, known, stored=timestamp)
            if entry_rows.knows_version(connection, path, blob.sha256):
                return ()
            version = Version(sha256=blob.sha256, size=len(blob.data))
            return tables.append_kept(connection, path, version, timestamp=timestamp)

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        with self._database.read_transaction() as connection:
            return archive.find_entries(connection, query)

    def list_writers(self, key: str, *, after_seq: int = 0) -> tuple[WriterSpan, ...]:
        with self._database.read_transaction() as connection:
            if after_seq:
                return archive.find_writers(connection, key, after_seq)
            return entry_rows.writers_of_path(connection, key)

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        with self._database.read_transaction() as connection:
            verdict = tables.verify_chain(connection)
        if not blobs:
            return verdict
        checked, broken = check_blobs(self._database.read_transaction, self.read_blob)
        problem = verdict.problem or (f"{len(broken)} blobs are damaged." if broken else "")
        return replace(verdict, blobs=checked, broken_blobs=broken, problem=problem)

    def keep_blob(self, blob: Blob) -> None:
        self.keep_blobs((blob,), durable=True)

    def keep_blobs(self, blobs: Sequence[Blob], *, durable: bool = False) -> None:
        prepared = self._prepare_blobs(blobs)
        with self._database.write_transaction(durable=durable) as connection:
            stored = ledger_entries.utc_timestamp(self._clock())
            known = self._blobs.insert_blobs(connection, prepared, stored=stored)
            self._blobs.make_younger(connection, known, stored=stored)

    def read_blob(self, sha256: str) -> bytes:
        if (waiting := self._buffer.find_blob(sha256)) is not None:
            return waiting
        try:
            with self._database.read_transaction() as connection:
                return self._blobs.load_blob(connection, sha256)
        except StateCorrupt:
            # A clean-up may have come between the row and the file it named; then the rows now say something else.
            with self._database.read_transaction() as connection:
                return self._blobs.load_blob(connection, sha256)

    def has_blob(self, sha256: str) -> bool:
        if self._buffer.find_blob(sha256) is not None:
            return True
        with self._database.read_transaction() as connection:
            return self._blobs.has_blob(connection, sha256)

    def prune(self, *, before: str, dry_run: bool = False) -> Pruned:
        from surehold.stores.sqlite.prune import BlobPruner

        self._buffer.flush()
        cutoff = ledger_entries.normalize_timestamp(before)
        sweep = BlobPruner(database=self._database, blobs=self._blobs, before=cutoff, now=self._clock())
        return sweep.prune(dry_run=dry_run)

    def list_trash(self, query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        with self._database.read_transaction() as connection:
            return tables.list_trash(connection, query)

    def count_trash(self) -> int:
        with self._database.read_transaction() as connection:
            return connection.execute("SELECT count(*) FROM trash WHERE state = 'kept'").fetchone()[0]

    def trash_item(self, trash_id: str) -> TrashItem | None:
        with self._database.read_transaction() as connection:
            row = connection.execute(f"{tables.SELECT_TRASH} WHERE id = ?", (to_key(trash_id),)).fetchone()
        return None if row is None else ledger_rules.trash_item_from_row(row)

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        update = "UPDATE trash SET state = 'emptied' WHERE id = ? AND state = 'kept'"
        with self._database.write_transaction() as connection:
            return sum(connection.execute(update, (to_key(trash_id),)).rowcount for trash_id in trash_ids)

    def record_sightings(
        self, sightings: Sequence[Sighting], blobs: Sequence[Blob] = (), *, after_seq: int | None = None
    ) -> None:
        if after_seq is None:
            with self._database.read_transaction() as connection:
                after_seq = tables.read_tip(connection).seq
        shown = ledger_entries.utc_timestamp(self._clock())
        self._buffer.add([(replace(one, seq=after_seq), shown) for one in sightings], blobs)

    def flush_sightings(self) -> None:
        self._buffer.flush()

    def list_sightings(self, session: str, path: str) -> tuple[Sighting, ...]:
        return tuple(self.look([path], session=session).records[path].sightings)

    def _write_sightings(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        prepared = self._prepare_blobs(blobs, is_optional=True)  # who was shown lost bytes has to read them again
        with self._database.write_transaction(durable=False, patience=self._buffer.patience) as connection:
            self._blobs.insert_blobs(connection, prepared, stored=ledger_entries.utc_timestamp(self._clock()))
            tables.add_sightings(connection, sightings)

    def list_heads(self) -> tuple[Head, ...]:
        with self._database.read_transaction() as connection:
            return tables.read_heads(connection)

    def whole_history(self) -> "WholeHistory":
        from surehold.stores.sqlite.importing import HistoryTables

        return HistoryTables(self._database)

    def close(self) -> None:
        self._buffer.close()
        self._database.close()

    def _prepare_blobs(self, blobs: Sequence[Blob], *, is_optional: bool = False) -> list[PreparedBlob]:
        if (lately := self._blobs.pack_lately(blobs)) is not None:
            return lately
        with self._database.read_transaction() as connection:
            return self._blobs.pack_new(connection, blobs, is_optional=is_optional)

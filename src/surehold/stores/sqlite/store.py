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
from surehold.stores import ledger_entries
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
    TrashItem,
    WriterSpan,
)
from surehold.stores.blobs.large_versions import LargeVersions
from surehold.stores.conversations import SessionRow, SessionTurn
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.owner import is_dead
from surehold.stores.server_runs import ServerRun, choose_session
from surehold.stores.sighting_buffer import ShownSighting, SightingBuffer
from surehold.stores.sightings import with_later_sightings
from surehold.stores.sqlite import archive, entry_rows, session_tables, tables
from surehold.stores.sqlite.blobs import Blobs, PreparedBlob, check_blobs
from surehold.stores.sqlite.database import Database, Durability
from surehold.stores.upkeep import LedgerCheck, Pruned
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.migration import WholeHistory

BeginOutcome = Begun | Replay | Busy | StaleRead


class SqliteStore:
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
        self._opened = 0  # when the last intent was opened: no two at the same moment
        self._newest: Intent | None = None  # opened last: most often the next to be finished, and then not read again

    def begin(self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float) -> BeginOutcome:
        try:
            outcome = self._begin(intent, blobs, lease=lease, fence=fence)
        except SureholdError as error:
            with suppress(SureholdError):  # it may be committed and not on the disk: then it must not stay open
                if not isinstance(error, LockTimeout):  # without its turn, nothing was committed
                    self.withdraw(intent.id)
            raise
        if isinstance(outcome, Replay):
            self.confirm()
        return outcome

    def _begin(self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float) -> BeginOutcome:
        prepared = self._prepare_blobs(blobs)
        with self._database.write_transaction() as connection:
            now = self._clock()
            timestamp = ledger_entries.utc_timestamp(now)
            seen = {
                path: tables.look_at_path(connection, path) for path in ledger_entries.touched_paths(intent.changes)
            }
            holding = (tables.find_by_id(connection, holder, now) for _, holder in seen.values() if holder)
            earlier = tables.earlier_attempt(connection, intent.call.idempotency_key, now)
            if refusal := earlier or next(holding, None):
                return refusal
            heads = {path: head for path, (head, _) in seen.items()}
            surprises = list(ledger_entries.find_outside_edits(intent, heads))
            knows = partial(entry_rows.knows_version, connection)
            for surprise in surprises:
                if ledger_entries.is_stale_read(surprise, now=now, fence=fence, knows=knows):
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
                tables.append_entry(connection, entry)
                for entry in ledger_entries.entries_of(intent, timestamp=timestamp)
            )
            if intent.call.idempotency_key:
                connection.execute(
                    "INSERT OR REPLACE INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)",
                    (to_key(intent.call.idempotency_key), to_key(intent.id), timestamp),
                )
            rows = [(replace(one, seq=entries[0].seq - 1 if entries else 0), timestamp) for one in shown]
            if waiting is not None:
                session_tables.add_sightings(connection, [*waiting, *rows])
        if waiting is None:
            self._buffer.add(rows, ())
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
                for entry in ledger_entries.entries_of(intent, timestamp=timestamp)
            )

    def withdraw(self, intent_id: str) -> None:
        with self._database.write_transaction(durable=False) as connection:
            tables.take_intent(connection, intent_id, known=self._newest)

    def look(self, paths: Sequence[str], *, session: str = "", idempotency_key: str = "") -> StoreView:
        now = self._clock()
        # Before the rows: what is written in between is then seen twice, which changes nothing, but not missed.
        unwritten = {path: self._buffer.sightings_of(session, path) for path in paths if session}
        with self._database.read_transaction() as connection:
            seen = {path: tables.look_at_path(connection, path) for path in paths}
            shown = {path: session_tables.sightings_of_path(connection, session, path) for path in paths if session}
            earlier = tables.earlier_attempt(connection, idempotency_key, now)
            holders = dict.fromkeys(holder for _, holder in seen.values() if holder is not None)
            holding = [tables.find_by_id(connection, holder, now) for holder in holders]
        if isinstance(earlier, Replay):
            self.confirm()
        records = {
            path: PathRecord(
                key=path, head=head, sightings=with_later_sightings(shown[path], unwritten[path]) if session else ()
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
            edit = ledger_entries.OutsideEdit(head=head, found=found)
            knows = partial(entry_rows.knows_version, connection)
            if ledger_entries.is_stale_read(edit, now=now, fence=fence, knows=knows):
                return None
            timestamp = ledger_entries.utc_timestamp(now)
            self._blobs.insert_blobs(connection, prepared, stored=timestamp)
            return tables.append_outside(connection, head, found, timestamp=timestamp)

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        prepared = self._prepare_blobs((blob,))
        with self._database.write_transaction() as connection:
            timestamp = ledger_entries.utc_timestamp(self._clock())
            self._blobs.insert_blobs(connection, prepared, stored=timestamp)
            self._blobs.make_younger(connection, (blob,), stored=timestamp)
            if entry_rows.knows_version(connection, path, blob.sha256):
                return ()
            version = Version(sha256=blob.sha256, size=len(blob.data))
            return tables.append_kept(connection, path, version, timestamp=timestamp)

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        with self._database.read_transaction() as connection:
            return archive.find_entries(connection, query)

    def list_writers(self, key: str, *, after_seq: int = 0) -> tuple[WriterSpan, ...]:
        with self._database.read_transaction() as connection:
            return archive.find_writers(connection, key, after_seq)

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
            self._blobs.insert_blobs(connection, prepared, stored=stored)
            self._blobs.make_younger(connection, blobs, stored=stored)

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

    def list_trash(self, *, state: str = "kept") -> tuple[TrashItem, ...]:
        with self._database.read_transaction() as connection:
            rows = connection.execute(f"{tables.SELECT_TRASH} WHERE state = ? ORDER BY number DESC", (state,))
            return tuple(ledger_entries.trash_item_from_row(row) for row in rows)

    def trash_item(self, trash_id: str) -> TrashItem | None:
        with self._database.read_transaction() as connection:
            row = connection.execute(f"{tables.SELECT_TRASH} WHERE id = ?", (to_key(trash_id),)).fetchone()
        return None if row is None else ledger_entries.trash_item_from_row(row)

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        update = "UPDATE trash SET state = 'emptied' WHERE id = ? AND state = 'kept'"
        with self._database.write_transaction() as connection:
            return sum(connection.execute(update, (to_key(trash_id),)).rowcount for trash_id in trash_ids)

    def open_session(self, session: SessionRow) -> None:
        """Remember a session; opening it again only shows that it is in use. What idle ones were shown is forgotten."""
        self._buffer.flush()
        with self._database.write_transaction(durable=False) as connection:
            self._forget_idle(connection)
            now = ledger_entries.utc_timestamp(self._clock())
            connection.execute(
                "INSERT INTO sessions (id, agent, opened, used) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET used = excluded.used",
                (to_key(session.id), to_key(session.agent), session.opened, now),
            )

    def find_session(self, session_id: str) -> SessionRow | None:
        with self._database.read_transaction() as connection:
            rows = list(connection.execute("SELECT agent, opened FROM sessions WHERE id = ?", (to_key(session_id),)))
        return SessionRow(id=session_id, agent=text_of(rows[0][0]), opened=rows[0][1]) if rows else None

    def list_sessions(self) -> tuple[SessionRow, ...]:
        with self._database.read_transaction() as connection:
            return session_tables.known_sessions(connection)

    def begin_turn(self, session_id: str, *, title: str = "", turn_id: str = "") -> SessionTurn:
        began = ledger_entries.utc_timestamp(self._clock())
        turn = SessionTurn(session=session_id, id=turn_id, title=title, began=began)
        with self._database.write_transaction(durable=False) as connection:
            return session_tables.add_turn(connection, turn)

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        with self._database.read_transaction() as connection:
            return session_tables.turns_of_session(connection, session_id)

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
        return self.look([path], session=session).records[path].sightings

    def _write_sightings(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        prepared = self._prepare_blobs(blobs, is_optional=True)  # who was shown lost bytes has to read them again
        with self._database.write_transaction(durable=False, patience=self._buffer.patience) as connection:
            self._blobs.insert_blobs(connection, prepared, stored=ledger_entries.utc_timestamp(self._clock()))
            session_tables.add_sightings(connection, sightings)

    def claim_session(self, run: ServerRun, *, fresh: str) -> str:
        self._buffer.flush()
        with self._database.write_transaction(durable=False) as connection:
            self._forget_idle(connection)
            found = choose_session(run.client, session_tables.runs_like(connection, run), is_dead=is_dead)
            session = found.session if found is not None else fresh
            session_tables.join_sessions(connection, found.joined if found is not None else (), session)
            session_tables.put_run(connection, replace(run, session=session))
            return session

    def list_servers(self) -> tuple[ServerRun, ...]:
        with self._database.read_transaction() as connection:
            return tuple(session_tables.all_runs(connection))

    def list_heads(self) -> tuple[Head, ...]:
        with self._database.read_transaction() as connection:
            return tables.read_heads(connection)

    def end_server(self, run: ServerRun) -> None:
        with self._database.write_transaction(durable=False) as connection:
            session_tables.put_run(connection, replace(run, ended=ledger_entries.utc_timestamp(self._clock())))

    def whole_history(self) -> "WholeHistory":
        from surehold.stores.sqlite.importing import HistoryTables

        return HistoryTables(self._database)

    def close(self) -> None:
        self._buffer.close()
        self._database.close()

    def _forget_idle(self, connection: sqlite3.Connection) -> None:
        session_tables.forget_idle(connection, cutoff=ledger_entries.utc_timestamp(self._clock() - self._idle))

    def _prepare_blobs(self, blobs: Sequence[Blob], *, is_optional: bool = False) -> list[PreparedBlob]:
        if (lately := self._blobs.pack_lately(blobs)) is not None:
            return lately
        with self._database.read_transaction() as connection:
            return self._blobs.pack_new(connection, blobs, is_optional=is_optional)

"""The store in PostgreSQL: the memory of one workspace in a database that many machines share.

1. `look`, `begin` and `finish` are one round trip each; so is everything that a call waits for, unless other programs
   changed the files.
2. `begin`, `finish`, `abort` and what `record` says of a change are on the database's disk when they return. Refusals,
   sightings, sessions and renewed leases are not waited for.
3. Leases, fences and the moments of entries go by the clock of the database; the clocks of the machines do not matter.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

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
from surehold.stores.conversations import SessionRow, SessionTurn
from surehold.stores.ledger_entries import Json, text_of, to_key
from surehold.stores.postgres import rows, schema
from surehold.stores.postgres.address import PostgresAddress
from surehold.stores.postgres.blobs import BlobRows
from surehold.stores.postgres.database import PATIENCE_SECONDS, PostgresDatabase
from surehold.stores.postgres.intents import IntentRows
from surehold.stores.postgres.ledger_rows import LedgerRows
from surehold.stores.postgres.ledger_writer import LedgerWriter
from surehold.stores.postgres.question_rows import QuestionRows
from surehold.stores.postgres.refusals import RefusalBuffer, RefusedCall
from surehold.stores.postgres.session_rows import SessionRows
from surehold.stores.run_records import NewEntries
from surehold.stores.server_runs import ServerRun
from surehold.stores.sightings import ShownSighting, SightingBuffer, sighting_from_row, with_later_sightings
from surehold.stores.upkeep import ALL_TRASH, LedgerCheck, Pruned, TrashItem, TrashQuery
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.blobs.large_versions import LargeVersions
    from surehold.stores.migration import WholeHistory

_SELECT_TRASH = "SELECT id, path, version, change_id, trashed, agent, session, state FROM trash WHERE"
_REMEMBERED = 1_000
_OPENING_SECONDS = 1.0  # who opens a workspace wants to know soon that it is not there


def open_postgres_store(
    address: PostgresAddress,
    *,
    workspace: str,
    root: str,
    host: str,
    clock: Callable[[], datetime] | None = None,
    idle: timedelta = timedelta(hours=24),
    open_blobs: "Callable[[str], LargeVersions] | None" = None,
    patience: float = PATIENCE_SECONDS,
    importing: bool = False,
) -> "PostgresStore":
    """Open the memory of a workspace in a database that was set up; `root` and `host` say who it belongs to.

    `idle`: how long what an unused session was shown is kept; `open_blobs`: for large versions; `patience`: how long a
    database that is away is waited for, in seconds; `importing`: to move a history here, or to go on with that.
    """
    database = PostgresDatabase(address, patience=_OPENING_SECONDS)
    try:
        schema.check_version(schema.find_version(database), address.shown)
        ws = schema.claim_workspace(database, workspace, root, host, importing=importing)
        database.patience = patience
        outside = open_blobs(f"{address.schema}-{workspace}") if open_blobs else None
        return PostgresStore(database, ws, clock=clock, idle=idle, outside=outside)
    except BaseException:
        database.close()
        raise


class PostgresStore:
    """The memory of a workspace, in PostgreSQL; `Store` says what its methods promise."""

    def __init__(
        self,
        database: PostgresDatabase,
        ws: int,
        *,
        clock: Callable[[], datetime] | None = None,
        idle: timedelta = timedelta(hours=24),
        outside: "LargeVersions | None" = None,
    ) -> None:
        """`clock` instead of the database's own, for tests."""
        self._database, self._ws, self._idle = database, ws, idle
        self._blobs, self._ledger = BlobRows(database, ws, outside=outside), LedgerRows(database, ws)
        self._sessions, self.questions = SessionRows(database, ws), QuestionRows(database, ws, clock=clock)
        self._writer = LedgerWriter(database, ws, blobs=self._blobs, ledger=self._ledger, clock=clock)
        self._intents = IntentRows(database, ws, ledger=self._ledger, writer=self._writer)
        self._buffer = SightingBuffer(self._write_sightings)
        self._refusals = RefusalBuffer(self._writer.record_refused)
        self._seqs = dict[str, int]()
        """The newest entry of the paths that were looked at last."""

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, early: bool = False
    ) -> Begun | Replay | Busy | StaleRead:
        del early  # its commit is durable when it is answered
        outcome = self._intents.begin(intent, blobs, lease=lease, fence=fence)
        if isinstance(outcome, Begun):
            self._buffer.drop_blobs({blob.sha256 for blob in blobs})
        return outcome

    def renew(self, intent_id: str, *, lease: float) -> bool:
        return self._intents.renew(intent_id, lease=lease)

    def finish(self, intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        with self._buffer.lend_places({(one.session, one.path) for one in shown}) as waiting:
            takes = bool(shown) and waiting is not None
            entries = self._intents.finish(intent_id, rows.sighting_documents(waiting or (), shown) if takes else "")
        if shown and not takes:
            moment = entries[0].timestamp if entries else ledger_entries.utc_timestamp(self._writer.process_now())
            rows_shown = [(replace(one, seq=entries[0].seq - 1 if entries else 0), moment) for one in shown]
            self._buffer.add(rows_shown, (), at_once=any(one.anchored for one in shown))
        return entries

    def finish_run(self, intent_id: str, call: Call, changes: Sequence[Change]) -> tuple[Entry, ...]:
        return self._intents.finish_run(intent_id, call, changes)

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        return self._intents.abort(intent_id, error_kind=error_kind, message=message)

    def withdraw(self, intent_id: str) -> None:
        self._intents.withdraw(intent_id)

    def look(self, paths: Sequence[str], *, session: str = "", idempotency_key: str = "") -> StoreView:
        # Before the rows: what is written in between is then seen twice, which changes nothing, but not missed.
        unwritten = {path: self._buffer.sightings_of(session, path) for path in paths} if session else {}
        keys = [to_key(path) for path in paths]
        values = (self._ws, keys, to_key(session), to_key(idempotency_key), self._writer.at)
        select = "SELECT look_at(%s, %s::bytea[], %s, %s, %s), (SELECT version FROM schema_version)"
        seen, version = self._database.call(select, values)
        schema.check_version(version, self._database.address.shown)  # it may change while we run
        shown = dict[str, list[Sighting]]()
        for key, *facts in seen["sightings"] or ():
            path = text_of(bytes.fromhex(key))
            shown.setdefault(path, []).append(sighting_from_row(session, path, tuple(facts)))
        heads: Json = seen["heads"] or {}
        writers: Json = seen["writers"] or {}
        records = dict[str, PathRecord]()
        for path, key in zip(paths, keys, strict=True):
            head = rows.head_of(path, heads.get(key.hex()))
            sightings = with_later_sightings(shown.get(path, ()), unwritten[path]) if path in unwritten else ()
            spans = writers.get(key.hex())
            told = None if spans is None else tuple(rows.writer_span_of(one) for one in spans)
            records[path] = PathRecord(key=path, head=head, sightings=sightings, writers=told)
            self._remember_seq(path, head.seq if head else 0)
        holding = tuple(rows.busy_of(one) for one in seen["holding"] or () if one)
        return StoreView(holding=holding, earlier=rows.earlier_of(seen["earlier"]), records=records)

    def confirm(self) -> None:
        """Do nothing: what can be seen is on the disk."""

    def open_intents(self) -> tuple[Busy, ...]:
        return self._intents.list_open()

    def dead_intents(self, *, limit: int, skip: Collection[str] = ()) -> tuple[Busy, ...]:
        return self._intents.list_dead(limit=limit, skip=skip)

    def is_open(self, intent_id: str) -> bool:
        return self._intents.is_open(intent_id)

    def head_of(self, path: str) -> Head | None:
        select = f"SELECT {rows.HEAD_COLUMNS} FROM paths WHERE ws = %s AND path = %s"  # noqa: S608 - constants
        found = self._database.rows(select, (self._ws, to_key(path)))
        return rows.head_of(path, found[0] if found else None)

    def list_heads(self) -> tuple[Head, ...]:
        select = f"SELECT path, {rows.HEAD_COLUMNS} FROM paths WHERE ws = %s AND seq IS NOT NULL ORDER BY path"  # noqa: S608 - constants
        found = self._database.rows(select, (self._ws,))
        return tuple(filter(None, (rows.head_of(text_of(path), facts) for path, *facts in found)))

    def knows_version(self, path: str, sha256: str) -> bool:
        return self._ledger.knows_version(path, sha256)

    def record(
        self, call: Call, change: Change, *, change_id: str, ok: bool, error_kind: str = "", message: str = ""
    ) -> Entry:
        draft = Entry(change_id=change_id, timestamp="", call=call, change=change, ok=ok)
        return self._writer.record(replace(draft, error_kind=error_kind, message=message))

    def record_refusal(
        self, call: Call, changes: Sequence[Change], *, change_id: str, error_kind: str, message: str
    ) -> None:
        refused = RefusedCall(change_id=change_id, call=call, error_kind=error_kind, message=message)
        self._refusals.add(replace(refused, changes=tuple(changes)))

    def note_outside(
        self, path: str, found: Version | None, blobs: Sequence[Blob], *, fence: float, shown: Head | None = None
    ) -> Entry | None:
        return self._writer.note_outside(path, found, blobs, fence=fence, shown=shown)

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        return self._writer.keep_outside(path, blob)

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        self._refusals.flush_for_reader()
        return self._ledger.find(query)

    def tail(self, cursor: str = "") -> NewEntries:
        self._refusals.flush_for_reader()
        return self._ledger.find_new(cursor)

    def list_writers(self, key: str, *, after_seq: int = 0) -> tuple[WriterSpan, ...]:
        return self._ledger.writers(key, after_seq)

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        self._refusals.flush_for_reader()
        verdict = self._ledger.verify()
        if not blobs:
            return verdict
        checked, broken = self._blobs.check()
        problem = verdict.problem or (f"{len(broken)} blobs are damaged." if broken else "")
        return replace(verdict, blobs=checked, broken_blobs=broken, problem=problem)

    def keep_blob(self, blob: Blob) -> None:
        self.keep_blobs((blob,))

    def keep_blobs(self, blobs: Sequence[Blob]) -> None:
        self._database.transact(lambda connection: self._writer.put_blobs(connection, blobs, younger=True))

    def read_blob(self, sha256: str) -> bytes:
        if (waiting := self._buffer.find_blob(sha256)) is not None:
            return waiting
        return self._blobs.load_recent(sha256)

    def has_blob(self, sha256: str) -> bool:
        return self._buffer.find_blob(sha256) is not None or self._blobs.has(sha256)

    def prune(self, *, before: str, dry_run: bool = False) -> Pruned:
        from surehold.stores.postgres.prune import RowPruner

        self._buffer.flush()
        cutoff, now = ledger_entries.normalize_timestamp(before), self._writer.process_now()
        pruner = RowPruner(database=self._database, blobs=self._blobs, ws=self._ws, before=cutoff, now=now)
        pruned = pruner.prune(dry_run=dry_run)
        if not dry_run and (
            pruned.blobs or pruned.sightings or pruned.details["sessions"] or pruned.details["answers"]
        ):
            self._database.transact(partial(self._writer.record_pruning, pruned, cutoff))
        return pruned

    def list_trash(self, query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        conditions, values = ["ws = %(ws)s AND state = %(state)s"], {"ws": self._ws, "state": query.state}
        if query.path:
            conditions.append("path = %(path)s")
        if query.after:
            conditions.append("number < (SELECT number FROM trash WHERE ws = %(ws)s AND id = %(after)s)")
        values |= {"path": to_key(query.path), "after": to_key(query.after), "limit": query.limit}
        select = f"{_SELECT_TRASH} {' AND '.join(conditions)} ORDER BY number DESC LIMIT %(limit)s"
        return tuple(ledger_rules.trash_item_from_row(row) for row in self._database.rows(select, values))

    def count_trash(self) -> int:
        return self._database.call("SELECT count(*) FROM trash WHERE ws = %s AND state = 'kept'", (self._ws,))[0]

    def trash_item(self, trash_id: str) -> TrashItem | None:
        found = self._database.rows(f"{_SELECT_TRASH} ws = %s AND id = %s", (self._ws, to_key(trash_id)))
        return ledger_rules.trash_item_from_row(found[0]) if found else None

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        update = "UPDATE trash SET state = 'emptied' WHERE ws = %s AND id = ANY(%s::bytea[]) AND state = 'kept'"
        return self._database.change(update, (self._ws, [to_key(one) for one in trash_ids]))

    def open_session(self, session: SessionRow) -> None:
        self._buffer.flush()
        now = self._writer.process_now()
        cutoff = ledger_entries.utc_timestamp(now - self._idle)
        self._sessions.open(session, now=ledger_entries.utc_timestamp(now), cutoff=cutoff)

    def find_session(self, session_id: str) -> SessionRow | None:
        return self._sessions.find(session_id)

    def list_sessions(self) -> tuple[SessionRow, ...]:
        return self._sessions.list_known()

    def begin_turn(self, session_id: str, *, title: str = "", turn_id: str = "") -> SessionTurn:
        began = ledger_entries.utc_timestamp(self._writer.process_now())
        return self._sessions.begin_turn(SessionTurn(session=session_id, id=turn_id, title=title, began=began))

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        return self._sessions.list_turns(session_id)

    def record_sightings(
        self, sightings: Sequence[Sighting], blobs: Sequence[Blob] = (), *, after_seq: int | None = None
    ) -> None:
        shown = ledger_entries.utc_timestamp(self._writer.process_now())
        seqs = {one.path: after_seq for one in sightings} if after_seq is not None else self._take_seqs(sightings)
        self._buffer.add([(replace(one, seq=seqs[one.path]), shown) for one in sightings], blobs)

    def flush_sightings(self) -> None:
        self._buffer.flush()

    def list_sightings(self, session: str, path: str) -> tuple[Sighting, ...]:
        return tuple(self.look([path], session=session).records[path].sightings)

    def claim_session(self, run: ServerRun, *, fresh: str) -> str:
        self._buffer.flush()
        cutoff = ledger_entries.utc_timestamp(self._writer.process_now() - self._idle)
        return self._sessions.claim(run, fresh=fresh, cutoff=cutoff)

    def list_servers(self) -> tuple[ServerRun, ...]:
        return self._sessions.list_runs()

    def end_server(self, run: ServerRun) -> None:
        self._sessions.put_run(replace(run, ended=ledger_entries.utc_timestamp(self._writer.process_now())))

    def whole_history(self) -> "WholeHistory":
        from surehold.stores.postgres.importing import HistoryRows

        return HistoryRows(self._database, self._ws)

    def close(self) -> None:
        self._refusals.close()
        self._buffer.close()
        self._database.close()

    def _remember_seq(self, path: str, seq: int) -> None:
        self._seqs.pop(path, None)
        self._seqs[path] = seq
        while len(self._seqs) > _REMEMBERED:
            self._seqs.pop(next(iter(self._seqs)), None)

    def _take_seqs(self, sightings: Sequence[Sighting]) -> dict[str, int]:
        """Return the newest entry of each path when it was looked at; those that were not, are looked at now."""
        seqs = {one.path: self._seqs.pop(one.path, None) for one in sightings}
        if unknown := [path for path, seq in seqs.items() if seq is None]:
            select = "SELECT path, seq FROM paths WHERE ws = %s AND path = ANY(%s)"
            found = self._database.rows(select, (self._ws, [to_key(path) for path in unknown]))
            seqs |= {text_of(path): seq for path, seq in found}
        return {path: seq or 0 for path, seq in seqs.items()}

    def _write_sightings(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        packed = self._blobs.pack(blobs)
        while self._sessions.note_shown(sightings, packed, self._writer.at):
            self._blobs.forget(packed.kept)
            packed = self._blobs.pack(blobs)
        self._blobs.remember(packed)

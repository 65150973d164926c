"""Intents: opened, renewed, closed. What a call waits for is one round trip each.

1. A call that lost its connection is sent again: an intent that is ours already was begun, one that is gone and has entries
   was finished. If the database stays away, the answer says that the outcome is unknown.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from surehold.errors import StateUnavailable
from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import Begun, Blob, Busy, Call, Change, Entry, Intent, LedgerQuery, Replay, StaleRead
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.owner import counts_as_dead, is_dead
from surehold.stores.postgres import rows
from surehold.stores.postgres.blobs import BlobColumns, array_of
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.postgres.database_errors import outcome_unknown_error
from surehold.stores.postgres.ledger_rows import LedgerRows
from surehold.stores.postgres.ledger_writer import NOT_WAITED_FOR, LedgerWriter
from surehold.stores.sightings import PATHS_PER_SESSION, VERSIONS_PER_PATH
from surehold.stores.store_errors import intent_gone_error

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase

_BEGIN = (
    "SELECT begin_intent(%s, %s, %s, make_interval(secs => %s), %s, %s::bytea[], %s::text[], %s::bytea[], %s, %s::bytea[],"
    " %s::bytea[], %s::bigint[], %s::bytea[], %s::integer[], %s::bigint[], %s::bytea[], %s::text[], %s)"
)
_FINISH = "SELECT finish_intent(%s, %s, %s, %s::jsonb, %s)"
_FINISH_AND_NOTE = (
    f"SELECT finish_intent(%s, %s, %s, %s::jsonb, %s, %s::jsonb, {VERSIONS_PER_PATH}, {PATHS_PER_SESSION})"
)
_REMEMBERED = 1_000


class IntentRows:
    """The open intents of one workspace."""

    def __init__(self, database: "PostgresDatabase", ws: int, *, ledger: LedgerRows, writer: LedgerWriter) -> None:
        self._database, self._ws, self._ledger, self._writer = database, ws, ledger, writer
        self._open = dict[str, Intent]()
        """The intents that this process opened, which need not be read again."""

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float
    ) -> Begun | Replay | Busy | StaleRead:
        columns, external = rows.intent_columns(intent), ()
        while True:
            packed = self._writer.blobs.pack(blobs)
            begin = partial(self._begin_values, columns, packed, lease)
            (answer,) = self._database.call(_BEGIN, begin())
            if "differs" in answer:
                outcome = self._database.transact(partial(self._begin_closer, intent, begin, fence))
                if isinstance(outcome, StaleRead):
                    return outcome
                answer, external = outcome
            if "missing" in answer:
                self._writer.blobs.forget(packed.kept)
                continue
            earlier = rows.earlier_of(answer) if "begun" not in answer else None
            if earlier is None or (isinstance(earlier, Busy) and earlier.intent == intent):
                break
            return earlier
        self._writer.blobs.remember(packed)
        self._remember_open(intent)
        return Begun(external=external)

    def _begin_values(self, columns: rows.IntentColumns, packed: BlobColumns, lease: float) -> tuple[object, ...]:
        arrays = array_of(columns.paths), array_of(columns.read), array_of(columns.versions)
        facts = (columns.id, columns.key, lease, columns.owner, *arrays, columns.body)
        return (self._ws, *facts, array_of(packed.kept), *packed.arrays, self._writer.at)

    def _begin_closer(
        self, intent: Intent, begin: "Callable[[], tuple[object, ...]]", fence: float, connection: "Connection"
    ) -> StaleRead | tuple[dict[str, Any], tuple[Entry, ...]]:
        """Record what others did to the paths, then begin; or find that the files were read from a stale cache."""
        paths = ledger_rules.touched_paths(intent.changes)
        heads = {path: head for path, (head, _) in self._writer.lock_paths(connection, paths).items()}
        surprises, now = list(ledger_rules.find_outside_edits(intent, heads)), self._writer.now(connection)
        knows = partial(self._ledger.knows_in, connection)
        for one in surprises:
            if ledger_rules.is_stale_read(one, now=now, fence=fence, knows=knows):
                return StaleRead(path=one.head.path, head=one.head)
        with connection.transaction() as attempt:
            external = tuple(self._writer.append_outside(connection, one.head, one.found) for one in surprises)
            ((answer,),) = fetch_rows(connection, _BEGIN, begin())
            if "begun" not in answer:
                import psycopg

                raise psycopg.Rollback(attempt)
        return answer, external if "begun" in answer else ()

    def renew(self, intent_id: str, *, lease: float) -> bool:
        update = (
            "UPDATE intents SET expires = the_moment(%s) + make_interval(secs => %s)"  # noqa: S608 - constants
            f" FROM (SELECT {NOT_WAITED_FOR}) AS setting WHERE ws = %s AND id = %s"
        )
        return self._database.change(update, (self._writer.at, lease, self._ws, to_key(intent_id))) > 0

    def finish(self, intent_id: str, shown: str = "") -> tuple[Entry, ...]:
        """Turn an intent into entries; `shown`: documents of sightings that are noted with them."""
        intent = self.read_open(intent_id)
        drafts = list(ledger_rules.entries_of(intent, timestamp=""))
        return self.close(intent, drafts, key=to_key(intent.call.idempotency_key), shown=shown)

    def finish_run(self, intent_id: str, call: Call, changes: Sequence[Change]) -> tuple[Entry, ...]:
        intent = replace(self.read_open(intent_id), call=call, changes=tuple(changes))
        paths = ledger_rules.touched_paths(intent.changes)
        drafts = list(ledger_rules.entries_of(intent, timestamp=""))

        def work(connection: "Connection") -> tuple[Entry, ...]:
            ((taken,),) = fetch_rows(connection, "SELECT take_intent(%s, %s)", (self._ws, to_key(intent_id)))
            if not taken:
                raise intent_gone_error(intent_id)
            heads = {path: head for path, (head, _) in self._writer.lock_paths(connection, paths).items()}
            for one in list(ledger_rules.find_outside_edits(intent, heads)):
                self._writer.append_outside(connection, one.head, one.found)
            return self._writer.append(connection, drafts)

        entries = self._database.transact(work, twice=False)
        self._open.pop(intent_id, None)
        return entries

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        intent = self.read_open(intent_id)
        failed = [
            replace(entry, ok=False, error_kind=error_kind, message=message)
            for entry in ledger_rules.entries_of(intent, timestamp="")
        ]
        return self.close(intent, failed, key=b"")

    def withdraw(self, intent_id: str) -> None:
        self._open.pop(intent_id, None)
        take = f"SELECT {NOT_WAITED_FOR}, take_intent(%s, %s)"
        if not self._database.call(take, (self._ws, to_key(intent_id)))[1]:
            raise intent_gone_error(intent_id)

    def close(self, intent: Intent, drafts: list[Entry], *, key: bytes, shown: str = "") -> tuple[Entry, ...]:
        values = (self._ws, to_key(intent.id), key, rows.entry_documents(drafts), self._writer.at)
        try:
            (made,) = self._database.call(*((_FINISH_AND_NOTE, (*values, shown)) if shown else (_FINISH, values)))
        except StateUnavailable as error:
            if error.reason in {"state_unreachable", "state_busy"}:
                raise outcome_unknown_error(intent.id, intent.call.idempotency_key or intent.id, error) from error
            raise
        known = self._open.pop(intent.id, None)
        if made is not None:
            return rows.sealed_entries(drafts, made)
        # Sent twice, or settled by another process: only an answer that got lost has entries of the same kind.
        entries = self._ledger.find(LedgerQuery(change_id=intent.id, limit=len(drafts)))[::-1]
        if known and [replace(one, seq=0, timestamp="", previous="", hash="") for one in entries] == drafts != []:
            return entries
        raise intent_gone_error(intent.id)

    def list_open(self) -> tuple[Busy, ...]:
        select = "SELECT body, expires <= the_moment(%s) FROM intents WHERE ws = %s ORDER BY number"
        found = [rows.busy_of((body, over)) for body, over in self._database.rows(select, (self._writer.at, self._ws))]
        return tuple(replace(one, owner_is_dead=one.owner_is_dead or is_dead(one.intent.owner)) for one in found)

    def list_dead(self, *, limit: int, skip: Collection[str] = ()) -> tuple[Busy, ...]:
        select = "SELECT id, owner, expires <= the_moment(%s) FROM intents WHERE ws = %s ORDER BY number"
        dead = [
            id_
            for id_, owner, over in self._database.rows(select, (self._writer.at, self._ws))
            if counts_as_dead(ledger_entries.owner_from_text(owner), lease_over=over) and text_of(id_) not in skip
        ][:limit]
        if not dead:
            return ()
        bodies = "SELECT body FROM intents WHERE ws = %s AND id = ANY(%s) ORDER BY number"
        found = self._database.rows(bodies, (self._ws, dead))
        return tuple(Busy(intent=ledger_entries.intent_from_text(body), owner_is_dead=True) for (body,) in found)

    def is_open(self, intent_id: str) -> bool:
        select = "SELECT EXISTS (SELECT 1 FROM intents WHERE ws = %s AND id = %s)"
        return self._database.call(select, (self._ws, to_key(intent_id)))[0]

    def read_open(self, intent_id: str) -> Intent:
        if known := self._open.get(intent_id):
            return known
        select = "SELECT body FROM intents WHERE ws = %s AND id = %s"
        found = self._database.rows(select, (self._ws, to_key(intent_id)))
        if not found:
            raise intent_gone_error(intent_id)
        return ledger_entries.intent_from_text(found[0][0])

    def _remember_open(self, intent: Intent) -> None:
        self._open[intent.id] = intent
        while len(self._open) > _REMEMBERED:
            self._open.pop(next(iter(self._open)), None)

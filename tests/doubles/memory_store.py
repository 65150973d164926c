"""A store in memory: the reference that the SQLite store is compared with.

Everything is a plain dictionary under one lock; the order of a dictionary is the order of time.
"""

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal, TypeVar

from doubles.memory_questions import MemoryQuestions
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
from surehold.stores.owner import counts_as_dead, is_dead
from surehold.stores.run_records import OneWriterAtATime
from surehold.stores.server_runs import ServerRun, choose_session
from surehold.stores.sightings import FORGOTTEN_AFTER, PATHS_PER_SESSION, merge_sightings, versions_to_forget
from surehold.stores.store_errors import blob_damaged_error, blob_missing_error, intent_gone_error
from surehold.stores.upkeep import ALL_TRASH, LedgerCheck, Pruned, TrashItem, TrashQuery
from surehold.text.snapshot import Version

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_SessionPath = tuple[str, str]  # session, path


@dataclass(frozen=True, slots=True)
class _KeptBlob:
    data: bytes
    stored: str


@dataclass(frozen=True, slots=True)
class _Lease:
    intent: Intent
    expires: float


class MemoryStore(OneWriterAtATime):
    """The memory of a workspace, for as long as the process lives."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.questions = MemoryQuestions(clock)
        self._lock = threading.RLock()
        self._entries: list[Entry] = []
        self._heads: dict[str, Head] = {}
        self._versions: set[tuple[str, str]] = set()
        self._intents: dict[str, _Lease] = {}
        self._answers: dict[str, tuple[str, str]] = {}
        self._blobs: dict[str, _KeptBlob] = {}
        self._trash: dict[str, TrashItem] = {}
        self._sessions: dict[str, tuple[SessionRow, str]] = {}
        self._turns: dict[str, dict[str, SessionTurn]] = {}
        self._runs: dict[str, ServerRun] = {}
        self._sightings: dict[_SessionPath, dict[str, tuple[Sighting, str]]] = {}

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, early: bool = False
    ) -> Begun | Replay | Busy | StaleRead:
        """Open an intent, or say why not."""
        del early
        _check_hashes(blobs)
        with self._lock:
            now = self._clock()
            timestamp = ledger_entries.utc_timestamp(now)
            refusal = self._find_refusal(intent, now=now)
            if refusal is not None:
                return refusal
            surprises = list(ledger_rules.find_outside_edits(intent, self._heads))
            for surprise in surprises:
                if ledger_rules.is_stale_read(surprise, now=now, fence=fence, knows=self.knows_version):
                    return StaleRead(path=surprise.head.path, head=surprise.head)
            external = tuple(self._append_outside(one.head.path, one.found, timestamp) for one in surprises)
            self._insert_blobs(blobs, stored=timestamp)
            self._intents[intent.id] = _Lease(intent, now.timestamp() + lease)
            return Begun(external=external)

    def renew(self, intent_id: str, *, lease: float) -> bool:
        """Extend the lease; False when the intent was settled by another process."""
        with self._lock:
            held = self._intents.get(intent_id)
            if held is not None:
                self._intents[intent_id] = replace(held, expires=self._clock().timestamp() + lease)
            return held is not None

    def finish(self, intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        """Turn the intent into ledger entries, heads and trash items."""
        with self._lock:
            intent = self._take_intent(intent_id)
            timestamp = ledger_entries.utc_timestamp(self._clock())
            entries = tuple(self._append_entry(entry) for entry in ledger_rules.entries_of(intent, timestamp=timestamp))
            if intent.call.idempotency_key:
                self._answers[intent.call.idempotency_key] = (intent.id, timestamp)
            self._add_sightings(shown, seq=entries[0].seq - 1 if entries else 0, shown=timestamp)
            return entries

    def finish_run(self, intent_id: str, call: Call, changes: Sequence[Change]) -> tuple[Entry, ...]:
        """Turn the intent of a command into entries for what it changed."""
        with self._lock:
            intent = replace(self._take_intent(intent_id), call=call, changes=tuple(changes))
            timestamp = ledger_entries.utc_timestamp(self._clock())
            for one in list(ledger_rules.find_outside_edits(intent, self._heads)):
                self._append_outside(one.head.path, one.found, timestamp)
            return tuple(self._append_entry(entry) for entry in ledger_rules.entries_of(intent, timestamp=timestamp))

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        """Close the intent as failed and record that."""
        with self._lock:
            intent = self._take_intent(intent_id)
            timestamp = ledger_entries.utc_timestamp(self._clock())
            return tuple(
                self._append_entry(replace(entry, ok=False, error_kind=error_kind, message=message))
                for entry in ledger_rules.entries_of(intent, timestamp=timestamp)
            )

    def withdraw(self, intent_id: str) -> None:
        """Close the intent without a record."""
        with self._lock:
            self._take_intent(intent_id)

    def confirm(self) -> None:
        """Nothing here is ever durable."""

    def look(self, paths: Sequence[str], *, session: str = "", idempotency_key: str = "") -> StoreView:
        """Return everything that a write of these paths must know first."""
        with self._lock:
            now, key, leases = self._clock(), idempotency_key, self._intents.values()
            same = (
                _busy_from_lease(lease, now)
                for lease in leases
                if key in (lease.intent.call.idempotency_key, lease.intent.id)
            )
            records = {
                path: PathRecord(
                    key=path,
                    head=self._heads.get(path),
                    sightings=self.list_sightings(session, path) if session else (),
                )
                for path in paths
            }
            earlier = self._replay_of(key) or next(same, None) if key else None
            holding = tuple(
                _busy_from_lease(lease, now)
                for lease in leases
                if not set(paths).isdisjoint(ledger_rules.touched_paths(lease.intent.changes))
            )
            return StoreView(holding=holding, earlier=earlier, records=records)

    def open_intents(self) -> tuple[Busy, ...]:
        """List every open intent, oldest first, with whether its owner is dead."""
        with self._lock:
            now = self._clock()
            return tuple(_busy_from_lease(lease, now) for lease in self._intents.values())

    def dead_intents(self, *, limit: int, skip: Collection[str] = ()) -> tuple[Busy, ...]:
        """List the oldest open intents whose owner is dead, without those to be skipped."""
        dead = [busy for busy in self.open_intents() if busy.owner_is_dead and busy.intent.id not in skip]
        return tuple(dead[:limit])

    def is_open(self, intent_id: str) -> bool:
        """Tell whether an intent is neither finished nor aborted nor withdrawn."""
        return intent_id in self._intents

    def head_of(self, path: str) -> Head | None:
        """Return what the ledger last knew of a path."""
        return self._heads.get(path)

    def knows_version(self, path: str, sha256: str) -> bool:
        """Tell whether these bytes were ever a version of this path."""
        return (path, sha256) in self._versions

    def note_outside(
        self, path: str, found: Version | None, blobs: Sequence[Blob], *, fence: float, shown: Head | None = None
    ) -> Entry | None:
        """Record that an outside program changed a path that the ledger knows."""
        _check_hashes(blobs)
        with self._lock:
            head = self._heads.get(path) or shown
            held = any(path in ledger_rules.touched_paths(one.intent.changes) for one in self._intents.values())
            if head is None or held or head.has_bytes(found and found.sha256):
                return None
            edit, knows = ledger_rules.OutsideEdit(head=head, found=found), self.knows_version
            if ledger_rules.is_stale_read(edit, now=self._clock(), fence=fence, knows=knows):
                return None
            timestamp = ledger_entries.utc_timestamp(self._clock())
            self._insert_blobs(blobs, stored=timestamp)
            self._heads[path] = head
            return self._append_outside(path, found, timestamp)

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        """Record bytes of an outside program that were at a path and could not stay."""
        self.keep_blob(blob)
        with self._lock:
            if self.knows_version(path, blob.sha256):
                return ()
            head, timestamp = self._heads.get(path), ledger_entries.utc_timestamp(self._clock())
            there, version = head.version if head else None, Version(sha256=blob.sha256, size=len(blob.data))
            wrote = self._append_outside(path, version, timestamp)
            seq = len(self._entries) + 1
            left = self._append_entry(ledger_rules.kept_entry(path, version, there, seq=seq, timestamp=timestamp))
            if head is None:
                del self._heads[path]
            return wrote, left

    def record(
        self, call: Call, change: Change, *, change_id: str, ok: bool, error_kind: str = "", message: str = ""
    ) -> Entry:
        """Write an entry for something that had no intent."""
        with self._lock:
            entry = Entry(
                change_id=change_id,
                timestamp=ledger_entries.utc_timestamp(self._clock()),
                call=call,
                change=change,
                ok=ok,
                error_kind=error_kind,
                message=message,
            )
            return self._append_entry(entry)

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        """List entries, newest first."""
        with self._lock:
            switching = {one.change_id for one in self._entries if _switches(one, query.undoes)}
            found = [entry for entry in reversed(self._entries) if _matches_query(entry, query, switching)]
        return tuple(found[: max(query.limit, 0)])

    def list_writers(self, key: str, *, after_seq: int = 0) -> tuple[WriterSpan, ...]:
        """List who changed a path after an entry, each once, in the order of their first change."""
        seqs = dict[str, list[int]]()
        for entry in self._entries:
            if entry.ok and entry.seq > after_seq and key in (entry.change.path, entry.change.to_path):
                seqs.setdefault(entry.call.writer, []).append(entry.seq)
        return tuple(WriterSpan(writer=name, first_seq=all_[0], last_seq=all_[-1]) for name, all_ in seqs.items())

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        """Check the whole chain, and every blob against its name."""
        with self._lock:
            tip = ledger_entries.ChainTip()
            for entry in self._entries:
                if ledger_entries.seal_entry(tip, entry)[0] != entry:
                    problem = f"Entry {tip.seq + 1} was changed: its hash does not match."
                    return LedgerCheck(entries=tip.seq, blobs=0, broken_seq=tip.seq + 1, problem=problem)
                tip = ledger_entries.ChainTip(seq=entry.seq, hash=entry.hash)
            kept = self._blobs if blobs else {}
            broken = tuple(sorted(name for name, blob in kept.items() if _sha256_of(blob.data) != name))
            problem = f"{len(broken)} blobs are damaged." if broken else ""
            return LedgerCheck(entries=tip.seq, blobs=len(kept), broken_blobs=broken, problem=problem)

    def keep_blob(self, blob: Blob) -> None:
        """Store bytes; storing them twice only makes them younger."""
        _check_hashes((blob,))
        with self._lock:
            self._blobs[blob.sha256] = _KeptBlob(blob.data, ledger_entries.utc_timestamp(self._clock()))

    def keep_blobs(self, blobs: Sequence[Blob]) -> None:
        """Store many bytes."""
        for blob in blobs:
            self.keep_blob(blob)

    def read_blob(self, sha256: str) -> bytes:
        """Return stored bytes."""
        kept = self._blobs.get(sha256)
        if kept is None:
            raise blob_missing_error(sha256)
        if _sha256_of(kept.data) != sha256:
            raise blob_damaged_error(sha256, "The bytes have another hash.")
        return kept.data

    def has_blob(self, sha256: str) -> bool:
        """Tell whether these bytes are stored."""
        return sha256 in self._blobs

    def prune(self, *, before: str, dry_run: bool = False) -> Pruned:
        """Drop bytes that only entries older than `before` need."""
        before = ledger_entries.normalize_timestamp(before)
        with self._lock:
            now = self._clock()
            sessions, places = self._forgotten_sessions(ledger_entries.utc_timestamp(now - FORGOTTEN_AFTER))
            needed = self._needed_hashes(before, without=places)
            dead = [name for name, kept in self._blobs.items() if kept.stored < before and name not in needed]
            answers = [key for key, (_, timestamp) in self._answers.items() if timestamp < before]
            pruned = Pruned(
                blobs=len(dead),
                bytes=sum(len(self._blobs[name].data) for name in dead),
                sightings=sum(len(self._sightings[place]) for place in places),
                details={"rebased": 0, "sessions": len(sessions), "answers": len(answers), "archived": 0},
            )
            if dry_run or not (dead or places or sessions or answers):
                return pruned
            _drop_keys(self._blobs, dead)
            _drop_keys(self._answers, answers)
            _drop_keys(self._sessions, sessions)
            _drop_keys(self._sightings, places)
            self._append_entry(
                ledger_rules.gc_entry(
                    blobs=pruned.blobs,
                    sightings=pruned.sightings,
                    before=before,
                    seq=len(self._entries) + 1,
                    timestamp=ledger_entries.utc_timestamp(now),
                )
            )
            return pruned

    def list_trash(self, query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        """List one page of trash items, newest first."""
        with self._lock:
            items = [*reversed(self._trash.values())]
        if query.after:
            names = [item.id for item in items]
            items = items[names.index(query.after) + 1 :] if query.after in names else []
        found = (one for one in items if one.state == query.state and query.path in ("", one.path))
        return tuple(islice(found, query.limit))

    def count_trash(self) -> int:
        """Return how many items can come back."""
        with self._lock:
            return sum(item.state == "kept" for item in self._trash.values())

    def trash_item(self, trash_id: str) -> TrashItem | None:
        """Return one item."""
        return self._trash.get(trash_id)

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        """Mark items as emptied, so that `prune` may drop their bytes; return how many there were."""
        with self._lock:
            return sum(self._mark_trash(trash_id, "emptied") for trash_id in trash_ids)

    def open_session(self, session: SessionRow) -> None:
        """Remember a session; opening it again only shows that it is in use."""
        with self._lock:
            self._forget_idle()
            known, _ = self._sessions.get(session.id, (session, ""))
            self._sessions[session.id] = (known, ledger_entries.utc_timestamp(self._clock()))

    def find_session(self, session_id: str) -> SessionRow | None:
        """Return one session."""
        row = self._sessions.get(session_id)
        return None if row is None else row[0]

    def list_sessions(self) -> tuple[SessionRow, ...]:
        """List every session, the one that did something last first."""
        with self._lock:
            rows = {name: (row, 0) for name, (row, _) in self._sessions.items()}
            for entry in self._entries:
                name, opened = entry.call.session, entry.timestamp
                if name:
                    row = rows[name][0] if name in rows else SessionRow(id=name, agent="", opened=opened)
                    agent, opened = max(row.agent, entry.call.agent), min(row.opened, opened)
                    rows[name] = (SessionRow(id=name, agent=agent, opened=opened), entry.seq)
            ordered = sorted(rows.values(), key=lambda one: (one[1], one[0].opened), reverse=True)
            return tuple(row for row, _ in ordered)

    def begin_turn(self, session_id: str, *, title: str = "", turn_id: str = "") -> SessionTurn:
        """Begin a turn, or return the one of that id."""
        with self._lock:
            turns = self._turns.setdefault(session_id, {})
            free = (str(number) for number in range(len(turns) + 1, 2 * len(turns) + 2) if str(number) not in turns)
            name = turn_id or next(free)
            began = ledger_entries.utc_timestamp(self._clock())
            return turns.setdefault(name, SessionTurn(session=session_id, id=name, title=title, began=began))

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        """List the turns of a session, oldest first."""
        with self._lock:
            return tuple(self._turns.get(session_id, {}).values())

    def claim_session(self, run: ServerRun, *, fresh: str) -> str:
        """Remember a server, and return the session it serves."""
        with self._lock:
            self._forget_idle()
            like = [one for one in self._runs.values() if (one.parent, one.roots) == (run.parent, run.roots)]
            found = choose_session(run.client, like, is_dead=is_dead)
            for name in found.joined if found else ():
                self._join_session(name, found.session if found else "")
            session = found.session if found else fresh
            self._runs[run.id] = replace(run, session=session)
            return session

    def list_servers(self) -> tuple[ServerRun, ...]:
        """List the servers that are remembered, newest first."""
        with self._lock:
            return tuple(reversed(self._runs.values()))

    def list_heads(self) -> tuple[Head, ...]:
        """List what the ledger last knew of every path."""
        with self._lock:
            return tuple(head for _, head in sorted(self._heads.items()))

    def end_server(self, run: ServerRun) -> None:
        """Remember that a server ended properly."""
        with self._lock:
            self._runs[run.id] = replace(self._runs.get(run.id, run), ended=ledger_entries.utc_timestamp(self._clock()))

    def _join_session(self, name: str, session: str) -> None:
        for place in [place for place in self._sightings if place[0] == name]:
            for sighting, shown in self._sightings.pop(place).values():
                self._add_sightings([replace(sighting, session=session)], shown=shown, seq=sighting.seq)
        self._runs = {
            key: replace(run, session=session) if run.session == name else run for key, run in self._runs.items()
        }

    def _forget_idle(self) -> None:
        sessions, _ = self._forgotten_sessions(ledger_entries.utc_timestamp(self._clock() - timedelta(hours=24)))
        _drop_keys(self._sightings, [place for place in self._sightings if place[0] in sessions])
        _drop_keys(self._runs, [key for key, run in self._runs.items() if run.session in sessions])

    def record_sightings(
        self, sightings: Sequence[Sighting], blobs: Sequence[Blob] = (), *, after_seq: int | None = None
    ) -> None:
        """Remember what was shown."""
        _check_hashes(blobs)
        with self._lock:
            now = ledger_entries.utc_timestamp(self._clock())
            self._insert_blobs(blobs, stored=now)
            seq = len(self._entries) if after_seq is None else after_seq
            self._add_sightings(sightings, seq=seq, shown=now)

    def flush_sightings(self) -> None:
        """Write what was not written yet: nothing, here."""

    def list_sightings(self, session: str, path: str) -> tuple[Sighting, ...]:
        """List what a session was shown of a path, newest version first."""
        with self._lock:
            return tuple(sighting for sighting, _ in reversed(self._sightings.get((session, path), {}).values()))

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _find_refusal(self, intent: Intent, *, now: datetime) -> Replay | Busy | None:
        busy = (_busy_from_lease(lease, now) for lease in self._conflicting_leases(intent))
        return self._replay_of(intent.call.idempotency_key) or next(busy, None)

    def _replay_of(self, idempotency_key: str) -> Replay | None:
        change_id, _ = self._answers.get(idempotency_key, (idempotency_key, ""))
        made = tuple(each for each in self._entries if each.change_id == change_id and each.ok)
        return Replay(entries=made) if made or idempotency_key in self._answers else None

    def _conflicting_leases(self, intent: Intent) -> Iterable[_Lease]:
        key = intent.call.idempotency_key
        leases = self._intents.values()
        yield from (lease for lease in leases if key and key in (lease.intent.call.idempotency_key, lease.intent.id))
        for path in ledger_rules.touched_paths(intent.changes):
            yield from (lease for lease in leases if path in ledger_rules.touched_paths(lease.intent.changes))
        yield from (lease for lease in leases if lease.intent.id == intent.id)

    def _take_intent(self, intent_id: str) -> Intent:
        lease = self._intents.pop(intent_id, None)
        if lease is None:
            raise intent_gone_error(intent_id)
        return lease.intent

    def _append_outside(self, path: str, found: Version | None, timestamp: str) -> Entry:
        head, seq = self._heads.get(path), len(self._entries) + 1
        before = head.version if head else None
        return self._append_entry(ledger_rules.outside_entry(path, before, found, seq=seq, timestamp=timestamp))

    def _append_entry(self, draft: Entry) -> Entry:
        last = self._entries[-1].hash if self._entries else ""
        entry, _ = ledger_entries.seal_entry(ledger_entries.ChainTip(seq=len(self._entries), hash=last), draft)
        self._entries.append(entry)
        if not ledger_rules.makes_heads(entry):
            return entry
        for path, before, after in entry.change.transitions():
            self._heads[path] = Head(
                path=path, version=after, writer=entry.call.writer, seq=entry.seq, timestamp=entry.timestamp
            )
            self._versions.update((path, version.sha256) for version in (before, after) if version is not None)
        if item := ledger_rules.trash_item(entry):
            self._trash.pop(item.id, None)
            self._trash[item.id] = item
        undone = [item.id for item in self._trash.values() if item.change_id == entry.call.undoes]
        there = {path for path, _, after in entry.change.transitions() if after}
        switched = ledger_rules.switched_changes(entry.change)
        undone += [one.id for one in self._trash.values() if one.change_id in switched and one.path in there]
        for trash_id in (*undone, entry.call.restores):
            self._mark_trash(trash_id, "restored")
        return entry

    def _mark_trash(self, trash_id: str, state: Literal["restored", "emptied"]) -> bool:
        item = self._trash.get(trash_id)
        if item is None or item.state != "kept":
            return False
        self._trash[trash_id] = replace(item, state=state)
        return True

    def _insert_blobs(self, blobs: Iterable[Blob], *, stored: str) -> None:
        for blob in blobs:
            self._blobs.setdefault(blob.sha256, _KeptBlob(blob.data, stored))

    def _add_sightings(self, sightings: Iterable[Sighting], *, seq: int, shown: str) -> None:
        for sighting in sightings:
            place = (sighting.session, sighting.path)
            # Taken out and put back, so that the path, and in it the version, is the newest.
            versions = self._sightings.pop(place, {})
            first = min((one.seq for one, _ in versions.values()), default=seq)
            known, _ = versions.pop(sighting.sha256, (None, ""))
            versions[sighting.sha256] = (merge_sightings(known, sighting, seq=first), shown)
            _drop_keys(versions, versions_to_forget([known for known, _ in reversed(versions.values())]))
            self._sightings[place] = versions
            places = [other for other in self._sightings if other[0] == sighting.session]
            _drop_keys(self._sightings, places[:-PATHS_PER_SESSION])

    def _forgotten_sessions(self, cutoff: str) -> tuple[list[str], list[_SessionPath]]:
        used = {name for name, (_, moment) in self._sessions.items() if moment >= cutoff}
        for (session, _), versions in self._sightings.items():
            if any(shown >= cutoff for _, shown in versions.values()):
                used.add(session)
        sessions = [name for name in self._sessions if name not in used]
        return sessions, [place for place in self._sightings if place[0] not in used]

    def _needed_hashes(self, before: str, *, without: Sequence[_SessionPath]) -> set[str]:
        changes = [entry.change for entry in self._entries if entry.timestamp >= before]
        changes += [change for lease in self._intents.values() for change in lease.intent.changes]
        needed = {sha256 for change in changes for sha256 in ledger_rules.version_hashes(change)}
        needed |= {head.version.sha256 for head in self._heads.values() if head.version is not None}
        needed |= {item.version.sha256 for item in self._trash.values() if item.state == "kept"}
        shown = [versions for place, versions in self._sightings.items() if place not in set(without)]
        return needed | {sha256 for versions in shown for sha256 in versions}


def _switches(entry: Entry, change_id: str) -> bool:
    return bool(change_id) and entry.ok and change_id in ledger_rules.switched_changes(entry.change)


def _matches_query(entry: Entry, query: LedgerQuery, switching: set[str]) -> bool:
    paths = [path for path in (entry.change.path, entry.change.to_path) if path]
    directory = query.under.rstrip("/") + "/"
    return (
        (not query.path or query.path in paths)
        and (not query.under or any(path.startswith(directory) for path in paths))
        and query.session in {"", entry.call.session}
        and entry.call.agent.startswith(query.agent)
        and (not query.since or entry.timestamp >= query.since)
        and (not query.until or entry.timestamp < query.until)
        and query.change_id in {"", entry.change_id}
        and query.operation in {"", entry.call.operation}
        and (not query.undoes or query.undoes == entry.call.undoes or entry.change_id in switching)
        and (not query.before_seq or entry.seq < query.before_seq)
        and entry.seq > query.after_seq
        and (entry.ok or not query.ok_only)
    )


def _busy_from_lease(lease: _Lease, now: datetime) -> Busy:
    over, owner = lease.expires <= now.timestamp(), lease.intent.owner
    return Busy(intent=lease.intent, owner_is_dead=counts_as_dead(owner, lease_over=over) or is_dead(owner))


def _check_hashes(blobs: Iterable[Blob]) -> None:
    for blob in blobs:
        if _sha256_of(blob.data) != blob.sha256:
            raise ValueError(f"These bytes are not {blob.sha256}.")


def _sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _drop_keys(table: dict[_Key, _Value], keys: Iterable[_Key]) -> None:
    for key in keys:
        del table[key]

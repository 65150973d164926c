"""Threads append markers on every store and every disk; and engines without their safeguards, which must be caught."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from concurrency.checker import Event, Reading, Recording, violations
from databases.postgres_server import PostgresServer
from doubles.memory_disk import MemoryDisk
from doubles.memory_store import MemoryStore
from spec.marks import requirement
from surehold.disk.base import Create, KeepBytes, Rename, Step, StoredFile, Target
from surehold.disk.local import LocalDisk
from surehold.errors import StaleFile
from surehold.stores.base import Begun, Blob, Busy, Call, Entry, Intent, LedgerQuery, Sighting
from surehold.stores.owner import current_owner
from surehold.stores.postgres import schema
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.database import PostgresDatabase
from surehold.stores.postgres.store import open_postgres_store
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Proposal, Receipt, Sha256
from surehold.workspace.settings import Limits
from surehold.workspace.workspace import Workspace
from waiting import HANG_SECONDS
from workspaces import PAIRS, DiskKind, StoreKind, call, make_bench

THREADS = 4
EDITS = 20
PATHS = ("a", "sub/b")
Put = Callable[[str, bytes | None], None]


def append(workspace: Workspace, path: str, marker: str, how: Call) -> Receipt:
    """Append a line to what is there now, again and again until no other write came in between."""
    while True:
        seen = workspace.read(path)
        edit = WriteBytes(seen.data + f"{marker}\n".encode())
        with suppress(StaleFile):
            return workspace.write(Proposal(path=path, edit=edit, proof=Sha256(seen.sha256)), call=how)


def crowd(count: int, work: Callable[[int], None]) -> None:
    """Let several threads begin at the same moment; what one of them raises is raised."""
    gate, raised = threading.Barrier(count), list[BaseException]()

    def begin(number: int) -> None:
        gate.wait(HANG_SECONDS)
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            raised.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    if raised:
        raise raised[0]


def record(workspace: Workspace, recording: Recording, worker: int, edits: int, paths: Sequence[str] = PATHS) -> None:
    for number in range(edits):
        path, marker = paths[number % len(paths)], f"m{worker}-{number}"
        act = lambda path=path, marker=marker: append(workspace, path, marker, call()).entries[0].seq  # noqa: E731
        recording.call(path, marker, act, StaleFile)


@requirement("engine:checker:pairs", "promise:unseen:race")
@pytest.mark.parametrize(("store", "disk"), PAIRS, ids=map("+".join, PAIRS))
def test_no_marker_is_lost_doubled_or_invented(store: StoreKind, disk: DiskKind, tmp_path: Path) -> None:
    bench, recording = make_bench(store, disk, tmp_path), Recording()
    for path in PATHS:
        bench.put(path, b"begin\n")

    crowd(THREADS, lambda worker: record(bench.workspace, recording, worker, EDITS))

    assert violations(recording, bench.store, {path: bench.get(path) for path in PATHS}) == []
    assert [event.answer for event in recording.events] == ["acknowledged"] * THREADS * EDITS
    bench.workspace.close()


@requirement("engine:checker:pairs")
@pytest.mark.parametrize(("store", "disk"), PAIRS, ids=map("+".join, PAIRS))
def test_a_call_repeated_with_its_key_happens_once_and_is_told_the_same(
    store: StoreKind, disk: DiskKind, tmp_path: Path
) -> None:
    bench, recording = make_bench(store, disk, tmp_path), Recording()
    bench.put("a", b"begin\n")

    def work(worker: int) -> None:
        for number in range(EDITS):
            marker = f"m{worker}-{number}"
            recording.call("a", marker, lambda marker=marker: twice(marker), StaleFile)

    def twice(marker: str) -> int:
        """Make a call, take its answer for lost, and make it again, while others go on."""
        while True:
            seen = bench.workspace.read("a")
            edit = WriteBytes(seen.data + f"{marker}\n".encode())
            proposal = Proposal(path="a", edit=edit, proof=Sha256(seen.sha256))
            how = call(idempotency_key=f"key {marker} {seen.sha256}")
            try:
                first = bench.workspace.write(proposal, call=how)
            except StaleFile:
                continue
            try:
                again = bench.workspace.write(proposal, call=how)
            except StaleFile as error:
                recording.complain(f"{marker} was acknowledged; repeated, it was refused: {error}")
            else:
                if (again.replayed, again.entries) != (True, first.entries):
                    recording.complain(f"{marker} was told {first.change_id}; repeated, {again.change_id}")
            return first.entries[0].seq

    crowd(THREADS, work)

    assert violations(recording, bench.store, {"a": bench.get("a")}) == []
    bench.workspace.close()


@requirement("engine:checker:pairs")
@pytest.mark.parametrize(("store", "disk"), PAIRS, ids=map("+".join, PAIRS))
def test_the_same_call_made_by_many_at_once_happens_once(store: StoreKind, disk: DiskKind, tmp_path: Path) -> None:
    bench = make_bench(store, disk, tmp_path)
    bench.put("a", b"begin\n")
    edit = Proposal(path="a", edit=WriteBytes(b"begin\nonce\n"), proof=Sha256(sha256_hex(b"begin\n")))
    receipts = list[Receipt]()

    crowd(THREADS, lambda _: receipts.append(bench.workspace.write(edit, call=call(idempotency_key="k"))))

    assert bench.get("a") == b"begin\nonce\n"
    assert sorted(receipt.replayed for receipt in receipts) == [False, True, True, True]
    assert len({receipt.change_id for receipt in receipts}) == 1
    bench.workspace.close()


class Unverified(MemoryDisk):
    """A disk that replaces whatever is there."""

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        super().apply([self._unverified(step) for step in steps], tag=tag, fence=fence, keep=keep, leased=leased)

    def _unverified(self, step: Step) -> Step:
        if isinstance(step, Create):
            return step
        target = step.source if isinstance(step, Rename) else step.target
        stored = MemoryDisk.read(self, target, limit=1 << 30)
        return replace(step, expected=sha256_hex(stored.data) if stored else "")


class Reckless(Unverified):
    """And excludes no other writer."""

    @contextmanager
    def lock(self, targets: Sequence[Target], *, timeout: float) -> Generator[None]:
        del targets, timeout
        yield


class Forgetful(MemoryStore):
    """A store whose intents lock nothing. The first two callers read the same version and meet in `begin`."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: datetime.now(UTC))
        self._begun = dict[str, Intent]()
        self._meeting, self._met = threading.Barrier(2), False

    def begin(self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, early: bool = False) -> Begun:
        if not self._met:
            self._meeting.wait(HANG_SECONDS)
            self._met = True
        for blob in blobs:
            self.keep_blob(blob)
        self._begun[intent.id] = intent
        return Begun()

    def finish(self, intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        intent = self._begun.pop(intent_id)
        return tuple(self.record(intent.call, change, change_id=intent.id, ok=True) for change in intent.changes)

    def open_intents(self) -> tuple[Busy, ...]:
        return ()


@requirement("engine:checker:controls")
def test_an_engine_without_locks_is_caught() -> None:
    disk, store, recording = Reckless({"a": b"begin\n"}), Forgetful(), Recording()
    workspace = Workspace(disk=disk, store=store, owner=current_owner)

    crowd(2, lambda worker: record(workspace, recording, worker, 5, paths=("a",)))

    found = violations(recording, store, {"a": disk.peek("a")})
    assert any("was acknowledged: 0 times in the file" in violation for violation in found)
    assert any("begins with" in violation for violation in found)


class Caching(Unverified):
    """A mount that shows the version before the last one for a while after every write, as network mounts may."""

    STALE_READS = 3

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self._cached = dict[str, list[StoredFile]]()

    @property
    def is_coherent(self) -> bool:
        return False

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        cached = self._cached.get(target.key)
        return cached.pop() if cached else super().read(target, limit=limit)

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        old = {step.target.key: MemoryDisk.read(self, step.target, limit=1 << 30) for step in steps}
        super().apply(steps, tag=tag, fence=fence, keep=keep, leased=leased)
        self._cached |= {path: [stored] * self.STALE_READS for path, stored in old.items() if stored}


@pytest.fixture(params=[60.0, 0.0], ids=["with the fence", "without it"])
def cached(request: pytest.FixtureRequest) -> tuple[float, list[str], int]:
    disk, store, recording = Caching({"a": b"begin\n"}), MemoryStore(clock=lambda: datetime.now(UTC)), Recording()
    limits = Limits(fence=request.param)
    workspace = Workspace(disk=disk, store=store, owner=current_owner, limits=limits)
    crowd(2, lambda worker: record(workspace, recording, worker, 10, paths=("a",)))
    refused = [entry for entry in store.list_entries(LedgerQuery(limit=1000)) if not entry.ok]
    return request.param, violations(recording, store, {"a": disk.peek("a")}), len(refused)


@requirement("engine:checker:controls", "engine:store:fence")
def test_a_mount_that_shows_old_versions_is_harmless_behind_the_fence_and_caught_without(
    cached: tuple[float, list[str], int],
) -> None:
    fence, found, refused = cached
    if fence:
        assert found == []
        assert refused > 0, "no stale version was ever shown"
    else:
        assert any("was acknowledged: 0 times in the file" in violation for violation in found)


def test_the_checker_notices_a_read_that_shows_an_old_version(tmp_path: Path) -> None:
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a", b"begin\n")
    receipts = [append(bench.workspace, "a", marker, call()) for marker in ("one", "two")]
    events = [
        Event(
            path="a",
            marker=marker,
            invoked=number,
            answered=number + 0.5,
            answer="acknowledged",
            seq=receipt.entries[0].seq,
        )
        for number, (marker, receipt) in enumerate(zip(("one", "two"), receipts, strict=True))
    ]

    def found(receipt: Receipt, invoked: float) -> list[str]:
        reading = Reading(path="a", sha256=receipt.sha256, invoked=invoked)
        return violations(Recording(events=events, readings=[reading]), bench.store, {"a": bench.get("a")})

    assert found(receipts[0], 1.2) == []
    assert found(receipts[1], 2) == []
    assert any("and showed entry" in one for one in found(receipts[0], 2))
    bench.workspace.close()


@requirement("engine:checker:controls")
@pytest.mark.parametrize("commit", ["on", "off"])
def test_a_store_that_acknowledges_before_it_is_durable_is_caught(tmp_path: Path, commit: str) -> None:
    server, recording = PostgresServer.create(), Recording()
    try:
        server.start()
        url = f"{server.url}/postgres?options=-c%20synchronous_commit%3D{commit}"
        database = PostgresDatabase(parse_address(url))
        schema.set_up(database)
        with psycopg.connect(f"{server.url}/postgres", autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            ((writer,),) = connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
            os.kill(writer, signal.SIGSTOP)  # what is not waited for is not written
        database.close()
        (tmp_path / "a").write_bytes(b"begin\n")
        with open_database_workspace(tmp_path, url) as workspace:
            record(workspace, recording, 0, 5, paths=("a",))
            server.kill()
        server.start()

        with open_database_workspace(tmp_path, url) as workspace:
            found = violations(recording, workspace.store, {"a": (tmp_path / "a").read_bytes()})
    finally:
        server.remove()

    assert [event.answer for event in recording.events] == ["acknowledged"] * 5
    if commit == "on":
        assert found == []
    else:
        assert any("was acknowledged: 1 times in the file, 0 in the ledger" in one for one in found)


def open_database_workspace(root: Path, url: str) -> Workspace:
    store = open_postgres_store(parse_address(url), workspace="w", root=str(root), host="here", patience=0.2)
    return Workspace(disk=LocalDisk([str(root)]), store=store, owner=current_owner)


def test_the_checker_notices_every_kind_of_lie(tmp_path: Path) -> None:
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a", b"begin\n")
    first = append(bench.workspace, "a", "one", call()).entries[0].seq
    second = append(bench.workspace, "a", "two", call()).entries[0].seq

    def event(marker: str, answer: str, invoked: float, seq: int = 0) -> Event:
        return Event(path="a", marker=marker, invoked=invoked, answered=invoked + 1, answer=answer, seq=seq)  # type: ignore[arg-type]

    told = [event("one", "acknowledged", 0, first), event("two", "acknowledged", 2, second)]

    def lies(*events: Event, data: bytes = b"begin\none\ntwo\n") -> list[str]:
        return violations(Recording(list(events)), bench.store, {"a": data})

    assert lies(*told) == []
    assert lies(*told, event("three", "unknown", 4)) == []
    assert lies(*told, event("three", "acknowledged", 4, 9)) == [
        "three was acknowledged: 0 times in the file, 0 in the ledger"
    ]
    assert lies(told[0], event("two", "refused", 2)) == ["two was refused: 1 times in the file, 1 in the ledger"]
    assert lies(told[0]) == ["two in a was never asked for"]
    assert lies(event("one", "acknowledged", 2, first), event("two", "acknowledged", 0, second)) == [
        f"one began after entry {second} was acknowledged, and is entry {first}"
    ]
    head = sha256_hex(b"begin\none\ntwo\n")[:8]
    assert lies(*told, data=b"begin\none\ntwo\ntwo\n") == [
        "two was acknowledged: 2 times in the file, 1 in the ledger",
        f"a is not the version {head} that the ledger knew last",
    ]
    bench.workspace.close()

"""The clean-up drops what is not needed, and nothing else."""

# One of these reaches inside, to come between two steps of the store.
# pyright: reportPrivateUsage=false

import os
import random
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import Author, Clock, blob, change, intent, sha, version
from surehold.errors import NotFound
from surehold.stores.base import Begun, LedgerQuery, Sighting, Store
from surehold.stores.conversations import SessionRow
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.ledger_rules import version_hashes
from surehold.stores.sqlite import prune
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.upkeep import Pruned

OLD = b"old bytes\n" * 50


def later(clock: Clock) -> str:
    return utc_timestamp(clock.now + timedelta(seconds=1))


@requirement("engine:gc:keeps", "engine:gc:recorded")
def test_bytes_that_only_old_entries_need_go(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", OLD)
    author.write("a", b"new")
    clock.turn(days=40)

    pruned = store.prune(before=utc_timestamp(clock.now - timedelta(days=30)))

    assert (pruned.blobs, pruned.sightings, pruned.bytes > 0) == (1, 0, True)
    assert store.read_blob(sha(b"new")) == b"new"
    with pytest.raises(NotFound):
        store.read_blob(sha(OLD))
    (entry, *_) = store.list_entries(LedgerQuery(limit=1))
    assert (entry.seq, entry.call.operation, entry.change_id, entry.ok) == (3, "gc", "gc-3", True)
    assert "Removed 1 blobs" in entry.message
    assert store.verify().ok


@requirement("engine:gc:recorded")
def test_a_dry_run_counts_the_same_and_removes_nothing(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", OLD)
    author.write("a", b"new")
    before = later(clock)

    planned = store.prune(before=before, dry_run=True)

    assert store.has_blob(sha(OLD))
    assert len(store.list_entries(LedgerQuery())) == 2
    assert store.prune(before=before) == planned


def test_a_clean_up_that_finds_nothing_leaves_no_entry(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"new")

    nothing = Pruned(blobs=0, bytes=0, sightings=0, details={"rebased": 0, "sessions": 0, "answers": 0, "archived": 0})
    assert store.prune(before=later(clock)) == nothing
    assert len(store.list_entries(LedgerQuery())) == 1


@requirement("engine:gc:keeps", "engine:trash:empty")
def test_kept_trash_keeps_its_bytes_until_it_is_emptied(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", OLD)
    author.delete("a", trash_id="t1")

    assert store.prune(before=later(clock)).blobs == 0
    store.empty_trash(["t1"])
    assert store.prune(before=later(clock)).blobs == 1
    assert not store.has_blob(sha(OLD))


@requirement("engine:gc:keeps")
def test_an_open_intent_keeps_its_bytes(store: Store, clock: Clock) -> None:
    moved = change("a", OLD, OLD, to_path="b", displaced=version(b"displaced"))
    store.begin(intent("c1", moved), [blob(OLD), blob(b"displaced")], lease=10, fence=0)

    assert store.prune(before=later(clock)).blobs == 0
    store.abort("c1", error_kind="unknown", message="")
    assert store.prune(before=later(clock)).blobs == 2


@requirement("session:store:bounded")
def test_what_a_session_was_shown_is_kept_until_the_session_is_forgotten(store: Store, clock: Clock) -> None:
    row = SessionRow(id="s", agent="ada", opened=clock.text)
    store.open_session(row)
    store.record_sightings([Sighting(session="s", path="a", sha256=sha(OLD), spans=())], [blob(OLD)])

    clock.turn(days=29)
    assert store.prune(before=later(clock)).blobs == 0
    clock.turn(days=2)
    pruned = store.prune(before=later(clock))

    assert (pruned.blobs, pruned.sightings, pruned.details["sessions"]) == (1, 1, 1)
    assert store.find_session("s") is None
    assert store.list_sightings("s", "a") == ()


def test_a_session_in_use_is_not_forgotten(store: Store, clock: Clock) -> None:
    for name in ("reads", "opens", "neither"):
        store.open_session(SessionRow(id=name, agent="", opened=clock.text))
        store.record_sightings([Sighting(session=name, path="a", sha256=sha(OLD), spans=())])
    clock.turn(days=31)
    store.record_sightings([Sighting(session="reads", path="b", sha256=sha(OLD), spans=())])
    store.open_session(SessionRow(id="opens", agent="", opened=clock.text))

    assert [len(store.list_sightings(name, "a")) for name in ("reads", "opens", "neither")] == [1, 0, 0]
    assert store.prune(before=clock.text).details["sessions"] == 1
    assert [store.find_session(name) is not None for name in ("reads", "opens", "neither")] == [True, True, False]


def test_bytes_kept_a_moment_ago_stay_though_nothing_names_them_yet(store: Store, clock: Clock) -> None:
    store.keep_blob(blob(OLD))
    clock.turn(days=40)
    store.keep_blob(blob(OLD))

    assert store.prune(before=clock.text).blobs == 0
    assert store.prune(before=later(clock)).blobs == 1


def test_an_answer_is_remembered_as_long_as_its_entries(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"x", idempotency_key="once")

    assert store.prune(before=clock.text).details["answers"] == 0
    assert store.prune(before=later(clock)).details["answers"] == 1


@pytest.mark.parametrize("spelling", ["2026-01-02T00:00:00Z", "2026-01-02", "2026-01-02T01:00:00+01:00"])
def test_any_spelling_of_a_moment_will_do(store: Store, author: Author, clock: Clock, spelling: str) -> None:
    author.write("a", OLD)
    author.write("a", b"new")
    clock.turn(days=1)
    author.write("a", b"newer")

    assert store.prune(before=spelling).blobs == 1
    assert [store.has_blob(sha(data)) for data in (OLD, b"new", b"newer")] == [False, True, True]


@requirement("engine:gc:keeps")
@pytest.mark.parametrize("size", [3_000, 200_000])
def test_every_entry_in_retention_still_has_both_of_its_versions(
    store: Store, author: Author, clock: Clock, size: int
) -> None:
    source = random.Random(size)
    moments: list[str] = []
    for _ in range(40):
        clock.turn(days=1)
        moments.append(clock.text)
        path = source.choice("ab")
        data = bytearray(author.files.get(path) or source.randbytes(size))
        data[source.randrange(len(data))] ^= 255
        author.write(path, bytes(data))

    for before in (moments[10], moments[23], moments[24], moments[39]):
        assert store.prune(before=before).blobs > 0
        for entry in store.list_entries(LedgerQuery(limit=99)):
            for sha256 in version_hashes(entry.change) if entry.timestamp >= before else ():
                assert sha(store.read_blob(sha256)) == sha256
        for path, data in author.files.items():
            assert store.read_blob(sha(data)) == data, path
        assert store.verify().ok


def test_files_without_a_row_and_forgotten_temporary_files_go(
    sqlite: SqliteStore, tmp_path: Path, clock: Clock
) -> None:
    noise = random.Random(2).randbytes(200_000)
    sqlite.keep_blob(blob(noise))
    folder = tmp_path / "state" / "blobs" / sha(noise)[:2]
    for name in ("orphan", "old.tmp", "young.tmp"):
        (folder / name).write_bytes(b"x")
    os.utime(folder / "old.tmp", (0, 0))
    os.utime(folder / "young.tmp", (clock.now.timestamp(), clock.now.timestamp()))

    sqlite.prune(before=clock.text)
    assert sorted(path.name for path in folder.iterdir()) == sorted([sha(noise), "young.tmp"])
    sqlite.prune(before=later(clock))
    assert [path.name for path in folder.iterdir()] == ["young.tmp"]


@pytest.mark.parametrize("size", [3_000, 200_000])
def test_a_clean_up_between_packing_and_storing_takes_nothing_away(
    sqlite: SqliteStore, clock: Clock, size: int
) -> None:
    base = random.Random(size).randbytes(size)
    child = base + b"edit"
    sqlite.keep_blob(blob(base))
    prepared = sqlite._prepare_blobs([blob(base), blob(child, base)])  # the base is there, the child a delta to it
    assert sqlite.prune(before=later(clock)).blobs == 1

    with sqlite._database.write_transaction() as connection:
        sqlite._blobs.insert_blobs(connection, [prepared[1]], stored=clock.text)
        sqlite._blobs.insert_blobs(connection, [prepared[0]], stored=clock.text)

    assert (sqlite.read_blob(sha(child)), sqlite.read_blob(sha(base))) == (child, base)
    assert sqlite.verify().ok


@requirement("engine:gc:in_turns")
def test_what_others_come_to_need_between_two_turns_is_kept(
    sqlite: SqliteStore, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    author = Author(sqlite)
    versions = [b"line %d\n" % number + OLD for number in range(12)]
    for data in versions:
        author.write("a", data)
    clock.turn(days=40)
    monkeypatch.setattr(prune, "_TURN_SECONDS", 0.0)
    other = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    whole, turns = sqlite._database.write_transaction, list[int]()
    wanted, kept, shown = versions[2], versions[4], versions[6]

    @contextmanager
    def let_others_in(*, durable: bool = True) -> Generator[sqlite3.Connection]:
        turns.append(1)
        if len(turns) == 2:  # one needs an old version again, one stores one again, and one was shown one
            back = intent("back", change("a", versions[-1], wanted))
            assert other.begin(back, [blob(wanted)], lease=9, fence=0) == Begun()
            other.keep_blob(blob(kept))
            other.record_sightings([Sighting(session="s", path="a", sha256=sha(shown), spans=((1, 1),))], [blob(shown)])
            other.close()
        with whole(durable=durable) as connection:
            yield connection

    monkeypatch.setattr(sqlite._database, "write_transaction", let_others_in)
    pruned = sqlite.prune(before=utc_timestamp(clock.now - timedelta(days=30)))

    assert len(turns) > 8
    assert 0 < pruned.blobs <= 9
    for data in (wanted, kept, shown, versions[-1]):
        assert sqlite.read_blob(sha(data)) == data
    assert sqlite.verify().ok


@requirement("engine:gc:shrinks")
def test_the_file_becomes_shorter(sqlite: SqliteStore, tmp_path: Path, clock: Clock) -> None:
    author, source = Author(sqlite), random.Random(3)
    for _ in range(40):
        author.write("a", source.randbytes(40_000))
    size = _size_of_database(tmp_path)
    clock.turn(days=40)

    sqlite.prune(before=utc_timestamp(clock.now - timedelta(days=30)))

    assert _size_of_database(tmp_path) < size * 0.6
    assert sqlite.verify().ok


def _size_of_database(tmp_path: Path) -> int:
    raw = sqlite3.connect(tmp_path / "state" / "state.db")
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    raw.close()
    return (tmp_path / "state" / "state.db").stat().st_size


def test_files_go_only_after_the_disk_has_forgotten_their_rows(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path, clock=clock)
    author, noise = Author(store), random.Random(2).randbytes(200_000)
    author.write("a", noise)
    author.write("a", b"new")
    clock.turn(days=40)
    happened, sync, unlink = list[str](), store._database.sync, Path.unlink

    def note_sync() -> None:
        happened.append("sync")
        sync()

    def note_unlink(path: Path, *, missing_ok: bool = False) -> None:
        happened.append("unlink")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(store._database, "sync", note_sync)
    monkeypatch.setattr(Path, "unlink", note_unlink)
    store.prune(before=later(clock))

    assert happened == ["sync", "unlink"]
    store.close()

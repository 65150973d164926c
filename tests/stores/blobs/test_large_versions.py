"""A history whose large versions are elsewhere: what an edit costs there, and what happens when it is away."""

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from doubles.object_service import ObjectService
from spec.marks import requirement
from stores.scenes import Clock, blob, sha
from surehold import Settings, open_workspace
from surehold.errors import BlobsUnavailable, InvalidArgument, StateCorrupt, StateUnavailable
from surehold.library.workspace import AgentWorkspace
from surehold.stores.blobs import s3
from surehold.stores.blobs.large_versions import LargeVersions, PutObject
from surehold.stores.blobs.s3 import S3Blobs
from surehold.stores.sqlite.blobs import Blobs
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.store import SqliteStore

LINES = [f"{number}: {random.Random(number).random()}" for number in range(4000)]
LARGE = "\n".join(LINES) + "\n"
PLACE = "s3://bucket/versions"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "large.txt").write_text(LARGE)
    (root / "small.txt").write_text("one\n")
    return root


@pytest.fixture
def opened(root: Path, tmp_path: Path) -> Callable[..., AgentWorkspace]:
    def open_again(blobs: str | Path | None = PLACE) -> AgentWorkspace:
        return open_workspace(root, settings=Settings(state_dir=tmp_path / "state", durability="none"), blobs=blobs)

    return open_again


def objects(service: ObjectService) -> list[str]:
    """The sha256 of every object."""
    return sorted(path.rpartition("/")[2] for path in service.objects)


@requirement("fleet:blobs:place", "fleet:blobs:once")
def test_an_edit_of_a_large_file_puts_each_new_version_once_and_fetches_nothing(
    service: ObjectService, opened: Callable[..., AgentWorkspace], root: Path
) -> None:
    versions = {sha(LARGE.encode())}
    with opened() as workspace:
        agent = workspace.session(agent="a")
        for number in range(5):
            agent.read("large.txt")
            agent.edit("large.txt", (LINES[number], f"edited {number}"))
            versions.add(sha((root / "large.txt").read_bytes()))
        agent.read("small.txt")
        agent.edit("small.txt", ("one", "two"))

    assert objects(service) == sorted(versions)
    assert service.count("PUT") == len(versions) == 6
    assert service.count("GET") + service.count("HEAD") == 0


@requirement("fleet:blobs:place", "fleet:blobs:checked")
@pytest.mark.parametrize("kind", ["s3", "directory"])
def test_undo_history_and_verify_work_with_large_versions_elsewhere(  # noqa: PLR0917 - fixtures
    service: ObjectService,
    opened: Callable[..., AgentWorkspace],
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    place = PLACE if kind == "s3" else tmp_path / "versions"
    with opened(place) as workspace:
        agent = workspace.session(agent="a")
        first = agent.edit("large.txt", (LINES[7], "seven"))
        agent.delete("large.txt")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))

    with opened(place) as workspace:
        assert workspace.history.verify().ok
        (item,) = workspace.history.trash()
        workspace.history.restore(item.id)
        workspace.history.undo()
        workspace.history.undo()
        workspace.history.undo(first.change_id)

    assert (root / "large.txt").read_text() == LARGE
    assert not list((tmp_path / "state" / "blobs").glob("*"))
    if kind == "s3":
        assert service.count("GET") > 0
    else:
        assert len(list(Path(place).glob("*/*/*"))) == 2


@requirement("fleet:blobs:away")
def test_while_the_service_is_away_only_what_must_store_a_large_version_is_refused(
    service: ObjectService, opened: Callable[..., AgentWorkspace], root: Path, tmp_path: Path
) -> None:
    with opened() as workspace:
        agent = workspace.session(agent="a")
        agent.edit("large.txt", (LINES[0], "zero"))
        before = (root / "large.txt").read_bytes()
        with service.away():
            with pytest.raises(BlobsUnavailable) as caught:
                agent.edit("large.txt", (LINES[1], "one"))
            (root / "large.txt").write_text(LARGE + "by another program\n")
            assert "by another program" in agent.read("large.txt").text
            agent.edit("small.txt", ("one", "two"))
            agent.read("small.txt")
            workspace.session(agent="b").read("large.txt")
            (root / "large.txt").write_bytes(before)
            agent.delete("large.txt")  # its bytes are there already
        assert f"`{PLACE}`" in caught.value.message
        assert any(not entry.ok and entry.error_kind == "command_failed" for entry in workspace.history.log())

    with opened() as workspace:
        (item,) = workspace.history.trash()
        workspace.history.restore(item.id)
        workspace.session(agent="a").edit("large.txt", (LINES[1], "one"))
        assert workspace.history.verify().ok
    assert (root / "large.txt").read_bytes() == before.replace(LINES[1].encode(), b"one")


@requirement("fleet:blobs:away")
def test_a_service_that_hangs_refuses_what_must_be_stored_there_and_holds_up_nothing_else(
    service: ObjectService, opened: Callable[..., AgentWorkspace], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "S3Blobs", partial(S3Blobs, request_seconds=1.0))
    with opened() as workspace:
        agent = workspace.session(agent="a")
        agent.edit("large.txt", (LINES[0], "zero"))
        before = (root / "large.txt").read_bytes()
        service.behaviour = "hanging"

        with pytest.raises(BlobsUnavailable) as caught:
            agent.edit("large.txt", (LINES[1], "one"))
        asked = len(service.requests)
        agent.edit("small.txt", ("one", "two"))
        assert agent.read("large.txt").text.startswith("zero")
        workspace.session(agent="b").read("large.txt")

        assert len(service.requests) == asked
        assert f"`{PLACE}`" in caught.value.message
        assert caught.value.action.startswith("Nothing was written.")
        assert (root / "large.txt").read_bytes() == before
        service.behaviour = "good"
        service.released.set()
        agent.edit("large.txt", (LINES[1], "one"))
        assert workspace.store.open_intents() == ()
        assert workspace.history.verify().ok


@requirement("fleet:blobs:away")
def test_a_workspace_opens_while_the_service_is_away(
    service: ObjectService, opened: Callable[..., AgentWorkspace], root: Path
) -> None:
    with service.away(), opened() as workspace:
        workspace.session(agent="a").edit("small.txt", ("one", "two"))
        with pytest.raises(BlobsUnavailable):
            workspace.session(agent="a").edit("large.txt", (LINES[0], "zero"))

    assert (root / "small.txt").read_text() == "two\n"
    assert (root / "large.txt").read_text() == LARGE


@requirement("fleet:blobs:probe")
def test_a_workspace_does_not_open_on_a_service_that_lies(
    service: ObjectService, opened: Callable[..., AgentWorkspace]
) -> None:
    service.behaviour = "unconditional"

    with pytest.raises(BlobsUnavailable) as caught:
        opened()

    assert caught.value.reason == "blobs_unsafe"


@requirement("fleet:blobs:checked")
@pytest.mark.parametrize("damage", ["lost", "damaged"])
def test_verify_finds_objects_that_are_lost_or_damaged(
    service: ObjectService, opened: Callable[..., AgentWorkspace], tmp_path: Path, damage: str
) -> None:
    with opened() as workspace:
        change = workspace.session(agent="a").edit("large.txt", (LINES[0], "zero"))
    name = next(path for path in service.objects if path.endswith(sha(LARGE.encode())))
    data, when = service.objects.pop(name)
    if damage == "damaged":
        service.objects[name] = (data[:-9] + bytes(9), when)
    for kept in (tmp_path / "cache").rglob("*"):
        if kept.is_file():
            kept.unlink()

    with opened() as workspace:
        check = workspace.history.verify()
        assert check.broken_blobs == (sha(LARGE.encode()),)
        with pytest.raises(StateCorrupt):
            workspace.history.undo(change.change_id)


def test_a_history_whose_large_versions_are_elsewhere_says_so_when_they_are_not_named(
    service: ObjectService, opened: Callable[..., AgentWorkspace], root: Path
) -> None:
    with opened() as workspace:
        change = workspace.session(agent="a").edit("large.txt", (LINES[0], "zero"))

    with opened(None) as workspace:
        with pytest.raises(StateUnavailable) as caught:
            workspace.history.undo(change.change_id)
        assert caught.value.reason == "blobs_unnamed"
        assert "--blobs" in caught.value.action
        with pytest.raises(StateUnavailable):
            workspace.history.verify()
        workspace.session(agent="a").edit("large.txt", (LINES[1], "one"))  # its new version is kept here

    with opened() as workspace:
        assert workspace.history.verify().ok
        workspace.history.undo(change.change_id)
    assert (root / "large.txt").read_text() == LARGE.replace(LINES[1], "one")


@pytest.mark.parametrize("place", ["inside", "above"])
def test_large_versions_are_not_kept_where_agents_can_write(
    opened: Callable[..., AgentWorkspace], root: Path, place: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        opened(root / "versions" if place == "inside" else root.parent)

    assert caught.value.reason == "blobs_in_root"


def open_store(state: Path, clock: Clock) -> SqliteStore:
    """Open a history as a process of its own would, which remembers nothing that another one put."""
    return SqliteStore(
        state, clock=clock, durability="none", open_blobs=lambda name: LargeVersions(S3Blobs(PLACE, folder=name))
    )


@pytest.fixture
def store(service: ObjectService, tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    store = open_store(tmp_path / "state", clock)
    yield store
    store.close()


def row_of(tmp_path: Path, data: bytes) -> tuple[object, ...]:
    with sqlite3.connect(tmp_path / "state" / "state.db") as connection:
        query = "SELECT depth, data IS NULL, object IS NULL FROM blobs WHERE sha256 = ?"
        return connection.execute(query, (bytes.fromhex(sha(data)),)).fetchone()


@requirement("fleet:blobs:place")
def test_versions_up_to_64_kb_stay_rows_and_larger_ones_are_never_a_base(store: SqliteStore, tmp_path: Path) -> None:
    limit, above = os.urandom(64 * 1024), b"x" * (64 * 1024 + 1)
    store.keep_blobs([blob(limit), blob(above), blob(above[:60_000], above), blob(above + b"y", above)])
    store.keep_blob(blob(above[:50_000], above))

    assert row_of(tmp_path, limit) == (0, 0, 1)
    assert row_of(tmp_path, above)[1:] == (1, 0)
    assert row_of(tmp_path, above + b"y")[1:] == (1, 0)
    assert row_of(tmp_path, above[:60_000]) == row_of(tmp_path, above[:50_000]) == (0, 0, 1)
    assert store.verify().blobs == 5


@requirement("fleet:blobs:place")
def test_a_large_version_is_put_before_the_database_is_locked_also_when_its_base_is_at_hand(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = b"x" * 60_000, b"x" * 70_000
    store.keep_blob(blob(small))
    put, puts = LargeVersions.put, list[str]()

    def put_while_others_may_write(versions: LargeVersions, sha256: str, data: bytes) -> PutObject:
        with closing(sqlite3.connect(tmp_path / "state" / "state.db", timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
        puts.append(sha256)
        return put(versions, sha256, data)

    monkeypatch.setattr(LargeVersions, "put", put_while_others_may_write)
    store.keep_blobs([blob(small), blob(large, small)])

    assert puts == [sha(large)]
    assert (row_of(tmp_path, small), row_of(tmp_path, large)[1:]) == ((0, 0, 1), (1, 0))


@requirement("fleet:blobs:gc")
def test_gc_removes_objects_a_day_after_nothing_needs_them(
    store: SqliteStore, service: ObjectService, clock: Clock
) -> None:
    old, kept = os.urandom(70_000), os.urandom(70_000)
    store.keep_blobs([blob(old)])
    clock.turn(days=40)
    store.keep_blobs([blob(kept)])

    assert store.prune(before=(clock.now - timedelta(days=30)).isoformat()).blobs == 1
    assert objects(service) == sorted([sha(old), sha(kept)])  # put less than a day ago

    service.make_older(hours=25)
    store.prune(before=(clock.now - timedelta(days=30)).isoformat())
    assert objects(service) == [sha(kept)]
    assert store.read_blob(sha(kept)) == kept


@requirement("fleet:blobs:gc")
def test_bytes_that_gc_drops_between_the_put_and_the_begin_are_there_after_the_begin(
    store: SqliteStore, service: ObjectService, clock: Clock, tmp_path: Path
) -> None:
    data = os.urandom(70_000)
    store.keep_blob(blob(data))
    clock.turn(days=40)
    service.make_older(days=40)
    database = Database(tmp_path / "state", durability="none")
    outside = LargeVersions(S3Blobs(PLACE, folder=database.read_name()))
    writer = Blobs(tmp_path / "state" / "blobs", fsync=False, outside=outside)
    with database.read_transaction() as connection:
        prepared = writer.pack_new(connection, [blob(data)])  # they are stored, so nothing is put
    assert store.prune(before=(clock.now - timedelta(days=30)).isoformat()).blobs == 1
    assert objects(service) == []

    with database.write_transaction() as connection:
        writer.insert_blobs(connection, prepared, stored=clock.text)
    database.close()

    assert store.read_blob(sha(data)) == data


def test_gc_goes_on_without_the_service_and_removes_the_rest_next_time(
    store: SqliteStore, service: ObjectService, clock: Clock
) -> None:
    store.keep_blob(blob(os.urandom(70_000)))
    clock.turn(days=40)
    service.make_older(days=40)
    before = (clock.now - timedelta(days=30)).isoformat()

    with service.away():
        assert store.prune(before=before).blobs == 1
    assert len(service.objects) == 1
    store.prune(before=before)

    assert not service.objects


def test_an_older_history_learns_where_large_versions_are(service: ObjectService, tmp_path: Path, clock: Clock) -> None:
    noise = os.urandom(100_000)
    plain = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    plain.keep_blob(blob(noise))
    plain.close()

    store = open_store(tmp_path / "state", clock)
    store.keep_blob(blob(noise + b"!", noise))

    assert store.read_blob(sha(noise)) == noise
    assert objects(service) == [sha(noise + b"!")]
    assert store.verify().blobs == 2
    store.close()

"""Bytes under their name: stored once, packed well, checked when read."""

import errno
import os
import random
import sqlite3
from pathlib import Path

import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Author, Clock, blob, change, intent, sha
from surehold.errors import DiskFailed, NotFound, StateCorrupt
from surehold.stores.base import Begun, Blob, Store
from surehold.stores.postgres.store import PostgresStore, open_postgres_store
from surehold.stores.sqlite.blobs import MAX_DEPTH
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.upkeep import LedgerCheck

NOISE = random.Random(1).randbytes(200_000)  # too large for a row, however it is packed


def database(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "state" / "state.db", isolation_level=None)


def file_of(tmp_path: Path, data: bytes) -> Path:
    return tmp_path / "state" / "blobs" / sha(data)[:2] / sha(data)


@requirement("engine:store:blobs")
@pytest.mark.parametrize("data", [b"", b"x", b"ab" * 100_000, NOISE], ids=["empty", "tiny", "repetitive", "noise"])
def test_bytes_come_back_as_they_were(store: Store, data: bytes) -> None:
    assert not store.has_blob(sha(data))
    store.keep_blob(blob(data))
    store.keep_blob(blob(data))

    assert store.has_blob(sha(data))
    assert store.read_blob(sha(data)) == data
    assert store.verify() == LedgerCheck(entries=0, blobs=1)


@requirement("engine:store:blobs")
def test_bytes_under_a_false_name_are_not_taken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surehold.stores.postgres.blobs._CHECKED_BYTES", 1)  # up to this size
    with pytest.raises(ValueError, match="not"):
        store.keep_blob(Blob(data=b"x", sha256=sha(b"y")))

    assert not store.has_blob(sha(b"y"))


def test_bytes_that_are_gone_say_why(store: Store) -> None:
    with pytest.raises(NotFound) as caught:
        store.read_blob(sha(b"x"))

    assert caught.value.reason == "blob_missing"
    assert sha(b"x") in caught.value.message
    assert "pruned" in caught.value.action


def test_a_base_that_is_itself_or_unknown_is_only_a_hint(store: Store) -> None:
    store.keep_blob(Blob(data=b"x" * 999, sha256=sha(b"x" * 999), base=sha(b"x" * 999)))
    store.keep_blob(blob(b"y" * 999, base=b"never stored"))

    assert store.read_blob(sha(b"x" * 999)) == b"x" * 999
    assert store.read_blob(sha(b"y" * 999)) == b"y" * 999


def versions(count: int, size: int) -> list[bytes]:
    source = random.Random(count)
    lines = [b"line %d %d\n" % (number, source.getrandbits(64)) for number in range(size // 30)]
    found: list[bytes] = []
    for number in range(count):
        lines[source.randrange(len(lines))] = b"edit %d\n" % number
        found.append(b"".join(lines))
    return found


@requirement("engine:store:deltas")
def test_fifty_versions_are_chains_of_at_most_eight_deltas(sqlite: SqliteStore, tmp_path: Path) -> None:
    author = Author(sqlite)
    history = versions(50, size=10_000)
    for data in history:
        author.write("a", data)

    assert [sqlite.read_blob(sha(data)) for data in history] == history
    with database(tmp_path) as raw:
        depths = [depth for (depth,) in raw.execute("SELECT depth FROM blobs ORDER BY rowid")]
        packed = raw.execute("SELECT SUM(packed) FROM blobs").fetchone()[0]
    raw.close()
    assert depths == [number % (MAX_DEPTH + 1) for number in range(50)]
    assert packed < sum(map(len, history)) / 10


@requirement("engine:store:deltas")
def test_a_large_file_with_a_small_edit_costs_little(sqlite: SqliteStore, tmp_path: Path) -> None:
    edited = NOISE[:100_000] + b"edit" + NOISE[100_000:]
    Author(sqlite).write("a", NOISE)
    sqlite.begin(intent("c9", change("a", NOISE, edited)), [blob(NOISE), blob(edited, NOISE)], lease=9, fence=0)

    assert file_of(tmp_path, NOISE).stat().st_mode & 0o777 == 0o600
    assert not file_of(tmp_path, edited).exists()
    assert sqlite.read_blob(sha(edited)) == edited


@requirement("engine:store:blobs", "engine:verify:first_broken")
def test_a_flipped_byte_in_a_row_is_noticed(sqlite: SqliteStore, tmp_path: Path) -> None:
    sqlite.keep_blob(blob(b"some text that is kept"))
    with database(tmp_path) as raw:
        (data,) = raw.execute("SELECT data FROM blobs").fetchone()
        raw.execute("UPDATE blobs SET data = ?", (data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],))
    raw.close()

    assert_damaged(sqlite, b"some text that is kept")


@requirement("engine:store:blobs", "engine:verify:first_broken")
def test_a_flipped_byte_in_a_file_is_noticed(sqlite: SqliteStore, tmp_path: Path) -> None:
    sqlite.keep_blob(blob(NOISE))
    path = file_of(tmp_path, NOISE)
    data = bytearray(path.read_bytes())
    data[5_000] ^= 1
    path.write_bytes(data)

    assert_damaged(sqlite, NOISE)


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_cut_file_is_noticed_and_can_be_stored_again(sqlite: SqliteStore, tmp_path: Path, size: int) -> None:
    sqlite.keep_blob(blob(NOISE))
    os.truncate(file_of(tmp_path, NOISE), size)

    assert not sqlite.has_blob(sha(NOISE))
    assert_damaged(sqlite, NOISE)
    sqlite.keep_blob(blob(NOISE))
    assert sqlite.read_blob(sha(NOISE)) == NOISE


def assert_damaged(store: Store, data: bytes) -> None:
    with pytest.raises(StateCorrupt) as caught:
        store.read_blob(sha(data))
    assert sha(data) in caught.value.message
    assert "surehold verify" in caught.value.action
    verdict = store.verify()
    assert not verdict.ok
    assert verdict == LedgerCheck(entries=0, blobs=1, broken_blobs=(sha(data),), problem="1 blobs are damaged.")


def test_a_delta_whose_base_is_gone_is_damaged_and_not_missing(sqlite: SqliteStore, tmp_path: Path) -> None:
    edited = NOISE + b"edit"
    sqlite.keep_blob(blob(NOISE))
    sqlite.keep_blob(blob(edited, NOISE))
    with database(tmp_path) as raw:
        raw.execute("DELETE FROM blobs WHERE base IS NULL")
    raw.close()

    with pytest.raises(StateCorrupt) as caught:
        sqlite.read_blob(sha(edited))
    assert caught.value.details == {"sha256": sha(edited), "cause": f"Its base {sha(NOISE)} is missing."}


def test_a_lost_base_can_be_stored_again_beside_its_own_delta(sqlite: SqliteStore, tmp_path: Path) -> None:
    edited = NOISE + b"edit"
    sqlite.keep_blob(blob(NOISE))
    sqlite.keep_blob(blob(edited, NOISE))
    file_of(tmp_path, NOISE).unlink()

    # Packed as a delta to its own delta, it would be lost for good.
    both = [blob(edited), blob(NOISE, edited)]
    assert sqlite.begin(intent("c1", change("a", edited, NOISE)), both, lease=9, fence=0) == Begun()

    assert sqlite.read_blob(sha(NOISE)) == NOISE
    assert sqlite.read_blob(sha(edited)) == edited


def test_new_bytes_are_stored_although_their_base_is_damaged(sqlite: SqliteStore, tmp_path: Path) -> None:
    sqlite.keep_blob(blob(NOISE))
    file_of(tmp_path, NOISE).write_bytes(b"rubbish")

    sqlite.keep_blob(blob(NOISE + b"edit", NOISE))

    assert sqlite.read_blob(sha(NOISE + b"edit")) == NOISE + b"edit"


def test_a_row_cannot_unpack_to_more_than_was_recorded(sqlite: SqliteStore, tmp_path: Path) -> None:
    sqlite.keep_blob(blob(b"\x00" * 10_000_000))
    with database(tmp_path) as raw:
        raw.execute("UPDATE blobs SET size = 10")
    raw.close()

    with pytest.raises(StateCorrupt):
        sqlite.read_blob(sha(b"\x00" * 10_000_000))


def test_nothing_is_left_of_a_file_that_did_not_fit(
    sqlite: SqliteStore, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Exception, match="no room") as caught:
        sqlite.keep_blob(blob(NOISE))

    assert type(caught.value).__name__ == "DiskFull"
    assert list((tmp_path / "state" / "blobs").glob("*/*")) == []
    assert not sqlite.has_blob(sha(NOISE))


def test_a_file_that_the_disk_cannot_read_is_not_called_damaged(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite.keep_blob(blob(NOISE))

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(DiskFailed, match="The disk failed under the state directory") as caught:
        sqlite.read_blob(sha(NOISE))

    assert caught.value.details["cause"] == os.strerror(errno.EIO)


@requirement("engine:store:deltas", "fleet:state:place")
def test_processes_that_take_turns_make_no_endless_chain_of_deltas(
    postgres: PostgresStore, postgres_schema: PostgresSchema, clock: Clock
) -> None:
    other = open_postgres_store(postgres_schema.address, workspace="w", root="/w", host="there", clock=clock)
    author, history = Author(postgres), versions(100, size=10_000)
    for number, data in enumerate(history):
        author.store = (postgres, other)[number % 2]
        author.write("a", data)
    other.close()

    assert [postgres.read_blob(sha(data)) for data in history] == history
    assert postgres.verify() == LedgerCheck(entries=100, blobs=100)
    with postgres_schema.connect() as connection:
        deepest, packed = map(str, next(connection.execute("SELECT max(depth), sum(packed) FROM blobs")))
    assert (
        int(deepest) == MAX_DEPTH - 1
    )  # the ends of chains were stored whole when the other process went on from there
    assert int(packed) < sum(map(len, history)) / 10

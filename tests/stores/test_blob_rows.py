"""Stored bytes in the SQLite store: how they are packed, when they are in a file, and what is damaged or missing."""

import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stores.scenes import START, blob, sha
from surehold.errors import BlobsUnavailable, NotFound, StateCorrupt
from surehold.stores.base import Blob
from surehold.stores.blobs.large_versions import LargeVersions, PutObject, open_blobs
from surehold.stores.ledger_entries import microseconds, utc_timestamp
from surehold.stores.packing import base_of, pack_full
from surehold.stores.sqlite import blobs as module
from surehold.stores.sqlite.blobs import MAX_DEPTH, Blobs, check_blobs
from surehold.stores.sqlite.database import Database

NOISE = random.Random(1).randbytes(3_000)
LIMIT = 1_500
"""From how many packed bytes on a version is in a file, in these tests."""
WHEN = utc_timestamp(START)
LATER = "2026-02-01T00:00:00.000000+00:00"


@pytest.fixture(autouse=True)
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROW_LIMIT_BYTES", LIMIT)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state", durability="none")
    yield database
    database.close()


@pytest.fixture
def rows(database: Database) -> Iterator[sqlite3.Connection]:
    with database.write_transaction() as connection:
        yield connection


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "state/blobs", fsync=False)


def store(blobs: Blobs, rows: sqlite3.Connection, *new: Blob, stored: str = WHEN) -> list[Blob]:
    """Store bytes as a transaction does; return what was there before."""
    prepared = blobs.pack_lately(new)
    return blobs.insert_blobs(rows, blobs.pack_new(rows, new) if prepared is None else prepared, stored=stored)


def row_of(rows: sqlite3.Connection, data: bytes) -> tuple[int, str, int, bool]:
    """Return the size, the base and the depth of what is stored, and whether its bytes are in the row."""
    query = "SELECT size, base, depth, data IS NOT NULL FROM blobs WHERE sha256 = ?"
    size, base, depth, in_row = rows.execute(query, (bytes.fromhex(sha(data)),)).fetchone()
    return size, base.hex() if base else "", depth, bool(in_row)


def files(blobs: Blobs) -> list[str]:
    return sorted(path.name for path in blobs.folder.rglob("*") if path.is_file())


def edits(count: int) -> list[bytes]:
    return [NOISE[:1_400] + b"edit %d" % number for number in range(count)]


def test_bytes_are_in_a_row_alone_as_a_difference_or_in_a_file(blobs: Blobs, rows: sqlite3.Connection) -> None:
    small, edited = b"small", NOISE + b"edit"
    assert store(blobs, rows, blob(small), blob(NOISE), blob(edited, NOISE)) == []
    assert [row_of(rows, data) for data in (small, NOISE, edited)] == [
        (5, "", 0, True),
        (3_000, "", 0, False),
        (3_004, sha(NOISE), 1, True),
    ]
    assert files(blobs) == [sha(NOISE)]
    path = blobs.file_path(sha(NOISE))
    assert (path.parent.name, stat.S_IMODE(path.stat().st_mode)) == (sha(NOISE)[:2], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [blobs.load_blob(rows, sha(data)) for data in (small, NOISE, edited)] == [small, NOISE, edited]
    assert all(blobs.has_blob(rows, sha(data)) for data in (small, NOISE, edited))
    assert not blobs.has_blob(rows, sha(b"never"))


@pytest.mark.parametrize("size", [LIMIT - 30, LIMIT - 11, LIMIT - 10, LIMIT - 9, LIMIT])
def test_packed_bytes_above_the_limit_are_in_a_file(blobs: Blobs, rows: sqlite3.Connection, size: int) -> None:
    data = NOISE[:size]
    store(blobs, rows, blob(data))
    assert row_of(rows, data)[3] is (len(pack_full(data)) <= LIMIT)
    assert blobs.load_blob(rows, sha(data)) == data


@pytest.mark.parametrize("count", [1, 12])
def test_what_is_there_is_not_stored_again_and_said(blobs: Blobs, rows: sqlite3.Connection, count: int) -> None:
    new = [blob(NOISE + b"%d" % number) for number in range(count)]
    assert store(blobs, rows, *new) == []
    fresh = Blobs(blobs.folder, fsync=False)
    assert fresh.pack_lately(new) is None
    assert fresh.pack_new(rows, new) == [(one, None) for one in new]
    assert store(fresh, rows, *new, stored=LATER) == new
    assert rows.execute("SELECT DISTINCT stored FROM blobs").fetchall() == [(microseconds(WHEN),)]
    blobs.make_younger(rows, new, stored=LATER)
    assert rows.execute("SELECT DISTINCT stored FROM blobs").fetchall() == [(microseconds(LATER),)]


def test_a_version_twice_in_one_call_is_stored_once(blobs: Blobs, rows: sqlite3.Connection) -> None:
    assert store(blobs, rows, blob(b"x"), blob(b"x")) == [blob(b"x")]


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_what_lost_its_file_does_not_count_and_is_stored_again_alone(
    blobs: Blobs, rows: sqlite3.Connection, count: int, damage: str
) -> None:
    new = [blob(NOISE + b"%d" % number) for number in range(count)]
    store(blobs, rows, *new)
    for one in new:
        path = blobs.file_path(one.sha256)
        path.unlink() if damage == "gone" else os.truncate(path, 9)
        assert not blobs.has_blob(rows, one.sha256)
        with pytest.raises(StateCorrupt) as caught:
            blobs.load_blob(rows, one.sha256)
        assert caught.value.details["sha256"] == one.sha256
    fresh = Blobs(blobs.folder, fsync=False)
    again = [replace(one, base=sha(b"small")) for one in new]
    store(blobs, rows, blob(b"small"))
    assert store(fresh, rows, *again) == again, "their files are there again"
    assert all(blobs.load_blob(rows, one.sha256) == one.data for one in new)
    assert {row_of(rows, one.data)[1:3] for one in new} == {("", 0)}


def test_a_row_whose_file_was_lost_in_between_is_written_whole(blobs: Blobs, rows: sqlite3.Connection) -> None:
    store(blobs, rows, blob(NOISE))
    prepared = Blobs(blobs.folder, fsync=False).pack_new(rows, [blob(NOISE)])
    blobs.file_path(sha(NOISE)).unlink()
    assert blobs.insert_blobs(rows, prepared, stored=WHEN) == []
    assert blobs.load_blob(rows, sha(NOISE)) == NOISE


# Chains of differences


@pytest.mark.parametrize("lately", [True, False], ids=["lately stored", "asked of the database"])
def test_a_chain_of_differences_has_an_end(blobs: Blobs, rows: sqlite3.Connection, *, lately: bool) -> None:
    history = edits(2 * MAX_DEPTH + 3)
    for number, data in enumerate(history):
        base = history[number - 1] if number else None
        used = blobs if lately else Blobs(blobs.folder, fsync=False)
        store(used, rows, *([blob(base)] if base else []), blob(data, base))
    assert [row_of(rows, data)[2] for data in history] == [number % (MAX_DEPTH + 1) for number in range(len(history))]
    assert [blobs.load_blob(rows, sha(data)) for data in history] == history


def test_new_versions_of_what_was_stored_lately_need_no_database(blobs: Blobs, rows: sqlite3.Connection) -> None:
    one, two, other = edits(3)
    assert blobs.pack_lately([blob(one)]) is None
    store(blobs, rows, blob(one))
    prepared = blobs.pack_lately([blob(one), blob(two, one)])
    assert prepared is not None
    (first, nothing), (second, packed) = prepared
    assert (first.sha256, nothing, second.sha256) == (sha(one), None, sha(two))
    assert isinstance(packed, bytes)
    assert base_of(packed) == sha(one)
    assert blobs.pack_lately([blob(two, one)]) is None, "the bytes of the base are not at hand"
    assert blobs.pack_lately([blob(one), blob(two)]) is None, "it names no base"
    assert blobs.pack_lately([blob(one), blob(other, two)]) is None, "its base was never stored"
    assert blobs.pack_lately([blob(two, other), blob(other)]) is None, "its base is not stored yet"
    assert blobs.pack_lately([blob(one), blob(NOISE[::-1], one)]) is None, "it needs a file"
    assert blobs.pack_lately([]) == []


def test_only_so_many_versions_are_known_as_stored_lately(
    blobs: Blobs, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LATELY_STORED", 2)
    one, two, three = (blob(data) for data in edits(3))
    store(blobs, rows, one, two)
    assert blobs.pack_lately([one, two]) == [(one, None), (two, None)]
    store(blobs, rows, three)
    assert (blobs.pack_lately([one]), blobs.pack_lately([two, three])) == (None, [(two, None), (three, None)])


def test_what_was_pruned_meanwhile_is_stored_whole(blobs: Blobs, rows: sqlite3.Connection) -> None:
    one, two = edits(2)
    store(blobs, rows, blob(one))
    prepared = blobs.pack_lately([blob(one), blob(two, one)])
    rows.execute("DELETE FROM blobs")
    assert prepared is not None
    assert blobs.insert_blobs(rows, prepared[1:], stored=WHEN) == []
    assert (row_of(rows, two)[1:3], blobs.load_blob(rows, sha(two))) == (("", 0), two)
    rows.execute("DELETE FROM blobs")
    assert blobs.insert_blobs(rows, prepared, stored=WHEN) == []
    assert [blobs.load_blob(rows, sha(data)) for data in (one, two)] == [one, two]


@pytest.mark.parametrize("base", ["itself", "unknown", "damaged", "too deep"])
def test_a_base_that_is_of_no_use_is_left_out(blobs: Blobs, rows: sqlite3.Connection, base: str) -> None:
    data, name = NOISE + b"edit", {"itself": sha(NOISE + b"edit"), "unknown": sha(b"unknown")}.get(base, sha(NOISE))
    if base in {"damaged", "too deep"}:
        store(blobs, rows, blob(NOISE))
    if base == "damaged":
        blobs.file_path(sha(NOISE)).write_bytes(b"x" * blobs.file_path(sha(NOISE)).stat().st_size)
    if base == "too deep":
        rows.execute("UPDATE blobs SET depth = ?", (MAX_DEPTH,))
    store(Blobs(blobs.folder, fsync=False), rows, Blob(data=data, sha256=sha(data), base=name))
    assert (row_of(rows, data)[1:3], blobs.load_blob(rows, sha(data))) == (("", 0), data)


def test_a_base_in_the_database_is_used_up_to_the_last_depth(blobs: Blobs, rows: sqlite3.Connection) -> None:
    store(blobs, rows, blob(NOISE))
    rows.execute("UPDATE blobs SET depth = ?", (MAX_DEPTH - 1,))
    store(Blobs(blobs.folder, fsync=False), rows, blob(NOISE + b"edit", NOISE))
    assert row_of(rows, NOISE + b"edit")[1:3] == (sha(NOISE), MAX_DEPTH)


def test_a_large_difference_is_not_kept_as_one(
    blobs: Blobs, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_DELTA_LIMIT_BYTES", 10)
    store(blobs, rows, blob(NOISE), blob(NOISE + b"edit", NOISE))
    assert row_of(rows, NOISE + b"edit") == (3_004, "", 0, False)


def test_a_version_is_packed_again_without_its_base(blobs: Blobs, rows: sqlite3.Connection) -> None:
    for base, edited in ((b"s" * 500 + NOISE[:900], b"s" * 500 + NOISE[:900] + b"edit"), (NOISE, NOISE + b"edit")):
        store(blobs, rows, blob(base), blob(edited, base))
        assert row_of(rows, edited)[1] == sha(base)
        alone = blobs.pack_alone(rows, sha(edited))
        assert (alone.sha256, alone.size, alone.packed) == (sha(edited), len(edited), pack_full(edited))
        assert row_of(rows, edited)[1] == sha(base), "nothing is changed by that alone"
        blobs.put_alone(rows, alone, stored=5)
        rows.execute("DELETE FROM blobs WHERE sha256 = ?", (bytes.fromhex(sha(base)),))
        assert (row_of(rows, edited)[1:3], blobs.load_blob(rows, sha(edited))) == (("", 0), edited)
    assert rows.execute("SELECT DISTINCT stored FROM blobs").fetchall() == [(5,)]


# Damage


def test_what_is_missing_and_what_is_damaged_are_told_apart(blobs: Blobs, rows: sqlite3.Connection) -> None:
    with pytest.raises(NotFound) as missing:
        blobs.load_blob(rows, sha(b"never"))
    assert missing.value.reason == "blob_missing"
    one, two = edits(2)
    store(blobs, rows, blob(one), blob(two, one))
    rows.execute("UPDATE blobs SET size = size + 1 WHERE base IS NULL")
    for data in (one, two):
        with pytest.raises(StateCorrupt):
            blobs.load_blob(rows, sha(data))
    rows.execute("UPDATE blobs SET size = size - 1, data = ? WHERE base IS NULL", (pack_full(one[::-1]),))
    with pytest.raises(StateCorrupt) as other:
        blobs.load_blob(rows, sha(one))
    assert other.value.details["cause"] == "The bytes have another hash."
    rows.execute("DELETE FROM blobs WHERE base IS NULL")
    with pytest.raises(StateCorrupt) as gone:
        blobs.load_blob(rows, sha(two))
    assert gone.value.details["cause"] == f"Its base {sha(one)} is missing."


def test_a_circle_of_differences_ends(blobs: Blobs, rows: sqlite3.Connection) -> None:
    one, two = edits(2)
    store(blobs, rows, blob(one), blob(two, one))
    rows.execute("UPDATE blobs SET base = ? WHERE base IS NULL", (bytes.fromhex(sha(two)),))
    with pytest.raises(StateCorrupt):
        blobs.load_blob(rows, sha(two))


@pytest.mark.parametrize("size", [5, 6])
def test_the_name_of_small_bytes_is_checked_before_they_are_stored(
    blobs: Blobs, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(module, "_CHECKED_BYTES", 5)
    false = Blob(data=b"x" * size, sha256=sha(b"y"))
    if size == 5:
        with pytest.raises(ValueError, match="are not"):
            store(blobs, rows, false)
    else:
        store(blobs, rows, false)
        with pytest.raises(StateCorrupt):
            blobs.load_blob(rows, false.sha256)


def test_all_bytes_are_checked_and_the_damaged_ones_are_named(
    blobs: Blobs, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE_ROWS", 2)
    monkeypatch.setattr(module, "_KEPT_BYTES", 4_000)
    history = [*edits(5), NOISE]
    with database.write_transaction() as rows:
        for number, data in enumerate(history):
            base = history[number - 1] if 0 < number < 5 else None
            store(blobs, rows, *([blob(base)] if base else []), blob(data, base))
    read = list[str]()

    def read_blob(sha256: str) -> bytes:
        read.append(sha256)
        with database.read_transaction() as rows:
            return blobs.load_blob(rows, sha256)

    assert check_blobs(database.read_transaction, read_blob) == (6, ())
    assert read == [sha(NOISE)], "what follows from the one before is not read again"
    with database.write_transaction() as rows:
        query = "UPDATE blobs SET data = ? WHERE sha256 = ?"
        other = pack_full(history[0][::-1])  # of the same size
        rows.execute(query, (other, bytes.fromhex(sha(history[0]))))
    blobs.file_path(sha(NOISE)).unlink()
    damaged = tuple(sorted(sha(data) for data in history))
    assert check_blobs(database.read_transaction, read_blob) == (6, damaged)

    def prune(sha256: str) -> bytes:
        raise NotFound("pruned", path=sha256)

    assert check_blobs(database.read_transaction, prune) == (0, ())


def test_a_temporary_file_is_not_left_and_a_file_that_is_there_is_not_written_again(
    blobs: Blobs, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(Exception, match="no room"):
            store(blobs, rows, blob(NOISE))
    assert files(blobs) == []
    store(blobs, rows, blob(NOISE))
    rows.execute("DELETE FROM blobs")
    monkeypatch.setattr(Path, "replace", fail)
    store(Blobs(blobs.folder, fsync=False), rows, blob(NOISE))
    assert blobs.load_blob(rows, sha(NOISE)) == NOISE


@pytest.mark.parametrize("fsync", [True, False])
def test_a_file_and_the_directories_above_it_are_synced(
    tmp_path: Path, rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, *, fsync: bool
) -> None:
    synced = list[str]()

    def note(fd: int) -> None:
        synced.append(f"{os.fstat(fd).st_size} bytes")

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(module, "sync_folder", lambda folder: synced.append(folder.name))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownMemberType]
    store(Blobs(tmp_path / "state/blobs", fsync=fsync), rows, blob(NOISE))
    assert synced == ([f"{len(pack_full(NOISE))} bytes", sha(NOISE)[:2], "blobs", "state"] if fsync else [])


# Elsewhere


class SmallLarge(LargeVersions):
    """Takes what begins with an L, however small it is, and can be away."""

    away = False

    def takes(self, data: bytes) -> bool:
        return data.startswith(b"L")

    def put(self, sha256: str, data: bytes) -> PutObject:
        if self.away:
            raise BlobsUnavailable("away")
        return super().put(sha256, data)


@pytest.fixture
def outside(tmp_path: Path) -> SmallLarge:
    return SmallLarge(open_blobs(str(tmp_path / "large"), folder="h", fsync=False).blobs)


@pytest.fixture
def apart(tmp_path: Path, outside: SmallLarge) -> Blobs:
    return Blobs(tmp_path / "state/blobs", fsync=False, outside=outside)


def test_large_versions_are_elsewhere_and_no_base_of_others(
    apart: Blobs, blobs: Blobs, rows: sqlite3.Connection, outside: SmallLarge
) -> None:
    large, small = b"L" + NOISE[:900], NOISE[:900] + b"small"
    assert store(apart, rows, blob(large)) == []
    assert apart.pack_lately([blob(large)]) == [(blob(large), None)]
    assert apart.pack_lately([blob(large), blob(b"L2", large)]) is None
    assert store(apart, rows, blob(large), blob(small, large)) == [blob(large)]
    store(Blobs(apart.folder, fsync=False, outside=outside), rows, blob(b"L" + small, small))
    assert row_of(rows, large) == (901, "", MAX_DEPTH, False)
    assert row_of(rows, small)[1:3] == ("", 0)
    assert row_of(rows, b"L" + small) == (906, "", MAX_DEPTH, False)
    assert [apart.load_blob(rows, sha(data)) for data in (large, small)] == [large, small]
    assert apart.has_blob(rows, sha(large))
    assert files(apart) == []
    with pytest.raises(Exception, match=sha(large)):
        blobs.load_blob(rows, sha(large))


def test_what_cannot_be_put_elsewhere_is_refused_unless_it_is_optional(
    apart: Blobs, rows: sqlite3.Connection, outside: SmallLarge
) -> None:
    outside.away = True
    new = [blob(b"L1"), blob(b"small")]
    with pytest.raises(BlobsUnavailable):
        apart.pack_new(rows, new)
    prepared = apart.pack_new(rows, new, is_optional=True)
    assert [one.sha256 for one, _ in prepared] == [sha(b"small")]
    outside.away = False
    prepared = apart.pack_new(rows, new)
    assert [type(packed) for _, packed in prepared] == [PutObject, bytes]
    assert Blobs(apart.folder, fsync=False).insert_blobs(rows, prepared, stored=WHEN) == []
    assert apart.load_blob(rows, sha(b"L1")) == b"L1", "where nothing is elsewhere, it is packed here"
    assert row_of(rows, b"L1")[3] is True


def test_what_was_packed_here_goes_elsewhere_where_that_is_wanted(
    apart: Blobs, blobs: Blobs, rows: sqlite3.Connection
) -> None:
    prepared = blobs.pack_new(rows, [blob(b"L1")])
    apart.insert_blobs(rows, prepared, stored=WHEN)
    assert (row_of(rows, b"L1")[2:], apart.load_blob(rows, sha(b"L1"))) == ((MAX_DEPTH, False), b"L1")

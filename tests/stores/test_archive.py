"""Old entries are sealed in an archive: they are found and verified as before, and take less room."""

# Some of these reach inside, to come between two turns, or to count what is read.
# pyright: reportPrivateUsage=false

import random
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import Author, Clock, fill_history
from surehold.errors import DiskFull, StateCorrupt
from surehold.stores.base import Entry, LedgerQuery
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.sqlite import archive, prune
from surehold.stores.sqlite.store import SqliteStore

ENTRIES, SEALED = 700, 511
"""Two blocks of 256 are sealed; there is no entry 0."""


@pytest.fixture
def long(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    fill_history(tmp_path / "state", ENTRIES)
    clock.turn(days=2)
    store = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    yield store
    store.close()


@pytest.fixture
def raw(long: SqliteStore, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "state" / "state.db", isolation_level=None)) as connection:
        yield connection


def clean_up(store: SqliteStore, clock: Clock, *, dry_run: bool = False) -> int:
    """Seal what is older than a day: of the entries of two days, the first 1,440 minutes."""
    pruned = store.prune(before=utc_timestamp(clock.now - timedelta(days=1)), dry_run=dry_run)
    return pruned.details["archived"]


def drop_triggers(raw: sqlite3.Connection) -> None:
    names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in names:
        raw.execute(f"DROP TRIGGER {name}")


def all_entries(store: SqliteStore) -> tuple[Entry, ...]:
    return store.list_entries(LedgerQuery(limit=10_000))


QUERIES = [
    LedgerQuery(limit=10_000),
    LedgerQuery(limit=ENTRIES - SEALED + 3),
    LedgerQuery(ok_only=True, limit=600),
    LedgerQuery(path="d1/deep/f3.py", limit=1000),
    LedgerQuery(path="d1/deep/f3.py", limit=9, ok_only=True),
    LedgerQuery(path="moved/g0", limit=1000),
    LedgerQuery(path="d1/deep", limit=1000),
    LedgerQuery(path="d1/deep/f3.py", operation="edit", after_seq=40, before_seq=500),
    LedgerQuery(under="d2", limit=1000),
    LedgerQuery(under="d2/deep/", limit=100, before_seq=300),
    LedgerQuery(under="moved", limit=1000),
    LedgerQuery(under="d2/de", limit=1000),
    LedgerQuery(session="session-1", limit=1000),
    LedgerQuery(session="session-5", limit=1000),
    LedgerQuery(session="session", limit=1000),
    LedgerQuery(agent="agent", limit=1000),
    LedgerQuery(agent="agent-1", limit=1000),
    LedgerQuery(agent="agent-11", session="session-2", operation="edit", limit=1000),
    LedgerQuery(operation="undo", limit=1000),
    LedgerQuery(operation="gc", limit=1000),
    LedgerQuery(change_id="change-127", limit=1000),
    LedgerQuery(change_id="change-255", limit=1000),
    LedgerQuery(change_id="change-3", ok_only=True, limit=1),
    LedgerQuery(change_id="change-9999", limit=1000),
    LedgerQuery(undoes="change-26", limit=1000),
    LedgerQuery(undoes="change-17", limit=1000),
    LedgerQuery(undoes="change-17", ok_only=True, limit=1),
    LedgerQuery(since="2026-01-01T01:00:00.000000+00:00", until="2026-01-01T05:00:00.000000+00:00", limit=1000),
    LedgerQuery(until="2026-01-01T00:03:00.000000+00:00", limit=1000),
    LedgerQuery(since="2026-01-01T08:00:00.000000+00:00", limit=1000),
    LedgerQuery(after_seq=SEALED, limit=1000),
    LedgerQuery(after_seq=SEALED - 1, before_seq=SEALED + 2, limit=1000),
    LedgerQuery(before_seq=2),
    LedgerQuery(limit=0),
]


@requirement("engine:archive:read")
def test_archived_entries_are_found_as_before(long: SqliteStore, clock: Clock) -> None:
    places = [(path, after) for path in ("d1/deep/f3.py", "moved/g0", "x") for after in (0, 1, 300, SEALED, 600, 9_999)]
    before = [long.list_entries(query) for query in QUERIES]
    writers = [long.list_writers(path, after_seq=after) for path, after in places]
    assert sum(map(bool, before)) > 25

    assert clean_up(long, clock) == SEALED

    for query, expected in zip(QUERIES, before, strict=True):
        assert long.list_entries(query) == expected, query
    assert [long.list_writers(path, after_seq=after) for path, after in places] == writers


@requirement("engine:archive:sealed", "engine:archive:chain")
def test_old_entries_are_sealed_and_the_chain_goes_on(long: SqliteStore, raw: sqlite3.Connection, clock: Clock) -> None:
    before = all_entries(long)

    assert clean_up(long, clock, dry_run=True) == SEALED
    assert raw.execute("SELECT COUNT(*) FROM archive").fetchone() == (0,)
    assert (clean_up(long, clock), clean_up(long, clock)) == (SEALED, 0)

    assert raw.execute("SELECT COUNT(*), MIN(seq) FROM entries").fetchone() == (ENTRIES - SEALED, SEALED + 1)
    author = Author(long)
    for number in range(80):
        author.write("new", b"%d" % number)
    clock.turn(days=3)
    assert clean_up(long, clock) == 256
    verdict = long.verify()
    assert (verdict.ok, verdict.entries) == (True, ENTRIES + 80 + 1)
    found = all_entries(long)
    assert found[-ENTRIES:] == before
    assert [one.previous for one in found[:-1]] == [one.hash for one in found[1:]]


@requirement("engine:archive:sealed")
def test_the_newest_entries_stay_in_rows_whatever_is_asked_for(long: SqliteStore, clock: Clock) -> None:
    clock.now -= timedelta(days=2) - timedelta(minutes=400)

    assert long.prune(before=utc_timestamp(clock.now)).details["archived"] == 255


@requirement("engine:gc:shrinks")
def test_an_archived_entry_takes_less_than_half(long: SqliteStore, raw: sqlite3.Connection, clock: Clock) -> None:
    def pages() -> int:
        (used,) = raw.execute(
            "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
        ).fetchone()
        return used

    before, empty = pages(), 25
    clean_up(long, clock)

    rest = (before - empty) * (ENTRIES - SEALED) / ENTRIES
    assert pages() - empty < rest + (before - empty - rest) / 2
    assert raw.execute("PRAGMA freelist_count").fetchone() == (0,)


def _flip(value: bytes | str | int, bit: int) -> bytes | str | int:
    if isinstance(value, int):
        return value ^ 1 << bit
    data = bytearray(value.encode() if isinstance(value, str) else value)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data).decode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(data)


@requirement("engine:archive:verified")
@pytest.mark.parametrize("block", [0, 1])
def test_every_flipped_bit_is_found(long: SqliteStore, raw: sqlite3.Connection, clock: Clock, block: int) -> None:
    clean_up(long, clock)
    drop_triggers(raw)
    assert archive.verify_archive(raw)[1] == ""
    luck = random.Random(block)
    for column in ("block", "hash", "oldest", "newest", "size", "sha256", "data"):
        (value,) = raw.execute(f"SELECT {column} FROM archive WHERE block = ?", (block,)).fetchone()
        bits = range(1, 20) if isinstance(value, int) else range(len(value) * 8)
        for bit in luck.sample(bits, min(len(bits), 40)):
            raw.execute("BEGIN")
            changed = _flip(value, bit)
            if isinstance(changed, str) and not changed.isascii():
                changed = changed.encode("utf-8", "surrogateescape")
            raw.execute(f"UPDATE archive SET {column} = ? WHERE block = ?", (changed, block))
            assert archive.verify_archive(raw)[1], (column, bit)
            raw.execute("ROLLBACK")


@requirement("engine:archive:verified")
@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("DELETE FROM archive WHERE block = 0", 1),
        ("DELETE FROM archive WHERE block = 1", 256),
        ("DELETE FROM archive", 1),
        ("UPDATE archive SET data = (SELECT data FROM archive WHERE block = 0) WHERE block = 1", 256),
        ("UPDATE archive SET data = NULL, size = NULL WHERE block = 1", 256),
        ("UPDATE archive SET hash = 'x' WHERE block = 1", 256),
        ("DELETE FROM entries WHERE seq = 512", 512),
        ("UPDATE entries SET previous = zeroblob(32) WHERE seq = 512", 512),
        ("UPDATE entries SET seq = 500 WHERE seq = 512", 512),
    ],
)
def test_verify_names_what_was_altered_in_the_archive_and_at_its_seam(
    long: SqliteStore, raw: sqlite3.Connection, clock: Clock, statement: str, broken: int
) -> None:
    clean_up(long, clock)
    drop_triggers(raw)
    if "NULL" in statement:
        raw.execute("CREATE TABLE loose AS SELECT * FROM archive")
        raw.execute("DROP TABLE archive")
        raw.execute("ALTER TABLE loose RENAME TO archive")

    raw.execute(statement)

    verdict = long.verify()
    assert (verdict.ok, verdict.broken_seq) == (False, broken)
    assert f" {broken} " in verdict.problem


@requirement("engine:archive:verified")
def test_reading_a_damaged_block_says_so(long: SqliteStore, raw: sqlite3.Connection, clock: Clock) -> None:
    clean_up(long, clock)
    drop_triggers(raw)
    raw.execute("UPDATE archive SET data = substr(data, 1, 500) WHERE block = 0")

    assert len(long.list_entries(LedgerQuery(limit=ENTRIES - 255))) == ENTRIES - 255
    with pytest.raises(StateCorrupt, match="The archive of the entries 1 to 255 is damaged"):
        all_entries(long)


@requirement("engine:archive:sealed")
@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM entries WHERE seq = 512", "DELETE FROM archive", "UPDATE archive SET size = 0 WHERE block = 1"],
)
def test_the_database_itself_refuses_to_lose_an_entry(
    long: SqliteStore, raw: sqlite3.Connection, clock: Clock, statement: str
) -> None:
    clean_up(long, clock)

    with pytest.raises(sqlite3.IntegrityError, match="the ledger only grows"):
        raw.execute(statement)
    with pytest.raises(sqlite3.IntegrityError, match="the archive has no gap"):
        raw.execute("INSERT INTO archive SELECT 3, hash, oldest, newest, size, sha256, data FROM archive")


@requirement("engine:archive:verified")
@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET agent = x'78' WHERE seq = 300", "DELETE FROM entries WHERE seq = 300"]
)
def test_what_was_altered_is_not_sealed(
    long: SqliteStore, raw: sqlite3.Connection, clock: Clock, statement: str
) -> None:
    drop_triggers(raw)
    raw.execute(statement)

    with pytest.raises(StateCorrupt, match="Entry 300 of the history is damaged"):
        clean_up(long, clock)

    assert raw.execute("SELECT MAX(block) FROM archive").fetchone() == (0,)
    assert long.verify().broken_seq == 300


def between_turns(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, work: Callable[[int], None]) -> None:
    """Do something before each turn of a clean-up."""
    whole, turns = store._database.write_transaction, list[int]()

    @contextmanager
    def let_others_in(*, durable: bool = True, patience: float | None = None) -> Generator[sqlite3.Connection]:
        turns.append(1)
        work(len(turns))
        with whole(durable=durable, patience=patience) as connection:
            yield connection

    monkeypatch.setattr(store._database, "write_transaction", let_others_in)


@requirement("engine:gc:in_turns", "engine:archive:sealed")
def test_others_write_and_clean_up_between_two_turns(
    long: SqliteStore, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_entries(long)
    other = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    author = Author(other)

    def work(turn: int) -> None:
        author.write("new", b"%d" % turn)
        if turn == 2:
            assert clean_up(other, clock) == SEALED

    between_turns(long, monkeypatch, work)
    clean_up(long, clock)

    assert all_entries(other)[-ENTRIES:] == before
    assert (other.verify().ok, author.number > 2) == (True, True)
    other.close()


@requirement("engine:archive:interrupted")
def test_a_full_disk_leaves_the_history_whole(
    long: SqliteStore, raw: sqlite3.Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_entries(long)
    full = True

    def fill_the_disk(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {1 if full else 1 << 30}")  # SQLite takes the present size for 1

    whole = long._database.short_turn

    @contextmanager
    def short_turn() -> Generator[sqlite3.Connection]:
        with whole() as connection:
            fill_the_disk(connection)
            yield connection

    monkeypatch.setattr(long._database, "short_turn", short_turn)
    with pytest.raises(DiskFull):
        clean_up(long, clock)

    assert all_entries(long) == before
    assert long.verify().ok
    full = False
    assert clean_up(long, clock) > 0
    assert raw.execute("SELECT MAX(block) FROM archive").fetchone() == (1,)
    assert (all_entries(long), long.verify().ok) == (before, True)


@requirement("engine:archive:read")
@pytest.mark.parametrize(
    ("query", "blocks"),
    [
        (LedgerQuery(change_id="change-3"), 1),
        (LedgerQuery(change_id="never"), 0),
        (LedgerQuery(path="never"), 0),
        (LedgerQuery(under="never", limit=1), 0),
        (LedgerQuery(session="session-0", limit=1000), 1),
        (LedgerQuery(until="2026-01-01T00:03:00.000000+00:00"), 1),
        (LedgerQuery(after_seq=SEALED, limit=1000), 0),
        (LedgerQuery(limit=10), 0),
        (LedgerQuery(limit=ENTRIES - SEALED + 1), 1),
    ],
)
def test_only_blocks_that_may_have_it_are_read(
    long: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, query: LedgerQuery, blocks: int
) -> None:
    clean_up(long, clock)
    read, seen = archive._read_links, list[int]()

    def count(row: archive._BlockRow, start: str) -> list[archive._Link]:
        seen.append(row[0])
        return read(row, start)

    monkeypatch.setattr(archive, "_read_links", count)
    long.list_entries(query)

    assert len(seen) == blocks


@requirement("engine:gc:in_turns")
def test_rows_of_every_kind_go_in_turns(long: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    author = Author(long)
    for number in range(25):
        author.write("a", b"%d" % number, idempotency_key=f"key-{number}")
    monkeypatch.setattr(prune, "_ROWS_PER_TURN", 10)
    clock.turn(days=40)

    pruned = long.prune(before=utc_timestamp(clock.now - timedelta(days=1)))

    assert (pruned.details["answers"], pruned.blobs) == (25, 24)
    assert long.look(["a"], idempotency_key="key-3").earlier is None

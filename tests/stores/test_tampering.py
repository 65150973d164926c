"""Whoever changes the history leaves a trace: `verify` names the first entry that does not fit."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import Author, unpack_bodies
from surehold.errors import StateCorrupt
from surehold.stores import ledger_entries
from surehold.stores.base import LedgerQuery
from surehold.stores.ledger_entries import chain_hash
from surehold.stores.sqlite import entry_rows
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.upkeep import LedgerCheck

Tamper = Callable[[sqlite3.Connection], object]


@pytest.fixture
def raw(sqlite: SqliteStore, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    author = Author(sqlite)
    for number in range(10):
        author.write(f"file-{number}", b"%d" % number, agent="ada")
    connection = sqlite3.connect(tmp_path / "state" / "state.db", isolation_level=None)
    yield connection
    connection.close()


def drop_triggers(raw: sqlite3.Connection) -> None:
    raw.execute("DROP TRIGGER entries_are_never_changed")
    raw.execute("DROP TRIGGER entries_are_never_removed")


def reorder(raw: sqlite3.Connection) -> None:
    rows = {seq: raw.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()[0] for seq in (4, 7)}
    raw.execute("UPDATE entries SET body = ? WHERE seq = 4", (rows[7],))
    raw.execute("UPDATE entries SET body = ? WHERE seq = 7", (rows[4],))


def swap_rows(raw: sqlite3.Connection) -> None:
    for old, new in ((4, 99), (7, 4), (99, 7)):
        raw.execute("UPDATE entries SET seq = ? WHERE seq = ?", (new, old))


def forge_from(seq: int) -> Tamper:
    """Change one entry and calculate every later hash again, as an expert would."""

    def forge(raw: sqlite3.Connection) -> None:
        unpack_bodies(raw)
        raw.execute("UPDATE entries SET body = replace(body, 'ada', 'eve'), agent = x'657665' WHERE seq = ?", (seq,))
        previous = raw.execute("SELECT previous FROM entries WHERE seq = ?", (seq,)).fetchone()[0].hex()
        for number, body in raw.execute("SELECT seq, body FROM entries WHERE seq >= ? ORDER BY seq", (seq,)).fetchall():
            own = chain_hash(previous, body.encode())
            raw.execute("UPDATE entries SET previous = ?, hash = ? WHERE seq = ?", (previous, own, number))
            previous = own

    return forge


def sql(statement: str) -> Tamper:
    return lambda raw: raw.execute(statement)


@requirement("engine:verify:first_broken", "engine:verify:clean", "engine:ledger:chained")
@pytest.mark.parametrize(
    ("tamper", "broken", "problem"),
    [
        (sql("UPDATE entries SET body = replace(body, 'ada', 'eve') WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET body = 'rubbish' WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET body = CAST(x'ff00' AS TEXT) WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET path = x'78' WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET operation = 'edit' WHERE seq = 5"), 5, "filed under other words"),
        (sql("UPDATE entries SET ok = 0 WHERE seq = 5"), 5, "filed under other words"),
        (sql("DELETE FROM entries WHERE seq = 5"), 5, "missing"),
        (sql("DELETE FROM entries WHERE seq = 1"), 1, "missing"),
        (sql("DELETE FROM entries WHERE seq > 8"), 9, "missing"),
        (sql("DELETE FROM entries"), 1, "missing"),
        (sql("UPDATE entries SET hash = 'x' WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET hash = (SELECT hash FROM entries WHERE seq = 6) WHERE seq = 5"), 5, "was changed"),
        (sql("UPDATE entries SET previous = 'x' WHERE seq = 5"), 5, "does not follow"),
        (reorder, 4, "was changed"),
        (swap_rows, 4, "does not follow"),
        (forge_from(8), 10, "not the one that ended"),
        (sql("UPDATE tip SET seq = 8, hash = (SELECT hash FROM entries WHERE seq = 8)"), 9, "not the one that ended"),
        (sql("UPDATE tip SET hash = 'x'"), 10, "not the one that ended"),
    ],
)
def test_tampering_is_noticed_and_the_first_broken_entry_named(
    sqlite: SqliteStore, raw: sqlite3.Connection, tamper: Tamper, broken: int, problem: str
) -> None:
    assert sqlite.verify() == LedgerCheck(entries=10, blobs=10)
    drop_triggers(raw)

    tamper(raw)

    verdict = sqlite.verify()
    assert (verdict.ok, verdict.broken_seq, verdict.broken_blobs) == (False, broken, ())
    assert problem in verdict.problem
    assert f"Entry {broken} " in verdict.problem


def test_a_cut_tail_stays_visible_after_later_entries(sqlite: SqliteStore, raw: sqlite3.Connection) -> None:
    drop_triggers(raw)
    raw.execute("DELETE FROM entries WHERE seq > 8")

    Author(sqlite, number=10).write("later", b"x")

    assert sqlite.verify().broken_seq == 9


def test_an_entry_behind_the_end_is_not_overwritten(sqlite: SqliteStore, raw: sqlite3.Connection) -> None:
    raw.execute("UPDATE tip SET seq = 8")

    with pytest.raises(StateCorrupt):
        Author(sqlite, number=10).write("later", b"x")

    assert len(sqlite.list_entries(LedgerQuery())) == 10


@requirement("engine:ledger:chained")
@pytest.mark.parametrize("statement", ["UPDATE entries SET agent = x''", "DELETE FROM entries WHERE seq = 10"])
def test_the_database_itself_refuses_to_change_an_entry(
    sqlite: SqliteStore, raw: sqlite3.Connection, statement: str
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="the ledger only grows"):
        raw.execute(statement)

    assert sqlite.verify().ok


@requirement("engine:ledger:read_once")
def test_an_entry_that_was_read_is_not_parsed_again(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    author = Author(sqlite)
    for number in range(10):
        author.write(f"file-{number}", b"%d" % number, agent="ada")
    everything = LedgerQuery(limit=100)
    first, parsed = sqlite.list_entries(everything), list[str | bytes]()
    from_json = ledger_entries.from_json

    def count(text: str | bytes) -> ledger_entries.Json:
        parsed.append(text)
        return from_json(text)

    monkeypatch.setattr(ledger_entries, "from_json", count)
    assert sqlite.list_entries(everything) == first
    assert sqlite.list_entries(LedgerQuery(path="file-3")) == first[6:7]
    assert parsed == []

    author.write("file-10", b"10", agent="ada")
    assert sqlite.list_entries(everything)[1:] == first
    assert len(parsed) == 1


@requirement("engine:ledger:read_once")
def test_an_entry_that_was_altered_after_it_was_read_is_read_again(
    sqlite: SqliteStore, raw: sqlite3.Connection
) -> None:
    assert {entry.call.agent for entry in sqlite.list_entries(LedgerQuery(limit=100))} == {"ada"}
    drop_triggers(raw)
    unpack_bodies(raw)
    raw.execute("UPDATE entries SET body = replace(body, 'ada', 'eve') WHERE seq = 4")

    agents = [entry.call.agent for entry in sqlite.list_entries(LedgerQuery(limit=100))]
    assert agents == [*["ada"] * 6, "eve", *["ada"] * 3]
    raw.execute("UPDATE entries SET body = x'00' WHERE seq = 4")

    with pytest.raises(StateCorrupt, match="Entry 4 of the history is damaged"):
        sqlite.list_entries(LedgerQuery(limit=100))


@requirement("engine:ledger:read_once")
def test_of_entries_that_were_read_only_some_are_kept(sqlite: SqliteStore, raw: sqlite3.Connection) -> None:
    """The kept ones are bounded in number and in length, so reading a long history takes no more memory for good."""
    kept, row = entry_rows.ReadEntries(), next(entry_rows.rows_between(raw))
    for number in range(5_000):
        kept.entry_of((*row[:11], b"%d" % number, *row[12:]))
    assert 1_000 <= len(kept) <= 2_048

    before, long_diff = len(kept), "x" * 5_000
    body = ledger_entries.from_json(entry_rows.body_of_row(row))
    body["change"]["diff"] = long_diff
    plain = ledger_entries.to_canonical_json(body).encode("ascii")
    assert kept.entry_of((*row[:11], b"long", row[12], 1, plain)).change.diff == long_diff
    assert len(kept) == before

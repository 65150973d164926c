"""Opening the state directory: what is made there, and what is said when it cannot be used."""

# Some of these reach inside, to stop the store in the middle.
# pyright: reportPrivateUsage=false

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import ELSEWHERE, Author, Clock, blob, call, change, intent, make_older, sha, unpack_bodies
from surehold.errors import DiskFull, LockTimeout, StateCorrupt, StateTooNew, StateUnavailable, WorkspaceClosed
from surehold.stores import ledger_entries
from surehold.stores.base import Begun, LedgerQuery
from surehold.stores.owner import current_owner
from surehold.stores.sqlite import database, entry_rows, schema
from surehold.stores.sqlite.store import SqliteStore


def fill(state: Path, clock: Clock) -> None:
    store = SqliteStore(state, clock=clock, durability="none")
    author = Author(store)
    for number in range(50):
        author.write(f"{number}", os.urandom(2_000))
    store.close()


@requirement("engine:state:private")
def test_the_directory_is_private_and_explains_itself(tmp_path: Path, clock: Clock) -> None:
    state = tmp_path / "not" / "there" / "yet"
    store = SqliteStore(state, clock=clock)
    Author(store).write("a", b"x")

    assert {path.name: oct(path.stat().st_mode & 0o777) for path in (state, *state.iterdir())} == {
        "yet": "0o700",
        "README": "0o600",
        "state.db": "0o600",
        "state.db-shm": "0o600",
        "state.db-wal": "0o600",
        "state.lock": "0o600",
        "state.sync": "0o600",
    }
    assert "surehold undo" in (state / "README").read_text()
    store.close()


def test_a_history_outlives_its_store(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, clock)

    store = SqliteStore(tmp_path, clock=clock)
    assert len(store.list_entries(LedgerQuery(limit=99))) == 50
    assert store.verify().ok
    store.close()


def test_a_closed_store_says_so(sqlite: SqliteStore) -> None:
    sqlite.close()
    sqlite.close()

    with pytest.raises(WorkspaceClosed) as caught:
        sqlite.head_of("a")
    assert caught.value.reason == "closed"


@requirement("engine:bad_input:state_too_new")
def test_a_newer_database_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, clock)
    raw = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    raw.execute(f"PRAGMA user_version = {schema.LATEST + 1}")
    raw.close()
    before = (tmp_path / "state.db").read_bytes()

    with pytest.raises(StateTooNew) as caught:
        SqliteStore(tmp_path, clock=clock)

    assert "Upgrade" in caught.value.action
    assert (tmp_path / "state.db").read_bytes() == before


@requirement("engine:bad_input:state_too_new")
@pytest.mark.parametrize("part", ["call", "change", "approval"])
def test_an_entry_with_a_field_that_is_not_known_yet_is_left_to_a_newer_surehold(
    tmp_path: Path, clock: Clock, part: str
) -> None:
    fill(tmp_path, clock)
    raw = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {trigger}")
    unpack_bodies(raw)
    seq, text = raw.execute("SELECT seq, body FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
    body = json.loads(text)
    place = body["call"].setdefault("approval", {}) if part == "approval" else body[part]
    place["of_the_future"] = 1
    raw.execute("UPDATE entries SET body = ? WHERE seq = ?", (json.dumps(body), seq))
    raw.close()

    store = SqliteStore(tmp_path, clock=clock)
    with pytest.raises(StateTooNew) as caught:
        store.list_entries(LedgerQuery(limit=1))
    store.close()

    assert "Upgrade" in caught.value.action
    assert "of_the_future" in caught.value.details["cause"]


@requirement("engine:bad_input:truncated_database")
@pytest.mark.parametrize("size", [0, 1, 50, 100, 4096, 4097, 40_000])
def test_a_cut_database_is_not_taken_for_a_new_one(tmp_path: Path, clock: Clock, size: int) -> None:
    fill(tmp_path, clock)
    os.truncate(tmp_path / "state.db", size)

    with pytest.raises(StateCorrupt) as caught:
        SqliteStore(tmp_path, clock=clock)

    assert str(tmp_path) in caught.value.action


def test_a_missing_database_in_a_used_directory_is_not_a_new_one(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, clock)
    (tmp_path / "state.db").unlink()

    with pytest.raises(StateCorrupt):
        SqliteStore(tmp_path, clock=clock)


@requirement("engine:bad_input:truncated_database")
def test_rubbish_is_not_a_database(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "state.db").write_bytes(b"This is not a database. " * 500)

    with pytest.raises(StateCorrupt) as caught:
        SqliteStore(tmp_path, clock=clock)

    assert "aside" in caught.value.action


def test_a_database_whose_pages_were_overwritten_is_corrupt(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, clock)
    size = (tmp_path / "state.db").stat().st_size
    with (tmp_path / "state.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    store = SqliteStore(tmp_path, clock=clock)
    with pytest.raises(StateCorrupt):
        store.verify()
    with pytest.raises(StateCorrupt):
        Author(store).write("a", b"x")
    store.close()


def test_a_directory_below_a_file_is_unavailable(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateUnavailable) as caught:
        SqliteStore(tmp_path / "file" / "state", clock=clock)

    assert "--state-dir" in caught.value.action


READ_ONLY = """
import os, sys
from datetime import datetime, UTC
from pathlib import Path
from surehold.errors import SureholdError
from surehold.stores.base import Call, Change
from surehold.stores.sqlite.store import SqliteStore
os.setgid(65534); os.setuid(65534)
try:
    store = SqliteStore(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
    call = Call(tool="t", operation="edit", writer="w")
    store.record(call, Change(path="a", before=None, after=None), change_id="c", ok=True)
except SureholdError as error:
    print(type(error).__name__)
"""


@requirement("engine:bad_input:state_not_writable")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("used", [False, True])
def test_a_directory_of_somebody_else_is_unavailable(clock: Clock, used: bool) -> None:
    # Not below tmp_path, whose parents nobody may enter.
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        if used:
            fill(state, clock)
        for path in (state, *state.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)

        command = [sys.executable, "-c", READ_ONLY, folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.stdout, result.stderr) == ("StateUnavailable\n", "")


def test_a_full_disk_loses_nothing_that_was_there(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, clock)
    store = SqliteStore(tmp_path, clock=clock)
    (link,) = store._database._all.values()
    link.connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size instead

    with pytest.raises(DiskFull):
        store.record(call(), change("a", None, None, diff="x" * 999_000), change_id="large", ok=False)

    assert store.verify().ok
    store.record(call(), change("a", None, None), change_id="later", ok=False)
    assert store.verify().ok
    store.close()


def test_a_writer_that_does_not_get_its_turn_is_told_so(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.2)
    store = SqliteStore(tmp_path, clock=clock)
    with store._database.write_transaction():
        with pytest.raises(LockTimeout) as caught:
            store.keep_blob(blob(b"x"))
        assert store.has_blob(sha(b"x")) is False  # readers do not wait
    assert caught.value.reason == "state_locked"

    store.keep_blob(blob(b"x"))
    store.close()


def test_a_change_that_does_not_get_its_turn_is_not_withdrawn_in_another_one(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.2)
    store, withdrawn = SqliteStore(tmp_path, clock=clock), list[str]()
    monkeypatch.setattr(store, "withdraw", withdrawn.append)
    with store._database.write_transaction(), pytest.raises(LockTimeout):
        store.begin(intent("a", change("a", None, b"x")), [blob(b"x")], lease=9, fence=0)

    assert (withdrawn, store.open_intents()) == ([], ())
    store.close()


def test_a_foreign_program_that_holds_the_database_is_reported_as_a_lock(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.2)
    store = SqliteStore(tmp_path, clock=clock)
    raw = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockTimeout) as caught:
        store.keep_blob(blob(b"x"))
    raw.execute("ROLLBACK")
    raw.close()

    assert caught.value.reason == "state_locked"
    store.keep_blob(blob(b"x"))
    store.close()


def test_a_migration_that_fails_leaves_nothing(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "bad.sql").write_text("CREATE TABLE x (a);\nCREATE TABLE x (a);\n")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_FOLDER", tmp_path / "scripts")
        patch.setattr(schema, "MIGRATIONS", ("bad.sql",))
        with pytest.raises(StateCorrupt):
            SqliteStore(tmp_path / "state", clock=clock)

    store = SqliteStore(tmp_path / "state", clock=clock)
    assert store.verify().ok
    store.close()


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    code = "import sys, surehold.stores.sqlite.store; print('zstandard' in sys.modules)"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout == "False\n"


@requirement("engine:store:migrations")
def test_an_older_database_is_brought_forward_with_its_data_and_never_back(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, scripts = tmp_path / "state", tmp_path / "scripts"
    fill(state, clock)
    scripts.mkdir()
    (scripts / "next.sql").write_text("CREATE TABLE added (a);\n")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_FOLDER", scripts)
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "next.sql"))
        patch.setattr(schema, "LATEST", schema.LATEST + 1)
        store = SqliteStore(state, clock=clock)
        assert (len(store.list_entries(LedgerQuery(limit=99))), store.verify().ok) == (50, True)
        store.close()
    raw = sqlite3.connect(state / "state.db")
    version, tables = (
        raw.execute("PRAGMA user_version").fetchone(),
        raw.execute("SELECT COUNT(*) FROM added").fetchone(),
    )
    raw.close()

    assert (version, tables) == ((schema.LATEST + 1,), (0,))
    with pytest.raises(StateTooNew):
        SqliteStore(state, clock=clock)


@requirement("engine:store:migrations")
def test_a_history_of_before_turns_can_have_some(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
        patch.setattr(schema, "LATEST", 3)
        SqliteStore(tmp_path, clock=clock).close()

    store = SqliteStore(tmp_path, clock=clock)
    begun = [store.begin_turn("s", title=title, turn_id=name) for title, name in (("", ""), ("b", "2"), ("c", ""))]
    assert [turn.id for turn in begun] == ["1", "2", "3"]
    assert (store.list_turns("s"), store.list_turns("t"), store.verify().ok) == (tuple(begun), (), True)
    store.close()


@requirement("engine:store:migrations")
def test_intents_of_before_owners_were_a_column_are_found(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:4])
        patch.setattr(schema, "LATEST", 4)
        SqliteStore(tmp_path, clock=clock).close()
    left = replace(current_owner(), started="long ago")
    wanted = [intent(name, change(name, None, b"x"), owner=owner) for name, owner in (("a", left), ("b", ELSEWHERE))]
    raw = sqlite3.connect(tmp_path / "state.db")
    for one in wanted:
        row = (one.id.encode(), b"", clock().timestamp() + 10, ledger_entries.intent_text(one))
        raw.execute("INSERT INTO intents (id, idempotency_key, expires, body) VALUES (?, ?, ?, ?)", row)
        raw.execute("INSERT INTO locks VALUES (?, ?)", (one.id.encode(), one.id.encode()))
    raw.commit()
    raw.close()

    store = SqliteStore(tmp_path, clock=clock)
    assert [busy.intent for busy in store.open_intents()] == wanted
    assert [busy.intent.id for busy in store.dead_intents(limit=9)] == ["a"]
    assert [busy.intent.id for busy in store.look(["b"]).holding] == ["b"]
    store.abort("a", error_kind="unknown", message="Its process died.")
    assert [busy.intent.id for busy in store.open_intents()] == ["b"]
    store.close()


@requirement("engine:store:migrations")
def test_migrations_are_numbered_without_a_gap() -> None:
    assert [int(name[:4]) for name in schema.MIGRATIONS] == list(range(1, schema.LATEST + 1))
    assert sorted(path.name for path in (Path(schema.__file__).parent / "migrations").glob("*.sql")) == list(
        schema.MIGRATIONS
    )


@requirement("engine:store:migrations", "engine:ledger:indexes")
@pytest.mark.parametrize(
    "query",
    [LedgerQuery(agent="ad", limit=5), LedgerQuery(operation="undo", limit=5), LedgerQuery(session="rare", limit=5)],
)
@pytest.mark.parametrize("version", [5, 7, schema.LATEST])
def test_the_newest_entries_of_a_kind_are_found_without_reading_all(
    tmp_path: Path, clock: Clock, version: int, query: LedgerQuery
) -> None:
    store = SqliteStore(tmp_path, clock=clock)
    rare = call("undo", agent="ada", session="rare")
    for number in range(1_000):
        asked = rare if number == 300 else call("edit", agent="bob", session="often")
        store.record(asked, change("a", None, None), change_id=f"c{number}", ok=False)
    store.close()
    if version < schema.LATEST:
        make_older(tmp_path / "state.db", version)

    store = SqliteStore(tmp_path, clock=clock)
    steps = list[int]()
    with store._database.read_transaction() as connection:
        connection.set_progress_handler(lambda: steps.append(1), 100)
        found = entry_rows.find_entries(connection, query)
        connection.set_progress_handler(None, 0)

    assert [entry.change_id for entry in found] == ["c300"]
    assert len(steps) < 60  # one block of 256; reading all would take 200
    assert store.verify().ok
    store.close()


@requirement("engine:store:migrations")
@pytest.mark.parametrize("version", [6, 7, 8, 9, 10])
def test_a_history_of_before_rows_were_packed_is_carried_over(tmp_path: Path, clock: Clock, version: int) -> None:
    noise = os.urandom(200_000)
    versions = [b"%d\n" % number * 3_000 + b"end" for number in range(20)] + [noise, noise + b"!"]
    store = SqliteStore(tmp_path, clock=clock)
    author = Author(store)
    for number, data in enumerate(versions):
        clock.turn(seconds=1)
        author.write(f"{number % 2}", data, agent="ada", session="s")
    author.delete("0", "t1")
    left = intent("open", change("x", None, b"x"), owner=ELSEWHERE)
    wanted, trash = store.list_entries(LedgerQuery(limit=99)), store.list_trash()
    writers = store.list_writers("0"), store.list_writers("0", after_seq=21)
    store.close()
    make_older(tmp_path / "state.db", version)
    raw = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    row = (left.id.encode(), 1, b"key", clock().timestamp() + 10, "", ledger_entries.intent_text(left))
    number = "number" if version < 8 else "opened"
    raw.execute(
        f"INSERT INTO intents (id, {number}, idempotency_key, expires, owner, body) VALUES (?, ?, ?, ?, ?, ?)", row
    )
    raw.execute("INSERT INTO locks VALUES (?, ?)", (b"x", left.id.encode()))
    raw.close()

    store = SqliteStore(tmp_path, clock=clock)
    assert (store.list_entries(LedgerQuery(limit=99)), store.list_trash()) == (wanted, trash)
    assert (store.list_entries(LedgerQuery(agent="ad", limit=99)), store.verify().ok) == (wanted[1:], True)
    assert [store.read_blob(sha(data)) for data in versions] == versions
    assert [store.knows_version("1", sha(versions[number])) for number in (0, 1, 21)] == [False, True, True]
    assert (store.list_writers("0"), store.list_writers("0", after_seq=21)) == writers
    assert [busy.intent for busy in store.open_intents()] == [left]
    begun = store.begin(
        intent("last", change("1", versions[21], b"after")), [blob(b"after", versions[21])], lease=9, fence=0
    )
    assert begun == Begun()
    store.finish("last")
    clock.turn(seconds=100)
    pruned = store.prune(before=clock().isoformat())
    assert (pruned.blobs > 0, store.verify().ok, len(store.list_entries(LedgerQuery(limit=99)))) == (True, True, 25)
    store.close()

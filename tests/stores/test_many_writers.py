"""Threads, processes, forks and deaths, all on one SQLite store."""

# Some of these reach inside, to stop the store in the middle.
# pyright: reportPrivateUsage=false

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spec.marks import requirement
from stores.scenes import SPAWN, blob, call, change, intent, sha
from surehold.stores.base import Begun, LedgerQuery
from surehold.stores.sqlite.store import SqliteStore
from waiting import HANG_SECONDS


def wall_clock() -> datetime:
    return datetime.now(UTC)


def open_store(state: Path) -> SqliteStore:
    return SqliteStore(state, clock=wall_clock, durability="none")


def work(store: SqliteStore, name: str, count: int) -> None:
    """Write one file of our own again and again, and try for one that everybody wants."""
    before: bytes | None = None
    for number in range(count):
        after = f"{name} {number}".encode()
        mine = intent(f"{name}-{number}", change(name, before, after), asked=call(session=name))
        assert store.begin(mine, [blob(after, before)], lease=60, fence=0) == Begun()
        shared = intent(f"{name}-{number}-shared", change("shared", None, None), asked=call(idempotency_key="k"))
        if isinstance(store.begin(shared, [], lease=60, fence=0), Begun):
            store.finish(shared.id)
        store.finish(mine.id)
        before = after


def work_in_process(state: str, name: str, count: int) -> None:
    store = open_store(Path(state))
    work(store, name, count)
    store.close()


def assert_complete(store: SqliteStore, names: list[str], count: int) -> None:
    assert store.verify().ok
    assert store.open_intents() == ()
    entries = store.list_entries(LedgerQuery(limit=9_999))
    assert len(entries) == len(names) * count + 1  # the shared key was finished exactly once
    for name in names:
        own = store.list_entries(LedgerQuery(session=name, limit=9_999))
        assert [entry.change_id for entry in reversed(own)] == [f"{name}-{number}" for number in range(count)]
        assert store.read_blob(sha(f"{name} {count - 1}".encode())) == f"{name} {count - 1}".encode()


@requirement("engine:store:threads")
def test_eight_threads_lose_and_double_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    failures: list[BaseException] = []

    def run(name: str) -> None:
        try:
            work(store, name, 50)
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    names = [f"thread-{number}" for number in range(8)]
    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert_complete(store, names, 50)
    store.close()


@requirement("engine:store:processes")
def test_four_processes_that_open_a_new_directory_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    names = [f"process-{number}" for number in range(4)]
    children = [SPAWN.Process(target=work_in_process, args=(str(tmp_path / "new"), name, 50)) for name in names]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0, 0, 0, 0]
    store = open_store(tmp_path / "new")
    assert_complete(store, names, 50)
    store.close()


def in_fork(body: Callable[[], None]) -> int:
    """Run a body in a forked child and return its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_uses_connections_of_its_own(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    work(store, "parent", 3)

    def child() -> None:
        assert store._database._all == {}
        work(store, "child", 3)
        store.close()

    assert in_fork(child) == 0
    store.keep_blob(blob(b"still open"))
    assert store.read_blob(sha(b"still open")) == b"still open"
    assert_complete(store, ["parent", "child"], 3)
    store.close()


def test_a_fork_while_another_thread_writes_keeps_nobody_waiting(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    inside, done = threading.Event(), threading.Event()

    def slow_writer() -> None:
        with store._database.write_transaction():
            inside.set()
            done.wait(HANG_SECONDS)

    thread = threading.Thread(target=slow_writer)
    thread.start()
    assert inside.wait(HANG_SECONDS)
    pid = os.fork()
    if pid == 0:  # lives on with whatever it inherited
        signal.pause()
        os._exit(0)
    try:
        done.set()
        thread.join()
        store.keep_blob(blob(b"x"))
        assert store.has_blob(sha(b"x"))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        store.close()


def hold_an_intent(state: str, ready: Any) -> None:
    store = open_store(Path(state))
    store.begin(intent("held", change("a", None, b"x")), [blob(b"x")], lease=3600, fence=0)
    ready.send("held")
    signal.pause()


@requirement("engine:store:durable", "engine:store:living_owner")
def test_a_killed_owner_is_known_to_be_dead_at_once(tmp_path: Path) -> None:
    ours, theirs = SPAWN.Pipe()
    child = SPAWN.Process(target=hold_an_intent, args=(str(tmp_path), theirs))
    child.start()
    assert ours.recv() == "held"
    store = open_store(tmp_path)
    assert [(busy.intent.id, busy.owner_is_dead) for busy in store.open_intents()] == [("held", False)]

    os.kill(child.pid, signal.SIGKILL)
    child.join()

    assert [(busy.intent.id, busy.owner_is_dead) for busy in store.open_intents()] == [("held", True)]
    store.abort("held", error_kind="unknown", message="Its process died.")
    assert store.verify().ok
    store.close()
    ours.close()
    theirs.close()


def die_inside_a_transaction(state: str) -> None:
    store = open_store(Path(state))
    with store._database.write_transaction() as connection:
        connection.execute("DELETE FROM blobs")
        os.kill(os.getpid(), signal.SIGKILL)


@requirement("engine:store:processes")
def test_a_process_killed_inside_a_transaction_changed_nothing_and_blocks_nobody(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    work(store, "a", 2)
    child = SPAWN.Process(target=die_inside_a_transaction, args=(str(tmp_path),))
    child.start()
    child.join()

    work(store, "b", 2)

    assert child.exitcode == -signal.SIGKILL
    assert_complete(store, ["a", "b"], 2)
    store.close()


def test_connections_do_not_pile_up_and_all_are_closed(sqlite: SqliteStore) -> None:
    for _ in range(20):
        thread = threading.Thread(target=sqlite.keep_blob, args=(blob(b"x"),))
        thread.start()
        thread.join()
    assert len(sqlite._database._all) == 1

    sqlite.close()

    assert sqlite._database._all == {}


FORKING = """
import hashlib, os, sys
from datetime import UTC, datetime
from pathlib import Path
from surehold.stores.base import Blob
from surehold.stores.sqlite.store import SqliteStore

def blob(data):
    return Blob(data=data, sha256=hashlib.sha256(data).hexdigest())

store = SqliteStore(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
store.keep_blob(blob(b"before"))
pid = os.fork()
if pid == 0:
    sys.exit(0)  # the interpreter ends in an orderly way and frees what it holds
os.waitpid(pid, 0)
assert Path(sys.argv[1], "state.db-wal").exists()
store.keep_blob(blob(b"after"))
print(store.verify().blobs, store.verify().ok)
store.close()
"""


def test_a_child_that_ends_does_not_close_the_parents_connections(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path)]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.stdout, result.stderr) == ("2 True\n", "")

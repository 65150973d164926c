"""A database that is removed or replaced while it is open: nothing more is written where it cannot be found."""

# Some of these reach inside, to see what is still open.
# pyright: reportPrivateUsage=false

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import SPAWN, Author, Clock, blob, sha
from surehold.errors import StateUnavailable
from surehold.stores.base import LedgerQuery
from surehold.stores.sqlite.store import SqliteStore


def open_store(state: Path) -> SqliteStore:
    return SqliteStore(state, clock=Clock(), durability="none")


def write_in_process(state: str) -> None:
    store = open_store(Path(state))
    Author(store).write("theirs", b"theirs")
    store.close()


def remove(state: Path) -> None:
    shutil.rmtree(state)


def unlink(state: Path) -> None:
    (state / "state.db").unlink()


def recreate(state: Path) -> None:
    shutil.rmtree(state)
    child = SPAWN.Process(target=write_in_process, args=(str(state),))
    child.start()
    child.join()
    assert child.exitcode == 0


def put_a_copy(state: Path) -> None:
    copy = state / "copy"
    shutil.copy(state / "state.db", copy)
    copy.replace(state / "state.db")


@pytest.mark.parametrize("meddle", [remove, unlink, recreate, put_a_copy])
def test_a_change_is_refused_when_its_history_lost_its_name(tmp_path: Path, meddle: Callable[[Path], None]) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    author = Author(store)
    author.write("a", b"1")
    meddle(state)

    for _ in range(2):
        with pytest.raises(StateUnavailable) as caught:
            author.write("a", b"2")
        assert (caught.value.reason, caught.value.path) == ("state_replaced", str(state / "state.db"))
        assert "again" in caught.value.action

    assert (state / "state.db").exists() == (meddle in {recreate, put_a_copy})  # none was made in its place
    store.close()


def test_a_recreated_history_works_once_it_is_opened_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    old = open_store(state)
    Author(old).write("mine", b"mine")
    recreate(state)
    new = open_store(state)
    Author(new, number=10).write("later", b"later")

    with pytest.raises(StateUnavailable):
        old.keep_blob(blob(b"lost"))

    assert old._database._all == {}
    assert (state / "state.db-wal").exists()  # closing the old one did not take the new one's log along
    Author(new, number=20).write("last", b"last")
    old.close()
    new.close()
    again = open_store(state)
    assert [entry.change.path for entry in again.list_entries(LedgerQuery())] == ["last", "later", "theirs"]
    assert again.verify().ok
    assert not again.has_blob(sha(b"lost"))
    again.close()


def test_a_connection_in_use_is_closed_when_it_comes_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    with store._database.read_transaction():
        recreate(state)
        with pytest.raises(StateUnavailable) as caught:
            store.keep_blob(blob(b"x"))  # needs a new connection, which must not be one to a stranger
        assert caught.value.reason == "state_replaced"
        assert len(store._database._all) == 1

    assert store._database._all == {}
    with pytest.raises(StateUnavailable) as caught:
        store.list_entries(LedgerQuery())
    assert caught.value.reason == "state_replaced"
    store.close()


def test_a_writer_that_waited_looks_again_when_its_turn_comes(tmp_path: Path) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    refused: list[str] = []

    def write() -> None:
        try:
            store.keep_blob(blob(b"x"))
        except StateUnavailable as error:
            refused.append(error.reason)

    thread = threading.Thread(target=write)
    with store._database.write_transaction():
        thread.start()
        thread.join(0.2)
        put_a_copy(state)
    thread.join()

    assert refused == ["state_replaced"]
    store.close()


@requirement("engine:store:log_removed")
@pytest.mark.parametrize("names", [("state.db-wal",), ("state.db-wal", "state.db-shm")])
def test_a_change_is_refused_when_the_log_of_its_history_was_removed(tmp_path: Path, names: tuple[str, ...]) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    author = Author(store)
    author.write("a", b"1")
    for name in names:
        (state / name).unlink()

    for _ in range(2):
        with pytest.raises(StateUnavailable) as caught:
            author.write("a", b"2")
        assert caught.value.reason == "state_replaced"
    store.close()

    again = open_store(state)
    Author(again, number=10).write("b", b"3")
    assert "b" in [entry.change.path for entry in again.list_entries(LedgerQuery())]
    assert again.verify().ok
    again.close()


@requirement("engine:store:log_removed")
def test_what_went_into_a_log_without_a_name_is_not_acknowledged(tmp_path: Path) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    Author(store).write("a", b"1")

    def write_while_removed() -> None:
        with store._database.write_transaction():
            (state / "state.db-wal").unlink()

    with pytest.raises(StateUnavailable) as caught:
        write_while_removed()
    assert caught.value.reason == "state_replaced"
    store.close()


def test_the_log_is_opened_once_when_two_threads_find_it_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state")
    Author(store).write("a", b"1")
    opened = store._database._log_file
    assert opened is not None

    store._database._open_log()  # by the second one, which saw none either

    assert store._database._log_file == opened
    store.close()


def test_a_log_that_the_last_connection_removed_is_not_missed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    store = open_store(state)
    author = Author(store)
    author.write("a", b"1")
    store._database._close_idle()
    assert not (state / "state.db-wal").exists()

    author.write("b", b"2")

    store.close()

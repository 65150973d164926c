"""Writers share one sync of the log: nobody is answered before the disk, and nobody waits for one that is stopped."""

# Some of these reach inside, to see who leads.
# pyright: reportPrivateUsage=false

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from spec.marks import requirement
from stores.scenes import Clock, blob, call, change, intent
from surehold.app import Settings, open_workspace
from surehold.errors import DiskFailed, SureholdError
from surehold.stores.base import Begun, LedgerQuery, Replay
from surehold.stores.sqlite import writers
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.store import SqliteStore
from waiting import wait_until

WORD = 8


class Disk:
    """Counts syncs of the log, and does at each what the test says."""

    def __init__(self) -> None:
        self.syncs = 0
        self.at_sync: Callable[[], object] = lambda: None

    def sync(self, place: int) -> None:
        self.syncs += 1
        self.at_sync()
        os.fdatasync(place)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(writers, "sync_data", disk.sync)
    return disk


@pytest.fixture
def durable(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "state", clock=clock)
    yield store
    store.close()


def fail_always() -> None:
    raise OSError(errno.EIO, "the disk is gone")


def cannot_mend(_: Database) -> bool:
    return False


def fail_once(disk: Disk) -> None:
    def fail() -> None:
        disk.at_sync = lambda: None
        raise OSError(errno.EIO, "a bad moment")

    disk.at_sync = fail


def write(store: SqliteStore, name: str, key: str = "") -> None:
    data = name.encode()
    begun = store.begin(
        intent(name, change(name, None, data), asked=call(idempotency_key=key)), [blob(data)], lease=60, fence=0
    )
    assert begun == Begun()
    store.finish(name)


def names(store: SqliteStore) -> list[str]:
    return [entry.change_id for entry in store.list_entries(LedgerQuery())]


@requirement("engine:store:group_commit")
def test_one_sync_serves_all_that_wait(
    durable: SqliteStore, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_STOPPED_SECONDS", 1e9)
    shared = tmp_path / "state" / "state.sync"
    others = [threading.Thread(target=durable.keep_blob, args=(blob(b"%d" % n),)) for n in range(7)]

    def committed() -> int:
        return int.from_bytes(shared.read_bytes()[:WORD], "little")

    def let_the_others_commit() -> None:
        disk.at_sync = lambda: None
        for thread in others:
            thread.start()
        wait_until(lambda: committed() == 8)

    disk.at_sync = let_the_others_commit
    durable.keep_blob(blob(b"first"))
    for thread in others:
        thread.join()

    assert disk.syncs == 2  # the first for itself, the second for all others


def test_a_history_that_need_not_survive_a_power_cut_waits_for_no_disk(disk: Disk, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state", clock=Clock(), durability="none")
    write(store, "a")

    assert (names(store), disk.syncs) == (["a"], 0)
    store.close()
    assert disk.syncs == 0


@requirement("engine:store:group_commit")
def test_nobody_waits_for_a_stopped_leader(durable: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    with (tmp_path / "state" / "state.sync").open("w") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)

        write(durable, "a")

        assert disk.syncs == 2
    assert names(durable) == ["a"]


def test_a_shared_file_that_cannot_be_used_only_costs_syncs(durable: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "state" / "state.sync").mkdir()

    write(durable, "a")

    assert disk.syncs == 2


def test_a_shared_file_that_is_cut_or_removed_is_no_promise(durable: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    shared = tmp_path / "state" / "state.sync"
    write(durable, "a")
    os.truncate(shared, 3)
    write(durable, "b")
    shared.unlink()
    write(durable, "c")

    assert disk.syncs == 6


def test_numbers_from_before_a_reboot_are_no_promise(durable: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "state" / "state.sync").write_bytes(b"".join(n.to_bytes(WORD, "little") for n in (3, 900, 0, 0, 0)))

    write(durable, "a")

    assert disk.syncs == 2


@requirement("engine:store:group_commit")
def test_a_replay_waits_for_the_disk(durable: SqliteStore, disk: Disk) -> None:
    write(durable, "a", key="k")
    before = disk.syncs

    assert isinstance(durable.look([], idempotency_key="k").earlier, Replay)
    again = intent("b", change("b", None, b"b"), asked=call(idempotency_key="k"))
    assert isinstance(durable.begin(again, [blob(b"b")], lease=60, fence=0), Replay)

    assert disk.syncs == before + 2


def test_refusals_and_sightings_do_not_wait_for_the_disk(durable: SqliteStore, disk: Disk) -> None:
    durable.record(call(), change("a", None, None), change_id="r", ok=False, error_kind="stale")

    assert disk.syncs == 0
    assert names(durable) == ["r"]


@requirement("engine:store:failed_sync")
def test_a_failed_sync_is_made_good_by_writing_everything_again(
    durable: SqliteStore, disk: Disk, tmp_path: Path
) -> None:
    write(durable, "a")
    fail_once(disk)

    write(durable, "second")

    assert names(durable) == ["second", "a"]
    assert b"second" in (tmp_path / "state" / "state.db").read_bytes()  # where the log was copied to


@requirement("engine:store:failed_sync")
def test_after_a_failed_sync_nothing_is_acknowledged_until_it_is_made_good(
    durable: SqliteStore, disk: Disk, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(durable, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Database, "_mend_log", cannot_mend)
        broken = SqliteStore(tmp_path / "state", clock=clock)
        disk.at_sync = fail_always
        with pytest.raises(DiskFailed):
            write(broken, "b")
        assert broken.open_intents() == ()  # it did not begin
        disk.at_sync = lambda: None
        with pytest.raises(SureholdError):  # the disk works again, and yet an earlier commit may be lost
            write(broken, "c")
        broken.close()

    write(durable, "d")

    assert names(durable) == ["d", "a"]


def test_a_change_whose_record_cannot_reach_the_disk_is_not_acknowledged(
    durable: SqliteStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = durable.begin(intent("a", change("a", None, b"a")), [blob(b"a")], lease=60, fence=0)
    assert begun == Begun()
    monkeypatch.setattr(durable._database._sync, "_mend", lambda: False)  # or it would mend
    disk.at_sync = fail_always

    with pytest.raises(DiskFailed):
        durable.finish("a")
    with pytest.raises(DiskFailed):
        durable.confirm()


@pytest.mark.parametrize("word", range(6))
def test_a_damaged_number_is_no_promise(durable: SqliteStore, disk: Disk, tmp_path: Path, word: int) -> None:
    numbers = [0] * 6
    numbers[word] = (1 << 64) - 1
    (tmp_path / "state" / "state.sync").write_bytes(b"".join(n.to_bytes(WORD, "little") for n in numbers))

    write(durable, "a")

    assert disk.syncs >= 2
    assert names(durable) == ["a"]


@requirement("engine:store:group_commit")
def test_where_syncs_are_slow_a_leader_is_waited_for_longer(
    durable: SqliteStore, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_STOPPED_SECONDS", 0.0)
    slow, listened, listen = 100 * 10**9, list[int](), writers.LogSync._listen

    def count(sync: writers.LogSync, bell: int) -> None:
        listened.append(bell)
        listen(sync, bell)

    monkeypatch.setattr(writers.LogSync, "_listen", count)
    shared = tmp_path / "state" / "state.sync"
    shared.write_bytes(b"".join(n.to_bytes(WORD, "little") for n in (0, 0, 0, 0, 0, slow)))
    waits = threading.Thread(target=durable.keep_blob, args=(blob(b"second"),))

    def let_another_wait() -> None:
        disk.at_sync = lambda: None
        waits.start()
        wait_until(lambda: len(listened) > 2)

    disk.at_sync = let_another_wait
    durable.keep_blob(blob(b"first"))
    waits.join()

    assert disk.syncs == 2  # the other one did not give up and sync beside the first


def test_whoever_synced_leaves_the_lead_to_the_next_process(durable: SqliteStore, tmp_path: Path) -> None:
    write(durable, "a")

    with (tmp_path / "state" / "state.sync").open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if it is held


def test_one_that_gave_up_waiting_publishes_its_own_sync(durable: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    write(durable, "a")
    shared = tmp_path / "state" / "state.sync"
    with shared.open("r+b") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        durable.keep_blob(blob(b"alone"))
        committed, synced = (int.from_bytes(shared.read_bytes()[at : at + WORD], "little") for at in (0, WORD))

    assert (committed, synced, disk.syncs) == (3, 3, 3)


def test_an_interrupted_leader_leaves_the_lead(
    durable: SqliteStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def interrupted(place: int, how: int) -> None:
        lock(place, how)
        monkeypatch.setattr(fcntl, "flock", lock)
        raise KeyboardInterrupt

    monkeypatch.setattr(writers, "_STOPPED_SECONDS", 1e9)  # a lead that was kept would be waited for
    sync = durable._database._sync
    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt), Path(os.devnull).open() as log:
        sync.wait(sync.take_ticket(), log.fileno())

    write(durable, "a")
    assert names(durable) == ["a"]


def test_one_edit_writes_few_pages_to_the_log(tmp_path: Path) -> None:
    root, log = tmp_path / "root", tmp_path / "state" / "state.db-wal"
    root.mkdir()
    (root / "a.py").write_text("".join(f"value_{number} = {number}\n" for number in range(300)))
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(id="s")
        session.read("a.py")
        sizes = list[int]()
        for number in range(20):
            session.edit("a.py", (f"value_42 = {42 + number}\n", f"value_42 = {43 + number}\n"))
            sizes.append(log.stat().st_size)

    pages = [(after - before) / (4096 + 24) for before, after in pairwise(sizes)]
    assert median(pages) <= 14  # 21 before an intent fitted into its page, 22 with three more indexes


@requirement("engine:store:early_intent")
def test_an_early_intent_is_open_at_once_and_on_the_disk_when_it_was_waited_for(
    durable: SqliteStore, disk: Disk
) -> None:
    begun = durable.begin(intent("a", change("a", None, b"a")), [blob(b"a")], lease=60, fence=0, early=True)

    assert isinstance(begun, Begun)
    assert begun.reach_disk
    assert (durable.is_open("a"), disk.syncs) == (True, 0)
    begun.reach_disk()
    assert (durable.is_open("a"), disk.syncs) == (True, 1)


@requirement("engine:store:early_intent")
def test_an_early_intent_that_does_not_reach_the_disk_is_not_open(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "_mend_log", cannot_mend)
    durable = SqliteStore(tmp_path / "state", clock=Clock())
    begun = durable.begin(intent("a", change("a", None, b"a")), [blob(b"a")], lease=60, fence=0, early=True)
    disk.at_sync = fail_always

    assert isinstance(begun, Begun)
    assert begun.reach_disk
    with pytest.raises(SureholdError):
        begun.reach_disk()
    assert not durable.is_open("a")
    durable.close()


@requirement("engine:store:early_intent", "engine:crash:power")
def test_a_file_is_staged_while_its_intent_goes_to_the_disk_and_shown_only_afterwards(
    disk: Disk, tmp_path: Path
) -> None:
    root, reached, seen = tmp_path / "root", threading.Event(), list[list[str]]()
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")

    def wait_for_the_staged_file() -> None:
        disk.at_sync = lambda: None
        wait_until(lambda: len(list(root.iterdir())) > 1, "nothing was staged")
        seen.append([(root / "a.txt").read_text()])
        reached.set()

    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(id="s")
        disk.at_sync = wait_for_the_staged_file
        session.edit("a.txt", ("one", "two"))

    assert reached.is_set()
    assert seen == [["one\n"]]
    assert [(one.name, one.read_bytes()) for one in root.iterdir()] == [("a.txt", b"two\n")]


@requirement("engine:store:early_intent", "engine:bad_input:nothing_left")
def test_nothing_is_written_when_the_intent_does_not_reach_the_disk(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "_mend_log", cannot_mend)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(id="s")
        disk.at_sync = fail_always
        with pytest.raises(DiskFailed) as caught:
            session.edit("a.txt", ("one", "two"))
        disk.at_sync = lambda: None

        assert "unknown" not in caught.value.message
        assert [(one.name, one.read_bytes()) for one in root.iterdir()] == [("a.txt", b"one\n")]
        assert workspace.store.open_intents() == ()

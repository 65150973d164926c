"""What was shown is known at once, and written a moment later, without waiting for writers."""

# Some of these hold the queue of the writers, to see who waits in it.
# pyright: reportPrivateUsage=false

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spec.marks import requirement
from stores.scenes import Clock, blob, change, intent, sha, sighting
from surehold.app import Settings, open_workspace
from surehold.errors import StateUnavailable
from surehold.stores import sightings
from surehold.stores.base import Blob
from surehold.stores.sightings import ShownSighting, SightingBuffer, must_be_written_at_once
from surehold.stores.sqlite import database, writers
from surehold.stores.sqlite.store import SqliteStore
from waiting import wait_until


@contextmanager
def held_turn(state: Path) -> Generator[None]:
    """Stand at the front of the writers' queue, as a writer does that waits for its disk."""
    place = os.open(state / "state.lock", os.O_RDWR)
    fcntl.flock(place, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(place)


@requirement("session:store:batched")
def test_what_was_shown_is_known_at_once_and_written_later(tmp_path: Path, clock: Clock) -> None:
    store, other = SqliteStore(tmp_path, clock=clock), SqliteStore(tmp_path, clock=clock)
    with held_turn(tmp_path):
        store.record_sightings([sighting("a", b"one", (1, 3))], [blob(b"one")])
        store.record_sightings([sighting("a", b"one", (4, 5)), sighting("a", b"two", (9, 9))])

        expected = (sighting("a", b"two", (9, 9)), sighting("a", b"one", (1, 5)))
        assert (
            store.list_sightings("s", "a") == tuple(store.look(["a"], session="s").records["a"].sightings) == expected
        )
        assert (store.read_blob(sha(b"one")), store.has_blob(sha(b"one"))) == (b"one", True)
        assert (other.list_sightings("s", "a"), other.has_blob(sha(b"one"))) == ((), False)

    assert wait_until(lambda: other.list_sightings("s", "a")) == expected
    assert other.read_blob(sha(b"one")) == b"one"
    store.close()
    other.close()


@requirement("session:store:batched")
def test_a_read_does_not_wait_for_writers(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
        session = workspace.session(id="s")
        session.edit("a.txt", ("one", "1"))
        with held_turn(state):
            assert session.read("a.txt").data == b"1\ntwo\n"
            assert session.page("a.txt").rows
            assert workspace.store.list_sightings("s", "a.txt")[0].whole


@requirement("session:store:at_once")
def test_anchors_of_a_second_version_are_written_before_they_are_answered(tmp_path: Path) -> None:
    root, settings = tmp_path / "root", Settings(state_dir=tmp_path / "state")
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    with open_workspace(root, settings=settings) as workspace, open_workspace(root, settings=settings) as other:
        session = workspace.session(id="s")

        def shows(start: int, *, anchored: bool = True) -> bool:
            """Show a line, and tell whether another process knows all of it at once."""
            page = workspace.page(workspace.target("a.txt"), start=start, count=1)
            session.record_shown_page("a.txt", page, anchored=anchored)
            (mine, theirs) = (one.store.list_sightings("s", "a.txt") for one in (workspace, other))
            return mine == theirs

        with held_turn(tmp_path / "state"):
            assert not shows(1)  # the only version: who loses it reads it again
        (root / "a.txt").write_text("zero\none\ntwo\n")
        assert [shows(1), shows(2), shows(2)] == [True, True, True]
        with held_turn(tmp_path / "state"):
            assert not shows(3, anchored=False)  # no anchor can be misread
            assert not shows(2)  # nothing new, so nothing is waited for
        (root / "a.txt").write_text("one\ntwo\n")
        assert shows(1)  # it is the newest one again


@requirement("session:store:at_once")
def test_only_what_could_be_misread_is_written_at_once() -> None:
    old, new = sighting("a", b"old", (1, 9)), sighting("a", b"new", (1, 9))
    anchored = replace(new, anchored=((1, 3),))

    assert not must_be_written_at_once(anchored, [])
    assert not must_be_written_at_once(anchored, [new])
    assert not must_be_written_at_once(new, [old])
    assert must_be_written_at_once(anchored, [old])
    assert must_be_written_at_once(anchored, [old, anchored])  # it becomes the newest
    assert must_be_written_at_once(anchored, [new, old])
    assert must_be_written_at_once(replace(anchored, sha256=old.sha256), [anchored, old])
    assert not must_be_written_at_once(anchored, [anchored, old])


@requirement("session:store:batched")
def test_a_closed_store_has_written_everything(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path, clock=clock)
    store.record_sightings([sighting("a", b"one", (1, 3))])
    store.close()

    again = SqliteStore(tmp_path, clock=clock)
    assert again.list_sightings("s", "a") == (sighting("a", b"one", (1, 3)),)
    again.close()


_ENDS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from stores.scenes import sighting
from surehold.stores.sqlite.store import SqliteStore

store = SqliteStore(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
store.record_sightings([sighting("a", b"one", (1, 3))])
sys.exit(7)
"""


@requirement("session:store:batched")
def test_a_process_that_ends_without_closing_has_written_everything(tmp_path: Path, clock: Clock) -> None:
    tests = str(Path(__file__).parents[1])
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS, str(tmp_path)], env={**os.environ, "PYTHONPATH": tests}, check=False
    )

    store = SqliteStore(tmp_path, clock=clock)
    assert (ended.returncode, store.list_sightings("s", "a")) == (7, (sighting("a", b"one", (1, 3)),))
    store.close()


def test_the_child_of_a_fork_leaves_the_sightings_to_its_parent(tmp_path: Path, clock: Clock) -> None:
    store, other = SqliteStore(tmp_path, clock=clock), SqliteStore(tmp_path, clock=clock)
    with held_turn(tmp_path):
        store.record_sightings([sighting("a", b"one", (1, 3))])
        pid = os.fork()
        if pid == 0:
            store.flush_sightings()  # would wait for the queue if there were anything to write
            os._exit(len(store._buffer.sightings_of("s", "a")))
        _, status = os.waitpid(pid, 0)
        assert (os.waitstatus_to_exitcode(status), other.list_sightings("s", "a")) == (0, ())

    assert wait_until(lambda: other.list_sightings("s", "a"))
    store.close()
    other.close()


def test_a_killed_process_loses_no_more_than_what_it_was_shown_last(tmp_path: Path, clock: Clock) -> None:
    SqliteStore(tmp_path, clock=clock).close()
    with held_turn(tmp_path):  # so that nothing is written before the kill
        script = _ENDS.replace("sys.exit(7)", "print('shown', flush=True); sys.stdin.read()")
        tests = str(Path(__file__).parents[1])
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": tests},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdout
            assert child.stdout.readline() == b"shown\n"
            child.send_signal(signal.SIGKILL)

    store = SqliteStore(tmp_path, clock=clock)
    assert (store.list_sightings("s", "a"), store.verify().ok) == ((), True)
    store.close()


class Paper:
    """Takes what a buffer writes, unless it is full."""

    def __init__(self) -> None:
        self.rows, self.full = list[ShownSighting](), False
        self.threads = set[str]()

    def write(self, sightings: Sequence[ShownSighting], _: Sequence[Blob]) -> None:
        self.threads.add(threading.current_thread().name)
        if self.full:
            raise StateUnavailable("The disk is full.", reason="disk_full")
        self.rows += sightings


def test_what_could_not_be_written_stays_known_and_is_tried_again() -> None:
    paper = Paper()
    paper.full, buffer = True, SightingBuffer(paper.write)
    buffer.add([(sighting("a", b"one", (1, 1)), "t1")], [blob(b"one")])
    with pytest.raises(StateUnavailable):
        buffer.flush()
    assert (buffer.sightings_of("s", "a"), buffer.find_blob(sha(b"one"))) == ([sighting("a", b"one", (1, 1))], b"one")

    paper.full = False
    buffer.add([(sighting("a", b"one", (2, 2)), "t2")], [])
    buffer.flush()
    assert paper.rows == [(sighting("a", b"one", (1, 2)), "t2")]
    assert (buffer.sightings_of("s", "a"), buffer.find_blob(sha(b"one"))) == ([], None)
    buffer.close()


def test_memory_stays_bounded_while_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sightings, "_PAUSE_SECONDS", 3600)  # no thread helps
    monkeypatch.setattr(sightings, "_MAX_WAITING", 10)
    paper = Paper()
    buffer = SightingBuffer(paper.write)
    for number in range(11):
        buffer.add([(sighting(f"{number}", b"x"), "t")], [])
    assert (len(paper.rows), paper.threads) == (11, {threading.current_thread().name})

    paper.full = True
    for number in range(10):
        buffer.add([(sighting(f"{number}", b"x"), "t")], [blob(b"%d" % number)])
    with pytest.raises(StateUnavailable):
        buffer.add([(sighting("one more", b"x"), "t")], [])
    assert [buffer.sightings_of("s", "0"), buffer.find_blob(sha(b"0"))] == [[], None]
    buffer.close()


def test_only_the_versions_that_the_store_would_keep_wait_to_be_written() -> None:
    paper = Paper()
    buffer = SightingBuffer(paper.write)
    for number in range(20):
        buffer.add([(sighting("a", b"%d" % number, (1, 1), seq=number), "t")], [])
    buffer.flush()
    buffer.close()

    assert [one.sha256 for one, _ in paper.rows][-8:] == [sha(b"%d" % number) for number in range(12, 20)]


def test_without_a_thread_to_be_had_it_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    paper = Paper()
    buffer = SightingBuffer(paper.write)
    buffer.add([(sighting("a", b"one"), "t")], [])
    assert (len(paper.rows), paper.threads) == (1, {threading.current_thread().name})
    buffer.close()


def test_the_end_of_a_change_takes_what_waits_with_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "_PAUSE_SECONDS", 1e6)  # the thread never comes to write
    store, other = SqliteStore(tmp_path, clock=clock), SqliteStore(tmp_path, clock=clock)
    store.record_sightings([sighting("a", b"one", (1, 3))])
    assert store.begin(intent("c", change("a", b"one", b"two")), [blob(b"one"), blob(b"two")], lease=9, fence=0)
    store.finish("c", shown=[sighting("a", b"two", (1, 4))])

    assert other.list_sightings("s", "a") == (sighting("a", b"two", (1, 4)), sighting("a", b"one", (1, 3)))
    assert store._buffer.sightings_of("s", "a") == []
    store.close()
    other.close()


def test_a_change_whose_end_fails_keeps_what_waits(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "_PAUSE_SECONDS", 1e6)
    store, other = SqliteStore(tmp_path, clock=clock), SqliteStore(tmp_path, clock=clock)
    store.record_sightings([sighting("a", b"one", (1, 3))])
    with pytest.raises(StateUnavailable):
        store.finish("gone", shown=[sighting("a", b"two", (1, 4))])

    assert store.list_sightings("s", "a") == (sighting("a", b"one", (1, 3)),)
    store.close()
    assert other.list_sightings("s", "a") == (sighting("a", b"one", (1, 3)),)
    other.close()


def test_sightings_whose_bytes_wait_are_not_written_without_them(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "_PAUSE_SECONDS", 1e6)
    store, other = SqliteStore(tmp_path, clock=clock), SqliteStore(tmp_path, clock=clock)
    store.record_sightings([sighting("a", b"one", (1, 3))], [blob(b"one")])
    assert store.begin(intent("c", change("a", b"one", b"two")), [blob(b"one"), blob(b"two")], lease=9, fence=0)
    store.finish("c", shown=[sighting("a", b"two", (1, 4))])

    shown = (sighting("a", b"two", (1, 4)), sighting("a", b"one", (1, 3)))
    assert (store.list_sightings("s", "a"), other.list_sightings("s", "a")) == (shown, ())
    store.flush_sightings()
    assert other.list_sightings("s", "a") == shown
    store.close()
    other.close()


def test_the_end_of_a_process_does_not_wait_long_for_a_stopped_writer(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited, hold = list[float](), writers.hold_turn

    def hold_briefly(lock: Path, *, database: Path, patience: float) -> AbstractContextManager[None]:
        waited.append(patience)
        return hold(lock, database=database, patience=0)

    store = SqliteStore(tmp_path, clock=clock)
    monkeypatch.setattr(sightings, "_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(database, "hold_turn", hold_briefly)
    with held_turn(tmp_path):
        store.record_sightings([sighting("a", b"one", (1, 3))])
        store.close()

    assert waited
    assert max(waited) <= 2


@requirement("session:store:batched")
def test_more_may_come_until_the_buffer_is_closed(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path, clock=clock)
    buffer = store._buffer
    assert buffer.flush_when_due()
    store.close()
    assert not buffer.flush_when_due()

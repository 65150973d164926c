"""The writers' line: whoever leaves it, and however, keeps no other waiting and leaves nothing."""

# Some of these reach inside, to interrupt a wait in the middle.
# pyright: reportPrivateUsage=false

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from surehold.errors import LockTimeout, StateUnavailable
from surehold.stores.sqlite import writers
from waiting import HANG_SECONDS, wait_until

TAKE = """
import fcntl, sys
fcntl.flock(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "state.lock"


def wait_in_line(lock: Path, patience: float = HANG_SECONDS) -> None:
    with writers.hold_turn(lock, database=lock.with_name("state.db"), patience=patience):
        pass


def assert_free_for_another_process(lock: Path) -> None:
    result = subprocess.run([sys.executable, "-c", TAKE, str(lock)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@contextmanager
def held_elsewhere(lock: Path) -> Generator[None]:
    place = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(place, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(place)


def open_files(lock: Path) -> int:
    def points_there(name: str) -> bool:
        try:
            return os.readlink(f"/proc/self/fd/{name}") == str(lock)  # noqa: PTH115 - it may be gone
        except OSError:
            return False

    return sum(points_there(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208 - a plain name is enough


def waiters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, writers._QueueWaiter)]


def interrupt_after(patch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    """Let the first call succeed and then meet a Ctrl-C, as one that arrived during the call does."""
    real = getattr(owner, name)
    pending = [KeyboardInterrupt()]

    def interrupted(*args: object) -> object:
        result = real(*args)
        if pending:
            raise pending.pop()
        return result

    patch.setattr(owner, name, interrupted)


def test_an_interrupt_as_the_lock_arrives_leaves_it_free(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, fcntl, "flock")

    with pytest.raises(KeyboardInterrupt) as kept:  # with its traceback, and all that this refers to
        wait_in_line(lock)

    assert_free_for_another_process(lock)
    assert open_files(lock) == 0
    del kept


@pytest.mark.parametrize("method", ["start", "wait"])
def test_an_interrupted_wait_gives_back_a_lock_that_comes_later(
    lock: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    with held_elsewhere(lock):
        interrupt_after(monkeypatch, writers._QueueWaiter, method)
        with pytest.raises(KeyboardInterrupt):
            wait_in_line(lock, patience=0.1)

    wait_until(lambda: not waiters())
    assert_free_for_another_process(lock)
    assert open_files(lock) == 0


def test_an_interrupt_after_a_successful_wait_leaves_the_lock_free(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, writers, "_wait_in_line")
    with held_elsewhere(lock):
        caught: list[BaseException] = []

        def wait() -> None:
            try:
                wait_in_line(lock)
            except KeyboardInterrupt as error:
                caught.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(waiters)
    thread.join()

    assert [type(error) for error in caught] == [KeyboardInterrupt]
    assert_free_for_another_process(lock)


def test_a_turn_that_was_waited_for_keeps_others_out_until_its_end(lock: Path) -> None:
    arrived, tried = threading.Event(), threading.Event()

    def wait() -> None:
        with writers.hold_turn(lock, database=lock.with_name("state.db"), patience=HANG_SECONDS):
            arrived.set()
            tried.wait(HANG_SECONDS)

    with held_elsewhere(lock):
        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(waiters)
    assert arrived.wait(HANG_SECONDS)
    wait_until(lambda: not waiters())

    result = subprocess.run([sys.executable, "-c", TAKE, str(lock)], capture_output=True, text=True, check=False)
    tried.set()
    thread.join()

    assert "BlockingIOError" in result.stderr
    assert_free_for_another_process(lock)


def test_an_interrupted_body_leaves_the_lock_free(lock: Path) -> None:
    with pytest.raises(KeyboardInterrupt), writers.hold_turn(lock, database=lock, patience=HANG_SECONDS):
        raise KeyboardInterrupt

    assert_free_for_another_process(lock)


def test_waits_behind_a_stopped_process_do_not_pile_up(lock: Path) -> None:
    with held_elsewhere(lock):
        for _ in range(5):
            with pytest.raises(LockTimeout):
                wait_in_line(lock, patience=0.05)
        assert (len(waiters()), open_files(lock)) == (1, 2)  # the one still in line, and the holder

    wait_until(lambda: not waiters())
    assert open_files(lock) == 0
    assert_free_for_another_process(lock)


def test_a_wait_beside_an_abandoned_one_still_gets_its_turn(lock: Path) -> None:
    with held_elsewhere(lock):
        with pytest.raises(LockTimeout):
            wait_in_line(lock, patience=0.05)
        thread = threading.Thread(target=wait_in_line, args=(lock,))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join(HANG_SECONDS)

    assert not thread.is_alive()
    assert_free_for_another_process(lock)


def test_a_wait_without_a_thread_still_ends(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_threads(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(writers._QueueWaiter, "start", no_threads)
    with held_elsewhere(lock), pytest.raises(LockTimeout):
        wait_in_line(lock, patience=0.05)

    wait_in_line(lock)
    assert open_files(lock) == 0


def test_a_child_forked_inside_a_turn_leaves_it_to_its_parent(lock: Path) -> None:
    with writers.hold_turn(lock, database=lock, patience=HANG_SECONDS):
        pid = os.fork()
        if pid == 0:
            os._exit(open_files(lock))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with pytest.raises(LockTimeout):
            wait_in_line(lock, patience=0.05)
    wait_until(lambda: not waiters())


def test_a_line_in_a_directory_that_is_gone_is_a_replaced_history(tmp_path: Path) -> None:
    with pytest.raises(StateUnavailable) as caught:
        wait_in_line(tmp_path / "gone" / "state.lock")

    assert caught.value.reason == "state_replaced"

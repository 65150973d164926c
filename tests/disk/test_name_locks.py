"""Locks of names: what excludes what, who goes first, and how little a stopped holder delays."""

import errno
import fcntl
import os
import signal
import stat
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from disk.test_races import FORK
from spec.marks import requirement
from surehold.disk import entries
from surehold.disk.base import Target
from surehold.disk.local import LocalDisk
from surehold.disk.tree import Tree
from surehold.errors import LockTimeout
from waiting import HANG_SECONDS, wait_until


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LocalDisk]:
    (tmp_path / "ws" / "d").mkdir(parents=True)
    (tmp_path / "locks").mkdir()
    with LocalDisk([tmp_path / "ws"], lock_dir=str(tmp_path / "locks")) as disk:
        yield disk


def is_free(disk: LocalDisk, path: str) -> bool:
    try:
        with disk.lock([disk.resolve(path)], timeout=0):
            return True
    except LockTimeout:
        return False


def has_a_line(place: Path) -> bool:
    """Tell whether anyone waits in the line of any name."""
    if not (place / "locks/names.lock").exists():
        return False
    with (place / "locks/names.lock").open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
    return struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK


@requirement("engine:lock:names")
def test_other_names_of_a_directory_are_free(disk: LocalDisk, tmp_path: Path) -> None:
    with disk.lock([disk.resolve("d/x"), disk.resolve("z")], timeout=0):
        assert [is_free(disk, path) for path in ("d/x", "d/y", "z", "x")] == [False, True, False, True]
    assert not (tmp_path / "locks/names.lock").read_bytes()  # where the two waited
    assert is_free(disk, "d/x")


@requirement("engine:lock:names")
def test_what_makes_a_missing_directory_excludes_each_other(disk: LocalDisk) -> None:
    with disk.lock([disk.resolve("new/deep/a")], timeout=0):
        assert [is_free(disk, path) for path in ("new/b", "new/deep/c", "other/a")] == [False, False, True]


@requirement("engine:lock:names")
def test_names_that_may_be_one_file_or_make_a_repository_exclude_each_other(disk: LocalDisk) -> None:
    with disk.lock([disk.resolve("d/Straße")], timeout=0):
        assert not is_free(disk, "d/STRASSE")
    with disk.lock([disk.resolve("d/HEAD")], timeout=0):
        assert [is_free(disk, f"d/{name}") for name in ("refs/heads/main", "objects/x", "config")] == [
            False,
            False,
            True,
        ]


def test_a_name_that_is_not_text_can_be_locked(disk: LocalDisk) -> None:
    with disk.lock([disk.resolve(os.fsdecode(b"d/\xff"))], timeout=0):
        assert not is_free(disk, os.fsdecode(b"d/\xff"))


@requirement("engine:lock:line")
def test_who_waits_goes_before_who_comes_later(disk: LocalDisk, tmp_path: Path) -> None:
    order = list[str]()

    def wait() -> None:
        with disk.lock([disk.resolve("d/x")], timeout=HANG_SECONDS):
            order.append("first")

    waiting = threading.Thread(target=wait)
    with disk.lock([disk.resolve("d/x")], timeout=0):
        waiting.start()
        wait_until(lambda: has_a_line(tmp_path))
    with disk.lock([disk.resolve("d/x")], timeout=HANG_SECONDS):
        order.append("second")
    waiting.join()

    assert order == ["first", "second"]


@requirement("engine:lock:line")
def test_a_stopped_holder_delays_only_its_own_names(disk: LocalDisk, tmp_path: Path) -> None:
    ready = FORK.Event()

    def hold() -> None:
        with LocalDisk([tmp_path / "ws"]) as own, own.lock([own.resolve("d/x")], timeout=HANG_SECONDS):
            ready.set()
            signal.pause()

    holder = FORK.Process(target=hold)
    holder.start()
    assert ready.wait(HANG_SECONDS)
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            assert not is_free(disk, "d/x")
            assert is_free(disk, "d/y")
            with pytest.raises(LockTimeout), disk.lock([disk.resolve("d/x"), disk.resolve("d/y")], timeout=0.02):
                pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.join()
    with disk.lock([disk.resolve("d/x")], timeout=HANG_SECONDS):
        pass


def test_waits_after_a_stopped_one_in_line_do_not_pile_up(disk: LocalDisk) -> None:
    target = disk.resolve("d/x")

    def try_it() -> None:
        with pytest.raises(LockTimeout), disk.lock([target], timeout=0.3):
            pass

    with disk.lock([target], timeout=0):
        before = threading.active_count()
        tries = [threading.Thread(target=try_it) for _ in range(6)]
        for thread in tries:
            thread.start()
        for thread in tries:
            thread.join()
        wait_until(lambda: threading.active_count() <= before)
    assert is_free(disk, "d/x")


@requirement("engine:lock:names")
@pytest.mark.parametrize("names", [1, 3])
def test_processes_that_lock_the_same_names_take_turns(disk: LocalDisk, tmp_path: Path, names: int) -> None:
    counts = [tmp_path / f"count-{number}" for number in range(names)]
    for path in counts:
        path.write_text("0")

    def count_up(first: int) -> None:
        with LocalDisk([tmp_path / "ws"], lock_dir=str(tmp_path / "locks")) as own:
            for number in range(40):
                chosen = sorted({(first + number) % names, (first * number) % names})
                paths = [f"d/n{one}" for one in chosen]
                with own.lock([own.resolve(path) for path in paths], timeout=HANG_SECONDS):
                    for one in chosen:
                        counts[one].write_text(str(int(counts[one].read_text()) + 1))

    processes = [FORK.Process(target=count_up, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANG_SECONDS)

    expected = sum(len({(f + n) % names, (f * n) % names}) for f in range(4) for n in range(40))
    assert [process.exitcode for process in processes] == [0] * 4
    assert sum(int(path.read_text()) for path in counts) == expected


@requirement("engine:lock:names")
def test_a_locked_directory_holds_every_name_in_it_and_waits_for_each(disk: LocalDisk) -> None:
    with disk.lock_located([disk.resolve("d/x"), disk.resolve("d/y")], timeout=0):
        assert [is_free(disk, path) for path in ("d/x", "d/z", "d/new/z", "d", "z")] == [
            False,
            False,
            False,
            True,
            True,
        ]
    with disk.lock([disk.resolve("d/z")], timeout=0), pytest.raises(LockTimeout):
        disk.lock_located([disk.resolve("d/x")], timeout=0).__enter__()
    with disk.lock_located([disk.resolve("d/x")], timeout=0), pytest.raises(LockTimeout):
        disk.lock_located([disk.resolve("d/y")], timeout=0).__enter__()
    assert is_free(disk, "d/x")


@requirement("engine:lock:names")
def test_a_locked_directory_holds_every_name_where_only_a_lock_file_can_be_locked(
    disk: LocalDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = fcntl.fcntl

    def refuse_directories(fd: int, command: int, *more: bytes) -> object:
        if command in {fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK} and stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EBADF, "no locks on directories")
        return control(fd, command, *more)

    monkeypatch.setattr(fcntl, "fcntl", refuse_directories)
    with disk.lock_located([disk.resolve("d/x")], timeout=0):
        assert [is_free(disk, path) for path in ("d/x", "d/z", "z")] == [False, False, True]
    with disk.lock([disk.resolve("d/z")], timeout=0):
        assert [is_free(disk, path) for path in ("d/x", "d/z")] == [True, False]
        with pytest.raises(LockTimeout):
            disk.lock_located([disk.resolve("d/x")], timeout=0).__enter__()
    with disk.lock_located([disk.resolve("d/x")], timeout=0):
        pass
    assert is_free(disk, "d/x")


@requirement("engine:lock:names")
def test_a_directory_that_was_made_during_the_wait_is_locked_too(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, looked, locked, end = disk.locate("d/new/x"), threading.Event(), threading.Event(), threading.Event()
    find = entries.nearest_targets

    def find_and_tell(tree: Tree, targets: Sequence[Target]) -> list[Target]:
        found = find(tree, targets)
        looked.set()
        return found

    monkeypatch.setattr(entries, "nearest_targets", find_and_tell)

    def lock_and_wait() -> None:
        with disk.lock_located([target], timeout=HANG_SECONDS):
            locked.set()
            end.wait(HANG_SECONDS)

    waits = threading.Thread(target=lock_and_wait)
    with disk.lock([disk.resolve("d/y")], timeout=0):
        waits.start()
        assert looked.wait(HANG_SECONDS)
        (tmp_path / "ws/d/new").mkdir()
    assert locked.wait(HANG_SECONDS)
    assert not is_free(disk, "d/new/z")
    end.set()
    waits.join()

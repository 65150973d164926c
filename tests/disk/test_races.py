"""Several processes at once: friends who take locks, and an attacker who swaps directories for links."""

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from disk.suite import KERNELS, no_fence, sha
from spec.marks import requirement
from surehold.disk.base import Create, Remove, Rename, Replace
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk
from surehold.disk.locks import NameLocks
from surehold.errors import AlreadyExists, LockTimeout, StaleFile, SureholdError
from waiting import HANG_SECONDS

RACES = int(os.environ.get("SUREHOLD_RACES", "3000"))
EVERY_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
FORK = multiprocessing.get_context("fork")
SECRET = b"secret"


@contextmanager
def company(work: Callable[[Event, int], object], count: int = 1) -> Generator[None]:
    """Let other processes work until the block is left."""
    stop = FORK.Event()
    processes = [FORK.Process(target=work, args=(stop, number), daemon=True) for number in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        stop.set()
        for process in processes:
            process.join(HANG_SECONDS)
    assert [process.exitcode for process in processes] == [0] * count


def crowd(work: Callable[[int], None], count: int) -> None:
    """Let several processes begin at the same moment and wait for all of them."""
    gate = FORK.Barrier(count)

    def begin(number: int) -> None:
        gate.wait(HANG_SECONDS)
        work(number)

    processes = [FORK.Process(target=begin, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANG_SECONDS)
    assert [process.exitcode for process in processes] == [0] * count


def discard(key: str, data: bytes) -> None:
    """Keep nothing: no outside edit is expected here."""
    del key, data


@requirement("engine:disk:create_once")
@EVERY_KERNEL
def test_one_of_many_creators_wins(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "won").mkdir()

    def work(number: int) -> None:
        with LocalDisk([tmp_path / "ws"], kernel=kernel, durability="none") as disk:
            for turn in range(40):
                step = Create(target=disk.resolve(f"{turn}"), data=f"{number}".encode() * 1000)
                try:
                    disk.apply([step], tag=f"p{number}", fence=no_fence, keep=discard)
                except AlreadyExists:
                    continue
                (tmp_path / f"won/{turn}-{number}").touch()

    crowd(work, 6)
    winners = sorted(path.name.split("-") for path in (tmp_path / "won").iterdir())
    assert sorted(turn for turn, _ in winners) == sorted(str(turn) for turn in range(40))
    assert {path.name: path.read_bytes() for path in (tmp_path / "ws").iterdir()} == {
        turn: number.encode() * 1000 for turn, number in winners
    }


@requirement("engine:race:crossing_moves", "engine:lock:order")
@EVERY_KERNEL
def test_crossing_moves_lose_nothing(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/file").write_bytes(b"x")

    def work(number: int) -> None:
        way = ("a/file", "b/file") if number % 2 else ("b/file", "a/file")
        with LocalDisk([tmp_path], kernel=kernel, durability="none") as disk:
            source, target = map(disk.resolve, way)
            for turn in range(60):
                with disk.lock([source, target], timeout=HANG_SECONDS):
                    step = Rename(source=source, target=target, expected=sha(b"x"))
                    try:
                        disk.apply([step], tag=f"p{number}-{turn}", fence=no_fence, keep=discard)
                    except StaleFile as error:
                        assert error.reason == "vanished"  # noqa: PT017  # the file is on the other side

    crowd(work, 4)
    assert [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()] == [b"x"]


@requirement("engine:lock:processes")
@EVERY_KERNEL
def test_no_edit_is_lost_among_processes_that_take_the_lock(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "count").write_bytes(b"0")

    def work(number: int) -> None:
        with LocalDisk([tmp_path], kernel=kernel, durability="none") as disk:
            target = disk.resolve("count")
            for turn in range(50):
                with disk.lock([target], timeout=HANG_SECONDS):
                    stored = disk.read(target, limit=100)
                    assert stored is not None
                    data = str(int(stored.data) + 1).encode()
                    step = Replace(target=target, data=data, expected=sha(stored.data))
                    disk.apply([step], tag=f"p{number}-{turn}", fence=no_fence, keep=discard)

    crowd(work, 4)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"count": b"200"}


@requirement("promise:unseen:race")
@pytest.mark.parametrize("kernel", [Kernel(), Kernel(openat2=False)], ids=["openat2", "walk"])
def test_without_locks_no_two_edits_replace_the_same_version_and_none_disappears(
    tmp_path: Path, kernel: Kernel
) -> None:
    for name in ("ws", "acks", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "ws/chain").write_bytes(b"start")

    def keep(_: str, data: bytes) -> None:
        (tmp_path / "kept" / data.decode()).touch()

    def work(number: int) -> None:
        with LocalDisk([tmp_path / "ws"], kernel=kernel, durability="none") as disk:
            target = disk.resolve("chain")
            for turn in range(100):
                try:
                    stored = disk.read(target, limit=100)
                    assert stored is not None
                    step = Replace(target=target, data=f"{number}-{turn}".encode(), expected=sha(stored.data))
                    disk.apply([step], tag=f"p{number}-{turn}", fence=no_fence, keep=keep)
                except StaleFile:
                    continue
                (tmp_path / f"acks/{number}-{turn}").write_bytes(stored.data)

    crowd(work, 3)
    acknowledged = {path.name: path.read_bytes().decode() for path in (tmp_path / "acks").iterdir()}
    replaced = list(acknowledged.values())
    assert len(replaced) == len(set(replaced)), "two edits replaced the same version"
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert set(acknowledged) <= {*replaced, *kept, (tmp_path / "ws/chain").read_text()}, "an edit disappeared"
    assert [path.name for path in (tmp_path / "ws").iterdir()] == ["chain"]


@requirement("engine:lock:processes", "engine:lock:timeout", "engine:lock:dies_with_process")
def test_a_lock_of_another_process_is_waited_for_and_dies_with_it(tmp_path: Path) -> None:
    ready = FORK.Event()

    def hold(stop: Event, _: int) -> None:
        with LocalDisk([tmp_path]) as disk, disk.lock([disk.resolve("x")], timeout=HANG_SECONDS):
            ready.set()
            stop.wait(HANG_SECONDS)
            os._exit(0)  # without letting go

    with LocalDisk([tmp_path]) as disk:
        taken: list[str] = []

        def take() -> None:
            with disk.lock([disk.resolve("x")], timeout=HANG_SECONDS):
                taken.append("x")

        with company(hold):
            assert ready.wait(HANG_SECONDS)
            with pytest.raises(LockTimeout) as caught, disk.lock([disk.resolve("x")], timeout=0.2):
                pass
            assert (caught.value.path, caught.value.details) == ("x", {"seconds": 0.2})
            waiting = threading.Thread(target=take)
            waiting.start()
            assert not taken
        waiting.join(HANG_SECONDS)
    assert taken == ["x"]


def test_a_lock_that_is_let_go_is_free_although_a_child_was_forked_meanwhile(tmp_path: Path) -> None:
    with LocalDisk([tmp_path]) as disk:
        target = disk.resolve("x")
        with contextlib.ExitStack() as stack:
            with disk.lock([target], timeout=HANG_SECONDS):
                stack.enter_context(company(lambda stop, _: stop.wait(HANG_SECONDS)))
            with disk.lock([target], timeout=HANG_SECONDS):
                pass


def test_directories_that_never_stop_moving_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(*_: object) -> tuple[int, int, int]:
        return 0, 0, 0

    monkeypatch.setattr(NameLocks, "_current_name", elsewhere)
    with LocalDisk([tmp_path]) as disk:
        with pytest.raises(LockTimeout) as caught, disk.lock([disk.resolve("x")], timeout=0.05):
            pass
        assert caught.value.path == "x"


def test_a_lock_follows_the_path_to_a_new_directory(tmp_path: Path) -> None:
    (tmp_path / "ws/d").mkdir(parents=True)
    with LocalDisk([tmp_path / "ws"]) as disk:
        target = disk.resolve("d/x")
        with disk.lock([target], timeout=HANG_SECONDS):
            (tmp_path / "ws/d").rename(tmp_path / "old")
            (tmp_path / "ws/d").mkdir()
            with disk.lock([target], timeout=HANG_SECONDS):  # another directory, another lock
                pass


@contextmanager
def attacked(tmp_path: Path) -> Generator[Path]:
    """Yield a root in which `d` is now a directory, now a link to the outside, and back, all the time."""
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for directory in (root / "d/e", outside / "e"):
        directory.mkdir(parents=True)
    for name in ("f", "e/f"):
        (root / "d" / name).write_bytes(b"public")
        (outside / name).write_bytes(SECRET)
    (root / "link").symlink_to(outside)

    def attack(stop: Event, _: int) -> None:
        here = os.open(root, os.O_RDONLY)
        kernel = Kernel()
        turns = 0
        while not stop.is_set() or turns % 2:
            for _ in range(50):
                kernel.swap(here, "d", "link")
            turns += 50

    with company(attack):
        yield root


def rounds(count: int, enough: Callable[[], bool]) -> Iterator[int]:
    """Count at least so far, and on until something got through: a busy machine may pause the attacker for long."""
    number = 0
    while number < count or not enough():
        yield number
        number += 1


@requirement("promise:contained:races")
@EVERY_KERNEL
def test_reads_during_a_swap_attack_never_leave_the_root(tmp_path: Path, kernel: Kernel) -> None:
    seen: set[str] = set()
    with attacked(tmp_path) as root, LocalDisk([root], kernel=kernel) as disk:
        for number in rounds(RACES, lambda: "public" in seen):
            try:
                stored = disk.read(disk.resolve("d/e/f" if number % 2 else "d/f"), limit=100)
            except SureholdError as error:
                seen.add(f"{error.kind} {error.reason}")
            else:
                seen.add("nothing" if stored is None else stored.data.decode())
    assert SECRET.decode() not in seen
    assert {"public"} <= seen <= {"public", "nothing", "outside_workspace symlink_escape", "stale_file unstable_read"}


@requirement("promise:contained:races")
@EVERY_KERNEL
def test_writes_during_a_swap_attack_never_leave_the_root(tmp_path: Path, kernel: Kernel) -> None:
    done: list[int] = []
    with attacked(tmp_path) as root, LocalDisk([root], kernel=kernel, durability="none") as disk:
        for number in rounds(RACES // 10, lambda: bool(done)):
            try:
                file, new = disk.resolve("d/f"), disk.resolve(f"d/new/{number}")
                for step in (
                    Replace(target=file, data=b"public", expected=sha(b"public")),
                    Create(target=new, data=b"ours"),
                    Rename(source=new, target=disk.resolve(f"d/e/{number}"), expected=sha(b"ours")),
                    Remove(target=disk.resolve(f"d/e/{number}"), expected=sha(b"ours")),
                ):
                    disk.apply([step], tag=f"t{number}", fence=no_fence, keep=discard)
                    done.append(number)
            except SureholdError as error:
                assert error.kind in {"outside_workspace", "stale_file", "not_found", "already_exists"}, error  # noqa: PT017
    assert done
    outside = tmp_path / "outside"
    found = {str(path.relative_to(outside)): path.is_file() and path.read_bytes() for path in outside.rglob("*")}
    assert found == {"e": False, "e/f": SECRET, "f": SECRET}
    assert [path.name for path in tmp_path.rglob(".surehold-*")] == []

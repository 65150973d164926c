"""Real programs that write into a file while it is being changed. They wait, or what they write is in the file or kept."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from disk.programs import start_append
from disk.suite import LocalWorld, local_world, sha
from spec.marks import requirement
from surehold.disk.base import Replace, Target
from surehold.disk.kernel import Kernel
from surehold.disk.steps.watched import WatchedEntry, watch_file
from surehold.errors import OutsideWorkspace, StaleFile

HOLD = (
    "import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND); print(flush=True); "
    "sys.stdin.readline(); os.write(fd, b'OUTSIDE'); print(flush=True); sys.stdin.readline()"
)


@dataclass(frozen=True, kw_only=True)
class Striking(Kernel):
    """A kernel that lets something happen right before and right after a swap."""

    before: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    after: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        if self.before:
            self.before.pop(0)()
        Kernel.swap(self, dir_fd, one, other)
        if self.after:
            self.after.pop(0)()


@pytest.fixture
def kernel() -> Striking:
    return Striking()


@pytest.fixture
def world(tmp_path: Path, kernel: Striking) -> LocalWorld:
    return local_world(tmp_path, kernel)


@contextmanager
def held_open(path: Path) -> Generator[Callable[[], None]]:
    """Let a program have the file open for writing; call what is given to let it write."""
    program = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdout.readline()

    def write() -> None:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"\n")
        program.stdin.flush()
        program.stdout.readline()

    try:
        yield write
    finally:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()


def watched_replace(world: LocalWorld, path: str, data: bytes, *, in_place: bool = False) -> Replace:
    target: Target = world.target(path)
    stored = world.disk.read_watched(target, limit=1 << 30, in_place=in_place)
    assert stored is not None
    return Replace(target=target, data=data, expected=sha(stored.data), old=stored.data)


@requirement("outside:lease:waits")
def test_a_program_that_opens_the_file_after_the_read_waits_and_then_writes_into_what_it_opened(
    world: LocalWorld,
) -> None:
    world.put("a", b"old ")
    with world.disk.lock([world.target("a")], timeout=1):
        step = watched_replace(world, "a", b"new ")
        program = start_append(world.root / "a")
        assert program.poll() is None
        with pytest.raises(StaleFile) as caught:
            world.apply(step)
        assert caught.value.reason == "displaced_mismatch"
    assert program.wait() == 0
    assert (world.listing(), world.kept) == ({"a": b"old OUTSIDE"}, [])


@requirement("outside:lease:waits")
def test_a_program_that_comes_between_the_swap_and_the_end_gets_the_old_file_back_at_the_path(
    world: LocalWorld, kernel: Striking
) -> None:
    world.put("a", b"old ")
    programs = list["subprocess.Popen[bytes]"]()
    # It finds the old file under its temporary name, as a program that had found it before the swap does.
    kernel.after.append(lambda: programs.append(start_append(world.root / ".surehold-t1-0.tmp")))
    with world.disk.lock([world.target("a")], timeout=1), pytest.raises(StaleFile):
        world.apply(watched_replace(world, "a", b"new "))
    assert programs[0].wait() == 0
    assert (world.listing(), world.kept) == ({"a": b"old OUTSIDE"}, [])


@requirement("outside:lease:waits")
def test_a_program_that_is_found_waiting_only_when_the_old_file_is_removed_is_let_in_and_its_text_is_kept(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put("a", b"old ")
    programs, settle = list["subprocess.Popen[bytes]"](), WatchedEntry.check_settled

    def settle_and_append(entry: WatchedEntry) -> None:
        settle(entry)
        programs.append(start_append(world.root / ".surehold-t1-0.tmp"))
        assert programs[0].poll() is None

    monkeypatch.setattr(WatchedEntry, "check_settled", settle_and_append)
    with world.disk.lock([world.target("a")], timeout=1):
        world.apply(watched_replace(world, "a", b"new "))

    assert [program.wait() for program in programs] == [0]
    assert (world.listing(), world.kept) == ({"a": b"new "}, [b"old OUTSIDE"])


@requirement("outside:lease:waits")
@pytest.mark.parametrize("moment", ["after the read", "before the rename"])
def test_where_names_cannot_be_swapped_a_program_waits_too_and_finds_the_old_file_at_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    world = local_world(tmp_path, Kernel(exchange=False))
    world.put("a", b"old ")
    programs, rename = list["subprocess.Popen[bytes]"](), os.replace

    def append_and_rename(*args: Any, **options: Any) -> None:
        if not programs:
            programs.append(start_append(world.root / "a"))
        rename(*args, **options)

    with world.disk.lock([world.target("a")], timeout=1):
        step = watched_replace(world, "a", b"new ")
        if moment == "after the read":
            programs.append(start_append(world.root / "a"))
        else:
            monkeypatch.setattr(os, "replace", append_and_rename)
        with pytest.raises(StaleFile):
            world.apply(step)

    assert [program.wait() for program in programs] == [0]
    assert (world.listing(), world.kept) == ({"a": b"old OUTSIDE"}, [])


@requirement("outside:facts:before")
@pytest.mark.parametrize("leases", [True, False])
def test_a_file_that_was_replaced_since_the_read_is_not_swapped_at_all(tmp_path: Path, *, leases: bool) -> None:
    kernel = Striking(leases=leases)
    kernel.before.append(lambda: pytest.fail("a refused version was shown"))
    world = local_world(tmp_path, kernel)
    world.put("a", b"old")
    with world.disk.lock([world.target("a")], timeout=1):
        step = watched_replace(world, "a", b"new")
        world.put("b", b"theirs")
        (world.root / "b").replace(world.root / "a")
        with pytest.raises(StaleFile):
            world.apply(step)
    assert (world.listing(), world.kept) == ({"a": b"theirs"}, [])


@requirement("outside:facts:refused_text")
def test_an_append_to_a_version_that_is_refused_is_kept_and_the_refused_text_leaves_the_path(tmp_path: Path) -> None:
    kernel = Striking(leases=False)
    world = local_world(tmp_path, kernel)
    world.put("a", b"head\ntail\n")

    def append(text: bytes) -> None:
        with (world.root / "a").open("ab") as file:
            file.write(text)

    kernel.before.append(lambda: append(b"first\n"))
    kernel.after.append(lambda: append(b"second\n"))
    step = Replace(
        target=world.target("a"), data=b"head\nAGENT\ntail\n", expected=sha(b"head\ntail\n"), old=b"head\ntail\n"
    )
    with pytest.raises(StaleFile):
        world.apply(step)
    assert world.listing() == {"a": b"head\ntail\nfirst\n"}
    assert world.kept == [b"head\nAGENT\ntail\nsecond\n"]


@requirement("outside:facts:refused_text", "outside:race:save")
def test_a_saved_file_that_was_displaced_is_kept_since_its_program_may_have_read_the_refused_text(
    tmp_path: Path,
) -> None:
    kernel = Striking(leases=False)
    world = local_world(tmp_path, kernel)
    world.put("a", b"old\n")
    read = list[bytes]()

    def save(text: bytes) -> None:
        world.put("b", text)
        (world.root / "b").replace(world.root / "a")

    kernel.before.append(lambda: save(b"old\nfirst\n"))
    kernel.after.append(lambda: read.append((world.root / "a").read_bytes()))
    kernel.after.append(lambda: save(read[0] + b"second\n"))  # it never saw its own first version again
    step = Replace(target=world.target("a"), data=b"AGENT\n", expected=sha(b"old\n"), old=b"old\n")
    with pytest.raises(StaleFile):
        world.apply(step)

    assert world.listing() == {"a": b"AGENT\nsecond\n"}  # what another program saved is not touched
    assert world.kept == [b"old\nfirst\n"]


@requirement("outside:open:in_place")
@pytest.mark.parametrize("new", [b"new!", b"new and longer"], ids=["same length", "longer"])
def test_a_file_that_a_program_has_open_for_writing_keeps_its_inode_and_what_that_program_writes(
    world: LocalWorld, new: bytes
) -> None:
    world.put("a", b"old!")
    inode = (world.root / "a").stat().st_ino
    with held_open(world.root / "a") as write:
        with world.disk.lock([world.target("a")], timeout=1):
            world.apply(watched_replace(world, "a", new))
            assert "open for writing" in world.disk.write_caution(world.target("a"))
        write()
    assert (world.listing(), world.kept) == ({"a": new + b"OUTSIDE"}, [])
    assert (world.root / "a").stat().st_ino == inode


@requirement("outside:open:removed")
def test_a_file_that_a_program_has_open_for_writing_is_not_removed(world: LocalWorld) -> None:
    world.put("a", b"old!")
    with held_open(world.root / "a") as write:
        with world.disk.lock([world.target("a")], timeout=1), pytest.raises(StaleFile) as caught:
            world.apply(world.remove("a", expected=b"old!"))
        write()
    assert caught.value.reason == "open_for_writing"
    assert "would be lost with the file" in caught.value.message
    assert (world.listing(), world.kept) == ({"a": b"old!OUTSIDE"}, [])


def test_a_file_that_only_we_have_open_is_kept_from_others_until_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    watch = watch_file(Kernel(), partial(os.open, tmp_path / "a"), in_place=True)

    assert (watch.lease, watch.exclusive, watch.in_place, watch.was_disturbed()) == ("held", True, True, False)
    watch.close()


@requirement("outside:open:shorter")
def test_a_file_that_a_program_has_open_for_writing_is_not_made_shorter(world: LocalWorld) -> None:
    world.put("a", b"a long old text")
    with held_open(world.root / "a") as write:
        with world.disk.lock([world.target("a")], timeout=1):
            with pytest.raises(StaleFile) as caught:
                world.apply(watched_replace(world, "a", b"short"))
            assert caught.value.reason == "open_for_writing"
            assert "make the file shorter" in caught.value.message
        write()
    assert world.listing() == {"a": b"a long old textOUTSIDE"}


@requirement("outside:in_place:append")
@pytest.mark.parametrize("new", [b"N", b"same", b"much longer"], ids=["shorter", "same length", "longer"])
@pytest.mark.parametrize("leases", [True, False])
def test_an_append_to_a_hard_linked_file_stays_behind_the_new_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bytes, *, leases: bool
) -> None:
    world = local_world(tmp_path, Kernel(leases=leases))
    world.put("a", b"old!")
    os.link(world.root / "a", world.root / "b")
    programs = list["subprocess.Popen[bytes]"]()

    def append() -> None:
        programs.append(start_append(world.root / "b"))
        assert (programs[0].poll() is None) is leases  # without a lease it is done by now

    strike_first_write(monkeypatch, append)
    with world.disk.lock([world.target("a")], timeout=1):
        world.apply(watched_replace(world, "a", new))
    assert programs[0].wait() == 0
    assert world.listing() == {"a": new + b"OUTSIDE", "b": new + b"OUTSIDE"}
    assert world.kept == []


@requirement("outside:in_place:append")
def test_all_new_bytes_are_in_a_file_that_another_program_made_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = local_world(tmp_path, Kernel(leases=False))
    world.put("a", b"old!")
    os.link(world.root / "a", world.root / "b")
    strike_first_write(monkeypatch, lambda: os.truncate(world.root / "b", 1))
    with world.disk.lock([world.target("a")], timeout=1):
        world.apply(watched_replace(world, "a", b"much longer"))
    assert world.listing() == {"a": b"much longer", "b": b"much longer"}


def strike_first_write(monkeypatch: pytest.MonkeyPatch, strike: Callable[[], object]) -> None:
    """Let another program act right before the first write of ours."""
    pending = [strike]

    def struck(call: Callable[..., int]) -> Callable[..., int]:
        def write(*args: object) -> int:
            if pending:
                pending.pop()()
            return call(*args)

        return write

    monkeypatch.setattr(os, "write", struck(os.write))
    monkeypatch.setattr(os, "pwrite", struck(os.pwrite))


@requirement("outside:root:replaced")
def test_a_root_whose_path_leads_elsewhere_is_not_written_to(world: LocalWorld) -> None:
    world.put("a", b"old")
    target = world.target("a")
    world.root.rename(world.root.with_name("moved"))
    with pytest.raises(OutsideWorkspace) as gone, world.disk.lock([target], timeout=1):
        pass
    world.root.mkdir()
    with pytest.raises(OutsideWorkspace) as replaced, world.disk.lock([target], timeout=1):
        pass
    assert (gone.value.reason, replaced.value.reason) == ("root_replaced", "root_replaced")

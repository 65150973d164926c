"""Other programs that ignore every lock and strike between two system calls."""

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from disk.suite import LocalWorld, local_world, sha
from spec.marks import requirement
from surehold.disk.kernel import Kernel
from surehold.disk.locks import lock_file
from surehold.disk.steps import replace as replacing
from surehold.disk.steps.staging import DisplacedFile, check_displaced
from surehold.errors import AlreadyExists, LockTimeout, PermissionDenied, StaleFile

Turn = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Meddling(Kernel):
    """A kernel that gives other programs a turn before each of its renames."""

    turns: list[Turn] = field(default_factory=list[Turn])

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        self._turn()
        Kernel.swap(self, dir_fd, one, other)

    def rename_new(self, source_fd: int, source: str, dir_fd: int, name: str) -> None:
        self._turn()
        Kernel.rename_new(self, source_fd, source, dir_fd, name)

    def _turn(self) -> None:
        if self.turns:
            self.turns.pop(0)()


@dataclass(frozen=True, kw_only=True)
class Scene:
    world: LocalWorld
    turns: list[Turn]

    def put(self, path: str, data: bytes) -> Turn:
        """Return an outside save, done as editors do it: a new file renamed over the old."""

        def save() -> None:
            (self.world.outside / "save").write_bytes(data)
            (self.world.outside / "save").replace(self.world.root / path)

        return save

    def write(self, path: str, data: bytes) -> Turn:
        """Return an outside save into the same file."""
        return lambda: self.world.put(path, data)

    def delete(self, path: str) -> Turn:
        return lambda: self.world.put(path, None)


def nothing() -> None:
    """Let this turn pass."""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    kernel = Meddling(leases=False)  # with a lease the other program, which is this process, would wait for itself
    return Scene(world=local_world(tmp_path, kernel), turns=kernel.turns)


def save_kinds(scene: Scene) -> list[Callable[[str, bytes], Turn]]:
    return [scene.put, scene.write]


@requirement("engine:disk:verified_exchange", "promise:nothing_lost:outside_edit")
@pytest.mark.parametrize("kind", [0, 1], ids=["renamed over", "written into"])
def test_a_save_just_before_the_swap_stays_at_the_path(scene: Scene, kind: int) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [save_kinds(scene)[kind]("a", b"theirs")]
    with pytest.raises(StaleFile) as caught:
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert caught.value.details == {"expected": sha(b"old"), "actual": sha(b"theirs")}
    displaced = [] if kind else [b"theirs"]  # its program may have read ours, and replace it by what it makes of ours
    assert (world.listing(), world.kept) == ({"a": b"theirs"}, displaced)


@requirement("promise:nothing_lost:outside_edit")
@pytest.mark.parametrize("kind", [0, 1], ids=["renamed over", "written into"])
def test_a_second_save_before_the_swap_back_is_the_newest_and_the_first_is_kept(scene: Scene, kind: int) -> None:
    world = scene.world
    world.put("a", b"old")
    save = save_kinds(scene)[kind]
    scene.turns[:] = [save("a", b"first"), save("a", b"second")]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert (world.listing(), world.kept) == ({"a": b"second"}, [b"first", b"second"])


def test_a_third_save_is_the_newest(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", name) for name in (b"first", b"second", b"third")]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert world.listing() == {"a": b"third"}
    assert sorted(world.kept) == [b"first", b"second", b"third"]  # the third save replaced the first, which was back


def test_a_program_that_never_stops_saving_is_left_alone_in_the_end(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", str(number).encode()) for number in range(100)]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert list(world.listing()) == ["a"]
    assert len(world.kept) == len(set(world.kept)) > 1  # whatever was displaced, however short that was


def test_a_deletion_before_the_swap_back_stays_and_the_bytes_are_kept(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", b"theirs"), scene.delete("a")]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert (world.listing(), world.kept) == ({}, [b"theirs"])


def test_a_save_of_a_published_file_survives_the_undo_of_the_batch(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"a")
    world.put("b", b"b")

    def strike() -> None:
        scene.put("a", b"their a")()
        scene.put("b", b"their b")()

    scene.turns[:] = [nothing, strike]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"new", expected=b"a"), world.replace("b", b"new", expected=b"b"))
    assert (world.listing(), world.kept) == ({"a": b"their a", "b": b"their b"}, [b"their b", b"a", b"their a"])


def test_a_save_of_a_published_hard_link_survives_the_undo_of_the_batch(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    os.link(world.root / "a", world.root / "b")
    world.put("c", b"c")

    def strike() -> None:
        scene.write("b", b"theirs")()
        scene.write("c", b"their c")()

    scene.turns[:] = [strike]
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"new", expected=b"old"), world.replace("c", b"new", expected=b"c"))
    assert (world.listing(), world.kept) == ({"a": b"theirs", "b": b"theirs", "c": b"their c"}, [b"old"])


def test_a_save_of_a_created_file_survives_the_undo_of_the_batch(scene: Scene) -> None:
    world = scene.world
    world.put("b", b"b")

    def strike() -> None:
        scene.write("d/a", b"their a")()
        scene.put("b", b"their b")()

    scene.turns[:] = [strike]
    with pytest.raises(StaleFile):
        world.apply(world.create("d/a", b"new"), world.replace("b", b"new", expected=b"b"))
    assert world.listing() == {"b": b"their b", "d/a": b"their a"}


def test_a_file_that_appears_where_one_was_removed_stays_and_the_removed_is_kept(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", b"theirs"), scene.put("a", b"newest")]
    with pytest.raises(StaleFile):
        world.apply(world.remove("a", expected=b"old"))
    assert (world.listing(), world.kept) == ({"a": b"newest"}, [b"theirs"])


def test_a_save_just_before_a_rename_goes_back_to_its_path(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", b"theirs")]
    with pytest.raises(StaleFile):
        world.apply(world.rename("a", "d/b", expected=b"old"))
    assert (world.entries(), world.kept) == (["a"], [])
    assert world.listing() == {"a": b"theirs"}


def test_a_file_that_appears_where_one_was_renamed_from_stays(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", b"theirs"), scene.put("a", b"newest")]
    with pytest.raises(StaleFile):
        world.apply(world.rename("a", "b", expected=b"old"))
    assert (world.listing(), world.kept) == ({"a": b"newest"}, [b"theirs"])


@requirement("promise:nothing_lost:outside_edit")
def test_a_write_into_the_displaced_file_is_kept(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    world.put("b", b"b")
    with (world.root / "a").open("r+b", buffering=0) as editor:
        scene.turns[:] = [nothing, lambda: editor.write(b"late words")]
        world.apply(world.replace("a", b"new", expected=b"old"), world.replace("b", b"new b", expected=b"b"))
    assert (world.listing(), world.kept) == ({"a": b"new", "b": b"new b"}, [b"late words"])


def test_bytes_that_cannot_be_kept_stay_in_the_temporary_file(scene: Scene) -> None:
    world = scene.world
    world.put("a", b"old")
    scene.turns[:] = [scene.put("a", b"first"), scene.put("a", b"second")]

    def refuse(key: str, data: bytes) -> None:
        raise StaleFile(f"no room for {data!r} of {key}")

    with pytest.raises(Exception, match="could not be brought back"):
        world.disk.apply([world.replace("a", b"ours", expected=b"old")], tag="t1", fence=nothing, keep=refuse)
    assert world.listing() == {".surehold-t1-0.tmp": b"first", "a": b"second"}


@requirement("engine:disk:verified_exchange", "promise:nothing_lost:outside_edit")
@pytest.mark.parametrize("kind", [0, 1], ids=["renamed over", "written into"])
def test_without_a_swap_a_save_after_the_check_of_the_bytes_stays_at_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    scene = Scene(world=local_world(tmp_path, Kernel(exchange=False, leases=False)), turns=[])
    world = scene.world
    world.put("a", b"old")

    def check_then_save(seen: DisplacedFile, expected: str, key: str) -> None:
        check_displaced(seen, expected, key)
        save_kinds(scene)[kind]("a", b"theirs")()

    monkeypatch.setattr(replacing, "check_displaced", check_then_save)
    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"ours", expected=b"old"))
    assert world.listing() == {"a": b"theirs"}


def test_a_linked_name_that_vanished_does_not_keep_the_other_steps_from_being_undone(tmp_path: Path) -> None:
    kernel = Meddling(noreplace=False, leases=False)
    scene = Scene(world=local_world(tmp_path, kernel), turns=kernel.turns)
    world = scene.world
    for name in ("a", "c", "d"):
        world.put(name, name.encode())

    def strike() -> None:
        world.put("b", None)
        world.put("c", b"theirs")

    scene.turns[:] = [nothing, nothing, nothing, strike]
    with pytest.raises(StaleFile):
        world.apply(
            world.replace("d", b"new d", expected=b"d"),
            world.rename("a", "b", expected=b"a"),
            world.replace("c", b"new c", expected=b"c"),
        )
    assert scene.turns == []
    assert world.listing() == {"a": b"a", "c": b"theirs", "d": b"d"}


@requirement("promise:nothing_lost:outside_edit")
def test_an_equal_file_that_another_program_put_over_a_new_one_is_not_removed_by_the_undo(scene: Scene) -> None:
    world = scene.world
    world.put("c", b"c")

    def strike() -> None:
        scene.put("new", b"new")()
        world.put("c", b"theirs")

    scene.turns[:] = [strike]
    with pytest.raises(StaleFile):
        world.apply(world.create("new", b"new"), world.replace("c", b"ours", expected=b"c"))
    assert world.listing() == {"c": b"theirs", "new": b"new"}


def test_a_file_whose_mode_we_may_not_set_gets_its_bytes_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    world = scene.world
    world.put("a", b"old")
    world.put("c", b"c")
    (world.root / "other").hardlink_to(world.root / "a")
    scene.turns[:] = [scene.write("c", b"theirs")]
    for name in ("fchmod", "utime"):
        monkeypatch.setattr(os, name, denied_for_linked_files(getattr(os, name)))

    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"new", expected=b"old"), world.replace("c", b"ours", expected=b"c"))
    assert (world.listing(), world.kept) == ({"a": b"old", "c": b"theirs", "other": b"old"}, [])


@dataclass(frozen=True, kw_only=True)
class MountedOver(Meddling):
    """A kernel that swaps no file named `a`, since something is mounted on it."""

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        if other == "a":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        super().swap(dir_fd, one, other)


def test_an_undo_in_place_holds_although_the_temporary_file_goes_only_at_the_second_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, unlink = list[Turn](), os.unlink
    failures = [OSError(errno.EIO, os.strerror(errno.EIO))]

    def fail_once(path: str, *, dir_fd: int | None = None) -> None:
        if failures and path.endswith("-0.tmp"):
            raise failures.pop()
        unlink(path, dir_fd=dir_fd)

    world = local_world(tmp_path, MountedOver(leases=False, turns=turns))
    world.put("a", b"old")
    world.put("c", b"c")
    turns[:] = [Scene(world=world, turns=turns).write("c", b"theirs")]
    monkeypatch.setattr(os, "unlink", fail_once)

    with pytest.raises(StaleFile):
        world.apply(world.replace("a", b"new", expected=b"old"), world.replace("c", b"ours", expected=b"c"))
    assert (world.listing(), failures) == ({"a": b"old", "c": b"theirs"}, [])


def denied_for_linked_files(real: Callable[..., None]) -> Callable[..., None]:
    def denied(fd: int, *args: object, **more: object) -> None:
        if os.fstat(fd).st_nlink > 1:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(fd, *args, **more)

    return denied


@requirement("engine:lock:timeout")
def test_a_file_with_two_names_is_not_written_while_another_writer_has_it_locked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = scene.world
    world.put("a", b"old")
    (world.root / "other").hardlink_to(world.root / "a")
    monkeypatch.setitem(lock_file.__kwdefaults__ or {}, "timeout", 0.05)
    with (world.root / "other").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockTimeout):
            world.apply(world.replace("a", b"new", expected=b"old"))
    assert world.listing() == {"a": b"old", "other": b"old"}


def test_a_mode_that_we_may_not_set_fails_where_setting_it_was_the_task(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = scene.world
    world.put("a", b"old")
    (world.root / "other").hardlink_to(world.root / "a")
    step = replace(world.replace("a", b"new", expected=b"old"), mode=0o600)
    monkeypatch.setattr(os, "fchmod", denied_for_linked_files(os.fchmod))

    with pytest.raises(PermissionDenied):
        world.apply(step)
    assert (world.listing(), world.kept) == ({"a": b"old", "other": b"old"}, [])


def test_a_file_gets_another_case_where_names_do_not_differ_by_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = scene.world
    world.put("name", b"old")
    world.put("other", b"other")
    steps = [world.rename("name", new, expected=b"old") for new in ("NAME", "OTHER")]
    real = os.stat

    def stat_any_case(path: str, **more: Any) -> os.stat_result:
        try:
            return real(path, **more)
        except FileNotFoundError:
            return real(path.lower(), **more)

    monkeypatch.setattr(os, "stat", stat_any_case)
    world.apply(steps[0])
    monkeypatch.undo()
    assert world.listing() == {"NAME": b"old", "other": b"other"}

    world.put("NAME", None)
    world.put("name", b"old")
    monkeypatch.setattr(os, "stat", stat_any_case)
    with pytest.raises(AlreadyExists):
        world.apply(steps[1])
    monkeypatch.undo()
    assert world.listing() == {"name": b"old", "other": b"other"}

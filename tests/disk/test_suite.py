"""What every disk does, whatever it is made of."""

import os
import threading
import time

import pytest

from disk.suite import World, sha
from spec.marks import requirement
from surehold.disk.base import Create, Replace, StoredFile
from surehold.errors import (
    AlreadyExists,
    FileTooLarge,
    InvalidArgument,
    LockTimeout,
    NotAFile,
    NotFound,
    OutsideWorkspace,
    StaleFile,
)
from surehold.text.snapshot import Meta
from waiting import HANG_SECONDS

pytestmark = requirement("engine:disk:two_disks", "engine:disk:fallbacks")  # the fixture `world` is every disk


class Refused(Exception):
    """A fence that says no."""


def refuse() -> None:
    raise Refused


# Resolving


@requirement("engine:disk:target", "promise:contained:spelling")
def test_a_path_is_named_by_its_names_below_the_first_root(world: World) -> None:
    world.put("a/b.txt", b"x")
    by_name = world.target("a/b.txt")
    assert (by_name.key, by_name.parts, str(by_name)) == ("a/b.txt", ("a", "b.txt"), "a/b.txt")
    assert by_name.root == world.disk.roots[0]
    for other in ("./a//b.txt", "a/./b.txt", "a/../a/b.txt", f"{by_name.root}/a/b.txt"):
        assert world.target(other) == by_name


def test_what_does_not_exist_resolves_too(world: World) -> None:
    assert world.target("new/deep/file").parts == ("new", "deep", "file")


def test_the_root_resolves_to_no_names_and_is_a_directory(world: World) -> None:
    root = world.target(".")
    assert (root.parts, root.key) == ((), ".")
    with pytest.raises(NotAFile) as caught:
        world.disk.read(root, limit=10)
    assert caught.value.reason == "is_a_directory"
    with pytest.raises(NotAFile):
        world.apply(Create(target=root, data=b"x"))


@requirement("engine:bad_input:nul", "engine:bad_input:long_path")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty_path"),
        ("a\0b", "nul_in_path"),
        ("x/" * 2600, "path_too_long"),
        ("a/" + "n" * 256, "name_too_long"),
        ("é" * 128, "name_too_long"),
        ("half \ud800 character", "lone_surrogate"),
        ("file.txt/", "trailing_slash"),
        ("file.txt/.", "trailing_slash"),
        ("missing/", "trailing_slash"),
    ],
)
def test_a_path_that_cannot_name_a_file_is_refused(world: World, path: str, reason: str) -> None:
    world.put("file.txt", b"x")
    with pytest.raises(InvalidArgument) as caught:
        world.target(path)
    assert caught.value.reason == reason


@requirement("promise:contained:dotdot")
@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "a/b/../../..", "../ws/a", "./../x"])
def test_dotdot_does_not_lead_out(world: World, path: str) -> None:
    world.put("a/b/c", b"x")
    with pytest.raises(OutsideWorkspace) as caught:
        world.target(path)
    assert (caught.value.reason, caught.value.path) == ("dotdot", path)


@requirement("promise:contained:spelling")
def test_absolute_paths_elsewhere_are_refused(world: World) -> None:
    root = world.disk.roots[0]
    for path in ("/", "/etc/passwd", f"{root}-evil/x", f"{root}x", f"/x{root}/a", "//etc"):
        with pytest.raises(OutsideWorkspace) as caught:
            world.target(path)
        assert caught.value.reason == "absolute"
    with pytest.raises(OutsideWorkspace) as caught:
        world.target(f"{root}/../x")
    assert caught.value.reason == "dotdot"


@requirement("promise:contained:spelling")
def test_nothing_is_expanded(world: World) -> None:
    assert world.target("~/x").parts == ("~", "x")
    assert world.target("$HOME/x").parts == ("$HOME", "x")
    assert world.target("file:///etc/passwd").parts == ("file:", "etc", "passwd")


def test_a_file_in_the_way_is_not_a_directory(world: World) -> None:
    world.put("file", b"x")
    for path in ("file/below", "file/below/more", "file/../file"):
        with pytest.raises(NotFound) as caught:
            world.target(path)
        assert caught.value.reason == "not_a_directory"


def test_dotdot_below_a_missing_directory_is_not_found(world: World) -> None:
    with pytest.raises(NotFound) as caught:
        world.target("missing/../x")
    assert caught.value.reason == "no_such_file"


def test_names_that_are_not_utf8_have_one_spelling(world: World) -> None:
    world.put("caf\udce9.txt", b"latin")
    assert world.read("caf\udce9.txt") == b"latin"
    world.put("é.txt", b"utf-8")
    assert world.target("\udcc3\udca9.txt") == world.target("é.txt")


# Reading


def test_a_missing_file_reads_as_none(world: World) -> None:
    assert world.read("missing") is None
    assert world.read("missing/deeper") is None


def test_a_file_reads_whole_with_its_facts(world: World) -> None:
    world.put("a", b"bytes \x00 \xff")
    stored = world.disk.read(world.target("a"), limit=1 << 20)
    assert stored is not None
    assert stored == StoredFile(data=b"bytes \x00 \xff", meta=stored.meta, links=1)
    assert (stored.meta.mode, stored.meta.mtime_ns > 0) == (0o644, True)


def test_an_empty_file_is_not_a_missing_one(world: World) -> None:
    world.put("empty", b"")
    assert world.read("empty") == b""
    assert list(world.disk.read_chunks(world.target("empty"))) == []


def test_a_file_above_the_limit_is_refused_with_its_size(world: World) -> None:
    world.put("big", b"x" * 101)
    with pytest.raises(FileTooLarge) as caught:
        world.disk.read(world.target("big"), limit=100)
    assert caught.value.details == {"size": 101, "limit": 100}
    world.put("fits", b"x" * 100)
    assert world.disk.read(world.target("fits"), limit=100) is not None


def test_a_directory_is_not_read(world: World) -> None:
    world.put("d/f", b"x")
    with pytest.raises(NotAFile) as caught:
        world.read("d")
    assert (caught.value.reason, caught.value.path) == ("is_a_directory", "d")
    with pytest.raises(NotAFile):
        list(world.disk.read_chunks(world.target("d")))


def test_chunks_are_the_file(world: World) -> None:
    data = bytes(range(256)) * 12_000
    world.put("big", data)
    chunks = list(world.disk.read_chunks(world.target("big")))
    assert b"".join(chunks) == data
    assert max(map(len, chunks)) == 1 << 20


def test_chunks_of_a_missing_file_are_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        list(world.disk.read_chunks(world.target("missing")))


# Single steps


@requirement("engine:disk:create_parents")
def test_create_makes_the_file_and_its_directories(world: World) -> None:
    world.apply(world.create("a/b/c.txt", b"new"))
    assert world.listing() == {"a/b/c.txt": b"new"}


def test_create_never_overwrites(world: World) -> None:
    world.put("a", b"old")
    world.put("d/f", b"old")
    for path, reason in (("a", "file"), ("d", "directory")):
        with pytest.raises(AlreadyExists) as caught:
            world.apply(world.create(path, b"new"))
        assert (caught.value.reason, caught.value.path) == (reason, path)
    assert world.listing() == {"a": b"old", "d/f": b"old"}


def test_create_below_a_file_is_refused(world: World) -> None:
    target = world.target("a/b")
    world.put("a", b"file")
    with pytest.raises(NotFound) as caught:
        world.apply(Create(target=target, data=b"x"))
    assert caught.value.reason == "not_a_directory"
    assert world.listing() == {"a": b"file"}


def test_create_takes_a_mode_as_it_is(world: World) -> None:
    world.apply(Create(target=world.target("run"), data=b"x", mode=0o777))
    stored = world.disk.read(world.target("run"), limit=10)
    assert stored is not None
    assert stored.meta.mode == 0o777


@requirement("engine:disk:restored_facts")
def test_create_brings_facts_back(world: World) -> None:
    meta = Meta(mode=0o640, uid=os.geteuid(), gid=os.getegid(), mtime_ns=1_500_000_000_123_456_789)
    world.apply(Create(target=world.target("old"), data=b"x", meta=meta))
    assert world.disk.read(world.target("old"), limit=10) == StoredFile(data=b"x", meta=meta, links=1)


@requirement("promise:untouched:mode")
def test_replace_puts_other_bytes_and_keeps_the_mode(world: World) -> None:
    world.apply(Create(target=world.target("a"), data=b"old", mode=0o751))
    world.apply(world.replace("a", b"new", expected=b"old"))
    stored = world.disk.read(world.target("a"), limit=10)
    assert stored is not None
    assert (stored.data, stored.meta.mode) == (b"new", 0o751)
    world.apply(Replace(target=world.target("a"), data=b"newer", expected=sha(b"new"), mode=0o600))
    stored = world.disk.read(world.target("a"), limit=10)
    assert stored is not None
    assert (stored.data, stored.meta.mode) == (b"newer", 0o600)
    assert world.listing() == {"a": b"newer"}


@requirement("engine:disk:delete")
def test_remove_takes_the_file_away(world: World) -> None:
    world.put("d/a", b"old")
    world.apply(world.remove("d/a", expected=b"old"))
    assert world.listing() == {}
    assert world.read("d/a") is None


def test_rename_gives_another_name_and_keeps_the_facts(world: World) -> None:
    meta = Meta(mode=0o600, uid=os.geteuid(), gid=os.getegid(), mtime_ns=1_500_000_000_000_000_000)
    world.apply(Create(target=world.target("a"), data=b"x", meta=meta))
    world.apply(world.rename("a", "new/b", expected=b"x"))
    assert world.listing() == {"new/b": b"x"}
    assert world.disk.read(world.target("new/b"), limit=10) == StoredFile(data=b"x", meta=meta, links=1)


@requirement("engine:disk:move")
def test_rename_never_overwrites(world: World) -> None:
    world.put("a", b"a")
    world.put("b", b"b")
    world.put("d/f", b"f")
    for to in ("b", "d", "a"):
        with pytest.raises(AlreadyExists) as caught:
            world.apply(world.rename("a", to, expected=b"a"))
        assert caught.value.path == to
    assert world.listing() == {"a": b"a", "b": b"b", "d/f": b"f"}


def test_a_step_on_a_missing_file_is_stale(world: World) -> None:
    steps = (
        world.replace("a", b"new", expected=b"old"),
        world.remove("a", expected=b"old"),
        world.rename("a", "made/b", expected=b"old"),
        world.replace("no/such/dir", b"new", expected=b"old"),
        world.remove("no/such/dir", expected=b"old"),
    )
    for step in steps:
        with pytest.raises(StaleFile) as caught:
            world.apply(step)
        assert caught.value.reason == "vanished"
        assert caught.value.details == {"expected": sha(b"old"), "actual": None}
    assert world.listing() == {}
    with pytest.raises(NotFound):  # no directory was left behind
        world.target("made/../x")


def test_a_step_on_a_directory_is_not_a_file(world: World) -> None:
    world.put("d/f", b"x")
    steps = (
        world.replace("d", b"new", expected=b"old"),
        world.remove("d", expected=b"old"),
        world.rename("d", "e", expected=b"old"),
    )
    for step in steps:
        with pytest.raises(NotAFile) as caught:
            world.apply(step)
        assert (caught.value.reason, caught.value.path) == ("is_a_directory", "d")
    assert world.listing() == {"d/f": b"x"}


@requirement("engine:disk:delete", "engine:disk:verified_exchange")
def test_a_step_on_other_bytes_is_stale_and_they_stay(world: World) -> None:
    world.put("a", b"theirs")
    steps = (
        world.replace("a", b"new", expected=b"old"),
        world.remove("a", expected=b"old"),
        world.rename("a", "b", expected=b"old"),
    )
    for step in steps:
        with pytest.raises(StaleFile) as caught:
            world.apply(step)
        assert (caught.value.reason, caught.value.path) == ("displaced_mismatch", "a")
        assert caught.value.details == {"expected": sha(b"old"), "actual": sha(b"theirs")}
        assert world.listing() == {"a": b"theirs"}
    assert world.kept == []


def test_no_steps_do_nothing(world: World) -> None:
    world.apply()
    assert world.listing() == {}


def test_a_tag_must_fit_into_a_file_name(world: World) -> None:
    with pytest.raises(InvalidArgument) as caught:
        world.apply(world.create("a", b"x"), tag="../evil")
    assert caught.value.reason == "bad_tag"
    assert world.listing() == {}


# Batches


def test_a_batch_applies_all_of_its_steps(world: World) -> None:
    for name in ("edit", "drop", "move"):
        world.put(name, name.encode())
    world.apply(
        world.create("sub/new", b"new"),
        world.replace("edit", b"edited", expected=b"edit"),
        world.remove("drop", expected=b"drop"),
        world.rename("move", "sub/moved", expected=b"move"),
    )
    assert world.listing() == {"edit": b"edited", "sub/moved": b"move", "sub/new": b"new"}
    assert world.kept == []


@requirement("engine:disk:create_parents", "promise:half_done:refusal")
def test_a_batch_whose_last_step_fails_leaves_everything_as_it_was(world: World) -> None:
    before = {"drop": b"drop", "edit": b"edit", "last": b"last", "move": b"move"}
    for name, data in before.items():
        world.put(name, data)
    with pytest.raises(StaleFile):
        world.apply(
            world.create("made/new", b"new"),
            world.replace("edit", b"edited", expected=b"edit"),
            world.remove("drop", expected=b"drop"),
            world.rename("move", "made/deep/moved", expected=b"move"),
            world.replace("last", b"new", expected=b"not this"),
        )
    assert world.listing() == before
    with pytest.raises(NotFound):  # the directories are gone as well
        world.target("made/../x")


def test_a_fence_that_refuses_stops_everything(world: World) -> None:
    world.put("edit", b"edit")
    world.put("move", b"move")
    with pytest.raises(Refused):
        world.apply(
            world.create("made/new", b"new"),
            world.replace("edit", b"edited", expected=b"edit"),
            world.rename("move", "made/moved", expected=b"move"),
            fence=refuse,
        )
    assert world.listing() == {"edit": b"edit", "move": b"move"}
    with pytest.raises(NotFound):
        world.target("made/../x")


@requirement("engine:disk:replace")
def test_nothing_is_visible_before_the_fence(world: World) -> None:
    world.put("edit", b"edit")
    seen: list[tuple[bytes | None, bytes | None]] = []
    world.apply(
        world.create("new", b"new"),
        world.replace("edit", b"edited", expected=b"edit"),
        fence=lambda: seen.append((world.read("edit"), world.read("new"))),
    )
    assert seen == [(b"edit", None)]


@requirement("engine:disk:verified_exchange", "promise:nothing_lost:outside_edit")
def test_an_outside_edit_after_staging_wins(world: World) -> None:
    world.put("a", b"a")
    world.put("b", b"b")
    with pytest.raises(StaleFile) as caught:
        world.apply(
            world.replace("a", b"new a", expected=b"a"),
            world.replace("b", b"new b", expected=b"b"),
            fence=lambda: world.put("b", b"theirs"),
        )
    assert caught.value.details == {"expected": sha(b"b"), "actual": sha(b"theirs")}
    assert world.listing() == {"a": b"a", "b": b"theirs"}


@requirement("engine:bad_input:vanishing")
def test_an_outside_removal_after_staging_wins(world: World) -> None:
    for path in ("a", "b", "c"):
        world.put(path, b"x")
    steps = (
        world.replace("a", b"new", expected=b"x"),
        world.remove("b", expected=b"x"),
        world.rename("c", "d", expected=b"x"),
    )
    for step, path in zip(steps, ("a", "b", "c"), strict=True):
        with pytest.raises(StaleFile) as caught:
            world.apply(step, fence=lambda path=path: world.put(path, None))
        assert (caught.value.reason, caught.value.path) == ("vanished", path)
    assert world.listing() == {}


@requirement("engine:disk:move")
def test_an_outside_creation_after_staging_wins(world: World) -> None:
    world.put("a", b"a")
    for step in (world.create("n", b"ours"), world.rename("a", "n", expected=b"a")):
        with pytest.raises(AlreadyExists) as caught:
            world.apply(step, fence=lambda: world.put("n", b"theirs"))
        assert caught.value.path == "n"
        assert world.listing() == {"a": b"a", "n": b"theirs"}
        world.put("n", None)


def test_steps_of_a_batch_may_build_on_each_other(world: World) -> None:
    world.put("a", b"a")
    world.put("b", b"b")
    swap = (
        world.rename("a", "t", expected=b"a"),
        world.rename("b", "a", expected=b"b"),
        world.rename("t", "b", expected=b"a"),
        world.replace("b", b"new", expected=b"a"),
    )
    world.apply(*swap)
    assert world.listing() == {"a": b"b", "b": b"new"}


def test_a_file_may_become_a_directory_in_one_batch(world: World) -> None:
    inside = world.target("a/inside")
    world.put("a", b"a")
    world.apply(world.remove("a", expected=b"a"), Create(target=inside, data=b"x"))
    assert world.listing() == {"a/inside": b"x"}


def test_a_file_that_became_a_directory_comes_back(world: World) -> None:
    inside = world.target("a/inside")
    world.put("a", b"a")
    world.put("last", b"last")
    with pytest.raises(StaleFile):
        world.apply(
            world.remove("a", expected=b"a"),
            Create(target=inside, data=b"x"),
            world.remove("last", expected=b"not this"),
        )
    assert world.listing() == {"a": b"a", "last": b"last"}
    assert world.kept == []


def test_steps_that_build_on_each_other_are_undone_together(world: World) -> None:
    world.put("a", b"a")
    world.put("b", b"b")
    with pytest.raises(AlreadyExists):
        world.apply(
            world.rename("a", "t", expected=b"a"),
            world.rename("b", "a", expected=b"b"),
            world.rename("t", "a", expected=b"a"),
        )
    assert world.listing() == {"a": b"a", "b": b"b"}


# Locks


@requirement("engine:lock:timeout")
def test_a_lock_excludes_other_threads_and_names_the_path(world: World) -> None:
    world.put("d/a", b"x")
    caught: list[LockTimeout] = []

    def intrude() -> None:
        try:
            with world.disk.lock([world.target("d/a")], timeout=0.05):
                pass
        except LockTimeout as error:
            caught.append(error)

    with world.disk.lock([world.target("d/a")], timeout=HANG_SECONDS):
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    intrude()
    assert [(error.path, error.details) for error in caught] == [("d/a", {"seconds": 0.05})]
    assert "d/a" in caught[0].message


def test_locks_of_other_directories_are_free(world: World) -> None:
    world.put("a/x", b"")
    world.put("b/y", b"")
    with world.disk.lock([world.target("a/x")], timeout=0), world.disk.lock([world.target("b/y")], timeout=0):
        pass


def test_one_lock_is_enough_for_two_files_of_a_directory(world: World) -> None:
    with world.disk.lock([world.target("x"), world.target("y"), world.target("x")], timeout=0):
        pass


def test_a_lock_is_released_after_an_error(world: World) -> None:
    with pytest.raises(Refused), world.disk.lock([world.target("x")], timeout=0):
        raise Refused
    with world.disk.lock([world.target("x")], timeout=0):
        pass


@requirement("engine:lock:order")
def test_opposite_orders_do_not_deadlock(world: World) -> None:
    world.put("a/x", b"")
    world.put("b/y", b"")
    pairs = [("a/x", "b/y"), ("b/y", "a/x")]
    rounds: list[int] = []

    def work(paths: tuple[str, str]) -> None:
        for number in range(50):
            with world.disk.lock([world.target(path) for path in paths], timeout=HANG_SECONDS):
                rounds.append(number)
                time.sleep(0.0001)

    threads = [threading.Thread(target=work, args=(pair,)) for pair in pairs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rounds) == 200


def test_a_lock_below_a_missing_directory_excludes_too(world: World) -> None:
    first, second = world.target("new/a"), world.target("new/a")
    with world.disk.lock([first], timeout=0), pytest.raises(LockTimeout), world.disk.lock([second], timeout=0.01):
        pass

"""What every disk says about directories."""

import os
from functools import partial

import pytest

from disk.suite import LocalWorld, World
from surehold.disk.base import EntryStat, Target
from surehold.errors import NotFound, OutsideWorkspace, SureholdError


def test_entries_are_the_names_of_one_directory_with_their_types(world: World) -> None:
    world.put("a/b/c", b"x")
    world.put("a/f", b"xy")
    world.put("g", b"")

    with world.disk.open_listing(world.target(".")) as listing:
        assert listing.entries == {"a": "directory", "g": "file"}
    with world.disk.open_listing(world.target("a")) as listing:
        assert listing.entries == {"b": "directory", "f": "file"}


def test_looks_are_the_facts_about_entries_and_nothing_about_those_that_are_gone(world: World) -> None:
    world.put("a/f", b"xy")
    world.put("a/d/g", b"")

    file, gone, directory = world.disk.stat_entries(world.target("a"), ["f", "gone", "d"])

    assert file is not None
    assert (file.type, file.size, file.mtime_ns > 0, file.ctime_ns > 0) == ("file", 2, True, True)
    assert gone is None
    assert directory is not None
    assert directory.type == "directory"
    with world.disk.open_listing(world.target("a")) as listing:
        assert listing.stat_entries(["f", "gone", "d"]) == [file, None, directory]
        assert listing.modified_times(["d", "gone", "f"]) == [directory.mtime_ns, None, file.mtime_ns]
        assert listing.modified_times(["f"]) == [file.mtime_ns]


@pytest.mark.parametrize(("path", "reason"), [("missing", "no_such_directory"), ("f", "not_a_directory")])
def test_what_is_no_directory_has_no_entries(world: World, path: str, reason: str) -> None:
    world.put("f", b"")

    for ask in (partial(_list_names, world), lambda target: world.disk.stat_entries(target, ["x"])):  # type: ignore[misc]
        with pytest.raises(NotFound) as caught:
            ask(world.target(path))
        assert (caught.value.reason, caught.value.path) == (reason, path)


def test_heads_are_the_first_bytes_of_files(world: World) -> None:
    world.put("d/f", b"0123456789")
    world.put("d/e/x", b"")

    assert world.disk.read_heads(world.target("d"), ["f", "missing", "e"], 4) == [b"0123", None, None]
    assert world.disk.read_heads(world.target("d"), ["f"], 100) == [b"0123456789"]


def test_names_below_a_directory_lead_to_targets(world: World) -> None:
    world.put("a/b/c", b"x")

    assert world.disk.target_below(world.target("a"), ("b", "c")) == world.target("a/b/c")
    assert world.disk.target_below(world.target("."), ()) == world.target(".")


def test_links_and_special_files_are_named_and_never_followed(local: LocalWorld) -> None:
    (local.outside / "secret").write_bytes(b"secret")
    (local.root / "link").symlink_to(local.outside)
    (local.root / "file").symlink_to(local.outside / "secret")
    os.mkfifo(local.root / "pipe")
    here = local.target(".")

    with local.disk.open_listing(here) as listing:
        assert listing.entries == {"file": "symlink", "link": "symlink", "pipe": "other"}
    looks = local.disk.stat_entries(here, ["link", "pipe", "file"])
    assert [look and look.type for look in looks] == ["symlink", "other", "symlink"]
    assert looks[2] is not None
    assert looks[2].size == len(os.fspath(local.outside / "secret"))
    bent = local.disk.target_below(here, ("link",))
    for ask in (partial(_list_names, local), lambda target: local.disk.stat_entries(target, ["secret"])):  # type: ignore[misc]
        with pytest.raises(OutsideWorkspace):
            ask(bent)
    assert local.disk.read_heads(here, ["file", "link", "pipe"], 10) == [None, None, None]
    with pytest.raises(OutsideWorkspace):
        local.disk.read_heads(bent, ["secret"], 10)


def test_a_held_directory_is_open_until_it_is_let_go(local: LocalWorld) -> None:
    local.put("d/f", b"x")

    with local.disk.open_directory(local.target("d")) as fd:
        assert fd is not None
        assert os.listdir(fd) == ["f"]  # noqa: PTH208  # by its descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_disk_in_memory_has_no_directory_for_other_programs(world: World) -> None:
    with world.disk.open_directory(world.target(".")) as fd:
        assert (fd is None) == (not isinstance(world, LocalWorld))


def test_a_million_names_would_be_fine_but_ten_thousand_are_tried(plain: LocalWorld) -> None:
    for number in range(10_000):
        (plain.root / f"{number}").touch()

    with plain.disk.open_listing(plain.target(".")) as listing:
        looks = listing.stat_entries(list(listing.entries))

    assert len(listing.entries) == len(looks) == 10_000
    assert all(isinstance(look, EntryStat) for look in looks)


def test_what_is_asked_of_an_open_listing_is_asked_of_its_own_directory(local: LocalWorld) -> None:
    """Another directory, or a link to one, takes the place of the listed one; its files are not looked at."""
    local.put("d/f", b"x")
    secret = local.outside / "f"
    secret.write_bytes(b"secret")

    with local.disk.open_listing(local.target("d")) as listing:
        (local.root / "d").rename(local.root / "moved")
        (local.root / "d").symlink_to(local.outside)
        (look,) = listing.stat_entries(["f"])
        times = listing.modified_times(["f"])

    assert look is not None
    assert look.size == 1
    assert times == [(local.root / "moved" / "f").stat().st_mtime_ns]


def test_a_closed_disk_lists_nothing(plain: LocalWorld) -> None:
    here = plain.target(".")
    plain.disk.close()

    with pytest.raises(SureholdError) as caught:
        _list_names(plain, here)

    assert caught.value.reason == "closed"


def _list_names(world: World, target: Target) -> list[str]:
    with world.disk.open_listing(target) as listing:
        return list(listing.entries)

"""A watch of a file, from its beginning to its end, and the watches of a disk."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from surehold.disk.base import Target
from surehold.disk.kernel import Kernel
from surehold.disk.steps import watched
from surehold.disk.steps.watched import FileWatch, LeasedFile, WatchedFiles, open_patiently, watch_file
from surehold.errors import StaleFile

BARE = Kernel(leases=False)


def is_open(fd: int) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def target(name: str) -> Target:
    return Target(root="/r", parts=(name,), key=name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    return path


@pytest.fixture
def files(file: Path) -> Iterator[WatchedFiles]:
    made = WatchedFiles(BARE)
    yield made
    made.end([target(name) for name in "abc"])
    assert file.exists()


def begin(files: WatchedFiles, file: Path, name: str = "a") -> FileWatch:
    return files.begin(target(name), partial(os.open, file), in_place=False)


@pytest.mark.parametrize(("leased", "lease"), [(True, "held"), (False, "none")])
def test_a_watch_keeps_the_file_open_and_its_facts_when_it_ends(file: Path, leased: bool, lease: str) -> None:
    watch = watch_file(Kernel(leases=leased), partial(os.open, file))
    fd = watch.fd
    assert (watch.lease, watch.is_leased, watch.is_open_elsewhere, watch.in_place) == (lease, leased, False, False)
    assert (watch.was_disturbed(), is_open(fd), watch.status.st_size) == (False, True, 3)

    watch.close()
    watch.close()  # once more does nothing

    assert (is_open(fd), watch.fd, watch.is_leased, watch.lease) == (False, -1, False, "none")
    assert watch.status == file.stat()


def test_that_a_program_had_the_file_open_is_known_also_after_the_watch(file: Path) -> None:
    with file.open("ab"):
        watch = watch_file(Kernel(), partial(os.open, file), seconds=0)
    assert (watch.is_open_elsewhere, watch.is_leased, watch.in_place, watch.was_disturbed()) == (
        True,
        False,
        True,
        False,
    )

    watch.close()

    assert watch.is_open_elsewhere


def test_a_file_to_be_written_in_place_is_watched_exclusively_where_it_can_be(file: Path) -> None:
    watch = watch_file(Kernel(), partial(os.open, file), in_place=True)
    assert (watch.exclusive, watch.in_place, watch.lease) == (True, True, "held")
    assert os.write(watch.fd, b"new") == 3
    watch.close()
    assert (watch.exclusive, watch.in_place, watch.lease) == (False, True, "none")

    watch = watch_file(BARE, partial(os.open, file), in_place=True)
    assert (watch.exclusive, watch.in_place, watch.lease) == (False, True, "none")
    watch.close()


def test_no_descriptor_is_left_when_a_watch_cannot_begin(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208  # names are enough

    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Kernel, "take_lease", interrupt)
    for in_place in (False, True):
        with pytest.raises(KeyboardInterrupt):
            watch_file(Kernel(), partial(os.open, file), in_place=in_place)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_a_file_without_a_name_is_closed_later_and_others_at_once(file: Path) -> None:
    left = list[Callable[[], None]]()
    named = watch_file(Kernel(), partial(os.open, file))
    fd = named.fd
    named.close(left.append)
    assert (left, is_open(fd), named.fd) == ([], False, -1)

    nameless = watch_file(Kernel(), partial(os.open, file))
    fd = nameless.fd
    file.unlink()
    nameless.close(left.append)
    assert (len(left), is_open(fd), nameless.fd, nameless.lease) == (1, True, -1, "none")
    assert not Kernel().holds_lease(fd, exclusive=False)
    left.pop()()
    assert not is_open(fd)


def test_a_rename_leaves_the_lasting_facts_and_no_write_does(file: Path) -> None:
    first = file.stat()
    file.rename(file.with_name("b")).rename(file)
    renamed = file.stat()
    assert watched.lasting_facts(first) == watched.lasting_facts(renamed)
    assert watched.file_facts(first)[:-1] == watched.lasting_facts(first)
    assert watched.file_facts(renamed)[-1] == renamed.st_ctime_ns

    found = {watched.lasting_facts(renamed)}
    file.write_bytes(b"longer")
    os.utime(file, ns=(0, renamed.st_mtime_ns))
    found.add(watched.lasting_facts(file.stat()))
    file.write_bytes(b"old")
    os.utime(file, ns=(0, 1))
    found.add(watched.lasting_facts(file.stat()))
    file.rename(file.with_name("b"))
    file.write_bytes(b"old")
    os.utime(file, ns=(0, 1))
    found.add(watched.lasting_facts(file.stat()))
    assert len(found) == 4


def test_a_watch_that_begins_again_ends_the_one_before(files: WatchedFiles, file: Path) -> None:
    first = begin(files, file)
    second = begin(files, file)

    assert (files.find(target("a")), first.fd, is_open(second.fd)) == (second, -1, True)
    assert files.find(target("b")) is None


def test_a_watch_serves_one_change_and_stays_known_until_it_ends(files: WatchedFiles, file: Path) -> None:
    watch = begin(files, file)
    other = begin(files, file, "b")

    assert files.take(target("a")) is watch
    assert files.take(target("a")) is None
    assert files.find(target("a")) is None
    assert not files.was_open_elsewhere(target("a"))

    files.close_used([target("a"), target("b"), target("c")])
    assert (watch.fd, is_open(other.fd)) == (-1, True)
    files.end([target("b")])
    assert (other.fd, files.find(target("b"))) == (-1, None)


def test_that_a_program_had_the_file_open_is_asked_of_the_change_before(file: Path) -> None:
    files = WatchedFiles(Kernel())
    with file.open("ab"):
        begin(files, file)
        assert not files.was_open_elsewhere(target("a"))  # it was not changed yet
        files.take(target("a"))
    assert files.was_open_elsewhere(target("a"))
    assert not files.was_open_elsewhere(target("b"))

    files.end([target("a")])
    assert not files.was_open_elsewhere(target("a"))


def test_the_used_watch_of_a_file_without_a_name_is_left_to_be_closed(file: Path) -> None:
    left = list[Callable[[], None]]()
    files = WatchedFiles(BARE, left.append)
    begin(files, file)
    watch = files.take(target("a"))
    assert watch is not None
    file.unlink()

    files.close_used([target("a")])

    assert (watch.fd, len(left)) == (-1, 1)
    left.pop()()


def test_only_so_many_files_are_kept_open(files: WatchedFiles, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_MAX_WATCHED_FILES", 2)
    for name, is_kept in {"a": True, "b": True, "c": False}.items():
        watch = begin(files, file, name)
        files.spare_descriptors(watch)
        assert (watch.fd >= 0) is is_kept
        assert files.find(target(name)) is watch


def test_a_file_that_another_process_leases_is_opened_when_that_lets_it_go(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([BlockingIOError(), BlockingIOError(), None])

    def open_with(flags: int) -> int:
        if refused := next(answers):
            raise refused
        return flags

    assert open_patiently(open_with, 7) == 7

    def never(_: int) -> int:
        raise BlockingIOError

    monkeypatch.setattr(watched, "_LEASE_WAIT_SECONDS", 0.01)
    with pytest.raises(BlockingIOError):
        open_patiently(never, 7)


def leased(file: Path, kernel: Kernel) -> LeasedFile:
    fd = os.open(file, os.O_RDONLY)
    assert kernel.take_lease(fd, exclusive=False) == "held"
    return LeasedFile(kernel=kernel, fd=fd, status=os.fstat(fd), unstable=StaleFile("It is written to."))


def test_a_leased_file_is_read_from_any_byte_until_it_is_not_steady(file: Path) -> None:
    kernel = Kernel()
    one = leased(file, kernel)
    assert one.is_steady()
    assert [*one.read_from(1)] == [b"ld"]
    assert [*one.read_from(0)] == [b"old"]
    assert one.facts == watched.file_facts(file.stat())

    file.chmod(0o600)
    file.chmod(0o640)  # the ctime is another one

    assert not one.is_steady()
    assert not kernel.holds_lease(one.fd, exclusive=False)
    with pytest.raises(StaleFile, match="It is written to"):
        assert [*one.read_from(0)] == []
    os.close(one.fd)


@pytest.mark.parametrize(("age", "is_settled"), [(1.9, False), (2.1, True)])
def test_a_file_is_settled_when_its_last_change_is_longer_ago_than_a_tick(
    file: Path, age: float, is_settled: bool
) -> None:
    one = leased(file, Kernel())
    one.opened = one.status.st_ctime_ns / 1e9 + age
    assert one.is_settled is is_settled
    os.close(one.fd)

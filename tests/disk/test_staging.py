"""What the steps of a call share: open directories, temporary names, and what is done with bytes under one."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from disk.suite import open_descriptors, ordinary_user, sha
from surehold.disk.base import Target
from surehold.disk.kernel import Kernel, Unsupported
from surehold.disk.steps import staging
from surehold.disk.steps.staging import (
    DirectoryPool,
    DirectorySlot,
    DisplacedFile,
    Durability,
    StepContext,
    check_displaced,
    check_tag,
    hash_entry,
    hash_open_file,
    index_of_temporary,
    link_file,
    open_temporary,
)
from surehold.disk.tree import Tree, open_own
from surehold.errors import DiskFailed, InvalidArgument, NotAFile, StaleFile


class Call:
    """One call below a directory, and what it keeps."""

    def __init__(self, root: Path, kernel: Kernel, durability: Durability = "full") -> None:
        self.root, self.tree = root, Tree([str(root)], kernel=kernel)
        self.pool = DirectoryPool(tree=self.tree)
        self.kept = list[tuple[str, bytes]]()
        self.context = StepContext(
            kernel=kernel,
            directories=self.pool,
            tag="t",
            keep=lambda key, data: self.kept.append((key, data)),
            durability=durability,
        )

    def target(self, key: str) -> Target:
        return Target(root=str(self.root), parts=tuple(key.split("/")), key=key)

    def slot(self, key: str, *, make: bool = False) -> DirectorySlot:
        return self.pool.find_slot(self.target(key), make=make)


KERNELS = {"every mechanism": Kernel(), "without new names": Kernel(noreplace=False, openat2=False)}


@pytest.fixture(params=list(KERNELS))
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Call]:
    (tmp_path / "ws").mkdir()
    call = Call(tmp_path / "ws", KERNELS[request.param])
    yield call
    call.pool.close()
    call.tree.close()


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


# Directories


def test_a_directory_is_opened_once_for_all_that_is_in_it(call: Call) -> None:
    (call.root / "d").mkdir()
    before = open_descriptors()
    one, other = call.slot("d/a"), call.slot("d/b", make=True)
    assert (one.directory is other.directory, one.fd, one.name, one.key) == (True, other.fd, "a", "d/a")
    assert open_descriptors() == before + 1
    call.pool.close()
    call.pool.close()
    assert open_descriptors() == before


def test_a_missing_directory_is_made_when_it_is_wanted_and_removed_when_it_is_empty(call: Call) -> None:
    with pytest.raises(FileNotFoundError):
        call.slot("new/deep/a")
    assert not (call.root / "new").exists()
    (call.root / "old").mkdir()
    slot = call.slot("old/new/deep/a", make=True)
    call.slot("other/a", make=True)
    (call.root / "other/theirs").touch()
    assert os.fstat(slot.fd).st_ino == (call.root / "old/new/deep").stat().st_ino
    call.pool.remove_made()
    assert sorted(str(path.relative_to(call.root)) for path in call.root.rglob("*")) == ["old", "other", "other/theirs"]


def test_a_directory_that_another_program_made_meanwhile_is_used_and_stays(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def make_first(name: str, *, dir_fd: int) -> None:
        mkdir(name, dir_fd=dir_fd)
        mkdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", make_first)
    assert call.slot("d/a", make=True).name == "a"
    call.pool.remove_made()
    assert (call.root / "d").is_dir()


def test_a_root_itself_has_no_place(call: Call) -> None:
    with pytest.raises(NotAFile) as caught:
        call.pool.find_slot(Target(root=str(call.root), parts=(), key="."))
    assert caught.value.reason == "is_a_directory"


def test_a_forgotten_directory_is_opened_anew_with_all_below_it_and_others_are_not(call: Call) -> None:
    (call.root / "d/e").mkdir(parents=True)
    (call.root / "de").mkdir()
    slots = {key: call.slot(f"{key}/x").directory for key in ("d", "d/e", "de")}
    top = call.slot("x").directory
    call.pool.forget(call.target("d"))
    again = {key: call.slot(f"{key}/x").directory is slots[key] for key in slots}
    assert (again, call.slot("x").directory is top) == ({"d": False, "d/e": False, "de": True}, True)
    call.pool.forget(replace(call.target("d"), root="/another/root"))
    assert call.slot("d/x").directory is call.slot("d/y").directory


def test_a_directory_of_another_root_with_the_same_name_is_not_forgotten(tmp_path: Path) -> None:
    for name in ("one/d", "two/d"):
        (tmp_path / name).mkdir(parents=True)
    tree = Tree([str(tmp_path / "one"), str(tmp_path / "two")], kernel=Kernel())
    pool = DirectoryPool(tree=tree)
    targets = [Target(root=str(tmp_path / name), parts=("d", "x"), key="d/x") for name in ("one", "two")]
    before = [pool.find_slot(target).directory for target in targets]
    pool.forget(replace(targets[0], parts=("d",)))
    assert [pool.find_slot(target).directory is known for target, known in zip(targets, before, strict=True)] == [
        False,
        True,
    ]
    pool.close()
    tree.close()


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.EBADF, False), (errno.EIO, True)])
def test_only_changed_directories_are_synced_where_directories_can_be(
    call: Call, monkeypatch: pytest.MonkeyPatch, number: int, *, raised: bool
) -> None:
    for name in ("changed", "same", "unreadable"):
        (call.root / name).mkdir()
    slots = {name: call.slot(f"{name}/x") for name in ("changed", "same", "unreadable")}
    slots["changed"].directory.dirty = slots["unreadable"].directory.dirty = True
    slots["unreadable"].directory.can_sync = False
    synced, refuse = list[int](), failing(number)
    monkeypatch.setattr(staging, "sync", synced.append)
    call.pool.sync_changed()
    assert synced == [slots["changed"].fd]
    monkeypatch.setattr(staging, "sync", refuse)
    if raised:
        with pytest.raises(OSError, match=os.strerror(number)):
            call.pool.sync_changed()
    else:
        call.pool.sync_changed()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_directory_that_cannot_be_listed_is_used_and_not_synced(call: Call) -> None:
    (call.root / "d").mkdir()
    (call.root / "d").chmod(0o711)
    call.root.chmod(0o755)
    with ordinary_user():
        assert call.slot("d/x").directory.can_sync is False
        assert call.slot("x").directory.can_sync is True


def test_the_directories_above_a_new_one_have_changed(call: Call) -> None:
    (call.root / "old").mkdir()
    call.slot("old/new/deep/a", make=True)
    changed = {key: call.slot(f"{key}x").directory.dirty for key in ("", "old/", "old/new/", "old/new/deep/")}
    assert changed == {"": True, "old/": True, "old/new/": True, "old/new/deep/": False}


# Names


@pytest.mark.parametrize("tag", ["t", "A.b_c-9", "x" * 128])
def test_a_tag_is_a_part_of_a_file_name(tag: str) -> None:
    assert check_tag(tag) == tag


@pytest.mark.parametrize("tag", ["", "a/b", "a b", "ä", "x" * 129, "a\n"])
def test_what_is_no_part_of_a_file_name_is_no_tag(tag: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_tag(tag)
    assert caught.value.reason == "bad_tag"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (".surehold-t-0.tmp", 0),
        (".surehold-t-12.old", 12),
        (".surehold-t-12.new", None),
        (".surehold-u-12.old", None),
        (".surehold-t-x.old", None),
        ("x.surehold-t-1.old", None),
        (".surehold-t-1.old.x", None),
    ],
)
def test_a_temporary_name_says_for_which_step_it_is(call: Call, name: str, index: int | None) -> None:
    assert index_of_temporary(name, "t") == index
    assert [call.context.temp_name(7, "tmp"), call.context.temp_name(7, "old")] == [
        ".surehold-t-7.tmp",
        ".surehold-t-7.old",
    ]


def test_a_temporary_file_is_made_and_never_opened(call: Call) -> None:
    fd = open_temporary(call.slot("a"), "temp", 0o600)
    os.write(fd, b"x")
    os.close(fd)
    with pytest.raises(DiskFailed) as caught:
        open_temporary(call.slot("a"), "temp", 0o600)
    assert (caught.value.reason, caught.value.path, caught.value.details["name"]) == ("leftover", "a", "temp")
    assert stat.S_IMODE((call.root / "temp").stat().st_mode) == 0o600


def test_an_entry_is_looked_at_by_its_own_name_or_another_and_never_followed(call: Call) -> None:
    (call.root / "a").write_bytes(b"12")
    (call.root / "link").symlink_to("a")
    slot = call.slot("a")
    own, link, missing = slot.read_status(), slot.read_status("link"), slot.read_status("missing")
    assert (own and own.st_size, link and stat.S_ISLNK(link.st_mode), missing) == (2, True, None)


# Bytes


def test_a_file_is_synced_unless_nothing_is_to_be_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = dict[str, list[int]]()
    durabilities: tuple[Durability, ...] = ("full", "file", "none")
    for durability in durabilities:
        (tmp_path / durability).mkdir()
        monkeypatch.setattr(staging, "sync", synced.setdefault(durability, []).append)
        Call(tmp_path / durability, Kernel(), durability).context.sync_file(5)
    assert synced == {"full": [5], "file": [5], "none": []}


def look(path: Path) -> DisplacedFile:
    return DisplacedFile(sha256=sha(path.read_bytes()), status=path.stat())


def test_a_temporary_file_is_removed_and_kept_if_it_was_written_since_it_was_looked_at(call: Call) -> None:
    slot, temp = call.slot("a"), call.root / "temp"
    call.context.drop_file(slot, "temp", None)
    for written, seen in ((False, False), (False, True), (True, False), (True, True)):
        temp.write_bytes(b"before")
        known = look(temp) if seen else None
        if written:
            temp.write_bytes(b"after it")
        call.context.drop_file(slot, "temp", known)
        assert not temp.exists()
    assert call.kept == [("a", b"after it")]
    temp.write_bytes(b"same size")
    known = look(temp)
    os.utime(temp, ns=(1, known.status.st_mtime_ns + 1))
    call.context.drop_file(slot, "temp", known)
    assert call.kept[1:] == [("a", b"same size")]


def test_only_files_have_bytes_to_keep(call: Call) -> None:
    slot = call.slot("a")
    (call.root / "file").write_bytes(b"bytes")
    (call.root / "link").symlink_to("file")
    (call.root / "directory").mkdir()
    os.mkfifo(call.root / "pipe")
    for name in ("file", "link", "directory", "pipe", "missing"):
        call.context.keep_file(slot, name)
    assert call.kept == [("a", b"bytes")]


def test_what_became_another_kind_before_it_was_opened_is_not_kept(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = call.slot("a")
    (call.root / "file").write_bytes(b"bytes")
    pipe = call.root / "pipe"
    os.mkfifo(pipe)

    def open_pipe(dir_fd: int, name: str) -> int:
        return open_own(dir_fd, "pipe")

    before = open_descriptors()
    monkeypatch.setattr(staging, "open_own", open_pipe)
    call.context.keep_file(slot, "file")
    assert (call.kept, open_descriptors()) == ([], before)


@pytest.mark.parametrize("linkable", [True, False], ids=["links", "no links"])
def test_a_name_that_nothing_has_is_given_and_one_that_is_taken_is_not(
    call: Call, monkeypatch: pytest.MonkeyPatch, *, linkable: bool
) -> None:
    if not linkable:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    (call.root / "d").mkdir()
    (call.root / "a").write_bytes(b"a")
    (call.root / "taken").write_bytes(b"taken")
    source, place = call.slot("a"), call.slot("d/b")
    with pytest.raises(FileExistsError):
        call.context.move_new(source, "a", source, "taken")
    call.context.move_new(source, "a", place, "b")
    assert sorted(str(path.relative_to(call.root)) for path in call.root.rglob("*")) == ["d", "d/b", "taken"]
    assert ((call.root / "d/b").read_bytes(), (call.root / "taken").read_bytes()) == (b"a", b"taken")
    assert (source.directory.dirty, place.directory.dirty) == (True, True)


@pytest.mark.parametrize(
    ("number", "unsupported"),
    [(errno.EPERM, True), (errno.EMLINK, True), (errno.EXDEV, True), (errno.EIO, False), (errno.EEXIST, False)],
)
def test_a_second_name_is_not_possible_everywhere(
    call: Call, monkeypatch: pytest.MonkeyPatch, number: int, *, unsupported: bool
) -> None:
    (call.root / "a").write_bytes(b"a")
    (call.root / "l").symlink_to("a")
    fd = call.slot("a").fd
    link_file(fd, "a", fd, "b")
    link_file(fd, "l", fd, "m")
    assert ((call.root / "b").stat().st_nlink, (call.root / "m").is_symlink()) == (2, True)
    monkeypatch.setattr(os, "link", failing(number))
    with pytest.raises(Unsupported if unsupported else OSError):
        link_file(fd, "a", fd, "c")


@pytest.mark.parametrize(
    ("awaited", "found"),
    [
        ((None, ""), sha(b"bytes")),
        ((b"bytes", "known"), "known"),
        ((b"bytez", "known"), sha(b"bytes")),
        ((b"bytes and more", "known"), sha(b"bytes")),
        ((b"byte", "known"), sha(b"bytes")),
    ],
)
def test_an_open_file_is_hashed_from_its_beginning_or_recognised(
    call: Call, awaited: tuple[bytes | None, str], found: str
) -> None:
    (call.root / "a").write_bytes(b"bytes")
    fd = os.open(call.root / "a", os.O_RDONLY)
    os.lseek(fd, 3, os.SEEK_SET)
    seen = hash_open_file(fd, awaited=awaited)
    os.close(fd)
    before = open_descriptors()
    assert (seen.sha256, seen.status.st_size) == (found, 5)
    assert hash_entry(call.slot("a"), "a", awaited=awaited) == replace(seen, status=(call.root / "a").stat())
    assert open_descriptors() <= before + 1


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_not_a_file_has_no_hash_and_is_refused(call: Call, kind: str) -> None:
    (call.root / "link").symlink_to("missing")
    (call.root / "directory").mkdir()
    os.mkfifo(call.root / "pipe")
    seen = hash_entry(call.slot("a"), kind)
    assert (seen.sha256, stat.S_IFMT(seen.status.st_mode)) == (None, stat.S_IFMT((call.root / kind).lstat().st_mode))
    with pytest.raises(NotAFile):
        check_displaced(seen, sha(b""), "a")


def test_what_is_missing_or_cannot_be_read_is_no_other_kind(call: Call) -> None:
    with pytest.raises(FileNotFoundError):
        hash_entry(call.slot("a"), "missing")


def test_displaced_bytes_are_those_that_were_expected_or_refused(call: Call) -> None:
    (call.root / "a").write_bytes(b"bytes")
    seen = look(call.root / "a")
    check_displaced(seen, sha(b"bytes"), "a")
    with pytest.raises(StaleFile) as caught:
        check_displaced(seen, sha(b"others"), "a")
    assert caught.value.details == {"expected": sha(b"others"), "actual": sha(b"bytes")}

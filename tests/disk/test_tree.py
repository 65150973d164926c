"""What is read and written through a descriptor, the facts that a file keeps, and the roots, each by itself."""

import errno
import hashlib
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from disk.suite import open_descriptors, ordinary_user
from surehold.disk import tree
from surehold.disk.base import Target
from surehold.disk.kernel import Kernel
from surehold.disk.tree import DIRECTORY_FLAGS, Tree, open_entry, open_own, readable_for_us
from surehold.errors import InvalidArgument, OutsideWorkspace, SureholdError, WorkspaceClosed
from surehold.text.snapshot import Meta

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    """A file that is open for reading and writing."""
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def fill(fd: int, data: bytes) -> None:
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))
    os.lseek(fd, 0, os.SEEK_SET)


def failing_with(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def status_of(**facts: int) -> os.stat_result:
    names = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")
    return os.stat_result([facts.get(name, 0) for name in (*names, "atime", "mtime", "ctime")])


def read_by(pieces: int, reads: list[int]) -> Callable[[int, int], bytes]:
    """Return a read that gives so many bytes at once, and notes how many were asked for."""
    real = os.read

    def read(fd: int, count: int) -> bytes:
        reads.append(count)
        return real(fd, min(count, pieces))

    return read


@pytest.mark.parametrize("content", [b"", b"1", b"12345"])
@pytest.mark.parametrize("size", [0, 1, 4, 5, 6])
@pytest.mark.parametrize("limit", [0, 1, 4, 5, 100])
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_file_is_read_to_its_end_or_one_byte_beyond_the_limit(
    place: int, monkeypatch: pytest.MonkeyPatch, *, content: bytes, size: int, limit: int, at_once: int
) -> None:
    fill(place, content)
    reads = list[int]()
    monkeypatch.setattr(os, "read", read_by(at_once, reads))
    data = tree.read_all(place, size=size, limit=limit)
    if size == len(data) < len(content):
        return  # a file that gives less than it has, and just what was promised, is taken for at its end
    assert data == content[: limit + 1]
    assert max(reads) <= limit + 1


def test_a_file_as_long_as_promised_is_read_at_once(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(place, b"12345")
    reads = list[int]()
    monkeypatch.setattr(os, "read", read_by(100, reads))
    assert (tree.read_all(place, size=5, limit=9), reads) == (b"12345", [6])
    os.lseek(place, 0, os.SEEK_SET)
    assert (tree.hash_of(place, size=5), reads) == (hashlib.sha256(b"12345").hexdigest(), [6, 6])


@pytest.mark.parametrize("content", [b"", b"1", b"12345" * 3])
@pytest.mark.parametrize("size", [0, 1, 5, 15, 16])
def test_a_file_is_hashed_to_its_end_whatever_size_was_promised(
    place: int, monkeypatch: pytest.MonkeyPatch, content: bytes, size: int
) -> None:
    fill(place, content)
    monkeypatch.setattr(tree, "PIECE_BYTES", 4)
    assert tree.hash_of(place, size=size) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("there", "wanted", "same"),
    [
        (b"", b"", True),
        (b"1234567", b"1234567", True),
        (b"1234567", b"1234568", False),
        (b"1234567", b"0234567", False),
        (b"1234567", b"12345678", False),
        (b"12345678", b"1234567", False),
        (b"", b"1", False),
        (b"1", b"", False),
    ],
)
def test_content_is_compared_piece_by_piece_to_both_ends(
    place: int, monkeypatch: pytest.MonkeyPatch, there: bytes, wanted: bytes, *, same: bool
) -> None:
    fill(place, there)
    monkeypatch.setattr(tree, "_COMPARE_BYTES", 3)
    assert tree.has_content(place, wanted) is same


def test_every_byte_is_written_however_few_the_system_takes(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write, pwrite = os.write, os.pwrite

    def write_two(fd: int, data: bytes) -> int:
        return write(fd, data[:2])

    def write_two_at(fd: int, data: bytes, at: int) -> int:
        return pwrite(fd, data[:2], at)

    monkeypatch.setattr(os, "write", write_two)
    monkeypatch.setattr(os, "pwrite", write_two_at)
    assert tree.write_all(place, (b"12345", b"", b"678")) == hashlib.sha256(b"12345678").hexdigest()
    tree.write_at(place, memoryview(b"abcde"), 2)
    assert os.pread(place, 100, 0) == b"12abcde8"


@needs_root
@pytest.mark.parametrize(
    ("uid", "gid", "groups", "given"),
    [
        (NOBODY, NOBODY, (), True),
        (NOBODY, 1234, (1234,), True),
        (NOBODY, 1234, (), False),
        (1234, NOBODY, (NOBODY,), False),
        (1, NOBODY, (), False),
    ],
    ids=["ours", "a group of ours", "another group", "another user", "the first user"],
)
def test_a_new_file_can_be_given_to_ourselves_and_our_groups(
    uid: int, gid: int, groups: tuple[int, ...], *, given: bool
) -> None:
    status = status_of(st_uid=uid, st_gid=gid)
    assert tree.can_give_owner(status), "root gives a file to anyone"
    with ordinary_user(groups=groups):
        assert tree.can_give_owner(status) is given
    with ordinary_user(uid=1):
        assert tree.can_give_owner(status) is (uid == 1)


@needs_root
def test_owner_and_mode_of_a_replaced_file_are_those_of_the_file_before(place: int, other: int) -> None:
    os.fchown(place, 1234, 2345)
    os.fchmod(place, 0o640)
    for mode, expected in ((None, 0o640), (0o600, 0o600)):
        tree.copy_metadata(place, os.fstat(place), other, mode=mode)
        found = os.fstat(other)
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, expected)


def test_an_owner_that_is_the_same_is_not_set(place: int, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    os.fchmod(place, 0o640)
    monkeypatch.setattr(os, "fchown", failing_with(errno.ENOSYS))  # as on a file system without owners
    tree.copy_metadata(place, os.fstat(place), other, mode=None)
    assert stat.S_IMODE(os.fstat(other).st_mode) == 0o640
    tree.restore_metadata(other, Meta(mode=0o600, uid=os.geteuid(), gid=os.getegid()), mode=None)
    assert stat.S_IMODE(os.fstat(other).st_mode) == 0o600


@needs_root
def test_restored_facts_are_those_that_were_recorded_as_far_as_we_may(place: int) -> None:
    os.fchown(place, NOBODY, NOBODY)
    before = os.fstat(place).st_mtime_ns
    with ordinary_user():
        tree.restore_metadata(place, Meta(mode=0o604, uid=1234, gid=2345), mode=None)
    found = os.fstat(place)
    assert (found.st_uid, stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (NOBODY, 0o604, before)
    tree.restore_metadata(place, Meta(mode=0o604, uid=1234, gid=2345, mtime_ns=10**18), mode=0o640)
    found = os.fstat(place)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, 0o640)
    assert found.st_mtime_ns == 10**18


def test_attributes_of_the_user_and_the_access_list_are_a_part_of_the_facts(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"user.note": b"1", "security.other": b"2", tree.ACL: b"3", "trusted.x": b"4"}
    monkeypatch.setattr(os, "listxattr", lambda _: list(values))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(os, "getxattr", lambda _, name: values[name])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    status = os.fstat(place)
    assert tree.meta_of(place, status) == Meta(
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        xattrs=((tree.ACL, b"3"), ("user.note", b"1")),
    )


@pytest.mark.parametrize("call", ["listxattr", "getxattr"])
@pytest.mark.parametrize(
    ("number", "raised"),
    [(errno.ENOTSUP, False), (errno.EPERM, False), (errno.EACCES, False), (errno.EIO, True), (errno.ENODATA, None)],
)
def test_attributes_that_only_the_system_may_read_are_left_out(
    place: int, monkeypatch: pytest.MonkeyPatch, call: str, number: int, *, raised: bool | None
) -> None:
    monkeypatch.setattr(os, "listxattr", lambda _: ["user.a"])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(os, call, failing_with(number))
    if raised or (raised is None and call == "listxattr"):
        with pytest.raises(OSError, match=os.strerror(number)):
            tree.meta_of(place, os.fstat(place))
    else:
        assert tree.meta_of(place, os.fstat(place)).xattrs == ()


@pytest.mark.parametrize(
    ("name", "number", "raised"),
    [
        ("user.a", errno.ENOTSUP, False),
        ("user.a", errno.ENOSPC, True),
        (tree.ACL, errno.ENOSPC, True),
        ("security.selinux", errno.EPERM, False),
        ("security.capability", errno.ENOSPC, None),
        ("security.ima", errno.ENOSPC, None),
    ],
)
def test_attributes_that_matter_must_be_set_and_seals_of_the_content_are_not(
    place: int, monkeypatch: pytest.MonkeyPatch, name: str, number: int, *, raised: bool | None
) -> None:
    asked, refuse = list[str](), failing_with(number)

    def set_attribute(_: int, name: str, __: bytes) -> None:
        asked.append(name)
        refuse()

    monkeypatch.setattr(os, "setxattr", set_attribute)
    meta = Meta(mode=0o600, uid=os.geteuid(), gid=os.getegid(), xattrs=((name, b"1"),))
    if raised:
        with pytest.raises(OSError, match=os.strerror(number)):
            tree.restore_metadata(place, meta, mode=None)
    else:
        tree.restore_metadata(place, meta, mode=None)
    assert asked == ([] if raised is None else [name])


@pytest.mark.parametrize(
    ("names", "removed"), [((), True), (("user.a",), True), ((tree.ACL,), False), (("user.a", tree.ACL), False)]
)
def test_an_access_list_that_came_from_the_directory_goes_where_none_was(
    place: int, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], *, removed: bool
) -> None:
    asked = list[str]()

    def remove(_: int, name: str) -> None:
        asked.append(name)
        failing_with(errno.ENODATA)()

    monkeypatch.setattr(os, "removexattr", remove)
    monkeypatch.setattr(os, "setxattr", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    meta = Meta(mode=0o600, uid=os.geteuid(), gid=os.getegid(), xattrs=tuple((name, b"1") for name in names))
    tree.restore_metadata(place, meta, mode=None)
    assert asked == ([tree.ACL] if removed else [])


@needs_root
@pytest.mark.parametrize(
    ("kind", "mode"), [("file", 0o000), ("file", 0o400), ("directory", 0o000), ("directory", 0o400)]
)
def test_an_entry_of_ours_lets_us_in_for_a_moment_whatever_its_mode(tmp_path: Path, kind: str, mode: int) -> None:
    entry = tmp_path / "entry"
    if kind == "file":
        entry.write_bytes(b"x")
    else:
        entry.mkdir()
    entry.chmod(mode)
    os.chown(entry, NOBODY, NOBODY)
    tmp_path.chmod(0o755)
    expected = 0o400 if kind == "file" else 0o500
    place, status = os.open(tmp_path, DIRECTORY_FLAGS), entry.stat()
    with ordinary_user(), readable_for_us(f"/proc/self/fd/{place}/entry", status):
        assert stat.S_IMODE(os.stat("entry", dir_fd=place).st_mode) == mode | expected
    os.close(place)
    assert stat.S_IMODE(entry.stat().st_mode) == mode


@needs_root
@pytest.mark.parametrize(
    "status",
    [
        status_of(st_mode=stat.S_IFREG, st_uid=1234),
        status_of(st_mode=stat.S_IFREG | 0o400, st_uid=0),
        status_of(st_mode=stat.S_IFDIR | 0o500, st_uid=0),
        status_of(st_mode=stat.S_IFLNK, st_uid=0),
    ],
    ids=["of another user", "readable", "a directory that can be entered", "a link"],
)
def test_what_we_can_read_or_may_not_change_keeps_its_mode(status: os.stat_result) -> None:
    with readable_for_us("/no/such/path", status) as path:
        assert path == "/no/such/path"


@needs_root
def test_a_file_of_ours_that_keeps_us_out_is_opened_and_one_of_another_user_is_not(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(b"ours")
    (tmp_path / "theirs").write_bytes(b"theirs")
    for name in ("ours", "theirs"):
        (tmp_path / name).chmod(0o000)
    os.chown(tmp_path / "ours", NOBODY, NOBODY)
    tmp_path.chmod(0o755)
    place = os.open(tmp_path, DIRECTORY_FLAGS)
    descriptors = open_descriptors()
    with ordinary_user():
        fd = open_own(place, "ours")
        with pytest.raises(PermissionError):
            open_own(place, "theirs")
    assert (os.read(fd, 9), stat.S_IMODE((tmp_path / "ours").stat().st_mode)) == (b"ours", 0)
    os.close(fd)
    assert open_descriptors() == descriptors
    os.close(place)


def test_where_an_entry_cannot_be_held_unread_it_stays_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, refuse = list[int](), failing_with(errno.EACCES)

    def open_nothing(_: str, flags: int, **__: object) -> int:
        asked.append(flags)
        return refuse()

    monkeypatch.setattr(tree, "O_PATH", 0)
    monkeypatch.setattr(os, "open", open_nothing)
    with pytest.raises(PermissionError):
        open_own(None, str(tmp_path / "a"))
    assert len(asked) == 1


def test_a_link_is_told_from_a_file_where_a_directory_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    place = os.open(tmp_path, DIRECTORY_FLAGS)
    found = dict[str, int | None]()
    for name in ("file", "link", "missing"):
        with pytest.raises(OSError) as caught:
            open_entry(place, name, DIRECTORY_FLAGS)
        found[name] = caught.value.errno
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError) as caught:
            open_entry(place, "socket", os.O_RDONLY)
    assert (found, caught.value.errno) == (
        {"file": errno.ENOTDIR, "link": errno.ELOOP, "missing": errno.ENOENT},
        errno.ENXIO,
    )
    os.close(place)


@pytest.mark.parametrize("kernel", [Kernel(), Kernel(openat2=False)], ids=["in one call", "name by name"])
def test_entries_are_opened_below_a_root_at_any_depth_and_nothing_else_is_left_open(
    tmp_path: Path, kernel: Kernel
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"deep")
    (tmp_path / "file").write_bytes(b"flat")
    roots = Tree([str(tmp_path)], kernel=kernel)
    root, descriptors = roots.roots[0], open_descriptors()
    read = dict[tuple[str, ...], bytes]()
    for parts in (("file",), ("a", "b", "file")):
        fd = roots.open_parts(root, parts, os.O_RDONLY)
        read[parts] = os.read(fd, 9)
        os.close(fd)
    fd = roots.open_parts(root, (), DIRECTORY_FLAGS)
    assert os.fstat(fd).st_ino == tmp_path.stat().st_ino
    os.close(fd)
    with pytest.raises(FileNotFoundError):
        roots.open_parts(root, ("a", "b", "missing"), os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        roots.open_parts(root, ("a", "b", "file", "below", "that"), os.O_RDONLY)
    assert read == {("file",): b"flat", ("a", "b", "file"): b"deep"}
    assert open_descriptors() == descriptors
    roots.close()
    assert open_descriptors() == descriptors - 1
    with pytest.raises(WorkspaceClosed):
        roots.open_parts(root, ("file",), os.O_RDONLY)
    with pytest.raises(WorkspaceClosed):
        roots.root_fd(root)


def test_a_target_has_one_name_relative_to_the_first_root_and_absolute_below_any_other(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        directory.mkdir()
    roots = Tree([str(one), str(two)], kernel=Kernel())
    (one_names, two_names), names = (root.names for root in roots.roots), ("d", "f")
    found = [roots.target_of((*above, *below)) for above in (one_names, two_names) for below in (names, ())]
    assert found == [
        Target(root=str(one), parts=names, key="d/f"),
        Target(root=str(one), parts=(), key="."),
        Target(root=str(two), parts=names, key=f"{two}/d/f"),
        Target(root=str(two), parts=(), key=str(two)),
    ]
    assert [roots.root_of(target).path for target in found] == [str(one), str(one), str(two), str(two)]
    with pytest.raises(OutsideWorkspace) as escape:
        roots.target_of(one_names[:-1])
    with pytest.raises(InvalidArgument) as foreign:
        roots.open_target(Target(root="/elsewhere", parts=("a",), key="a"), os.O_RDONLY)
    assert (escape.value.reason, foreign.value.reason) == ("symlink_escape", "foreign_target")
    roots.close()


def test_a_root_that_was_replaced_is_named_and_the_others_are_not(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        directory.mkdir()
    roots = Tree([str(one), str(two)], kernel=Kernel())
    targets = [roots.target_of((*root.names, "a")) for root in roots.roots]
    assert roots.replaced_roots() == []
    roots.check_roots(targets)
    two.rename(tmp_path / "away")
    assert roots.replaced_roots() == [str(two)]
    roots.check_roots(targets[:1])
    with pytest.raises(OutsideWorkspace) as caught:
        roots.check_roots(targets)
    assert (caught.value.reason, caught.value.path) == ("root_replaced", str(two))
    roots.close()


def test_the_file_system_of_each_root_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    roots, synced = Tree([str(tmp_path / "one"), str(tmp_path / "two")], kernel=Kernel()), list[int]()
    monkeypatch.setattr(tree, "sync_file_system", synced.append)
    roots.sync_file_systems()
    assert synced == [root.fd for root in roots.roots]
    roots.close()


def test_a_root_is_known_as_it_was_given_and_without_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/below").mkdir()
    (tmp_path / "link").symlink_to("real/below")
    roots = Tree([str(tmp_path / "link")], kernel=Kernel())
    assert [(root.path, len(root.spellings)) for root in roots.roots] == [(str(tmp_path / "real/below"), 2)]
    assert roots.roots[0].spellings[1][-1] == "link"
    roots.close()
    # `link/..` is not where its spelling says it is, so that spelling is no name of it.
    roots = Tree([str(tmp_path / "link/..")], kernel=Kernel())
    assert [(root.path, len(root.spellings)) for root in roots.roots] == [(str(tmp_path / "real"), 1)]
    roots.close()


def test_a_workspace_has_roots_that_exist_and_none_is_left_open_otherwise(tmp_path: Path) -> None:
    descriptors = open_descriptors()
    with pytest.raises(InvalidArgument) as none:
        Tree([], kernel=Kernel())
    with pytest.raises(SureholdError) as missing:
        Tree([str(tmp_path), str(tmp_path / "missing")], kernel=Kernel())
    assert (none.value.reason, missing.value.kind) == ("no_root", "not_found")
    assert open_descriptors() == descriptors


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((5, 1, 1), (5, 1, 1), True),
        ((5, 1, 1), (6, 1, 1), False),
        ((5, 1, 1), (5, 2, 1), False),
        ((5, 1, 1), (5, 1, 2), False),
    ],
)
def test_a_file_is_unchanged_as_long_as_size_and_times_are(
    one: tuple[int, int, int], other: tuple[int, int, int], *, same: bool
) -> None:
    def status(size: int, mtime: int, ctime: int) -> os.stat_result:
        return os.stat_result([0] * 6 + [size, 0, mtime, ctime], {"st_mtime_ns": mtime, "st_ctime_ns": ctime})

    assert tree.is_unchanged(status(*one), status(*other)) is same


def test_empty_names_and_dots_mean_nothing_in_a_path() -> None:
    assert tree.split_path("//a/./b//..c/.") == ("a", "b", "..c")

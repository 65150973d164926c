"""What only a real disk has: special files, links, owners, attributes, other programs."""

import errno
import fcntl
import os
import resource
import socket
import stat
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disk.suite import KERNELS, AsNobody, LocalWorld, no_fence, open_descriptors, sha
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.disk.base import Create, Disk, Remove, Rename, Replace, Step
from surehold.disk.local import LocalDisk
from surehold.disk.steps.staging import Durability
from surehold.disk.tree import read_all
from surehold.errors import AlreadyExists, DiskFailed, NotAFile, OutsideWorkspace, StaleFile, SureholdError
from surehold.text.snapshot import Meta
from waiting import HANG_SECONDS

ACL = "system.posix_acl_access"


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Spell an access list as the kernel stores it."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# rw- for the owner, rw- for user 1234, r-- for the group, mask rw-, nothing for others
SOME_ACL = acl((1, 6, 0xFFFFFFFF), (2, 6, 1234), (4, 4, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))


def set_xattr(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            pytest.skip("this file system has no extended attributes")
        raise


# Things that are not files


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o020666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


@requirement("promise:contained:devices")
@pytest.mark.parametrize(
    ("make", "kind"),
    [(os.mkfifo, "FIFO"), (make_socket, "socket"), (make_device, "character device")],
    ids=["fifo", "socket", "device"],
)
def test_special_files_are_refused_at_once(local: LocalWorld, make: Callable[[Path], None], kind: str) -> None:
    make(local.root / "odd")
    target = local.target("odd")
    attempts: list[Callable[[], object]] = [
        lambda: local.disk.read(target, limit=100),
        lambda: list(local.disk.read_chunks(target)),
        lambda: local.apply(local.replace("odd", b"new", expected=b"")),
        lambda: local.apply(local.remove("odd", expected=b"")),
        lambda: local.apply(local.rename("odd", "even", expected=b"")),
    ]
    for attempt in attempts:
        with pytest.raises(NotAFile) as caught:
            attempt()
        assert (caught.value.reason, caught.value.details) == ("not_a_file", {"file_type": kind})
    with pytest.raises(AlreadyExists):
        local.apply(local.create("odd", b"x"))
    assert local.entries() == ["odd"]


def test_a_fifo_that_appears_after_staging_is_put_back(local: LocalWorld) -> None:
    for step in (local.replace, None):
        local.put("a", b"old")

        def swap_in() -> None:
            (local.root / "a").unlink()
            os.mkfifo(local.root / "a")

        steps: Step = step("a", b"new", expected=b"old") if step else local.remove("a", expected=b"old")
        with pytest.raises(NotAFile):
            local.apply(steps, fence=swap_in)
        assert (local.root / "a").is_fifo()
        assert local.entries() == ["a"]
        (local.root / "a").unlink()


def test_a_directory_that_appears_after_staging_is_put_back(local: LocalWorld) -> None:
    local.put("a", b"old")

    def swap_in() -> None:
        (local.root / "a").unlink()
        (local.root / "a/b").mkdir(parents=True)

    with pytest.raises(SureholdError):
        local.apply(local.replace("a", b"new", expected=b"old"), fence=swap_in)
    assert local.entries() == ["a", "a/b"]


@requirement("engine:bad_input:too_large")
def test_a_sparse_giant_is_refused_by_its_size(plain: LocalWorld) -> None:
    with (plain.root / "giant").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SureholdError) as caught:
        plain.disk.read(plain.target("giant"), limit=1 << 20)
    assert caught.value.details == {"size": 1 << 40, "limit": 1 << 20}


# Reading beside other programs


@requirement("engine:disk:one_read")
def test_a_file_that_changes_during_every_read_is_reported(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a", b"0")
    count = 0
    read = os.read

    def meddle(fd: int, size: int) -> bytes:
        nonlocal count
        data = read(fd, size)
        count += 1
        local.put("a", b"x" * (count + 1))
        return data

    monkeypatch.setattr(os, "read", meddle)
    with pytest.raises(StaleFile) as caught:
        local.disk.read(local.target("a"), limit=100)
    assert (caught.value.reason, caught.value.path) == ("unstable_read", "a")


@requirement("engine:disk:one_read")
def test_a_file_that_changes_once_is_read_again(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a", b"before")
    read = os.read
    left = ["once"]

    def meddle(fd: int, size: int) -> bytes:
        data = read(fd, size)
        if left:
            left.pop()
            local.put("a", b"afterwards")
        return data

    monkeypatch.setattr(os, "read", meddle)
    assert local.read("a") == b"afterwards"


@requirement("engine:bad_input:vanishing")
def test_a_file_that_disappears_during_the_read_is_missing(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a", b"x")
    read = os.read

    def meddle(fd: int, size: int) -> bytes:
        local.put("a", None)
        return read(fd, size)

    monkeypatch.setattr(os, "read", meddle)
    assert local.read("a") is None


def test_short_reads_and_writes_are_continued(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write, pwrite = os.read, os.write, os.pwrite

    def one_write(fd: int, data: memoryview) -> int:
        return write(fd, data[:3])

    def one_pwrite(fd: int, data: memoryview, offset: int) -> int:
        return pwrite(fd, data[:3], offset)

    def one_read(fd: int, size: int) -> bytes:
        return read(fd, min(size, 3))

    local.put("a", b"before " * 9)
    local.put("hard", b"before " * 9)
    os.link(local.root / "hard", local.root / "hard2")
    monkeypatch.setattr(os, "read", one_read)
    monkeypatch.setattr(os, "write", one_write)
    monkeypatch.setattr(os, "pwrite", one_pwrite)
    for name in ("a", "hard"):
        assert local.read(name) == b"before " * 9
        local.apply(local.replace(name, b"afterwards " * 9, expected=b"before " * 9))
        assert local.read(name) == b"afterwards " * 9


def test_chunks_of_a_file_that_changed_meanwhile_end_in_an_error(local: LocalWorld) -> None:
    local.put("a", b"x" * (3 << 20))
    chunks = local.disk.read_chunks(local.target("a"))
    next(chunks)
    local.put("a", b"y")
    with pytest.raises(StaleFile) as caught:
        list(chunks)
    assert caught.value.reason == "unstable_read"


def test_chunks_that_nobody_finishes_let_the_file_go(local: LocalWorld) -> None:
    local.put("a", b"x" * (3 << 20))
    chunks = local.disk.read_chunks(local.target("a"))
    next(chunks)
    del chunks  # the fixture counts descriptors


# What stays


@requirement("promise:untouched:mode", "promise:untouched:owner", "promise:untouched:xattrs")
def test_replace_keeps_everything_but_the_bytes(local: LocalWorld) -> None:
    local.put("a", b"old")
    path = local.root / "a"
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    set_xattr(path, "user.note", b"kept")
    set_xattr(path, ACL, SOME_ACL)
    path.chmod(0o4764)
    before = local.disk.read(local.target("a"), limit=10)
    local.apply(local.replace("a", b"new", expected=b"old"))
    after = local.disk.read(local.target("a"), limit=10)
    assert before is not None
    assert after is not None
    assert after.data == b"new"
    assert [name for name, _ in after.meta.xattrs] == [ACL, "user.note"]
    assert after.meta.mode == 0o4764
    assert after.meta.mtime_ns > before.meta.mtime_ns
    assert Meta(mode=0o4764, uid=before.meta.uid, gid=before.meta.gid, xattrs=before.meta.xattrs) == Meta(
        mode=after.meta.mode, uid=after.meta.uid, gid=after.meta.gid, xattrs=after.meta.xattrs
    )


def test_replace_does_not_take_up_the_default_list_of_the_directory(local: LocalWorld) -> None:
    local.put("d/a", b"old")
    set_xattr(local.root / "d", "system.posix_acl_default", SOME_ACL)
    local.apply(local.replace("d/a", b"new", expected=b"old"))
    assert os.listxattr(local.root / "d/a") == []
    local.apply(local.create("d/new", b"x"))
    assert os.listxattr(local.root / "d/new") == [ACL]


@pytest.mark.parametrize(
    ("number", "refused"), [(errno.ENOTSUP, False), (errno.EOPNOTSUPP, False), (errno.ENOSPC, True)]
)
def test_attributes_are_left_out_where_the_file_system_has_none_and_nowhere_else(
    local: LocalWorld, monkeypatch: pytest.MonkeyPatch, number: int, *, refused: bool
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "setxattr", fail)
    meta = Meta(mode=0o640, uid=os.geteuid(), gid=os.getegid(), mtime_ns=10**18, xattrs=(("user.note", b"1"),))
    step = Create(target=local.target("a"), data=b"x", meta=meta, mode=None)
    if refused:
        with pytest.raises(SureholdError):
            local.apply(step)
    else:
        local.apply(step)
    assert (local.root / "a").exists() is not refused


@requirement("engine:disk:restored_facts")
def test_create_restores_owner_and_attributes(local: LocalWorld) -> None:
    local.put("probe", b"")
    set_xattr(local.root / "probe", "user.note", b"")
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    meta = Meta(mode=0o640, uid=owner, gid=os.getegid(), mtime_ns=10**18, xattrs=((ACL, SOME_ACL), ("user.note", b"1")))
    local.apply(Create(target=local.target("a"), data=b"x", meta=meta, mode=0o664))
    stored = local.disk.read(local.target("a"), limit=10)
    assert stored is not None
    assert (stored.meta.uid, stored.meta.mtime_ns, stored.meta.mode) == (owner, 10**18, 0o664)
    assert [name for name, _ in stored.meta.xattrs] == [ACL, "user.note"]


@pytest.mark.parametrize("promised", [0, 4, 10, 20])
def test_a_file_is_read_to_its_end_whatever_size_was_promised(local: LocalWorld, promised: int) -> None:
    local.put("a", b"0123456789")
    for limit, expected in ((100, b"0123456789"), (10, b"0123456789"), (6, b"0123456")):
        fd = os.open(local.root / "a", os.O_RDONLY)
        try:
            assert read_all(fd, size=promised, limit=limit) == expected
        finally:
            os.close(fd)


def test_new_files_and_directories_follow_the_umask(local: LocalWorld) -> None:
    old = os.umask(0o027)
    try:
        local.apply(local.create("d/a", b"x"))
    finally:
        os.umask(old)
    assert [(local.root / name).stat().st_mode & 0o777 for name in ("d", "d/a")] == [0o750, 0o640]


@requirement("engine:disk:move")
def test_rename_keeps_the_inode(local: LocalWorld) -> None:
    local.put("a", b"x")
    before = (local.root / "a").stat()
    local.apply(local.rename("a", "d/b", expected=b"x"))
    after = (local.root / "d/b").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (before.st_ino, before.st_mtime_ns, 1)


@requirement("engine:disk:in_place", "promise:untouched:hard_links")
def test_hard_links_stay_together(local: LocalWorld) -> None:
    local.put("a", b"old, and longer")
    os.link(local.root / "a", local.root / "b")
    assert local.disk.replaces_in_place(local.target("a")) is True
    inode = (local.root / "a").stat().st_ino
    for data, previous in ((b"new", b"old, and longer"), (b"newer, and longer", b"new")):
        local.apply(local.replace("a", data, expected=previous))
        assert local.listing() == {"a": data, "b": data}
    stored = local.disk.read(local.target("b"), limit=100)
    assert stored is not None
    assert (stored.links, (local.root / "b").stat().st_ino) == (2, inode)


def test_hard_links_are_undone_in_place(local: LocalWorld) -> None:
    local.put("a", b"old")
    os.link(local.root / "a", local.root / "b")
    local.put("c", b"c")
    before = (local.root / "a").stat()
    with pytest.raises(StaleFile):
        local.apply(
            Replace(target=local.target("a"), data=b"longer than old", expected=sha(b"old"), mode=0o600),
            local.remove("c", expected=b"not this"),
        )
    after = (local.root / "a").stat()
    assert local.listing() == {"a": b"old", "b": b"old", "c": b"c"}
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)


def test_an_outside_edit_of_a_hard_link_wins(local: LocalWorld) -> None:
    local.put("a", b"old")
    os.link(local.root / "a", local.root / "b")
    with pytest.raises(StaleFile) as caught:
        local.apply(local.replace("a", b"new", expected=b"old"), fence=lambda: local.put("b", b"theirs"))
    assert caught.value.reason == "displaced_mismatch"
    assert local.listing() == {"a": b"theirs", "b": b"theirs"}


def test_a_file_on_another_device_is_moved_with_its_facts(tmp_path: Path, other_device: Path) -> None:
    with LocalDisk([tmp_path, other_device]) as disk:
        (tmp_path / "a").write_bytes(b"x" * (3 << 20))
        (tmp_path / "a").chmod(0o751)
        os.utime(tmp_path / "a", ns=(10**18, 10**18))
        source, target = disk.resolve("a"), disk.resolve(f"{other_device}/d/b")
        before = disk.read(source, limit=1 << 30)
        apply(disk, Rename(source=source, target=target, expected=sha(b"x" * (3 << 20))))
        assert disk.read(target, limit=1 << 30) == before
        assert disk.read(source, limit=1 << 30) is None
    assert sorted(path.name for path in other_device.rglob("*")) == ["b", "d"]
    assert list(tmp_path.iterdir()) == []


def test_a_move_to_another_device_is_undone_and_checked(tmp_path: Path, other_device: Path) -> None:
    def meddle() -> None:
        (tmp_path / "a").write_bytes(b"theirs")

    for kernel in KERNELS.values():
        with LocalDisk([tmp_path, other_device], kernel=kernel) as disk:
            (tmp_path / "a").write_bytes(b"a")
            (tmp_path / "b").write_bytes(b"b")
            source, other = disk.resolve("a"), disk.resolve("b")
            move = Rename(source=source, target=disk.resolve(f"{other_device}/d/b"), expected=sha(b"a"))
            with pytest.raises(StaleFile):
                apply(disk, move, Remove(target=other, expected=sha(b"not this")))
            with pytest.raises(StaleFile) as caught:
                apply(disk, move, fence=meddle)
            assert caught.value.details["actual"] == sha(b"theirs")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"theirs", "b": b"b"}
        assert list(other_device.iterdir()) == []


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield Path(directory)


def apply(disk: Disk, *steps: Step, fence: Callable[[], None] = no_fence) -> None:
    disk.apply(steps, tag="t", fence=fence, keep=no_keep)


def no_keep(key: str, data: bytes) -> None:
    pytest.fail(f"{key}: {data!r} was displaced")


def test_many_files_are_created_with_few_descriptors(local: LocalWorld) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 100, hard))
    try:
        local.apply(*(local.create(f"d/{number}", b"x") for number in range(300)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(local.listing()) == 300


def test_a_name_of_the_longest_kind_can_be_replaced(local: LocalWorld) -> None:
    local.put("n" * 255, b"old")
    local.apply(local.replace("n" * 255, b"new", expected=b"old"))
    assert local.listing() == {"n" * 255: b"new"}


# Permissions


def test_an_unreadable_file_is_denied(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.put("a", b"secret")
    (plain.root / "a").chmod(0o600)
    assert as_nobody(lambda: outcome(lambda: plain.read("a"))) == "PermissionDenied os_denied"


def test_a_read_only_file_is_not_replaced(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.root.chmod(0o777)
    plain.put("a", b"old")
    (plain.root / "a").chmod(0o444)
    os.chown(plain.root / "a", 65534, 65534)
    edit = plain.replace("a", b"new", expected=b"old")
    assert as_nobody(lambda: outcome(lambda: plain.apply(edit))) == "PermissionDenied read_only_file"
    assert plain.listing() == {"a": b"old"}


@requirement("engine:bad_input:read_only_directory")
def test_a_directory_that_may_not_be_changed_denies_new_files(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.put("a", b"old")
    for step in (plain.create("b", b"x"), plain.create("d/b", b"x"), plain.remove("a", expected=b"old")):
        assert as_nobody(lambda step=step: outcome(lambda: plain.apply(step))) == "PermissionDenied os_denied"
    assert plain.entries() == ["a"]


def test_a_writable_file_in_a_directory_that_is_not_is_written_in_place(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.put("a", b"old")
    os.chown(plain.root / "a", 65534, 65534)
    inode = (plain.root / "a").stat().st_ino
    edit = plain.replace("a", b"new", expected=b"old")
    assert as_nobody(lambda: str(plain.disk.replaces_in_place(plain.target("a")))) == "True"
    assert as_nobody(lambda: outcome(lambda: plain.apply(edit))) == "done"
    assert ((plain.root / "a").stat().st_ino, plain.listing()) == (inode, {"a": b"new"})


@requirement("engine:disk:in_place", "promise:untouched:owner")
def test_a_file_of_another_owner_stays_his(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.root.chmod(0o777)
    plain.put("a", b"old")
    (plain.root / "a").chmod(0o666)
    edit = plain.replace("a", b"new", expected=b"old")
    assert as_nobody(lambda: str(plain.disk.replaces_in_place(plain.target("a")))) == "True"
    assert as_nobody(lambda: outcome(lambda: plain.apply(edit))) == "done"
    assert ((plain.root / "a").stat().st_uid, plain.entries(), plain.listing()) == (0, ["a"], {"a": b"new"})


@requirement("promise:untouched:owner")
def test_another_users_file_in_ones_own_group_keeps_its_owner(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.root.chmod(0o777)
    plain.put("a", b"old")
    os.chown(plain.root / "a", 0, 65534)
    (plain.root / "a").chmod(0o660)
    edit = plain.replace("a", b"new", expected=b"old")
    assert as_nobody(lambda: str(plain.disk.replaces_in_place(plain.target("a")))) == "True"
    assert as_nobody(lambda: outcome(lambda: plain.apply(edit))) == "done"
    status = (plain.root / "a").stat()
    assert (status.st_uid, status.st_gid, plain.listing()) == (0, 65534, {"a": b"new"})


def test_a_file_of_ones_own_is_swapped(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.root.chmod(0o777)
    plain.put("a", b"old")
    os.chown(plain.root / "a", 65534, 65534)
    edit = plain.replace("a", b"new", expected=b"old")
    assert as_nobody(lambda: str(plain.disk.replaces_in_place(plain.target("a")))) == "False"
    assert as_nobody(lambda: outcome(lambda: plain.apply(edit))) == "done"
    status = (plain.root / "a").stat()
    assert (status.st_uid, status.st_gid, plain.listing()) == (65534, 65534, {"a": b"new"})


def test_a_directory_that_cannot_be_listed_can_be_written_and_locked(plain: LocalWorld, as_nobody: AsNobody) -> None:
    (plain.root / "drop").mkdir()
    (plain.root / "drop").chmod(0o333)
    plain.outside.chmod(0o777)
    target = plain.target("drop/a")

    def work() -> str:
        with plain.disk.lock([target], timeout=HANG_SECONDS):
            return outcome(lambda: plain.apply(Create(target=target, data=b"x")))

    assert as_nobody(work) == "done"
    assert plain.listing() == {"drop/a": b"x"}
    assert [stat.S_IMODE(file.stat().st_mode) for file in plain.outside.glob("*.lock")] == [0o600]


def outcome(work: Callable[[], object]) -> str:
    try:
        work()
    except SureholdError as error:
        return f"{type(error).__name__} {error.reason}"
    return "done"


# Links that are swapped in


@requirement("promise:contained:races")
def test_a_parent_that_becomes_a_link_is_refused(local: LocalWorld) -> None:
    local.put("d/a", b"old")
    (local.outside / "a").write_bytes(b"old")
    steps = (
        local.create("d/new", b"x"),
        local.create("d/deep/new", b"x"),
        local.replace("d/a", b"new", expected=b"old"),
        local.remove("d/a", expected=b"old"),
        local.rename("d/a", "b", expected=b"old"),
    )
    target = local.target("d/a")
    (local.root / "d").rename(local.root / "real")
    (local.root / "d").symlink_to(local.outside)
    for step in steps:
        with pytest.raises(OutsideWorkspace) as caught:
            local.apply(step)
        assert caught.value.reason == "symlink_escape"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: local.disk.read(target, limit=10),
        lambda: list(local.disk.read_chunks(target)),
        lambda: local.disk.replaces_in_place(target),
        lambda: local.disk.remove_leftovers([target], tag="t1", keep=no_keep),
        lambda: local.disk.lock([target], timeout=HANG_SECONDS).__enter__(),
    )
    for attempt in attempts:
        with pytest.raises(OutsideWorkspace):
            attempt()
    assert [(path.name, path.read_bytes()) for path in local.outside.iterdir()] == [("a", b"old")]


def test_a_leaf_that_becomes_a_link_is_refused_and_stays(local: LocalWorld) -> None:
    (local.outside / "a").write_bytes(b"old")
    makers: tuple[Callable[[], Step], ...] = (
        lambda: local.replace("a", b"new", expected=b"old"),
        lambda: local.remove("a", expected=b"old"),
    )
    for make in makers:
        for late in (False, True):
            local.put("a", b"old")
            step = make()

            def swap_in() -> None:
                (local.root / "a").unlink()
                (local.root / "a").symlink_to(local.outside / "a")

            if not late:
                swap_in()
            with pytest.raises((NotAFile, OutsideWorkspace)):
                local.apply(step, fence=swap_in if late else no_fence)
            assert local.entries() == ["a"]
            assert (local.root / "a").readlink() == local.outside / "a"
            assert (local.outside / "a").read_bytes() == b"old"
            (local.root / "a").unlink()


def test_a_directory_that_is_moved_out_of_the_way_after_staging_stays_consistent(local: LocalWorld) -> None:
    local.put("d/a", b"old")

    def swap() -> None:
        (local.root / "d").rename(local.root / "moved")
        (local.root / "d").symlink_to(local.outside)

    local.apply(local.replace("d/a", b"new", expected=b"old"), local.create("d/b", b"x"), fence=swap)
    assert local.listing() == {"moved/a": b"new", "moved/b": b"x"}
    assert list(local.outside.iterdir()) == []


# Litter


def test_sweep_keeps_the_bytes_of_its_own_tag_and_leaves_everything_else(local: LocalWorld) -> None:
    mine = {".surehold-t1-0.tmp": b"staged", ".surehold-t1-12.old": b"displaced"}
    others = {
        ".surehold-t2-0.tmp": b"",
        ".surehold-t1-1-0.tmp": b"",
        "surehold-t1-0.tmp": b"",
        ".surehold-t1-0.bak": b"",
    }
    for name, data in {**mine, **others}.items():
        local.put(f"d/{name}", data)
    targets = [local.target(path) for path in ("d/a", "d/b", "missing/c", ".")[:3]]
    local.disk.remove_leftovers(targets, tag="t1", keep=local.keep)
    assert sorted(local.kept) == [b"displaced", b"staged"]
    assert local.listing() == {f"d/{name}": data for name, data in others.items()}


def test_sweep_removes_links_and_pipes_and_leaves_what_holds_more(local: LocalWorld) -> None:
    names = [f".surehold-t1-{number}.tmp" for number in range(4)]
    paths = [local.root / name for name in names]
    paths[0].symlink_to("nowhere")
    os.mkfifo(paths[1])
    paths[2].mkdir()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.path.relpath(paths[3]))

    local.disk.remove_leftovers([local.target("a")], tag="t1", keep=local.keep)

    assert [name for name, path in zip(names, paths, strict=True) if os.path.lexists(path)] == names[2:]
    assert local.kept == []


def test_a_leftover_under_the_same_tag_is_reported_and_not_touched(local: LocalWorld) -> None:
    local.put("a", b"old")
    local.put(".surehold-t1-0.tmp", b"left")
    with pytest.raises(DiskFailed) as caught:
        local.apply(local.replace("a", b"new", expected=b"old"))
    assert caught.value.reason == "leftover"
    assert local.listing() == {".surehold-t1-0.tmp": b"left", "a": b"old"}


# Durability


@requirement("engine:disk:durability")
@pytest.mark.parametrize(("durability", "syncs"), [("full", 3), ("file", 2), ("none", 0)])
def test_durability_is_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability, syncs: int
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with LocalDisk([tmp_path], durability=durability) as disk:
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        edit = Replace(target=disk.resolve("a"), data=b"new", expected=sha(b"old"))
        apply(disk, edit, Create(target=disk.resolve("b"), data=b"x"))
    assert len(synced) == syncs


@requirement("engine:disk:durability")
def test_the_directories_above_a_new_one_are_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalDisk([tmp_path]) as disk:
        synced: list[str] = []

        def note(fd: int) -> None:
            synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))

        monkeypatch.setattr(os, "fsync", note)
        apply(disk, Create(target=disk.resolve("d/e/a"), data=b"x"))
    assert sorted(synced[1:]) == [str(tmp_path), str(tmp_path / "d"), str(tmp_path / "d/e")]


def test_a_local_disk_is_coherent(plain: LocalWorld) -> None:
    assert plain.disk.is_coherent is True


def test_threads_share_a_disk(local: LocalWorld) -> None:
    def work(name: str) -> None:
        data = b"0"
        local.apply(local.create(f"{name}/f", data), tag=name)
        for number in range(20):
            new = str(number).encode() * 100
            local.apply(local.replace(f"{name}/f", new, expected=data), tag=name)
            data = new

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert local.listing() == {f"t{number}/f": b"19" * 100 for number in range(4)}


def test_a_file_that_another_program_keeps_locked_can_still_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    os.link(tmp_path / "a", tmp_path / "b")
    with LocalDisk([str(tmp_path)]) as disk, (tmp_path / "a").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        stored = disk.read(disk.resolve("a"), limit=10)

    assert stored is not None
    assert stored.data == b"x"


@requirement("engine:recover:again")
def test_leftovers_are_found_where_the_root_itself_is_among_the_targets(local: LocalWorld) -> None:
    local.put("a", b"old")
    leftover = local.root / ".surehold-t1-0.tmp"
    leftover.write_bytes(b"staged")
    kept = list[bytes]()

    local.disk.remove_leftovers(
        [local.target("a"), local.disk.locate(".")], tag="t1", keep=lambda _, data: kept.append(data)
    )

    assert (leftover.exists(), kept) == (False, [b"staged"])


@requirement("engine:crash:power")
@pytest.mark.parametrize("race", [False, True])
def test_every_directory_above_a_new_one_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, race: bool
) -> None:
    """Another process may have made any of them a moment ago."""
    root, synced, make = tmp_path / "root", list[str](), os.mkdir
    (root / "new").mkdir(parents=True)

    def record_sync(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))

    def make_twice(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        make(name, mode, dir_fd=dir_fd)
        if race and name == "mine":
            make(name, mode, dir_fd=dir_fd)

    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        monkeypatch.setattr("surehold.disk.steps.staging.sync", record_sync)
        monkeypatch.setattr(os, "mkdir", make_twice)
        workspace.session(agent="one").create_file("new/mine/a.txt", "one\n")

    assert {str(root), str(root / "new"), str(root / "new/mine")} <= set(synced)

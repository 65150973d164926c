"""The small parts of the local disk, each by itself."""

import errno
import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest

from disk.suite import LocalWorld
from doubles.memory_disk import MemoryDisk
from surehold.disk import kernel, tree
from surehold.disk.errno_errors import open_for_writing_error
from surehold.disk.kernel import Kernel, Unsupported, is_coherent
from surehold.disk.local import LocalDisk
from surehold.errors import DiskFailed, LockTimeout
from surehold.text.snapshot import Meta
from waiting import HANG_SECONDS

LINE = "36 35 {device} / {point} rw,noatime master:1 - {kind} /dev/x rw\n"


def mount_table(path: Path, *lines: str) -> str:
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "coherent"),
    [("ext4", True), ("tmpfs", True), ("overlay", True), ("nfs4", False), ("cifs", False), ("fuse.sshfs", False)],
)
def test_network_mounts_are_not_coherent(tmp_path: Path, kind: str, coherent: bool) -> None:
    device = tmp_path.stat().st_dev
    by_device = LINE.format(device=f"{os.major(device)}:{os.minor(device)}", point="/elsewhere", kind=kind)
    assert is_coherent(str(tmp_path), table=mount_table(tmp_path / "by device", by_device)) is coherent


def test_a_mount_without_its_own_device_is_found_by_its_mount_point(tmp_path: Path) -> None:
    base = tmp_path / "with space"
    base.mkdir()
    lines = (
        LINE.format(device="0:0", point="/", kind="ext4"),
        LINE.format(device="0:0", point=str(base).replace(" ", "\\040"), kind="nfs"),
        LINE.format(device="0:0", point=str(base).replace(" ", "\\040") + "-sibling", kind="ext4"),
        "a line of another kind\n",
    )
    table = mount_table(tmp_path / "table", *lines)
    assert (is_coherent(str(base), table=table), is_coherent(str(tmp_path), table=table)) == (False, True)


def test_an_unknown_system_counts_as_coherent(tmp_path: Path) -> None:
    assert is_coherent(str(tmp_path), table=str(tmp_path / "missing")) is True


def test_a_kernel_without_a_mechanism_says_so(tmp_path: Path) -> None:
    bare = Kernel(openat2=False, exchange=False, noreplace=False, tmpfile=False)
    for call in (
        lambda: bare.open_beneath(0, ".", 0),
        lambda: bare.open_nameless(0, 0o600),
        lambda: bare.swap(0, "a", "b"),
        lambda: bare.rename_new(0, "a", 0, "b"),
    ):
        with pytest.raises(Unsupported):
            call()


def test_an_old_kernel_is_lived_with(plain: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_SYS_OPENAT2", 100_000)  # a number that no kernel knows
    kernel.has_openat2.cache_clear()
    try:
        plain.put("d/a", b"x")
        assert plain.read("d/a") == b"x"
        with pytest.raises(Unsupported):
            Kernel().open_beneath(0, ".", 0)
    finally:
        monkeypatch.undo()
        kernel.has_openat2.cache_clear()


def test_lock_files_lie_in_a_directory_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = fcntl.fcntl

    def only_files(fd: int, operation: int, lock: bytes) -> bytes | int:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EBADF, "no locks on directories here")
        return real(fd, operation, lock)

    monkeypatch.setattr(fcntl, "fcntl", only_files)
    with LocalDisk([tmp_path / "ws"]) as disk:
        target = disk.resolve("a")
        with disk.lock([target], timeout=HANG_SECONDS), pytest.raises(LockTimeout), disk.lock([target], timeout=0.01):
            pass
        directory = tmp_path / f"surehold-locks-{os.geteuid()}"
        assert (stat.S_IMODE(directory.stat().st_mode), len(list(directory.iterdir()))) == (0o700, 1)
        assert list((tmp_path / "ws").iterdir()) == []
        directory.chmod(0o777)
        with pytest.raises(DiskFailed) as caught, disk.lock([target], timeout=HANG_SECONDS):
            pass
        assert caught.value.reason == "lock_directory"


def test_a_memory_disk_can_be_filled_and_looked_into() -> None:
    disk = MemoryDisk({"d/a": b"1"}, root="/somewhere")
    disk.poke("b", b"2")
    disk.poke("d/a", None)
    assert (disk.all_files(), disk.peek("b"), disk.peek("d/a")) == ({"b": b"2"}, b"2", None)
    assert (disk.roots, disk.is_coherent, disk.resolve("/somewhere/b").key) == (("/somewhere",), True, "b")
    target = disk.resolve("b")
    disk.remove_leftovers([target], tag="t", keep=lambda key, data: pytest.fail(f"{key}: {data!r}"))
    assert disk.replaces_in_place(target) is False


def test_attributes_are_left_alone_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_HAS_XATTRS", False)
    monkeypatch.delattr(os, "setxattr")
    with (tmp_path / "a").open("wb") as file:
        meta = Meta(mode=0o640, uid=os.geteuid(), gid=os.getegid(), xattrs=(("user.a", b"1"),))
        tree.restore_metadata(file.fileno(), meta, mode=None)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_program_that_has_a_file_open_is_in_the_way_of_what_would_lose_its_next_bytes() -> None:
    shorter, gone = open_for_writing_error("a"), open_for_writing_error("a", removes=True)
    assert (shorter.reason, shorter.path, gone.reason, gone.path) == ("open_for_writing", "a", "open_for_writing", "a")
    assert shorter.message == "Another program has `a` open for writing, and this change would make the file shorter."
    assert gone.message == "Another program has `a` open for writing; what it writes next would be lost with the file."

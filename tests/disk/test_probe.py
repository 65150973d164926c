"""The trials of the doctor, on this disk and on one that lacks everything."""

# One of these needs to know how much room is just enough.
# pyright: reportPrivateUsage=false

import errno
import os
import shutil
import sqlite3
import struct
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from spec.marks import requirement
from surehold.disk import probe as probing
from surehold.disk.kernel import Kernel, locks_reach_others
from surehold.disk.probe import ProbeResult, mount_kind, probe_directory, probe_state

BARE = Kernel(openat2=False, exchange=False, noreplace=False, tmpfile=False, leases=False)
NAMES = [
    *(
        "contained_open",
        "exchange",
        "lease",
        "no_replace",
        "nameless_file",
        "sync_file",
        "sync_directory",
        "attributes",
    ),
    *("access_lists", "hard_links", "letter_case", "unicode_names", "lock", "lock_reach", "mount", "space"),
]


def named(findings: tuple[ProbeResult, ...]) -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in findings}


def test_every_trial_reports_and_nothing_is_left_behind(tmp_path: Path) -> None:
    findings = probe_directory(tmp_path)

    assert [finding.name for finding in findings] == NAMES
    assert all(finding.detail for finding in findings)
    assert list(tmp_path.iterdir()) == []


def test_what_any_linux_disk_can_do_works(tmp_path: Path) -> None:
    findings = named(probe_directory(tmp_path))

    assert all(findings[name].ok for name in ("sync_file", "sync_directory", "hard_links", "lock", "space"))
    assert findings["sync_file"].detail.endswith(" ms")


def test_a_kernel_that_lacks_everything_is_reported_with_its_fallbacks(tmp_path: Path) -> None:
    findings = named(probe_directory(tmp_path, kernel=BARE))

    missing = [findings[name] for name in ("contained_open", "exchange", "lease", "no_replace", "nameless_file")]
    assert all(not one.ok and one.detail == "not available here" and one.fallback for one in missing)
    assert findings["hard_links"].ok


def test_the_history_is_tried_too(tmp_path: Path) -> None:
    findings = named(probe_state(tmp_path))

    assert list(findings) == ["state_database", "state_sync", "state_mount", "state_space"]
    assert findings["state_database"].ok
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_medium_has_no_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(probing, "sync", failing)

    findings = named(probe_directory(tmp_path))
    for name in ("sync_file", "sync_directory"):
        assert findings[name] == ProbeResult(name=name, ok=False, detail="Input/output error", fallback="")


def test_a_directory_that_cannot_be_synced_has_nothing_to_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(fd: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(probing, "sync", unable)

    findings = named(probe_directory(tmp_path))
    assert findings["sync_directory"].fallback
    assert not findings["sync_file"].fallback


def test_missing_attributes_cannot_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", unable)

    findings = named(probe_directory(tmp_path))
    for name in ("attributes", "access_lists"):
        assert (findings[name].ok, bool(findings[name].fallback)) == (False, True)


def test_access_lists_work_where_another_list_can_be_set(tmp_path: Path) -> None:
    file, rights, nobody = tmp_path / "file", (0x01, 0x04, 0x10, 0x20), 0xFFFFFFFF
    file.touch()
    # Without one of a user, the list says what the mode does, and a file system may keep it as that alone.
    packed = [(tag, 6, nobody) for tag in rights] + [(0x02, 6, 12345)]
    try:
        os.setxattr(
            file,
            "system.posix_acl_access",
            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in sorted(packed)),
        )
    except OSError:
        pytest.skip("This file system has no access lists.")

    result = named(probe_directory(tmp_path / "."))["access_lists"]

    assert result == ProbeResult(name="access_lists", ok=True, detail="access lists can be set and read", fallback="")


def test_a_lock_that_does_not_lock_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def agreeable(_: int) -> bool:
        return True

    monkeypatch.setattr(probing, "try_directory", agreeable)

    assert named(probe_directory(tmp_path))["lock"].detail == "two threads held the same lock"


def test_a_mount_that_shows_old_bytes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def incoherent(_: str) -> bool:
        return False

    monkeypatch.setattr(probing, "is_coherent", incoherent)

    found = named(probe_directory(tmp_path))["mount"]
    assert not found.ok
    assert "older version" in found.detail


@requirement("fleet:files:locks")
@pytest.mark.parametrize(
    ("kind", "reaches"),
    [
        *(("ext4", True), ("btrfs", True), ("ceph", True), ("gfs2", True)),
        *(("nfs", False), ("nfs4", False), ("fuse.juicefs", False), ("fuse", False)),
        *(("9p", False), ("cifs", False), ("smb3", False), ("virtiofs", False)),
    ],
)
def test_a_mount_whose_locks_hold_on_one_machine_only_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, reaches: bool
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"22 1 254:77 / / rw - {kind} source rw\n")
    monkeypatch.setattr(probing, "mount_kind", partial(mount_kind, table=str(table)))
    monkeypatch.setattr(probing, "locks_reach_others", partial(locks_reach_others, table=str(table)))

    found = named(probe_directory(tmp_path))["lock_reach"]

    assert found.ok is reaches
    assert found.detail.startswith(f"{kind}: the lock holds ")
    assert reaches or "on this machine only" in found.detail
    assert reaches or "--state" in found.fallback


def test_a_full_disk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_MIN_FREE_BYTES", 1 << 80)

    found = named(probe_directory(tmp_path))["space"]
    assert not found.ok
    assert found.fallback == "a change that does not fit is refused before anything is written"


def test_a_database_that_cannot_be_used_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", broken)

    found = named(probe_state(tmp_path))["state_database"]
    assert found == ProbeResult(name="state_database", ok=False, detail="unable to open database file")


def test_a_directory_in_which_nothing_can_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        probe_directory(tmp_path / "missing")


def test_the_kind_of_a_mount_is_that_of_the_longest_mount_point(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 8:1 / / rw - ext4 /dev/a rw\n"
        "23 22 0:5 / /home/my\\040files rw shared:1 - nfs4 host:/x rw\n"
        "24 22 0:6 / /home rw - btrfs /dev/b rw\n"
        "damaged\n"
    )

    kinds = [mount_kind(path, table=str(table)) for path in ("/etc", "/home/x", "/home/my files/x", "/homework")]
    assert kinds == ["ext4", "btrfs", "nfs4", "ext4"]
    assert mount_kind("/", table=str(tmp_path / "missing")) == "unknown file system"


@pytest.mark.parametrize(("free", "total", "ok"), [(0, 1000, False), (1, 1000, True), (0, 0, True)])
def test_a_disk_without_room_for_names_is_noticed_unless_it_has_no_such_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, total: int, ok: bool
) -> None:
    real = os.statvfs

    def count_names(path: Path) -> SimpleNamespace:
        found = real(path)
        blocks = {name: getattr(found, name) for name in ("f_frsize", "f_bavail", "f_blocks", "f_bfree")}
        return SimpleNamespace(**blocks, f_favail=free, f_files=total)

    monkeypatch.setattr(os, "statvfs", count_names)

    found = named(probe_directory(tmp_path))["space"]
    assert (found.ok, found.detail == "no room for another file name") == (ok, not ok)


@pytest.mark.parametrize(("missing", "ok"), [(0, True), (1, False)])
def test_just_enough_room_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int, *, ok: bool) -> None:
    def measure(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=probing._MIN_FREE_BYTES - missing)

    monkeypatch.setattr(shutil, "disk_usage", measure)
    assert named(probe_directory(tmp_path))["space"].ok is ok

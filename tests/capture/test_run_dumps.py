"""Core dumps of a command: the kernel writes them, and no call tells of it."""

import os
import resource
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint, without_folder_times
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.dumps import may_be_below, name_core_dumps
from surehold.capture.filter import can_listen

_WHERE, _PID = (Path("/proc/sys/kernel") / name for name in ("core_pattern", "core_uses_pid"))
_CRASH = "(kill -SEGV $BASHPID)"


def dumps_are_called_core() -> bool:
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    return _WHERE.exists() and (_WHERE.read_text(), _PID.read_text(), limit != 0) == ("core\n", "0\n", True)


needs_dumps = pytest.mark.skipif(
    bool(can_listen()) or not dumps_are_called_core(), reason="core dumps are not written as files called core"
)


@requirement("run:dumps:kept")
@needs_dumps
@pytest.mark.parametrize(
    ("script", "unkept"),
    [
        (_CRASH, ["."]),
        (f"cd old; {_CRASH}", []),
        (f"mkdir new; cd new; {_CRASH}; mv ../new ../moved", []),
        (f"cd sub; {_CRASH}; rm core; echo x > b.txt", ["sub"]),
        (f"cd old; chmod 600 core; {_CRASH}; mv core other", []),
    ],
)
def test_a_core_dump_is_recorded_and_what_it_replaces_comes_back(desk: RunDesk, script: str, unkept: list[str]) -> None:
    (desk.root / "old").mkdir()
    (desk.root / "old/core").write_text("as it was\n")
    (desk.root / "core.d/core").mkdir(parents=True)
    before = take_fingerprint(desk.root)

    desk.run(f"ulimit -c unlimited; {script}; true")

    report = desk.read_report()
    assert [one["path"] for one in report["not_kept"]] == unkept, "only the time of that directory is not known"
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    after = take_fingerprint(desk.root)
    assert without_folder_times(after) == without_folder_times(before)
    assert unkept or after == before


@requirement("run:dumps:kept")
@needs_dumps
def test_a_limit_that_is_inherited_counts_as_well(desk: RunDesk) -> None:
    (desk.root / "core").write_text("as it was\n")
    reports = list[dict[str, Any]]()
    for script in (f"{_CRASH}; true", "true"):
        line = shlex.join([*desk.words(), "bash", "-c", script])
        subprocess.run(["bash", "-c", f"ulimit -S -c $(ulimit -H -c); {line}"], cwd=desk.root, check=True)
        reports.append(desk.read_report())

    first, second = reports
    assert (first["changed"], first["complete"]) == (1, True)
    assert second["change_id"] is None
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(first["change_id"])
    assert (desk.root / "core").read_text() == "as it was\n"


@requirement("run:dumps:kept")
@pytest.mark.parametrize(
    ("pattern", "pid", "name", "others"),
    [
        (b"core", False, b"core", [b"core.1", b"score"]),
        (b"core", True, b"core.17", [b"core"]),
        (b"core.%p", True, b"core.17", [b"core"]),
        (b"/var/%e/dump-%h-%p%%.x", False, b"dump-host-7%.x", [b"dump", b"dump-host-7%ax"]),
    ],
)
def test_the_names_of_core_dumps_follow_the_pattern(
    pattern: bytes, pid: bool, name: bytes, others: list[bytes]
) -> None:
    found = name_core_dumps(pattern, uses_pid=pid)

    assert found
    assert [one for one in (name, *others) if found.fullmatch(one)] == [name]


@requirement("run:dumps:kept")
def test_core_dumps_that_go_elsewhere_do_not_matter() -> None:
    root = os.fsencode("/home/me/work")

    assert [name_core_dumps(one, uses_pid=False) for one in (b"|/usr/bin/take %p", b"@/run/socket", b"")] == [None] * 3
    assert [may_be_below(root, one) for one in (b"core", b"/home/me/work/c", b"/home/%u/core")] == [True] * 3
    assert [may_be_below(root, one) for one in (b"/var/core.%p", b"/home/me/workshop/c", b"/home/core")] == [False] * 3

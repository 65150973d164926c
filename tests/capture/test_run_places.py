"""Where the calls of a command lead: through /proc, by descriptors, and below a root of its own."""

import os
import sys
from pathlib import Path

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def check_undo(desk: RunDesk, script: str, *options: str) -> None:
    """Run a script that writes to `sub/b.txt` or removes it, and take it back."""
    before, text = take_fingerprint(desk.root), (desk.root / "sub/b.txt").read_text()

    assert desk.run(script, *options).returncode == 0

    assert not (desk.root / "sub/b.txt").exists() or (desk.root / "sub/b.txt").read_text() != text
    report = desk.read_report()
    assert (report["changed"] + report["deleted"], report["complete"]) == (1, True)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:report:complete")
@pytest.mark.parametrize(
    "script",
    [
        "exec 5<sub/b.txt; cd /proc; echo x > self/fd/5",
        "exec 5<sub/b.txt; cd /dev; echo x > fd/5",
        "exec 5<sub/b.txt; echo x > /proc//self/fd/5",
        "exec 5<sub/b.txt; echo x > /proc/./self/fd/5",
        "exec 5<sub/b.txt; ln -s /proc/self/fd ../fds; echo x > ../fds/5",
        "cd sub; ln -s /proc/self/cwd ../../here; echo x > ../../here/b.txt",
        "cd sub; ln -s /proc/self/cwd ../../here; rm ../../here/b.txt",
        "cd sub; ln -s /proc/thread-self/cwd ../../here; chmod 600 b.txt; echo x > ../../here/b.txt",
    ],
)
def test_what_a_process_calls_its_own_is_that_of_the_process(desk: RunDesk, script: str) -> None:
    check_undo(desk, script)


@requirement("run:report:complete")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root")
@pytest.mark.parametrize(
    ("top", "path"),
    [
        (".", "/link/b.txt"),
        (".", "/../sub/b.txt"),
        (".", "sub/../../sub/b.txt"),
        ("sub", "/../../b.txt"),
        ("sub", "../../b.txt"),
        ("sub", "/file"),
    ],
)
def test_below_another_root_paths_lead_where_the_process_gets(desk: RunDesk, top: str, path: str) -> None:
    (desk.root / "link").symlink_to("/sub")
    (desk.root / "sub/file").symlink_to("/b.txt")

    check_undo(
        desk, f"{sys.executable} -c \"import os; os.chroot('{top}'); os.chdir('/'); open('{path}', 'w').write('x')\""
    )


@requirement("run:report:complete")
def test_a_command_is_recorded_where_the_history_was_named_relative_to_its_directory(desk: RunDesk) -> None:
    (desk.root / ".." / "elsewhere").mkdir()

    check_undo(desk, "echo x > sub/b.txt", "--state-dir", "../state", "--report", "../report.json", "--root", ".")

    assert Path(desk.state).is_dir()


@requirement("run:undo:exact")
@pytest.mark.parametrize("goes", ["rm big", "mv a.txt big", "rm -rf sub; mv big sub; rm sub"])
@pytest.mark.parametrize(
    "opens", ["echo x > /proc/self/fd/5", "truncate -s 3 /dev/fd/5", "exec 6<>/proc/$$/fd/5; echo x >&6"]
)
def test_a_file_that_is_written_after_its_name_is_gone_comes_back(desk: RunDesk, goes: str, opens: str) -> None:
    (desk.root / "big").write_bytes(b"large\n" * 20_000)
    before = take_fingerprint(desk.root)

    assert desk.run(f"exec 5<big; {goes}; {opens}").returncode == 0

    report = desk.read_report()
    assert report["complete"]
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before

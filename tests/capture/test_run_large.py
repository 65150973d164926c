"""Files that are larger than what the history takes, and places that need care."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_LARGE_BYTES = 10 << 30


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_LARGE_BYTES)
        file.seek(5 << 30)
        file.write(b"in the middle")


@requirement("run:large:named")
@pytest.mark.parametrize(
    ("script", "counts"),
    [
        ("rm big", {"deleted": 1}),
        ("printf x >> big", {"changed": 1}),
        (": > big", {"changed": 1}),
        ("mv big large", {"moved": 1}),
        ("truncate -s 10G new", {"created": 1}),
    ],
)
def test_a_file_that_the_history_does_not_take_is_named_and_nothing_of_it_is_lost(
    desk: RunDesk, script: str, counts: dict[str, int]
) -> None:
    make_large(desk.root / "big")

    done = desk.run(f"{script}; echo more >> a.txt")

    report = desk.read_report()
    assert (done.returncode, report["complete"]) == (0, False)
    expected = {"created": 0, "changed": 1, "deleted": 0, "moved": 0}
    for name, number in counts.items():
        expected[name] += number
    assert {name: report[name] for name in expected} == expected
    (unkept,) = report["not_kept"]
    assert unkept["path"] == ("new" if "new" in script else "big")
    earlier = desk.root / ("large" if "large" in script else "big")
    if "what it was before is in " in unkept["why"]:
        earlier = Path(unkept["why"].partition("what it was before is in ")[2])
    with earlier.open("rb") as file:
        file.seek(5 << 30)
        assert (file.read(13), os.fstat(file.fileno()).st_size) == (b"in the middle", _LARGE_BYTES)
    assert list((desk.state / "runs").iterdir()) == []
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert (desk.root / "a.txt").read_text() == "one\n"


@requirement("run:undo:exact")
def test_a_workspace_in_shared_memory_is_recorded_and_undone(tmp_path: Path) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("there is no shared memory here")
    root = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        data = os.urandom(300_000)
        (root / "big").write_bytes(data)
        where = ["--root", str(root), "--state-dir", str(tmp_path / "state")]
        command = [sys.executable, "-m", "surehold"]
        done = subprocess.run(
            [*command, "run", *where, "--json", "--", "rm", "big"], cwd=root, capture_output=True, check=True
        )
        assert json.loads(done.stdout)["deleted"] == 1
        subprocess.run([*command, "undo", *where], cwd=root, capture_output=True, check=True)
        assert [path.name for path in root.parent.glob(".surehold-stash-*")] == []
        assert (root / "big").read_bytes() == data
    finally:
        shutil.rmtree(root)

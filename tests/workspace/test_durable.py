"""An acknowledged write has reached the disk: the file, its directory, and the ledger."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spec.marks import requirement

EDIT = """
import os, sys
from pathlib import Path
from surehold import Settings, open_workspace
workspace = open_workspace(sys.argv[1], settings=Settings(state_dir=Path(sys.argv[2]), durability=sys.argv[3]))
session = workspace.session()
os.write(2, b"begin")
session.edit("a.txt", ("one", "two"))
os.write(2, b"acknowledged")
"""


def traced(tmp_path: Path, durability: str) -> list[tuple[str, str]]:
    """Return every call that changes or syncs a file, with the file it is about, up to the acknowledgement."""
    root, state, log = tmp_path / "root", tmp_path / "state", tmp_path / "trace"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    calls = "trace=write,pwrite64,fsync,fdatasync,renameat2,linkat"
    strace = ["strace", "-f", "-y", "-o", str(log), "-e", calls]
    done = subprocess.run(
        [*strace, sys.executable, "-c", EDIT, str(root), str(state), durability], capture_output=True, check=False
    )
    if done.stderr != b"beginacknowledged":
        pytest.skip(f"strace may not trace: {done.stderr.decode()}")
    story = log.read_text(errors="replace").partition('"begin"')[2].partition('"acknowledged"')[0]
    return re.findall(r"^\d+ +(\w+)\(\d+<([^>]*)>", story, re.MULTILINE)


@requirement("promise:half_done:machine", "promise:nothing_lost:checkpoint")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_an_acknowledged_write_is_synced_file_directory_and_ledger(tmp_path: Path) -> None:
    story = traced(tmp_path, "full")
    root, ledger = str(tmp_path / "root"), str(tmp_path / "state" / "state.db-wal")
    swap = next(at for at, (call, where) in enumerate(story) if call in ("renameat2", "linkat") and where == root)
    before = [where for call, where in story[:swap] if call in ("fsync", "fdatasync")]
    after = [where for call, where in story[swap:] if call in ("fsync", "fdatasync")]

    assert ledger in before, "the old bytes and the intent come first"
    assert any(where.startswith(f"{root}/") for where in before), "then the new bytes"
    assert root in after, "then the directory"
    assert ledger in after, "then the entry"
    last_entry = max(at for at, (call, where) in enumerate(story) if "write" in call and where == ledger)
    assert {call for call, where in story[last_entry:] if where == ledger} >= {"pwrite64", "fdatasync"}


@requirement("engine:disk:durability")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_without_durability_nothing_is_synced(tmp_path: Path) -> None:
    assert [call for call, _ in traced(tmp_path, "none") if call in ("fsync", "fdatasync")] == []

"""Needs `strace`; without it these tests are skipped."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
MEMORY = Path("/dev/shm")


def _why_not() -> str:
    if shutil.which("strace") is None:
        return "strace is not installed"
    sleeper = subprocess.Popen(["sleep", "10"])
    try:
        tried = subprocess.Popen(["strace", "-p", str(sleeper.pid)], stderr=subprocess.PIPE, text=True)
        assert tried.stderr is not None
        with tried:
            said = tried.stderr.readline()
            tried.terminate()
        return "" if "attached" in said else f"strace may not trace: {said.strip()}"
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.fixture(autouse=True, scope="session")
def strace() -> None:
    if reason := _why_not():
        pytest.skip(reason)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory to ruin: in memory where there is one, since a kill does not care; the long runs use the disk."""
    if SOAK or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="surehold-crash-") as directory:
        yield Path(directory)

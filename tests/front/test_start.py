"""A working directory full of modules with well-known names: none of them is imported."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from warm import cold

NAMES = (
    "typing",
    "json",
    "argparse",
    "re",
    "sqlite3",
    "pydantic",
    "pathspec",
    "mcp",
    "surehold_local",
    "dataclasses",
    "click",
)
SCRIPT = Path(sysconfig.get_path("scripts")) / "surehold"


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in which every import leaves a trace, and let everything be imported."""
    place = tmp_path / "work"
    place.mkdir()
    for name in NAMES:
        (place / f"{name}.py").write_text(f"import os\nos.close(os.open({str(tmp_path / 'ran')!r}, os.O_CREAT))\n")
    with cold():
        yield place


@requirement("front:start:safe_path")
@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "surehold"], [str(SCRIPT)]], ids=["python -m surehold", "surehold"]
)
@pytest.mark.parametrize("words", [["--help"], ["tool", "read_file", "--json", '{"path": "typing.py"}'], ["mcp", "."]])
def test_modules_in_the_working_directory_are_not_imported(hostile: Path, command: list[str], words: list[str]) -> None:
    state = ["--state-dir", str(hostile.parent / "state")] if words[0] != "--help" else []
    done = subprocess.run([*command, *words, *state], cwd=hostile, input=b"", capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()
    assert not (hostile.parent / "ran").exists()


@requirement("front:start:safe_path")
@pytest.mark.parametrize("kind", ["module", "package"])
@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-m", "surehold"], [sys.executable, "-X", "utf8", "-m", "surehold"], [str(SCRIPT)]],
    ids=["python -m surehold", "python -X utf8 -m surehold", "surehold"],
)
def test_no_package_of_our_name_is_taken_from_the_working_directory(
    hostile: Path, command: list[str], kind: str
) -> None:
    trap = hostile / "surehold.py" if kind == "module" else hostile / "surehold" / "__init__.py"
    trap.parent.mkdir(exist_ok=True)
    trap.write_text((hostile / "json.py").read_text())

    done = subprocess.run([*command, "--help"], cwd=hostile, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()
    assert not (hostile.parent / "ran").exists()

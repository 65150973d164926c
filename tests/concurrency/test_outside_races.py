"""Outside programs that race with edits, naturally: no hooks, two ordinary processes. `make soak` runs each for ten minutes.

What must hold at the end: every text of an outside program is in the file or in the history, every acknowledged edit is
too (in the file itself, where the other program never removes anything), and no text of a refused edit is in the file.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import LedgerQuery

SECONDS = 600 if os.environ.get("SUREHOLD_SOAK") else 20
HEAD = b"MARK\n"

APPENDER = """
import os, sys, time
number = 0
while not os.path.exists(sys.argv[2]):
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"OUTSIDE %d.\\n" % number)
    os.close(fd)
    number += 1
    time.sleep(0.002)
print(number)
"""
SAVER = """
import os, sys, time
number = 0
while not os.path.exists(sys.argv[2]):
    text = open(sys.argv[1], "rb").read()
    with open(sys.argv[1] + "~", "wb") as new:
        new.write(text + b"OUTSIDE %d.\\n" % number)
    os.rename(sys.argv[1] + "~", sys.argv[1])
    number += 1
    time.sleep(0.002)
print(number)
"""
SED = """
import os, subprocess, sys
number = 0
while not os.path.exists(sys.argv[2]):
    subprocess.run(["sed", "-i", f"$ a OUTSIDE {number}.", sys.argv[1]], check=True)
    number += 1
print(number)
"""
CHECKOUT = """
import os, subprocess, sys
folder = os.path.dirname(sys.argv[1])
git = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x", "-c", "advice.detachedHead=false"]
number = 0
while not os.path.exists(sys.argv[2]):
    subprocess.run([*git, "checkout", "-q", "-f", "one" if number % 2 else "two"], check=True)
    number += 1
print(0)
"""
STASH = CHECKOUT.replace('"checkout", "-q", "-f", "one" if number % 2 else "two"', '"stash", "-q"').replace(
    "check=True", "check=False"
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the agent was told."""

    acknowledged: list[int]
    refused: list[int]
    outside: int
    """How many texts the other program wrote."""


@contextmanager
def outside_program(script: str, path: Path, stop: Path) -> Generator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(stop)], stdout=subprocess.PIPE, text=True
    ) as it:
        try:
            yield it
        finally:
            stop.touch()


def race(workspace: AgentWorkspace, path: Path, script: str) -> Outcome:
    """Let an agent insert a line after the mark again and again while another program writes."""
    session = workspace.session(agent="racer")
    acknowledged, refused = list[int](), list[int]()
    stop, number = path.parent.parent / "stop", 0
    end = time.monotonic() + SECONDS
    with outside_program(script, path, stop) as program:
        while time.monotonic() < end:
            try:
                session.edit(path.name, ("MARK\n", f"MARK\nAGENT {number}.\n"))
            except SureholdError:
                refused.append(number)
            else:
                acknowledged.append(number)
            number += 1
        stop.touch()
        said, _ = program.communicate()
        assert program.returncode == 0
    return Outcome(acknowledged=acknowledged, refused=refused, outside=int(said))


def unreachable(workspace: AgentWorkspace, key: str, missing: set[bytes]) -> set[bytes]:
    """Return the texts that no version in the history of a path has."""
    seen = set[str]()
    for entry in workspace.history.log(LedgerQuery(path=key, limit=1_000_000)):
        for version in (entry.change.before, entry.change.after):
            if missing and version is not None and version.sha256 not in seen:
                seen.add(version.sha256)
                data = workspace.store.read_blob(version.sha256)
                missing = {text for text in missing if text not in data}
    return missing


def check(workspace: AgentWorkspace, path: Path, outcome: Outcome, *, only_adds: bool) -> None:
    lines = set(path.read_bytes().splitlines())
    acknowledged = {b"AGENT %d." % number for number in outcome.acknowledged}
    outside = {b"OUTSIDE %d." % number for number in range(outcome.outside)}
    assert not lines & {b"AGENT %d." % number for number in outcome.refused}
    assert unreachable(workspace, path.name, outside - lines) == set()
    assert unreachable(workspace, path.name, acknowledged - lines) == set()
    if only_adds:
        assert (acknowledged - lines, outside - lines) == (set(), set())
    assert outcome.acknowledged
    assert sorted(each.name for each in path.parent.iterdir() if "surehold" in each.name) == []
    assert workspace.store.verify(blobs=False).ok


@pytest.fixture
def workspace(tmp_path: Path) -> Generator[AgentWorkspace]:
    (tmp_path / "root").mkdir()
    with open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state")) as opened:
        yield opened


def make_file(tmp_path: Path, size: int) -> Path:
    path = tmp_path / "root" / "file.txt"
    path.write_bytes(HEAD + (b"x" * 79 + b"\n") * (size // 80))
    return path


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:append")
@pytest.mark.parametrize("size", [10_000, 2_000_000, 5_000_000])
def test_nothing_is_lost_when_a_program_appends(workspace: AgentWorkspace, tmp_path: Path, size: int) -> None:
    path = make_file(tmp_path, size)
    check(workspace, path, race(workspace, path, APPENDER), only_adds=True)


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:append")
@pytest.mark.parametrize("size", [1_000_000, 20_000_000])
def test_nothing_is_lost_when_a_program_appends_to_a_hard_link(
    workspace: AgentWorkspace, tmp_path: Path, size: int
) -> None:
    path = make_file(tmp_path, size)
    os.link(path, tmp_path / "other name")
    check(workspace, path, race(workspace, path, APPENDER), only_adds=True)


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:save")
@pytest.mark.parametrize("script", [SAVER, SED], ids=["editor", "sed -i"])
def test_nothing_is_lost_when_a_program_saves_by_renaming(
    workspace: AgentWorkspace, tmp_path: Path, script: str
) -> None:
    path = make_file(tmp_path, 10_000)
    check(workspace, path, race(workspace, path, script), only_adds=False)


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:git")
@pytest.mark.parametrize("script", [CHECKOUT, STASH], ids=["checkout", "stash"])
def test_nothing_is_lost_when_git_changes_the_tree(workspace: AgentWorkspace, tmp_path: Path, script: str) -> None:
    assert shutil.which("git")
    path = make_file(tmp_path, 10_000)
    commit = "git add file.txt && git -c user.name=x -c user.email=x commit -q -m"
    shell = f"git init -q && {commit} one && git branch one && echo two >> file.txt && {commit} two && git branch two"
    subprocess.run(shell, shell=True, cwd=path.parent, check=True)
    check(workspace, path, race(workspace, path, script), only_adds=False)

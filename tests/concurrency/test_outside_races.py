"""Outside programs that race with edits, naturally: no hooks, two ordinary processes.

`make soak` runs each race for ten minutes; SUREHOLD_RACE_SECONDS says another length.

What must hold at the end: every text of an outside program is in the file or in the history, every acknowledged edit is
too (in the file itself, where the other program never removes anything), and no text of a refused edit is in the file.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import LedgerQuery

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
SECONDS = int(os.environ.get("SUREHOLD_RACE_SECONDS", "600" if SOAK else "20"))
AT_ONCE = 2 if SOAK else 3
"""How many races of a test run beside each other: all of the short ones, pairs of the long ones."""
HEAD = b"MARK\n"
TEXTS = re.compile(rb"(?:AGENT|OUTSIDE) [0-9]+\.")
"""What the agent and the other program write."""

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
                missing = missing.difference(TEXTS.findall(workspace.store.read_blob(version.sha256)))
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


@dataclass(frozen=True, kw_only=True)
class Race:
    """One file, and the program that writes into it."""

    script: str
    size: int = 10_000
    prepare: Callable[[Path], None] = lambda _: None
    """Is given the file."""
    only_adds: bool = False
    """The program never removes anything."""

    def run(self, place: Path) -> None:
        root = place / "root"
        root.mkdir(parents=True)
        path = root / "file.txt"
        path.write_bytes(HEAD + (b"x" * 79 + b"\n") * (self.size // 80))
        self.prepare(path)
        with open_workspace(root, settings=Settings(state_dir=place / "state")) as workspace:
            check(workspace, path, race(workspace, path, self.script), only_adds=self.only_adds)


def run_races(tmp_path: Path, *races: Race) -> None:
    """Run races, each with a workspace of its own."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(each.run, tmp_path / str(number)) for number, each in enumerate(races)]:
            done.result()


def link_file(path: Path) -> None:
    os.link(path, path.parent.parent / "other name")


def commit_twice(path: Path) -> None:
    assert shutil.which("git")
    commit = "git add file.txt && git -c user.name=x -c user.email=x commit -q -m"
    shell = f"git init -q && {commit} one && git branch one && echo two >> file.txt && {commit} two && git branch two"
    subprocess.run(shell, shell=True, cwd=path.parent, check=True)


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:append")
def test_nothing_is_lost_when_a_program_appends(tmp_path: Path) -> None:
    run_races(tmp_path, *(Race(script=APPENDER, size=size, only_adds=True) for size in (10_000, 2_000_000, 5_000_000)))


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:append")
def test_nothing_is_lost_when_a_program_appends_to_a_hard_link(tmp_path: Path) -> None:
    sizes = (1_000_000, 20_000_000)
    run_races(tmp_path, *(Race(script=APPENDER, size=size, prepare=link_file, only_adds=True) for size in sizes))


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:save")
def test_nothing_is_lost_when_a_program_saves_by_renaming(tmp_path: Path) -> None:
    run_races(tmp_path, Race(script=SAVER), Race(script=SED))


@pytest.mark.timeout(SECONDS * 4 + 1200)
@requirement("outside:race:git")
def test_nothing_is_lost_when_git_changes_the_tree(tmp_path: Path) -> None:
    run_races(tmp_path, Race(script=CHECKOUT, prepare=commit_twice), Race(script=STASH, prepare=commit_twice))

"""Real processes on one workspace: friends, rivals, victims of a kill, and a program that knows nothing of us."""

import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from concurrency import worker as program
from concurrency.checker import Event, Recording, violations
from spec.marks import requirement
from surehold.stores.base import LedgerQuery
from surehold.text.snapshot import sha256_hex
from surehold.workspace.workspace import Workspace
from waiting import wait_until
from workspaces import real_workspace

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
Process = subprocess.Popen[str]
Count = Callable[[str, int], None]


@dataclass
class Scene:
    """A workspace, and the processes that work on it."""

    root: Path
    diaries: Path

    def start(self, task: str, name: str, count: int) -> Process:
        places = (self.root, self.root.parent / "state", self.diaries / name)
        command = [sys.executable, program.__file__, task, name, str(count), *map(str, places)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def crowd(self, task: str, workers: int, count: int) -> None:
        """Let several processes begin together, and wait until they are done."""
        processes = [self.start(task, str(number), count) for number in range(workers)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        begin = f"{time.monotonic() + 0.1}\n"
        self.join(processes, begin)

    def join(self, processes: list[Process], said: str = "") -> None:
        assert [(process.communicate(said)[1], process.returncode) for process in processes] == [("", 0)] * len(
            processes
        )

    def open(self) -> Workspace:
        return real_workspace(self.root, state=self.root.parent / "state", durability="none")

    def notes(self, *words: str) -> list[list[Any]]:
        """Everything the diaries say that begins with one of these words. A line cut short by a kill says nothing."""
        lines = [
            line for diary in sorted(self.diaries.iterdir()) for line in diary.read_text().splitlines(keepends=True)
        ]
        return [note for line in lines if line.endswith("\n") and (note := json.loads(line))[0] in words]

    def recording(self) -> Recording:
        told = {note[2]: note for note in self.notes("told")}
        events = list[Event]()
        for _, path, marker, invoked in self.notes("ask"):
            known = marker in told
            events.append(
                Event(
                    path=path,
                    marker=marker,
                    invoked=invoked,
                    answered=told[marker][3] if known else math.inf,
                    answer="acknowledged" if known else "unknown",
                    seq=told[marker][4] if known else 0,
                )
            )
        return Recording(events)

    def verdict(self, *paths: str, outside: bool = False) -> list[str]:
        """Recover, and say what cannot be true."""
        with self.open() as workspace:
            open_intents = [f"{busy.intent.id} is still open" for busy in workspace.store.open_intents()]
            files = {path: (self.root / path).read_bytes() for path in paths}
            return open_intents + violations(self.recording(), workspace.store, files, outside=outside)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(root=tmp_path / "root", diaries=tmp_path / "diaries")
    made.root.mkdir()
    made.diaries.mkdir()
    (made.root / "file").write_bytes(b"begin\n")
    made.open().close()
    return made


@requirement("engine:race:one_file", "promise:unseen:race")
def test_no_edit_of_many_processes_on_one_file_is_lost_doubled_or_invented(scene: Scene, count: Count) -> None:
    workers, edits = (16, 250) if SOAK else (4, 60)

    scene.crowd("edit", workers, edits)

    assert scene.verdict("file") == []
    assert len(scene.notes("told")) == workers * edits
    count("raced edits", workers * edits)


@requirement("engine:disk:create_once")
def test_of_many_processes_that_create_one_file_exactly_one_wins(scene: Scene, count: Count) -> None:
    workers, rounds = (16, 300) if SOAK else (4, 50)

    scene.crowd("create", workers, rounds)

    winners = sorted((number, name) for _, number, name in scene.notes("won"))
    assert [number for number, _ in winners] == list(range(rounds))
    assert [(scene.root / "new" / str(number)).read_text() for number in range(rounds)] == [name for _, name in winners]
    count("raced creates", workers * rounds)


@requirement("engine:race:crossing_moves")
def test_crossing_moves_lose_no_file_and_double_none(scene: Scene, count: Count) -> None:
    workers, moves = (8, 300) if SOAK else (4, 50)
    for place in ("left", "right"):
        (scene.root / place).mkdir()
    for name in ("one", "two", "three"):
        (scene.root / "left" / name).write_text(name)

    scene.crowd("move", workers, moves)

    files = [path for place in ("left", "right") for path in (scene.root / place).iterdir()]
    assert sorted((path.name, path.read_text()) for path in files) == [(name, name) for name in ("one", "three", "two")]
    assert len(scene.notes("moved")) > workers
    assert scene.verdict() == []
    count("raced moves", len(scene.notes("moved")))


@requirement("promise:half_done:one_file", "engine:lock:dies_with_process")
def test_processes_killed_at_any_moment_lose_nothing_that_was_acknowledged(scene: Scene, count: Count) -> None:
    kills, workers = (250, 6) if SOAK else (20, 4)
    names = (f"k{number}" for number in range(1_000_000))
    processes = [scene.start("edit", next(names), 100_000) for _ in range(workers)]
    for number in range(kills):
        victim = processes.pop(random.randrange(workers))
        if number % 4:  # every fourth may die while it starts
            assert victim.stdout is not None
            victim.stdout.readline()
        time.sleep(random.uniform(0, 0.2))
        victim.kill()
        victim.communicate()
        processes.append(scene.start("edit", next(names), 100_000))
    wait_until(lambda: scene.notes("told"))
    for process in processes:
        process.kill()
        process.communicate()

    assert scene.verdict("file") == []
    count("random kills", kills + workers)
    count("raced edits", len(scene.notes("told")))


@requirement("promise:nothing_lost:outside_edit")
def test_no_version_of_a_program_that_ignores_us_becomes_unrecoverable(scene: Scene, count: Count) -> None:
    workers, edits, outside = (4, 150, 600) if SOAK else (2, 40, 80)
    meddler = scene.start("meddle", "x", outside)

    scene.crowd("edit", workers, edits)
    scene.join([meddler])

    with scene.open() as workspace:
        final = sha256_hex((scene.root / "file").read_bytes())
        displaced = {sha for _, sha in scene.notes("displaced")}
        versions = {sha for _, sha in scene.notes("put")}
        kept = {sha for sha in versions if workspace.store.has_blob(sha)}
        assert versions - kept - displaced - {final} == set()
        mine = [entry.change.after for entry in workspace.history.log(LedgerQuery(limit=10_000, ok_only=True))]
        assert all(version is None or workspace.store.has_blob(version.sha256) for version in mine)
        assert workspace.history.verify().ok
        assert sorted(path.name for path in scene.root.iterdir()) == ["file"]
    count("outside edits", outside)

"""Eight agents in one checkout: four edit through our tools, four run commands in their shells, all of them at once."""

import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concurrency import crew
from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.capture.filter import can_listen
from surehold.errors import UndoConflict
from surehold.stores.base import Entry, LedgerQuery
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
SECONDS = float(os.environ.get("SUREHOLD_CREW_SECONDS", "600" if SOAK else "0"))
"""How long the agents work; 3 rounds if that is 0."""
ROUNDS = 0 if SECONDS else 3
Tree = dict[str, bytes]


class Checkout:
    """What the agents work in, and what they say about it."""

    def __init__(self, base: Path) -> None:
        self.root, self.state, self.diaries = base / "root", base / "state", base / "diaries"
        self.root.mkdir()
        self.diaries.mkdir()
        crew.lay_out(self.root)
        self.original = self.tree()

    def tree(self, below: str = "") -> Tree:
        files = [path for path in (self.root / below).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def let_all_work(self) -> None:
        places = [str(self.root), str(self.state)]
        program = [sys.executable, "-m", "concurrency.crew"]
        around = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        agents = [
            subprocess.Popen([*program, name, str(ROUNDS), str(SECONDS), *places, str(self.diaries / name)], env=around)
            for name in crew.AGENTS
        ]
        assert [agent.wait() for agent in agents] == [0] * len(agents)

    def notes(self, word: str) -> list[list[Any]]:
        lines = [line for name in crew.AGENTS for line in (self.diaries / name).read_text().splitlines()]
        return [note for line in lines if (note := json.loads(line))[0] == word]

    def paths_named(self) -> set[str]:
        """Return the paths that a report said are not told apart."""
        reports = self.notes("report")
        assert all(complete == (not paths) for _, _, complete, paths in reports)
        return {path for _, _, _, paths in reports for path in paths}

    def open(self) -> Workspace:
        return open_workspace(self.root, settings=Settings(state_dir=self.state))


def list_entries(workspace: Workspace) -> list[Entry]:
    """Return everything that happened, oldest first."""
    return list(reversed(workspace.history.log(LedgerQuery(ok_only=True, limit=1_000_000))))


def find_lost(checkout: Checkout, workspace: Workspace, entries: list[Entry]) -> list[tuple[str, str]]:
    """Return the markers that are neither in their file nor in an earlier version of it."""
    kept = defaultdict[str, set[str]](set)
    for entry in entries:
        for path, before, after in entry.change.transitions():
            kept[path] |= {one.sha256 for one in (before, after) if one and one.kind == "file"}
    texts = {path: [workspace.store.read_blob(sha256) for sha256 in found] for path, found in kept.items()}
    now = checkout.tree()
    told = [(path, marker) for _, path, marker in checkout.notes("told")]
    return [
        (path, marker)
        for path, marker in told
        if not any(f"{marker}\n".encode() in text for text in (*texts.get(path, ()), now.get(path, b"")))
    ]


def find_breaks(entries: list[Entry]) -> list[tuple[int, str]]:
    """Return where the history of a path does not go on from what it was."""
    heads: dict[str, str] = {}
    breaks = list[tuple[int, str]]()
    for entry in entries:
        for path, before, after in entry.change.transitions():
            if heads.setdefault(path, before.sha256 if before else "") != (before.sha256 if before else ""):
                breaks.append((entry.seq, path))
            heads[path] = after.sha256 if after else ""
    return breaks


def find_wrong_authors(checkout: Checkout, workspace: Workspace, named: set[str]) -> list[tuple[str, str, str]]:
    """Return the lines that are not from the agent that they name, or from one that wrote them again in a shared file."""
    wrong = list[tuple[str, str, str]]()
    for path in sorted(checkout.tree()):
        for line in blame_file(workspace, path):
            is_known = line.entry is not None and line.entry.call.operation != "external"
            author = line.entry.call.agent if is_known and line.entry else "outside"
            owner = line.text.replace(":", " ").split()[0]
            if line.text.encode() in checkout.original.get(path, b"").splitlines():
                continue
            if path.startswith("shared/") and (author in crew.SHELL_AGENTS or path in named):
                continue  # `sed` writes the whole file, with what the others had written when it read it
            if author != owner:
                wrong.append((path, line.text, author))
    return wrong


def undo_agent(checkout: Checkout, workspace: Workspace, agent: str) -> None:
    """Take back what an agent did; where a `sed` took back others' lines, as much as the refusal offers."""
    conflict: UndoConflict | None = None
    try:
        workspace.history.undo_selected(Selectors(agent=agent), partial=False)
    except UndoConflict as refused:
        conflict = refused
    if conflict:
        assert all(one["path"].startswith("shared/") for one in conflict.details["conflicts"]), conflict.details
        assert "--partial" in conflict.action
        workspace.history.undo_selected(Selectors(agent=agent), partial=True)
    own = {path: data for path, data in checkout.original.items() if path.startswith(f"{agent}/")}
    assert checkout.tree(agent) == own


@requirement("run:together:nothing_lost", "run:together:attributed", "run:together:undone_alone")
def test_eight_agents_on_tools_and_shells_lose_nothing_and_are_undone_alone(
    tmp_path: Path, count: Callable[[str, int], None]
) -> None:
    checkout = Checkout(tmp_path)

    checkout.let_all_work()

    with checkout.open() as workspace:
        entries, named = list_entries(workspace), checkout.paths_named()
        assert workspace.history.verify().ok
        assert find_lost(checkout, workspace, entries) == []
        assert find_breaks(entries) == []
        assert {entry.change.path for entry in entries if entry.call.operation == "external"} <= named
        assert {path for path in named if not path.startswith("shared/")} == set()
        assert find_wrong_authors(checkout, workspace, named) == []
        for agent in random.sample(crew.AGENTS, len(crew.AGENTS)):
            undo_agent(checkout, workspace, agent)
        if checkout.tree() != checkout.original:
            workspace.history.undo_selected(Selectors(since=entries[0].timestamp), partial=False)
        assert checkout.tree() == checkout.original
        assert workspace.history.verify().ok
    count("edits and commands of eight agents", len(checkout.notes("told")))

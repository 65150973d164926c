"""One of several agents in one checkout: it edits through our tools, or runs commands of its shell.

Each has a directory and, in every shared file, a line of its own. Lines in its diary: `["told", path, marker]` for what is
done, and `["report", …]` for what a command's report says.
"""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concurrency.worker import Diary
from surehold import Session, Settings, open_workspace
from surehold.errors import LockTimeout, MatchError, Stale

SHARED = ("shared/one.txt", "shared/two.txt", "shared/log.txt")
TOOL_AGENTS = ("tool-a", "tool-b", "tool-c", "tool-d")
SHELL_AGENTS = ("shell-a", "shell-b", "shell-c", "shell-d")
AGENTS = (*TOOL_AGENTS, *SHELL_AGENTS)
_APART = "".join(f"    between {number}\n" for number in range(4))

_SCRIPT = """
cd "$1" || exit 1
sed -i "s/^$2:.*/$2: $3/" shared/one.txt
sed -i "s/^$2:.*/$2: $3/" shared/two.txt
echo "$2: $3" >> shared/log.txt
echo "$2 new $3" > "$2/new" && mv "$2/new" "$2/$3"
echo "$2 added $3" >> "$2/kept"
rm -f "$2/$4"
"""


def lay_out(root: Path) -> None:
    """Make the checkout that the agents work in."""
    (root / "shared").mkdir()
    for path in SHARED:
        (root / path).write_text("".join(f"{agent}: nothing yet\n{_APART}" for agent in AGENTS))
    for agent in AGENTS:
        (root / agent).mkdir()
        (root / agent / "kept").write_text(f"{agent} begins\n")
        (root / agent / "start").write_text("removed in the first round\n")


def count_rounds(rounds: int, seconds: float) -> Iterator[int]:
    """Yield the numbers of the rounds: so many, or as many as the time allows."""
    end = time.monotonic() + seconds
    return itertools.takewhile(lambda number: time.monotonic() < end if seconds else number < rounds, itertools.count())


class ToolAgent:
    """Edits through our tools."""

    def __init__(self, session: Session, diary: Diary, name: str) -> None:
        self._session, self._diary, self._name = session, diary, name

    def work(self, number: int) -> None:
        marker = f"{self._name}-{number}"
        for path in SHARED:
            self._mark(path, marker)
        own = f"{self._name}/{marker}"
        self._session.create(own, f"{self._name} new {marker}\n")
        self._mark_end(f"{self._name}/kept", marker)
        gone = f"{self._name}/{f'{self._name}-{number - 1}' if number else 'start'}"
        self._session.read_file(gone)
        self._session.delete(gone)
        self._diary.note("told", own, marker)

    def _mark(self, path: str, marker: str) -> None:
        """Put a marker into our line, whoever else writes the file."""
        while True:
            rows = str(self._session.read_file(path).content).splitlines()
            line = next(row for row in rows if row.startswith(f"{self._name}:"))
            try:
                self._session.edit(path, (line, f"{self._name}: {marker}"))
            except (Stale, MatchError, LockTimeout):
                continue
            self._diary.note("told", path, marker)
            return

    def _mark_end(self, path: str, marker: str) -> None:
        last = str(self._session.read_file(path).content).splitlines()[-1]
        self._session.edit(path, (last, f"{last}\n{self._name} added {marker}"))


def run_commands(words: list[str], root: str, diary: Diary, name: str, number: int) -> None:
    marker, gone = f"{name}-{number}", f"{name}-{number - 1}" if number else "start"
    report = Path(words[-1]).with_suffix(f".{number}.json")
    command = [*words[:-1], str(report), "--", "bash", "-c", _SCRIPT, "bash", root, name, marker, gone]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, done
    facts: dict[str, Any] = json.loads(report.read_text())
    diary.note("report", facts["change_id"], facts["complete"], sorted({one["path"] for one in facts["not_kept"]}))
    for path in (*SHARED, f"{name}/{marker}"):
        diary.note("told", path, marker)


def main(name: str, rounds: str, seconds: str, *places: str) -> None:
    root, state, diary = places
    notes = Diary(Path(diary))
    if name in TOOL_AGENTS:
        with open_workspace(root, settings=Settings(state_dir=Path(state))) as workspace:
            agent = ToolAgent(workspace.session(agent=name), notes, name)
            for number in count_rounds(int(rounds), float(seconds)):
                agent.work(number)
        return
    where = ["--root", root, "--state-dir", state, "--agent", name, "--report", f"{diary}.report"]
    for number in count_rounds(int(rounds), float(seconds)):
        run_commands([sys.executable, "-m", "surehold", "run", *where], root, notes, name, number)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What capture costs a command: the same work bare and under `surehold run`, without start-up, which has a row of its own."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from sample import scratch
from table import Row
from timing import Work, interleave, seconds

_SUREHOLD = Path(sys.executable).with_name("surehold")
_REPEAT = 3
_WORDS = [
    "total",
    "value",
    "first",
    "second",
    "count",
    "result",
    "index",
    "line",
    "file",
    "path",
    "name",
    "size",
    "text",
    "data",
    "key",
    "item",
]


class CommandBench:
    """A tree that is made anew for each repetition, and the commands that are given to it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._one_file = self.make_tree(1)

    def make_tree(self, files: int, *, lines: int = 10, git: bool = False) -> Callable[[], Path]:
        """Return what makes a fresh copy of a tree with so many files."""
        self._number += 1
        template = self._folder / f"template-{self._number}"
        pick = random.Random(files)
        for number in range(files):
            path = template / f"d{number // 100}" / f"f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{' '.join(pick.choices(_WORDS, k=8))}\n" for _ in range(lines)))
        if git:
            commit = "git init -q . && git add -A && git -c user.name=b -c user.email=b@b commit -qm one"
            subprocess.run(["sh", "-c", commit], cwd=template, check=True)
            for number in range(files):  # work that the command throws away
                with (template / f"d{number // 100}" / f"f{number}.txt").open("a") as file:
                    file.write("changed\n")

        def make() -> Path:
            self._number += 1
            root = self._folder / f"tree-{self._number}"
            subprocess.run(["cp", "-a", str(template), str(root)], check=True)
            return root

        return make

    def time_bare(self, make: Callable[[], Path], script: str, number: int) -> float:
        root = make()
        command = ["sh", "-c", script]
        taken = seconds(_run(command, root), number)
        shutil.rmtree(root)
        return taken

    def time_run(self, make: Callable[[], Path], script: str, number: int) -> float:
        root = make()
        state = self._folder / f"state-{root.name}"
        command = [str(_SUREHOLD), "run", "--root", str(root), "--state-dir", str(state), "--", "sh", "-c", script]
        taken = seconds(_run(command, root), number)
        shutil.rmtree(root)
        shutil.rmtree(state, ignore_errors=True)
        return taken

    def compare(self, name: str, make: Callable[[], Path], script: str, *, goal: float) -> Row:
        """Compare a command under capture, less its start-up in the same minute, with the bare command."""
        bare, run, start = list[float](), list[float](), list[float]()
        for number in range(_REPEAT):
            bare.append(self.time_bare(make, script, number))
            run.append(self.time_run(make, script, number))
            start.append(self.time_run(self._one_file, "true", number))
        one, other = median(bare), max(median(run) - median(start), 0.0)
        note = f"{one * 1e3:.0f} → {other * 1e3:.0f} ms, median of {_REPEAT}, without start-up"
        return Row(name=name, measured=other / one, goal=goal, note=note)


def rows() -> list[Row]:
    with scratch() as folder:
        bench = CommandBench(folder)
        ten_thousand = bench.make_tree(10_000)
        two_thousand = bench.make_tree(2_000)
        compiled = (
            f"{sys.executable} -m compileall -q -o 2 {Path(os.__file__).parent}/json {Path(os.__file__).parent}/email"
        )
        return [
            _start_row(folder),
            bench.compare("run: rm -rf of 10,000 files", ten_thousand, "rm -rf d*", goal=2.0),
            bench.compare("run: sed -i of 2,000 files", two_thousand, "sed -i s/total/sum/ d*/*", goal=2.0),
            bench.compare(
                "run: git reset and clean over 3,000 files",
                bench.make_tree(3_000, git=True),
                "git reset -q --hard && git clean -qfdx",
                goal=2.0,
            ),
            bench.compare(
                "run: grep -r in 10,000 files",
                ten_thousand,
                "for i in 1 2 3 4 5; do grep -rc total . ; done >/dev/null",
                goal=1.05,
            ),
            bench.compare("run: a compiler", two_thousand, f"PYTHONPYCACHEPREFIX=../cache {compiled} -f", goal=1.05),
            _tree_size_row(bench),
            _state_row(folder, bench.make_tree(500, lines=400)),
        ]


def _start_row(folder: Path) -> Row:
    root = folder / "start"
    root.mkdir()
    run = (str(_SUREHOLD), "run", "--root", str(root), "--state-dir", str(folder / "start-state"), "--", "true")
    pair = interleave(_run([str(_SUREHOLD), "--help"], root), _run(list(run), root), repeat=9)
    return Row(name="surehold run -- true", measured=pair.ratio, goal=2.0, note=f"of `surehold --help`: {pair.note}")


def _tree_size_row(bench: CommandBench) -> Row:
    small, large = bench.make_tree(1_000)(), bench.make_tree(50_000)()
    script = "for i in 1 2 3 4 5 6 7 8 9; do sed -i s/total/sum/ d$i/*; sed -i s/sum/total/ d$i/*; done"

    def run(root: Path) -> Work:
        state = root.with_name(f"state-{root.name}")
        words = [str(_SUREHOLD), "run", "--root", str(root), "--state-dir", str(state), "--", "sh", "-c", script]
        return _run(words, root)

    pair = interleave(run(small), run(large), repeat=_REPEAT)
    return Row(
        name="run: the same in a tree of 50,000 files",
        measured=pair.ratio,
        goal=1.1,
        note=f"of one with 1,000: {pair.note}",
    )


def _state_row(folder: Path, make: Callable[[], Path]) -> Row:
    """Hold the room that a run takes against its earlier bytes, compressed one by one."""
    root, state = make(), folder / "state-room"
    packed = sum(len(zlib.compress(path.read_bytes(), 6)) for path in root.rglob("*.txt"))
    words = [str(_SUREHOLD), "run", "--root", str(root), "--state-dir", str(state), "--", "rm", "-rf"]
    _run([*words, *(str(path) for path in root.iterdir())], root)(0)
    with closing(sqlite3.connect(state / "state.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what is written twice for a moment does not count
    room = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
    note = f"{packed / 1e6:.1f} MB compressed one by one → {room / 1e6:.1f} MB, entries included"
    return Row(name="run: state of 500 deleted files of 18 KB", measured=room / packed, goal=1.2, note=note)


def _run(command: list[str], directory: Path) -> Work:
    return lambda _: subprocess.run(command, cwd=directory, check=True, capture_output=True)

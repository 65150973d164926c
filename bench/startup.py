"""How long the command line takes to answer, against a bare interpreter with what it cannot do without."""

import json
import subprocess
import sys
from pathlib import Path

from sample import NAME, edited, scratch
from table import Row
from timing import Work, interleave

_REPEAT = 15
_SUREHOLD = Path(sys.executable).with_name("surehold")


def rows() -> list[Row]:
    with scratch() as folder:
        with edited(folder, 10_000) as file:
            for number in range(30):
                file.edit(number)
            root = Path(file.workspace.roots[0])
        state = next(folder.glob("state-*"))
        log = (str(_SUREHOLD), "--root", str(root), "--state-dir", str(state), "log")
        return [
            _row("surehold --help", (str(_SUREHOLD), "--help"), goal=3.0),
            _row("surehold log", log, goal=5.0),
            _tool_row(log),
            _row("python -c 'import surehold'", (sys.executable, "-c", "import surehold"), goal=None),
        ]


def _tool_row(log: tuple[str, ...]) -> Row:
    arguments = json.dumps({"path": NAME, "endLine": 5})
    tool = (*log[:-1], "tool", "read_file", "--json", arguments)
    pair = interleave(_run(*log), _run(*tool), repeat=_REPEAT)
    return Row(name="surehold tool read_file", measured=pair.ratio, goal=2.0, note=f"of `surehold log`: {pair.note}")


def _row(name: str, command: tuple[str, ...], *, goal: float | None) -> Row:
    pair = interleave(_run(sys.executable, "-c", "import sqlite3, argparse"), _run(*command), repeat=_REPEAT)
    return Row(name=name, measured=pair.ratio, goal=goal, note=f"of `import sqlite3, argparse`: {pair.note}")


def _run(*command: str) -> Work:
    return lambda _: subprocess.run(command, check=True, capture_output=True)

"""`make compare`: run every task with every server, one after the other, and write docs/benchmarks.md."""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from compare.contestants import HOME, Contestant, find_contestants
from compare.tasks import TASKS, Place

_TASK_SECONDS = 900
_PAGE = HOME / "docs" / "benchmarks.md"
_LEFT_OUT = """\
`desktop-commander` is installed with `typedarray.prototype.slice` 1.0.5, since the registry has no 1.0.6, and cannot search here: it
needs a ripgrep that its installation downloads from elsewhere. Left out: `trueline` is in no registry that we reached."""


def main(names: list[str]) -> int:
    contestants = find_contestants()
    cells = dict[tuple[str, str], str]()
    with TemporaryDirectory(prefix="surehold-compare-") as folder:
        for task, work in TASKS.items():
            if names and not any(name in task for name in names):
                continue
            for one in contestants:
                cells[task, one.name] = _run(work, Place(Path(folder) / "place", one))
                print(f"{task} · {one.name}: {cells[task, one.name]}", flush=True)
    if not names:
        _PAGE.write_text(_page(contestants, cells), encoding="utf-8")
        print(f"{_PAGE.relative_to(HOME)} was written.")
    return 0


def _run(work: Callable[[Place], str], place: Place) -> str:
    """Return what a task found; a server that hangs fails, so that every cell is filled."""
    signal.signal(signal.SIGALRM, _raise_timeout)
    signal.alarm(_TASK_SECONDS)
    try:
        return work(place)
    except Exception as error:  # noqa: BLE001 - what a server cannot do is a result too
        return f"fails: {type(error).__name__}"
    finally:
        signal.alarm(0)


def _raise_timeout(*_: object) -> None:
    raise TimeoutError


def _page(contestants: tuple[Contestant, ...], cells: dict[tuple[str, str], str]) -> str:
    node = subprocess.run(["node", "--version"], check=False, capture_output=True, text=True).stdout.strip()
    machine = f"{platform.system()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, Python {platform.python_version()}, node {node}"
    rows = [
        "# Benchmarks: the same work with other file servers",
        "",
        "Written by `make compare`, which installs the peers from npm and PyPI with pinned versions, starts one server after the",
        f"other on this machine ({machine}), and gives each the same work through the same plain client over stdio. Times are",
        "medians; on a machine whose load is above its cores they are hints. Only Surehold syncs every edit to the",
        "disk, records it and can undo it; that is in its times. `make bench` holds our own figures against floors and goals.",
        "",
        f"| | {' | '.join(one.name for one in contestants)} |",
        f"|---{'|--:' * len(contestants)}|",
        f"| version | {' | '.join(one.version for one in contestants)} |",
        f"| calls of an edit | {' | '.join(one.edit_needs for one in contestants)} |",
    ]
    rows += [
        f"| {task} | {' | '.join(cells.get((task, one.name), 'not measured') for one in contestants)} |"
        for task in TASKS
    ]
    rows += ["", "What each row is:", ""]
    rows += [f"- {task}: {str(work.__doc__).splitlines()[0]}" for task, work in TASKS.items()]
    rows += ["", "`–`: the server has no such tool; the reference server searches names only.", "", _LEFT_OUT, ""]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How much it takes until a client has the tools: from the start of the process to the answer to tools/list."""

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from mcp_client import Refused, connected, npx, ours, peers, seconds_to_list
from sample import scratch
from table import Row
from timing import Pair

_REPEAT = 11
_FLOOR = (sys.executable, "-c", "import json, sqlite3, argparse")
"""What a server in Python with a database and options cannot do without."""


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        command = ours(root, folder / "state")
        return [_against_python(command, root), *_against_reference(command, root)]


def _against_python(command: tuple[str, ...], root: Path) -> Row:
    taken = [(_floor_cpu(), _start_cpu(command, root)) for _ in range(_REPEAT + 1)][1:]
    floor, start = median(one for one, _ in taken), median(other for _, other in taken)
    note = f"of `{' '.join(_FLOOR[1:])}`, processor time: {floor * 1e3:.0f} → {start * 1e3:.0f} ms, median of {_REPEAT}"
    return Row(name="cold start to tools/list", measured=start / floor, goal=6.0, note=note)


def _floor_cpu() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(_FLOOR, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start_cpu(command: tuple[str, ...], root: Path) -> float:
    with connected(command, cwd=root) as client:
        assert client.request("tools/list")["tools"]
        return client.processor_seconds()


def _against_reference(command: tuple[str, ...], root: Path) -> list[Row]:
    names = ("  against the reference server under node", "  against the reference server by npx -y")
    if isinstance(found := peers(), str):
        return [Row(name=name, measured=float("nan"), note=f"not measured: {found}") for name in names]
    return [
        _row(names[0], found[0].command(root), command, root, goal=0.6),
        _row(names[1], npx(root), command, root, goal=1.0),
    ]


def _row(name: str, reference: tuple[str, ...], command: tuple[str, ...], root: Path, *, goal: float) -> Row:
    taken = Pair(baseline=[], subject=[])
    try:
        for _ in range(_REPEAT + 1):
            taken.baseline.append(seconds_to_list(reference, root))
            taken.subject.append(seconds_to_list(command, root))
    except Refused as error:
        return Row(name=name, measured=float("nan"), note=f"not measured: {error}")
    pair = Pair(baseline=taken.baseline[1:], subject=taken.subject[1:])
    return Row(name=name, measured=pair.ratio, goal=goal, note=pair.note)

"""What others cost: an edit and a read beside a thousand open intents, and a read beside sixteen writers."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

from sample import NAME, Edited, edited, scratch, source
from table import Row
from timing import Work, interleave, seconds

from surehold import open_workspace
from surehold.app import Settings
from surehold.stores.base import Call, Change, Intent
from surehold.stores.owner import current_owner
from surehold.text.snapshot import Version, sha256_hex

_INTENTS, _WRITERS, _READS = 1_000, 16, 1_500
_WRITER = """
import sys
from pathlib import Path
from surehold import open_workspace
from surehold.app import Settings

root, state, folder, source = sys.argv[1:]
with open_workspace(root, settings=Settings(state_dir=Path(state))) as workspace:
    session, number = workspace.session(agent="writer"), 0
    Path(root, folder).mkdir()
    Path(root, folder, "a.py").write_text(f"{Path(source).read_text()}# 0.")
    while True:
        session.edit(f"{folder}/a.py", (f"# {number}.", f"# {number + 1}."))
        number += 1
        if number == 1:
            print("ready", flush=True)
"""


def rows() -> list[Row]:
    with scratch() as folder:
        return [*_beside_intents(folder), *_beside_writers(folder)]


def _beside_intents(folder: Path) -> list[Row]:
    with edited(folder, 10_000, durability="none") as alone, edited(folder, 10_001, durability="none") as crowded:
        _open_intents(crowded)
        edits = interleave(alone.edit, crowded.edit, repeat=200)
        reads = interleave(_reader(alone), _reader(crowded), repeat=400)
    how = f"{_INTENTS:,} open intents of other paths, no fsync"
    return [
        Row(
            name=f"edit beside {_INTENTS:,} open intents", measured=edits.ratio, goal=1.15, note=f"{how}: {edits.note}"
        ),
        Row(name="  read", measured=reads.ratio, goal=1.15, note=reads.note),
    ]


def _open_intents(file: Edited) -> None:
    call = Call(tool="apply_patch", operation="patch", writer="apply_patch")
    for number in range(_INTENTS):
        text = f"new {number}\n" * 50
        after = Version(sha256=sha256_hex(text.encode()), size=len(text))
        change = Change(path=f"others/{number}", before=None, after=after, diff=f"+{text}")
        intent = Intent(id=f"other-{number}", call=call, changes=(change,), owner=current_owner(), began="2026")
        file.workspace.store.begin(intent, [], lease=3600, fence=0)


def _reader(file: Edited) -> Work:
    return lambda _: file.session.read(NAME)


def _beside_writers(folder: Path) -> list[Row]:
    root, state, text = folder / "crowd", folder / "crowd-state", folder / "writers.py"
    root.mkdir()
    (root / NAME).write_text(source(10_000), encoding="utf-8")
    text.write_text(source(10_000), encoding="utf-8")
    with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
        session = workspace.session(agent="reader")
        alone, loop = _reads_and_loops(lambda _: session.read(NAME), 1)
        turns = max(int(median(alone) / median(loop)), 1)
        _, loop = _reads_and_loops(lambda _: session.read(NAME), turns)
        with _writers(root, state, text):
            began = time.perf_counter()
            beside, loop_beside = _reads_and_loops(lambda _: session.read(NAME), turns)
            rate = _READS / (time.perf_counter() - began)
    late = [_late(taken) * 1e3 for taken in (alone, beside, loop, loop_beside)]
    return [
        Row(
            name=f"read beside {_WRITERS} writers, of a read alone",
            measured=late[1] / late[0],
            goal=3.0,
            note=f"99th of 100: {late[0]:.2f} → {late[1]:.2f} ms; {rate:,.0f} reads/s, durable writers in other directories",
        ),
        Row(
            name="  a loop that computes as long and waits for nothing",
            measured=late[3] / late[2],
            note=f"{late[2]:.2f} → {late[3]:.2f} ms: what {_WRITERS} processes on {os.cpu_count()} cores cost anyone",
        ),
        Row(name="  the read, of the loop, both beside them", measured=late[1] / late[3]),
    ]


def _reads_and_loops(read: Work, turns: int) -> tuple[list[float], list[float]]:
    """Read and compute in turns, so that both meet the same neighbours."""
    reads, loops = list[float](), list[float]()
    for number in range(_READS):
        reads.append(seconds(read, number))
        loops.append(seconds(lambda _: [sum(range(100)) for _ in range(turns)], number))
    return reads, loops


def _late(taken: list[float]) -> float:
    return quantiles(taken, n=100)[-1]


@contextmanager
def _writers(root: Path, state: Path, text: Path) -> Generator[None]:
    with ExitStack() as stack:
        running = list[subprocess.Popen[bytes]]()
        for number in range(_WRITERS):
            command = [sys.executable, "-c", _WRITER, str(root), str(state), f"w{number}", str(text)]
            running.append(stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)))
            stack.callback(running[-1].kill)
        for process in running:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
        yield

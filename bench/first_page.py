"""The first page of a file that should not be held in memory, in a process of its own.

Run as a script with a path it is that process: it reports seconds and how much its memory grew.
"""

import hashlib
import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from sample import scratch
from table import Row
from timing import seconds

from surehold import Settings, open_workspace

_MEGABYTES = 900
_REPEAT = 3
_PIECE = 1 << 20


def rows() -> list[Row]:
    with scratch() as folder:
        path = folder / "large.txt"
        line = b"one of very many lines of a large file\n"
        block = line * (1_000_000 // len(line))
        with path.open("wb") as file:
            for _ in range(_MEGABYTES * 1_000_000 // len(block)):
                file.write(block)
        runs = [(_child("hash", path), _child("page", path)) for _ in range(_REPEAT)]
    times = [median([run[side]["seconds"] for run in runs]) for side in (0, 1)]
    growth = max(run[1]["grown_mb"] for run in runs)
    note = f"of sha256 in pieces: {times[0] * 1e3:.0f} → {times[1] * 1e3:.0f} ms, median of {_REPEAT}"
    return [
        Row(
            name=f"first page of {_MEGABYTES} MB, with sha256 and line count",
            measured=times[1] / times[0],
            goal=2.5,
            note=note,
        ),
        Row(
            name="  memory it takes (peak RSS growth)", measured=growth, unit="MB", goal=30, note="largest of all runs"
        ),
    ]


def _child(what: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, what, str(path)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _report(what: str, path: Path) -> dict[str, float]:
    with scratch() as state, open_workspace(path.parent, settings=Settings(state_dir=state / "state")) as workspace:
        (path.parent / "small.txt").write_text("one line\n", encoding="utf-8")
        workspace.page("small.txt")  # whatever is loaded late is loaded now

        def page(_: int) -> None:
            assert len(workspace.page(path.name, count=100).rows) == 100

        def hash_only(_: int) -> None:
            digest = hashlib.sha256()
            with path.open("rb", buffering=0) as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)

        before = _peak_kb()
        taken = seconds(page if what == "page" else hash_only, 0)
        grown = _peak_kb() - before
    return {"seconds": taken, "grown_mb": grown / 1024}


def _peak_kb() -> int:
    """The peak of this program alone: ru_maxrss, on Linux, begins with that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(_report(sys.argv[1], Path(sys.argv[2]))))

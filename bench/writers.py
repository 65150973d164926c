"""Many writers on one workspace, on a disk whose every sync takes 10 ms."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sample import source
from table import Row

from surehold import Settings, open_workspace

_WRITERS, _SECONDS = 16, 4.0
_SLOW_SYNC = """
#include <unistd.h>
int fsync(int fd) { (void)fd; return usleep(10000); }
int fdatasync(int fd) { (void)fd; return usleep(10000); }
"""


def rows() -> list[Row]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("writers: no C compiler for the slow disk, left out", file=sys.stderr)
        return []
    with _in_memory() as folder:
        (folder / "slow.c").write_text(_SLOW_SYNC)
        library = folder / "slow.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, folder / "slow.c"], check=True)
        one, _ = _measure(folder / "one", library, 1, shared=False)
        own, _ = _measure(folder / "own", library, _WRITERS, shared=False)
        together, counts = _measure(folder / "together", library, _WRITERS, shared=True)
    return [
        Row(
            name=f"an edit of one of {_WRITERS} writers, own directories, over one alone",
            measured=one / own,
            goal=0.25,
            note=f"a sync takes 10 ms: {one:.0f} → {own:.0f} edits per second",
        ),
        Row(
            name=f"fastest over slowest of {_WRITERS} writers in one directory",
            measured=max(counts) / max(min(counts), 1),
            goal=2.0,
            note=f"the same disk: {together:.0f} edits per second",
        ),
    ]


@contextmanager
def _in_memory() -> Iterator[Path]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="surehold-bench-", dir=memory) as folder:
        yield Path(folder)


def _measure(folder: Path, library: Path, writers: int, *, shared: bool) -> tuple[float, list[int]]:
    """Let so many processes edit files of their own; return all edits per second, and how many each one made."""
    folder.mkdir()
    environment = os.environ | {"LD_PRELOAD": str(library)}
    command = [sys.executable, __file__, str(folder), str(writers), "shared" if shared else "own"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counts: list[int] = json.loads(done.stdout)
    return sum(counts) / _SECONDS, counts


def _write(folder: Path, path: str, ready: int, gate: int) -> int:
    with open_workspace(folder / "root", settings=Settings(state_dir=folder / "state")) as workspace:
        session = workspace.session(agent=path)
        line = (folder / "root" / path).read_text().splitlines()[80].strip()
        session.edit(path, (f"{line}\n", f"{line} 0\n"))
        os.write(ready, b"r")
        os.read(gate, 1)
        end, count = time.monotonic() + _SECONDS, 0
        while time.monotonic() < end:
            session.edit(path, (f"{line} {count}\n", f"{line} {count + 1}\n"))
            count += 1
    return count


def _main(place: str, writers: str, how: str) -> None:
    """Fork the writers, let them begin together, and print what each one did."""
    folder, number = Path(place), int(writers)
    paths = [f"{'' if how == 'shared' else f'd{one}/'}file{one}.py" for one in range(number)]
    for path in paths:
        file = folder / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source(10_000))
    (ready, tell), (gate, opener), (results, answer) = os.pipe(), os.pipe(), os.pipe()
    children = list[int]()
    for path in paths:
        child = os.fork()
        if child == 0:
            os.close(opener)
            try:
                os.write(answer, f"{_write(folder, path, tell, gate)}\n".encode())
            finally:
                os._exit(0)
        children.append(child)
    for _ in paths:
        os.read(ready, 1)
    os.close(opener)
    for child in children:
        os.waitpid(child, 0)
    print([int(line) for line in os.read(results, 1 << 16).split()])


if __name__ == "__main__":
    _main(*sys.argv[1:])

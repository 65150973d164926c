"""Reading a file that should not be held in memory, page by page, through the server."""

import time
from pathlib import Path
from statistics import median

from mcp_client import connected, ours
from sample import scratch
from table import Row

_MEGABYTES = 200
_FIRST, _PLACES = 10, 20
"""Pages one after the other from the start, and places all over the file."""


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        lines = _fill(root / "large.txt")
        taken = list[float]()
        with connected(ours(root, folder / "state")) as server:
            start = 1
            for number in range(_FIRST + _PLACES):
                begin = time.perf_counter()
                result = server.call("read_file", {"path": "large.txt", "startLine": start})
                taken.append(time.perf_counter() - begin)
                data = result["_meta"]["surehold/result"]["data"]
                assert data["startLine"] == start
                start = data["nextLine"] if number < _FIRST else 1 + lines * (number - _FIRST) // _PLACES
            peak = server.memory("VmHWM")
    note = f"peak RSS over {_FIRST + _PLACES} pages; {median(taken) * 1e3:.0f} ms a page"
    return [Row(name=f"memory while reading {_MEGABYTES} MB by pages", measured=peak, unit="MB", goal=150, note=note)]


def _fill(path: Path) -> int:
    line = b"one of very many lines of a large file\n"
    block = line * (1_000_000 // len(line))
    with path.open("wb") as file:
        for _ in range(_MEGABYTES):
            file.write(block)
    return _MEGABYTES * (len(block) // len(line))

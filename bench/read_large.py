"""The first 1,000 lines of a file of 1 GiB through the server, against `head` and against the memory of an idle server."""

import subprocess
import time
from pathlib import Path

from mcp_client import McpClient, connected, ours
from sample import scratch
from table import Row
from timing import interleave, seconds

_MEBIBYTES = 1024
_PAGED_MEBIBYTES = 500
_SETTLED_SECONDS = 2.5
_LINES = 1_000
_REPEAT = 15
_LINE = b"one of many\n"


def rows(mebibytes: int = _MEBIBYTES) -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        path = root / "large.txt"
        _fill(path, mebibytes)
        (root / "small.txt").write_text("one line\n", encoding="utf-8")
        with connected((*ours(root, folder / "state"), "--tools", "claude")) as server:
            _read(server, root / "small.txt")  # whatever is loaded late is loaded now
            idle = server.memory("VmRSS")
            taken = interleave(lambda _: _head(path), lambda _: _read(server, path), repeat=_REPEAT)
            _read(server, path, offset=mebibytes << 19 >> 5)
            peak = server.memory("VmHWM")
        pages = _measure_pages(root, folder / "state", path)
    name = f"first {_LINES:,} lines of {mebibytes:,} MiB"
    return [
        Row(name=name, measured=taken.ratio, goal=3, note=f"of `head -{_LINES}`: {taken.note}"),
        Row(
            name="  memory it takes, also far inside",
            measured=peak - idle,
            unit="MB",
            goal=60,
            note=f"peak RSS over the {idle:.0f} MB of an idle server",
        ),
        pages,
    ]


def _measure_pages(root: Path, state: Path, path: Path) -> Row:
    """Take a page of a file that is known already, far inside."""
    with path.open("r+b") as file:
        file.truncate(_PAGED_MEBIBYTES << 20)
    time.sleep(_SETTLED_SECONDS)  # what was changed a moment ago is read in full
    with connected(ours(root, state)) as server:

        def read_page(number: int) -> None:
            server.call("read_file", {"path": path.name, "startLine": 1_000_000 + 1_000 * number})

        first = seconds(read_page, 0)
        later = sorted(seconds(read_page, number) for number in range(1, 2 * _REPEAT))
    note = f"the first page, which hashes the file, took {first * 1e3:.0f} ms"
    name = f"page of {_PAGED_MEBIBYTES} MiB by `read_file`, after the first"
    return Row(name=name, measured=later[_REPEAT] * 1e3, unit="ms", goal=20, note=note)


def _read(server: McpClient, path: Path, *, offset: int = 1) -> None:
    data = server.call("Read", {"file_path": str(path), "offset": offset, "limit": _LINES})["_meta"]["surehold/result"]
    assert data["startLine"] == offset
    assert path.name == "small.txt" or offset > 1 or data["numLines"] == _LINES


def _head(path: Path) -> None:
    done = subprocess.run(["head", f"-{_LINES}", str(path)], check=True, capture_output=True)
    assert done.stdout.count(b"\n") == _LINES


def _fill(path: Path, mebibytes: int) -> None:
    block = _LINE * ((1 << 20) // len(_LINE))
    block += b"-" * ((1 << 20) - len(block) - 1) + b"\n"
    with path.open("wb") as file:
        for _ in range(mebibytes):
            file.write(block)

"""How long until a client has the tools: from the start of the process to the answer to tools/list."""

from pathlib import Path

from mcp_client import EMPTY, Refused, connected, npx, ours, peers
from sample import scratch
from table import Row
from timing import Work, interleave

_REPEAT = 9
_REPEAT_NPX = 5


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        started = _start(ours(root, folder / "state"), root)
        pair = interleave(_start(EMPTY, root), started, repeat=_REPEAT)
        name = "cold start to tools/list"
        note = f"of an empty server on the same SDK: {pair.note}"
        return [Row(name=name, measured=pair.ratio, goal=1.3, note=note), _against_npx(root, started)]


def _against_npx(root: Path, started: Work) -> Row:
    name = "  against the reference server by npx -y"
    if isinstance(missing := peers(), str):
        return Row(name=name, measured=float("nan"), note=f"not measured: {missing}")
    try:
        pair = interleave(_start(npx(root), root), started, repeat=_REPEAT_NPX)
    except Refused as error:
        return Row(name=name, measured=float("nan"), note=f"not measured: {error}")
    return Row(name=name, measured=pair.ratio, goal=1.0, note=pair.note)


def _start(command: tuple[str, ...], cwd: Path) -> Work:
    def work(_: int) -> None:
        with connected(command, cwd=cwd) as client:
            assert client.request("tools/list")["tools"]

    return work

"""A durable edit of one line through the server, against file servers of others, which sync nothing."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import median

from mcp_client import McpClient, Peer, connected, ours, peers
from sample import NAME, scratch, source
from table import Row

_SIZES = {"10 KB": (10_000, 60, 2.0), "1 MB": (1_000_000, 27, 1.0), "20 MB": (20_000_000, 9, 0.6)}
"""Name of a size: its bytes, repetitions, and the goal against the best peer."""

Edit = Callable[[str, str], None]


def rows() -> list[Row]:
    found = list[Row]()
    for name, (size, repeat, goal) in _SIZES.items():
        with scratch() as folder, ExitStack() as stack:
            found.append(_row(name, _sides(folder, size, stack), repeat, goal, source(size)))
    return found


def _sides(folder: Path, size: int, stack: ExitStack) -> dict[str, Edit]:
    """Start every server on a copy of the file; return how each edits it."""
    text = source(size)
    root = _copy(folder / "ours", text)
    server = stack.enter_context(connected(ours(root, folder / "state")))
    sides = {"ours": _our_edit(server, sha256(text.encode()).hexdigest())}
    others = peers()
    for peer in () if isinstance(others, str) else others:
        root = _copy(folder / peer.name.replace(" ", "-"), text)
        sides[peer.name] = _peer_edit(stack.enter_context(connected(peer.command(root), cwd=root)), peer, root / NAME)
    return sides


def _copy(root: Path, text: str) -> Path:
    root.mkdir()
    (root / NAME).write_text(text, encoding="utf-8")
    return root


def _our_edit(server: McpClient, known: str) -> Edit:
    def edit(old: str, new: str) -> None:
        nonlocal known
        edits = [{"oldText": old, "newText": new}]
        result = server.call("edit_file", {"path": NAME, "expectedSha256": known, "edits": edits})
        known = result["structuredContent"]["data"]["afterSha256"]

    return edit


def _peer_edit(client: McpClient, peer: Peer, path: Path) -> Edit:
    def edit(old: str, new: str) -> None:
        client.call(peer.edit_tool, peer.edit(path, old, new))

    return edit


def _row(name: str, sides: dict[str, Edit], repeat: int, goal: float | None, text: str) -> Row:
    lines = text.splitlines()
    line = lines[len(lines) // 2].strip()
    taken = {side: list[float]() for side in sides}
    texts = [line, *(f"{line} {number:04d}" for number in range(repeat + 2))]
    for old, new in pairwise(texts):
        for side, edit in sides.items():
            start = time.perf_counter()
            edit(old, new)
            taken[side].append(time.perf_counter() - start)
    medians = {side: median(times[2:]) for side, times in taken.items()}
    return _compared(f"durable edit_file, {name}", medians, goal)


def _compared(name: str, medians: dict[str, float], goal: float | None) -> Row:
    mine = medians.pop("ours")
    if not medians:
        return Row(name=name, measured=mine * 1e3, unit="ms", note=f"no peer: {peers()}")
    figures = ", ".join(f"{side} {taken * 1e3:.1f} ms" for side, taken in medians.items())
    note = f"of the best peer, which does not sync: ours {mine * 1e3:.1f} ms, {figures}"
    return Row(name=name, measured=mine / min(medians.values()), goal=goal, note=note)

"""Many edits in one call of multi_edit_text_file through the server: a hundred in milliseconds, others against one."""

import time
from pathlib import Path
from statistics import median

from mcp_client import McpClient, connected, ours
from sample import scratch, source
from table import Row
from timing import interleave

_SIZE = 5_000_000
_REPEAT = 5
_HUNDREDS = 20

Edits = list[tuple[str, str]]


def rows() -> list[Row]:
    return [_hundred(), _thousand(), _chained()]


def _hundred() -> Row:
    """The contract's own case: a file with a hundred unique strings, every one of them edited."""
    taken = list[float]()
    with scratch() as folder:
        path = _file(folder / "root", "hundred.txt", "".join(f"unique {number:03d}: 000\n" for number in range(100)))
        with connected(_command(folder)) as server:
            for turn in range(_HUNDREDS + 1):
                edits = [(f"{number:03d}: {turn:03d}", f"{number:03d}: {turn + 1:03d}") for number in range(100)]
                start = time.perf_counter()
                _edit(server, path, edits)
                taken.append(time.perf_counter() - start)
    return Row(
        name="multi_edit_text_file, 100 edits",
        measured=median(taken[1:]) * 1e3,
        unit="ms",
        goal=50,
        note=f"durable, over MCP, median of {_HUNDREDS}; the contract allows 500 ms",
    )


def _thousand() -> Row:
    """The same text twice: in one file one line is edited again and again, in the other a thousand lines are."""
    text = source(_SIZE)
    lines = [line.strip() for line in text.splitlines()]
    chosen = [lines[number * 89_989 % len(lines)] for number in range(1000)]  # here and there, in no order
    with scratch() as folder:
        one, other = (_file(folder / "root", name, text) for name in ("one.py", "thousand.py"))
        with connected(_command(folder)) as server:
            pair = interleave(
                lambda turn: _edit(server, one, [_again(chosen[0], turn)]),
                lambda turn: _edit(server, other, [_again(line, turn) for line in chosen]),
                repeat=_REPEAT,
            )
    return Row(
        name="multi_edit_text_file, 1,000 edits of 5 MB",
        measured=pair.ratio,
        goal=10,
        note=f"of one edit of it, durable, over MCP: {pair.note}",
    )


def _chained() -> Row:
    """The same text twice: in one file one line is edited once, in the other a hundred times over in one call."""
    text = source(_SIZE)
    lines = [line.strip() for line in text.splitlines()]
    line = lines[len(lines) // 2]
    with scratch() as folder:
        one, other = (_file(folder / "root", name, text) for name in ("one.py", "chained.py"))
        with connected(_command(folder)) as server:
            pair = interleave(
                lambda turn: _edit(server, one, [_again(line, turn)]),
                lambda turn: _edit(server, other, [_again(line, turn * 100 + step) for step in range(100)]),
                repeat=_REPEAT,
            )
    return Row(
        name="multi_edit_text_file, 100 chained edits of 5 MB",
        measured=pair.ratio,
        goal=4,
        note=f"each edits what the one before wrote; of one edit of it, durable, over MCP: {pair.note}",
    )


def _again(line: str, turn: int) -> tuple[str, str]:
    """Return the edit of a line that was edited in every turn before."""
    begin = line.removesuffix("step")
    return f"{begin}{turn:03d}" if turn else line, f"{begin}{turn + 1:03d}"


def _edit(server: McpClient, path: Path, edits: Edits) -> None:
    rows = [{"old_string": old, "new_string": new} for old, new in edits]
    result = server.call("multi_edit_text_file", {"path": str(path), "edits": rows})
    assert result["structuredContent"]["applied_count"] == len(edits)


def _command(folder: Path) -> tuple[str, ...]:
    return (*ours(folder / "root", folder / "state"), "--tools", "multi_edit")


def _file(root: Path, name: str, text: str) -> Path:
    root.mkdir(exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return root / name

"""Finding things through the server: a rare literal in a large tree, and a large directory."""

import os
import subprocess
import sys
from pathlib import Path

from mcp_client import Json, McpClient, connected, ours
from sample import scratch
from table import Row
from timing import interleave

from surehold import Settings, open_workspace
from surehold.workspace.finder import Finder

_FILES, _PER_FOLDER = 30_000, 100
_ENTRIES = 5_000
_RARE = "an_identifier_that_is_rare"
_REPEAT = 15
_RG = Path(sys.executable).with_name("rg")


def rows() -> list[Row]:
    with scratch() as folder:
        tree, flat = folder / "root" / "tree", folder / "root" / "flat"
        _plant(tree)
        flat.mkdir()
        for number in range(_ENTRIES):
            (flat / f"entry_{number:05d}.txt").write_bytes(b"")
        with connected(ours(folder / "root", folder / "state")) as server:
            found = [_search(server, tree), *_list(server, flat)]
        settings = Settings(state_dir=folder / "state")
        with open_workspace(folder / "root", settings=settings) as workspace:
            return [*found, _list_here(workspace.finder, flat)]


def _plant(tree: Path) -> None:
    """Make the tree; three files hold the literal."""
    for first in range(0, _FILES, _PER_FOLDER):
        folder = tree / f"package_{first // 3_000:02d}" / f"module_{first:05d}"
        folder.mkdir(parents=True)
        for number in range(first, first + _PER_FOLDER):
            rare = f"{_RARE} = {number}\n" if number % 10_000 == 7_000 else ""
            lines = "".join(f"value_{number}_{line} = compute({line})\n" for line in range(20))
            (folder / f"file_{number:05d}.py").write_text(lines + rare, encoding="utf-8")


def _search(server: McpClient, tree: Path) -> Row:
    def bare(_: int) -> None:
        done = subprocess.run(
            [str(_RG), "--fixed-strings", "--line-number", "--column", "--no-config", _RARE, str(tree)],
            check=True,
            capture_output=True,
        )
        assert done.stdout.count(_RARE.encode()) == 3

    def through(_: int) -> None:
        arguments: Json = {"query": _RARE, "mode": "text", "root": "tree"}
        found = server.call("search_files", arguments)["_meta"]["surehold/result"]["data"]
        assert len(found["matches"]) == 3

    pair = interleave(bare, through, repeat=_REPEAT)
    name = f"search {_FILES:,} files for a rare literal"
    return Row(name=name, measured=pair.ratio, goal=1.3, note=f"of bare rg: {pair.note}")


def _bare(flat: Path) -> None:
    with os.scandir(flat) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    assert len(found) == _ENTRIES


def _list_here(finder: Finder, flat: Path) -> Row:
    def listed(_: int) -> None:
        assert len(finder.list("flat", limit=_ENTRIES).entries) == _ENTRIES

    pair = interleave(lambda _: _bare(flat), listed, repeat=_REPEAT)
    note = f"of scandir + stat, sorted and in path order: {pair.note}"
    return Row(name=f"list {_ENTRIES:,} entries", measured=pair.ratio, goal=1.3, note=note)


def _list(server: McpClient, flat: Path) -> list[Row]:
    pages = 0

    def through(_: int) -> None:
        nonlocal pages
        count, pages, cursor = 0, 0, None
        while True:
            arguments: Json = {"path": "flat", **({"cursor": cursor} if cursor else {})}
            data = server.call("list_directory", arguments)["_meta"]["surehold/result"]["data"]
            count, pages, cursor = count + len(data["entries"]), pages + 1, data.get("nextCursor")
            if not cursor:
                break
        assert count == _ENTRIES

    pair = interleave(lambda _: _bare(flat), through, repeat=_REPEAT)
    note = f"of scandir + stat, in {pages} round trips with text and data: {pair.note}"
    return [Row(name=f"list {_ENTRIES:,} entries, as an agent does", measured=pair.ratio, note=note)]

"""Glob and Grep on a large tree, beside ripgrep with the same flags."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sample import scratch
from table import Row
from timing import interleave

from surehold import Settings, open_workspace
from surehold.dialects.claude.glob import ClaudeGlobParams, glob
from surehold.dialects.claude.grep import ClaudeGrepParams, OutputMode, grep
from surehold.tools.call import CallContext

_FILES = int(os.environ.get("SEARCH_BENCH_FILES", "40000"))
_PER_FOLDER = 100
_LINES = 40
_REPEAT = 11
_PATTERN = r"TODO \w+"
"""Occurs in every tenth file."""
_RG = Path(sys.executable).with_name("rg")
_FLAGS = ("--no-config", "--color=never", "--hidden", "--crlf")
_MODES: dict[OutputMode, tuple[str, ...]] = {
    "files_with_matches": ("--files-with-matches",),
    "count": ("--count-matches",),
    "content": ("--line-number",),
}


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        _plant(root)
        with open_workspace(root, settings=Settings(state_dir=folder / "state")) as workspace:
            context = CallContext(session=workspace.session(agent="bench"))
            return [*(_grep(context, root, mode) for mode in _MODES), _glob(context, root)]


def _plant(root: Path) -> None:
    for first in range(0, _FILES, _PER_FOLDER):
        folder = root / f"package_{first // 2_000:02d}" / f"module_{first:05d}"
        folder.mkdir(parents=True)
        for number in range(first, first + _PER_FOLDER):
            lines = [f"value_{number}_{line} = compute({line}, mode='plain')  # fine" for line in range(_LINES)]
            if number % 10 == 0:
                lines[number % _LINES] += " TODO later"
            suffix = ("py", "py", "ts", "md")[number % 4]
            (folder / f"file_{number:05d}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _bare(root: Path, *words: str) -> Callable[[int], bytes]:
    return lambda _: subprocess.run([str(_RG), *_FLAGS, *words], check=True, capture_output=True, cwd=root).stdout


def _grep(context: CallContext, root: Path, mode: OutputMode) -> Row:
    params = ClaudeGrepParams(pattern=_PATTERN, output_mode=mode)

    def ours(_: int) -> None:
        assert grep(context, params).total_files == _FILES // 10

    pair = interleave(_bare(root, *_MODES[mode], _PATTERN, "./"), ours, repeat=_REPEAT)
    name = f"Grep {_FILES:,} files, {mode}"
    return Row(name=name, measured=pair.ratio, goal=1.3, note=f"of bare rg: {pair.note}")


def _glob(context: CallContext, root: Path) -> Row:
    listed = _bare(root, "--files", "--glob=**/*.py")

    def bare(number: int) -> None:
        names = listed(number).decode().split("\n")[:-1]
        found = sorted((-os.stat(f"{root}/{name}").st_mtime_ns, name) for name in names)  # noqa: PTH116 - strings are quicker
        assert len(found) == _FILES // 2

    def ours(_: int) -> None:
        assert glob(context, ClaudeGlobParams(pattern="**/*.py")).total_matches == _FILES // 2

    pair = interleave(bare, ours, repeat=_REPEAT)
    note = f"of rg --files + stat + sort: {pair.note}"
    return Row(name=f"Glob **/*.py in {_FILES:,} files", measured=pair.ratio, goal=1.0, note=note)

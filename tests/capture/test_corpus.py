"""After `undo` everything is what it was before the command, and after `redo` what it was after it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capture.scripts import CORE, LOCKED, all_scripts
from spec.marks import requirement
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_HERE = Path(__file__).parent
_FOUND_SEEDS = (15, 16, 27, 41, 52, 58, 178, 251, 276, 6013)
"""Programs that were not undone exactly once, or taken for incomplete."""
_SOAK = bool(os.environ.get("SUREHOLD_SOAK"))


def run_scripts(base: Path, names: list[str], *, unprivileged: bool) -> list[dict[str, Any]]:
    """Run scripts one after the other, all in one process, and return what became of each."""
    command = [sys.executable, "-m", "capture.driver", str(base), json.dumps(names)]
    if unprivileged and os.geteuid() == 0:  # another user may be unable to reach the interpreter or the tests
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_HERE.parent)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@requirement("run:undo:exact")
@requirement("run:redo:exact")
@requirement("run:report:complete")
@pytest.mark.parametrize("unprivileged", [False, True], ids=["as this user", "unprivileged"])
def test_a_command_is_taken_back_and_made_again_exactly(
    tmp_path: Path, unprivileged: bool, count: Callable[[str, int], None]
) -> None:
    names = list(all_scripts())
    if not _SOAK:  # each of them once, as one user or as the other
        names = [*list(CORE)[unprivileged::2], *(LOCKED if unprivileged else ())]

    results = run_scripts(tmp_path, names, unprivileged=unprivileged)

    assert [one["name"] for one in results] == names
    assert {one["name"]: one["wrong"] for one in results if one["wrong"]} == {}
    assert {one["name"]: one["report"]["not_kept"] for one in results if not one["report"]["complete"]} == {}
    count("commands", len(results))


@requirement("run:undo:exact")
@requirement("run:redo:exact")
@requirement("run:report:complete")
@pytest.mark.parametrize("unprivileged", [False, True], ids=["as this user", "unprivileged"])
def test_a_random_program_is_taken_back_and_made_again_exactly(
    tmp_path: Path, unprivileged: bool, count: Callable[[str, int], None]
) -> None:
    every = (*range(250), *range(1000, 1250)) if _SOAK else (*_FOUND_SEEDS, *range(1000, 1004))
    seeds = [str(seed) for seed in (every if _SOAK else every[unprivileged::2])]

    results = run_scripts(tmp_path, seeds, unprivileged=unprivileged)

    assert [one["name"] for one in results] == seeds
    complete = [one for one in results if one["report"]["complete"]]
    assert {one["name"]: one["wrong"] for one in complete if one["wrong"]} == {}
    assert len(complete) * 2 > len(results)
    if not unprivileged and os.geteuid() == 0:  # who may look everywhere misses nothing
        assert len(complete) == len(results)
    count("programs", len(complete))

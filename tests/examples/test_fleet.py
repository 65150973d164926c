"""`make fleet`, much shorter: a database, objects and replicas that are killed while agents work."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spec.marks import requirement
from waiting import HANG_SECONDS

PROJECT = Path(__file__).parents[2]


def start(temporary: Path, *words: str) -> "subprocess.Popen[str]":
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST"))}
    return subprocess.Popen(
        (sys.executable, PROJECT / "scripts" / "fleet.py", *words, "--agents", "2"),
        env={**kept, "PYTHONPATH": str(PROJECT / "tests"), "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_in(temporary: Path) -> list[str]:
    return [one.name for one in temporary.iterdir() if not one.name.startswith("surehold-locks-")]  # of the user


@requirement("fleet:deploy:here")
@pytest.mark.parametrize("interrupted", [False, True], ids=["whole", "interrupted"])
def test_the_fleet_survives_its_kills_and_leaves_nothing_behind(tmp_path: Path, *, interrupted: bool) -> None:
    words = ("600", "--replicas", "1") if interrupted else ("3", "--replicas", "2", "--kill-every", "2")
    with start(tmp_path / "tmp", *words) as fleet:
        assert fleet.stdout is not None
        first = fleet.stdout.readline()
        if interrupted:
            fleet.send_signal(signal.SIGINT)
        rest, _ = fleet.communicate(timeout=5 * HANG_SECONDS)

    assert first == f"PostgreSQL, an object store, {words[2]} replicas and 2 agents run on loopback.\n", rest
    assert left_in(tmp_path / "tmp") == []
    if interrupted:
        assert (fleet.returncode, rest) == (130, "Interrupted: everything was ended.\n")
        return
    rows = dict(line.strip().rsplit(maxsplit=1) for line in rest.splitlines())
    assert (fleet.returncode, rows["violations"], rows["database restarted"]) == (0, "0", "1"), rest
    assert int(rows["edits acknowledged"]) > 0
    assert rows["replicas killed"] == "1"

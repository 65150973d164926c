"""The job for CI that the examples have: an agent works under capture, and leaves a bundle that verifies."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from spec.marks import requirement
from surehold.capture.filter import can_listen

FOLDER = Path(__file__).parents[2] / "examples" / "ci"


def work_in_job(place: Path, script: str) -> subprocess.CompletedProcess[str]:
    (place / "work").mkdir()
    (place / "work/a.txt").write_text("one\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(FOLDER / "agent_job.sh"), "sh", "-c", script],
        cwd=place / "work",
        env={"PATH": path, "HOME": str(place), "XDG_STATE_HOME": str(place / "state")},
        capture_output=True,
        text=True,
        check=False,
    )


@requirement("front:docs:snippets")
@pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
def test_the_job_keeps_what_an_agent_did_and_returns_its_exit_code(tmp_path: Path) -> None:
    done = work_in_job(tmp_path, "echo two > a.txt; exit 3")

    assert (done.returncode, done.stderr) == (3, "")
    assert "Intact: " in done.stdout
    assert "-one\n+two\n" in done.stdout
    assert (tmp_path / "work/agent.bundle").stat().st_size > 0


def test_the_workflow_runs_the_script_and_keeps_its_bundle() -> None:
    workflow = cast("dict[str, Any]", yaml.safe_load((FOLDER / "agent.yml").read_text("utf-8")))
    steps = workflow["jobs"]["work"]["steps"]

    assert workflow["permissions"] == {"contents": "read"}
    assert [one["run"] for one in steps if "agent_job.sh" in one.get("run", "")]
    assert steps[-1]["with"]["path"] == "agent.bundle"
    assert not any("${{" in one.get("run", "") for one in steps)  # what a person typed is data, never part of a script

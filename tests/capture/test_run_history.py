"""Commands in the history: what `log`, `show` and `undo` say of them."""

import json
import stat
import subprocess
import sys
from typing import Any

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen
from surehold.errors import InvalidArgument

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def surehold(desk: RunDesk, *words: str) -> str:
    return start(desk, *words).stdout


def start(desk: RunDesk, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    where = ["--root", str(desk.root), "--state-dir", str(desk.state)]
    command = [sys.executable, "-m", "surehold", words[0], *where, *words[1:]]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, check=False, text=True)
    assert done.returncode == code, done.stderr
    return done


@requirement("run:history:command")
def test_the_history_names_the_command_and_how_it_ended_and_no_folder_whose_time_alone_changed(desk: RunDesk) -> None:
    desk.run("rm sub/b.txt; exit 5")
    change = desk.read_report()["change_id"]

    rows: list[dict[str, Any]] = json.loads(surehold(desk, "log", "--json"))["entries"]
    assert {(tuple(row["argv"]), row["exit_code"]) for row in rows} == {(("bash", "-c", "rm sub/b.txt; exit 5"), 5)}
    log = surehold(desk, "log", "--stat")
    assert "bash -c 'rm sub/b.txt; exit 5'" in log
    assert "exit 5" in log
    assert [line.split()[0] for line in log.splitlines()[1:]] == ["sub/b.txt"]
    shown = surehold(desk, "show", change).splitlines()
    assert [line for line in shown if line.startswith(("Command", "Exit"))] == [
        "Command  bash -c 'rm sub/b.txt; exit 5'",
        "Exit     5",
    ]
    assert [line.split()[2] for line in shown if line.startswith("What")] == ["sub/b.txt"]
    assert [line.split()[1] for line in surehold(desk, "undo").splitlines()] == ["sub/b.txt"]


@requirement("run:history:still_running")
def test_an_undo_of_the_newest_change_says_that_its_command_still_runs(desk: RunDesk) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me").create("early.txt", "x\n")
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}")
    here.read_bytes()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        with pytest.raises(InvalidArgument, match=r"that of `bash -c rm a\.txt.*still runs"):
            workspace.history.undo()
        assert (desk.root / "early.txt").exists()
        workspace.session(agent="me").create("late.txt", "x\n")
        workspace.history.undo()  # that is the newest change now
    assert not (desk.root / "late.txt").exists()
    there.write_text("go\n")
    assert program.wait() == 0


@requirement("run:history:left_out")
@pytest.mark.parametrize(
    "words", [("undo", "--session", "work"), ("undo", "--since", "1h"), ("rewind",)], ids=["session", "since", "rewind"]
)
def test_a_command_that_still_runs_is_named_as_left_out(desk: RunDesk, words: tuple[str, ...]) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me", id="work-1").create("early.txt", "x\n")
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}", "--session", "work-1", "--agent", "me")
    here.read_bytes()

    undone = start(desk, *words, "--json")

    assert not (desk.root / "early.txt").exists()
    (running,) = json.loads(undone.stdout)["still_running"]
    assert undone.stderr.startswith(f"Left out, since it still runs: bash -c rm a.txt; echo > {here}; read x < {there}")
    assert f"(change {running})" in undone.stderr
    there.write_text("go\n")
    assert program.wait() == 0
    assert start(desk, "undo", running).stderr == ""
    assert (desk.root / "a.txt").exists()


@requirement("run:history:left_out")
def test_a_selection_of_nothing_but_a_command_that_still_runs_is_refused(desk: RunDesk) -> None:
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}", "--agent", "me")
    here.read_bytes()

    refused = start(desk, "undo", "--since", "1h", code=1)

    assert "which still runs. Next: Wait until its last process has ended, then: surehold undo " in " ".join(
        refused.stderr.split()
    )
    there.write_text("go\n")
    assert program.wait() == 0


@requirement("run:history:session")
def test_what_an_agent_runs_without_a_session_is_a_session_of_its_own(desk: RunDesk) -> None:
    desk.run("rm a.txt", "--agent", "claude")
    change = desk.read_report()["change_id"]

    (row,) = json.loads(surehold(desk, "sessions", "--json"))["sessions"]
    assert (row["agent"], row["session"], row["changes"]) == ("claude", change, 1)
    surehold(desk, "undo", "--session", "last")
    assert (desk.root / "a.txt").exists()


@requirement("run:undo:exact")
def test_a_change_of_the_root_directory_alone_is_taken_back(desk: RunDesk) -> None:
    before = desk.root.stat().st_mode
    desk.run("chmod 700 .")
    assert desk.root.stat().st_mode != before

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.undo()
        assert desk.root.stat().st_mode == before
        workspace.redo()
    assert stat.S_IMODE(desk.root.stat().st_mode) == 0o700

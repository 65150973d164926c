"""Two commands, and programs beside them, change one path at the very same moment."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen
from surehold.stores.base import LedgerQuery

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
_RENAME = "python3 -c \"import os; os.rename('new', 'a.txt')\""
"""In one call: `mv` first asks for one that replaces nothing."""
_WAIT_SECONDS = 60.0
_AHEAD_SECONDS = 1.0
"""How long a call that has to wait for another one is given to go ahead of it, which it must not."""


class TwoCommands:
    """Two commands, each of which stops right before its call happens."""

    def __init__(self, desk: RunDesk) -> None:
        self._desk, self._signs = desk, desk.root.parent / "signs"
        self._signs.mkdir()
        self._gates = desk.make_gates("begun", "begin", "renamed", "end")

    def race(self, second: str, *, patience: float = 60) -> list[dict[str, Any]]:
        """Let the first command be about to rename `new` to `a.txt` when the second changes `a.txt`; return both reports."""
        begun, begin, renamed, end = self._gates
        other = self._start("second", f"echo > mine; echo > {begun}; read x < {begin}; {second}", patience)
        begun.read_text()
        make = f"echo of the first > new; {_RENAME}; echo > {renamed}; read x < {end}; true"
        first = self._start("first", make, patience)
        self._wait_for("first-kept")
        begin.write_text("\n")
        self._wait_for("second-came")
        self._wait_for("second-kept", seconds=_AHEAD_SECONDS)
        self._give("first-go")
        renamed.read_text()
        self._give("second-go")
        assert other.wait() == 0
        end.write_text("\n")
        assert first.wait() == 0
        return [json.loads((self._signs / f"{name}.json").read_text()) for name in ("first", "second")]

    def _start(self, name: str, script: str, patience: float) -> subprocess.Popen[bytes]:
        driver = [sys.executable, str(Path(__file__).with_name("held_run.py")), str(self._signs), name, str(patience)]
        where = ["run", "--root", str(self._desk.root), "--state-dir", str(self._desk.state), "--agent", name]
        words = [*driver, *where, "--report", str(self._signs / f"{name}.json"), "--", "bash", "-c", script]
        return subprocess.Popen(words, cwd=self._desk.root, stdin=subprocess.DEVNULL)

    def _wait_for(self, sign: str, *, seconds: float = _WAIT_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not (self._signs / sign).exists() and time.monotonic() < end:
            time.sleep(0.005)
        assert seconds < _WAIT_SECONDS or (self._signs / sign).exists(), sign

    def _give(self, sign: str) -> None:
        (self._signs / sign).touch()


def read_versions(desk: RunDesk) -> set[bytes]:
    """Return what the history has of `a.txt`."""
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        entries = workspace.history.log(LedgerQuery(ok_only=True, limit=100))
        found = [
            one for entry in entries for path, *both in entry.change.transitions() if path == "a.txt" for one in both
        ]
        assert workspace.history.verify().ok
        return {workspace.store.read_blob(version.sha256) for version in found if version}


@requirement("run:together:in_turns", "run:together:nothing_lost")
@pytest.mark.parametrize(
    "second",
    [
        "echo second > other; mv other a.txt",
        "rm a.txt",
        "echo second > a.txt",
        "truncate -s 0 a.txt",
        "python3 -c \"import os; os.unlink('a.txt')\"; ln -s sub a.txt",
    ],
)
def test_what_a_command_puts_at_a_path_while_another_one_is_about_to_replace_it_is_in_the_history(
    desk: RunDesk, second: str
) -> None:
    TwoCommands(desk).race(second)

    assert {b"one\n", b"of the first\n"} <= read_versions(desk)


@requirement("run:together:in_turns", "run:together:nothing_lost")
def test_of_two_commands_that_make_one_file_at_the_same_moment_both_have_their_bytes_in_the_history(
    desk: RunDesk,
) -> None:
    (desk.root / "a.txt").unlink()

    TwoCommands(desk).race("echo second > a.txt")

    assert read_versions(desk) == {b"of the first\n", b"second\n"}


@requirement("run:together:in_turns", "run:report:complete")
def test_a_command_that_does_not_get_its_turn_goes_on_and_both_reports_name_the_path(desk: RunDesk) -> None:
    reports = TwoCommands(desk).race("echo second > other; mv other a.txt", patience=0.05)

    assert [{one["path"] for one in report["not_kept"]} for report in reports] == [{"a.txt"}, {"a.txt"}]
    assert [report["complete"] for report in reports] == [False, False]


@requirement("run:together:nothing_lost")
def test_what_another_program_wrote_after_an_edit_and_before_the_command_is_in_the_history(desk: RunDesk) -> None:
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"echo x > other; echo > {here}; read x < {there}; echo late > a.txt")
    here.read_bytes()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me").edit("a.txt", ("one", "ONE"))
    (desk.root / "a.txt").write_text("of another program\n")
    there.write_text("go\n")
    assert program.wait() == 0

    assert read_versions(desk) == {b"one\n", b"ONE\n", b"of another program\n", b"late\n"}
    assert [one["path"] for one in desk.read_report()["not_kept"]] == ["a.txt"]

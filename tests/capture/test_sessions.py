"""A session that used commands and tools side by side, taken back and made again as one change."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capture.fingerprint import Fingerprint, take_fingerprint
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

FIRST_COMMAND = """sed -i s/two/TWO/ a.txt; rm gone.txt; mkdir d; echo new > d/n; mv sub moved; ln -sf d/n link
chmod 755 moved/x.txt; echo y >> moved/x.txt"""
SECOND_COMMAND = "echo four >> a.txt; rm c.txt; mv d/n d/m; rm link; echo q > moved/q"


class SessionDesk:
    """A workspace in which one session works with commands and with tools."""

    def __init__(self, base: Path) -> None:
        self.root, self.state = base / "root", base / "state"
        (self.root / "sub").mkdir(parents=True)
        for name, text in {"a.txt": "one\ntwo\nthree\n", "sub/x.txt": "x\n", "gone.txt": "gone\n"}.items():
            (self.root / name).write_text(text)
        (self.root / "sub/x.txt").chmod(0o640)
        (self.root / "link").symlink_to("a.txt")

    def call(self, *words: str, code: int = 0) -> dict[str, Any]:
        done = self._start(words[0], "--json", *words[1:])
        assert done.returncode == code, done.stderr.decode()
        return json.loads(done.stdout)

    def run(self, script: str, *, turn: str) -> None:
        done = self._start(
            "run", "--session", "sess-one", "--agent", "claude", "--turn", turn, "--", "sh", "-c", script
        )
        assert (done.returncode, done.stderr) == (0, b"")

    def _start(self, name: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        where = ["--root", str(self.root), "--state-dir", str(self.state)]
        command = [sys.executable, "-m", "surehold", name, *where, *words]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SUREHOLD_")}
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, check=False)

    def edit(self, *edits: tuple[str, str, str], create: str = "") -> None:
        with open_workspace(self.root, settings=Settings(state_dir=self.state)) as workspace:
            session = workspace.session(agent="claude", id="sess-one")
            for path, old, new in edits:
                session.edit(path, (old, new))
            if create:
                session.create(create, "c\n")

    def look(self) -> Fingerprint:
        """Return the tree without its times: an edit that is undone is a write of its own."""
        return {key: [*facts[:3], *facts[4:]] for key, facts in take_fingerprint(self.root).items()}


@pytest.fixture
def desk(tmp_path: Path) -> SessionDesk:
    return SessionDesk(tmp_path)


@requirement("history:undo:runs")
def test_commands_and_tools_of_one_session_are_undone_together_and_made_again(desk: SessionDesk) -> None:
    before = desk.look()
    desk.run(FIRST_COMMAND, turn="1")
    desk.edit(("a.txt", "three", "THREE"), ("d/n", "new", "newer"), ("moved/x.txt", "y", "z"), create="c.txt")
    desk.run(SECOND_COMMAND, turn="2")
    after = desk.look()
    assert (desk.root / "a.txt").read_text() == "one\nTWO\nTHREE\nfour\n"

    planned = desk.call("undo", "--session", "last", "--dry-run")
    assert planned["dry_run"] is True
    assert desk.look() == after

    undone = desk.call("undo", "--session", "last")
    assert desk.look() == before
    assert {row["undone_by"] for row in desk.call("log", "--session", "last")["entries"]} == {undone["change_id"]}
    assert desk.call("status")["outside"] == []

    desk.call("redo")
    assert desk.look() == after
    desk.call("undo", "--session", "last")
    assert desk.look() == before
    desk.call("redo", "--session", "sess-one")
    assert desk.look() == after
    assert desk.call("status")["outside"] == []
    assert desk.call("verify")["ok"] is True


@requirement("history:undo:runs", "history:rewind:turn")
def test_rewind_takes_back_the_command_of_the_last_turn(desk: SessionDesk) -> None:
    desk.run(FIRST_COMMAND, turn="1")
    between = desk.look()
    desk.run(SECOND_COMMAND.replace("rm c.txt; ", ""), turn="2")

    desk.call("rewind")

    assert desk.look() == between

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


@requirement("history:undo:runs")
@pytest.mark.parametrize("way", ["deleted and created", "moved onto each other"])
def test_a_name_that_several_files_had_is_undone_and_made_again_without_an_outside_edit(
    tmp_path: Path, way: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    begun = {"a.txt": b"l1\nl2\n", "b.txt": b"b\n"}
    for name, data in begun.items():
        (root / name).write_bytes(data)
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(agent="claude")
        workspace.run(["sh", "-c", "echo r >> a.txt"], session=session)
        if way == "deleted and created":
            session.delete_file("a.txt", expected_sha256=session.read_file("a.txt").sha256)
            session.create_file("a.txt", "new\n")
        else:
            session.move("a.txt", "c.txt")
            session.move("b.txt", "a.txt")
            session.move("c.txt", "b.txt")
        done = _read_files(root)
        undone = workspace.undo(agent="claude")
        assert _read_files(root) == begun
        assert sorted(file.path for file in undone.files) == sorted(name for name in begun if done[name] != begun[name])
        workspace.redo()
        assert _read_files(root) == done
        workspace.undo(agent="claude")
        assert _read_files(root) == begun
        operations = {entry.call.operation for change in workspace.changes() for entry in change.entries}
    assert "external" not in operations


def _read_files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir()}


@requirement("history:sessions:facts")
def test_directories_do_not_count_as_files_of_a_session(tmp_path: Path) -> None:
    desk = SessionDesk(tmp_path)
    desk.run("rm gone.txt; echo new > new.txt; mkdir empty", turn="1")

    [session] = desk.call("sessions")["sessions"]

    assert (session["changes"], session["files"]) == (1, 2)

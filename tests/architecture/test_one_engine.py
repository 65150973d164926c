import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from spec.marks import requirement
from surehold import Settings, open_workspace


def surehold(*words: str, root: Path, state: Path) -> Any:
    command = [sys.executable, "-m", "surehold", *words, "--json", "--root", str(root), "--state-dir", str(state)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@requirement("promise:one_engine:library", "front:library:open_workspace")
def test_what_the_library_does_the_command_line_shows_and_takes_back(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")

    with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
        agent = workspace.session(agent="me")
        assert agent.read("a.txt").text == "one\n"
        change = agent.edit("a.txt", ("one", "two")).change_id
        assert (root / "a.txt").read_bytes() == b"two\n"
        shown = surehold("show", change, root=root, state=state)
        surehold("undo", change, root=root, state=state)

        assert change in json.dumps(shown)
        assert agent.read("a.txt").text == "one\n"
        agent.redo(change)
        assert [entry.call.operation for entry in workspace.history.log()] == ["redo", "undo", "edit"]
    assert (root / "a.txt").read_bytes() == b"two\n"

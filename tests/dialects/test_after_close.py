"""What a program is told that uses a workspace after its end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Session, Settings, Workspace, dispatch, open_workspace
from surehold.adapters.functions import plain_functions
from surehold.errors import WorkspaceClosed

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"


def enter_turn(session: Session) -> None:
    with session.turn("once more"):
        pass


CALLS: dict[str, Callable[[Workspace, Session], Any]] = {
    "read_file": lambda _, session: session.read_file("a.txt"),
    "list_directory": lambda _, session: session.list_directory("."),
    "search_files": lambda _, session: session.search_files("one"),
    "glob": lambda _, session: session.glob("*"),
    "create_file": lambda _, session: session.create_file("new.txt", "new\n"),
    "apply_patch": lambda _, session: session.apply_patch(PATCH),
    "restore_file": lambda _, session: session.restore_file("nothing"),
    "session.undo": lambda _, session: session.undo(),
    "turn": lambda _, session: enter_turn(session),
    "claude.Read": lambda _, session: session.claude.Read("a.txt"),
    "session": lambda workspace, _: workspace.session(),
    "changes": lambda workspace, _: workspace.changes(),
    "undo": lambda workspace, _: workspace.undo(),
    "redo": lambda workspace, _: workspace.redo(),
    "recover": lambda workspace, _: workspace.recover(),
    "run": lambda workspace, _: workspace.run(["touch", "new.txt"]),
    "run for a session": lambda workspace, session: workspace.run(["touch", "new.txt"], session=session),
}


@pytest.fixture
def closed(tmp_path: Path) -> tuple[Workspace, Session]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state", durability="none")) as workspace:
        session = workspace.session(agent="ada")
        session.create_file("b.txt", "two\n")
    return workspace, session


@requirement("front:library:closed")
@pytest.mark.parametrize("name", CALLS)
def test_every_call_after_the_end_is_refused_in_the_same_words(closed: tuple[Workspace, Session], name: str) -> None:
    workspace, session = closed

    with pytest.raises(WorkspaceClosed) as refused:
        CALLS[name](workspace, session)

    assert (refused.value.message, refused.value.reason) == ("This workspace is closed.", "closed")
    assert refused.value.action == WorkspaceClosed.default_action
    assert sorted(one.name for one in Path(workspace.roots[0]).iterdir()) == ["a.txt", "b.txt"]


@requirement("front:library:closed")
def test_a_model_is_answered_the_same_and_no_command_runs(closed: tuple[Workspace, Session]) -> None:
    workspace, session = closed
    functions = {one.__name__: one for one in plain_functions(session, shell=True)}
    call = {"type": "tool_use", "id": "1", "name": "read_file", "input": {"path": "a.txt"}}

    assert "This workspace is closed." in functions["run_command"]("rm a.txt")
    assert "This workspace is closed." in functions["read_file"]("a.txt")
    assert dispatch(session, call)["is_error"]
    assert sorted(one.name for one in Path(workspace.roots[0]).iterdir()) == ["a.txt", "b.txt"]

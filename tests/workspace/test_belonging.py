"""A state directory has the history of one workspace, which may move: another one that names it is refused."""

import shutil
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import open_workspace
from surehold.errors import StateUnavailable


def change_file(root: Path, state: Path, name: str = "f") -> None:
    root.mkdir(exist_ok=True)
    with open_workspace(root, state=state) as workspace:
        workspace.session().create_file(name, "1\n")


def list_changes(root: Path, state: Path) -> list[tuple[str, ...]]:
    with open_workspace(root, state=state) as workspace:
        return [change.paths for change in workspace.changes()]


@requirement("engine:state:belongs")
def test_a_state_directory_of_another_workspace_is_refused(tmp_path: Path) -> None:
    one, other, state = tmp_path / "one", tmp_path / "other", tmp_path / "state"
    change_file(one, state)
    other.mkdir()

    with pytest.raises(StateUnavailable) as refused:
        open_workspace(other, state=state)

    assert refused.value.reason == "state_of_another_workspace"
    assert refused.value.message == f"The state directory `{state}` belongs to another workspace: {one}."
    assert list_changes(one, state) == [("f",)]


@requirement("engine:state:belongs")
def test_so_is_one_whose_first_root_is_another(tmp_path: Path) -> None:
    one, other, state = tmp_path / "one", tmp_path / "other", tmp_path / "state"
    change_file(one, state)
    other.mkdir()

    with open_workspace(one, other, state=state) as workspace:
        assert [change.paths for change in workspace.changes()] == [("f",)]
    with pytest.raises(StateUnavailable):
        open_workspace(other, one, state=state)  # the names in the history are relative to the first


@requirement("engine:state:belongs")
def test_a_workspace_that_was_moved_keeps_its_history(tmp_path: Path) -> None:
    one, other, state = tmp_path / "one", tmp_path / "other", tmp_path / "state"
    change_file(one, state)
    one.rename(other)
    one.mkdir()  # whatever is there now

    assert list_changes(other, state) == [("f",)]
    with pytest.raises(StateUnavailable):
        open_workspace(one, state=state)


@requirement("engine:state:belongs")
def test_a_workspace_that_is_gone_may_be_put_elsewhere(tmp_path: Path) -> None:
    one, other, state = tmp_path / "one", tmp_path / "other", tmp_path / "state"
    change_file(one, state)
    shutil.copytree(one, other)
    shutil.rmtree(one)

    assert list_changes(other, state) == [("f",)]


@requirement("engine:state:belongs")
def test_a_copy_with_its_own_history_is_a_workspace_of_its_own(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    change_file(one, one / ".state")
    shutil.copytree(one, other)

    change_file(other, other / ".state", "g")

    assert list_changes(other, other / ".state") == [("g",), ("f",)]
    assert list_changes(one, one / ".state") == [("f",)]


@requirement("engine:state:belongs")
@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"root": 7}', b'{"root": "/"}'])
def test_a_note_that_cannot_be_understood_is_written_anew(tmp_path: Path, note: bytes) -> None:
    one, other, state = tmp_path / "one", tmp_path / "other", tmp_path / "state"
    change_file(one, state)
    (state / "workspace.json").write_bytes(note)
    other.mkdir()

    assert list_changes(one, state) == [("f",)]
    with pytest.raises(StateUnavailable):
        open_workspace(other, state=state)

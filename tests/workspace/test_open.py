"""Opening a workspace: which directories, and where its memory lies."""

from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import open_workspace
from surehold.app import default_state_dir
from surehold.errors import InvalidArgument, NotFound, OutsideWorkspace
from workspaces import real_workspace


@requirement("engine:api:settings")
def test_a_workspace_needs_a_root() -> None:
    with pytest.raises(InvalidArgument) as refused:
        open_workspace()

    assert refused.value.reason == "no_roots"


@requirement("engine:api:settings")
@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_root_that_is_no_directory_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(NotFound) as refused:
        real_workspace(tmp_path / name)

    assert refused.value.as_dict() == {
        "kind": "not_found",
        "reason": "no_such_root",
        "code": -32001,
        "message": f"`{tmp_path / name}` is not a directory.",
        "path": str(tmp_path / name),
        "suggested_action": "Name a directory.",
        "recoverable": True,
        "details": {},
    }
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@requirement("engine:api:settings", "engine:disk:several_roots")
def test_several_roots_are_one_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
    with open_workspace(one, other) as workspace:
        session = workspace.session()
        session.create("a", "relative\n")
        session.create(str(other / "b"), "absolute\n")
        with pytest.raises(OutsideWorkspace):
            session.create(str(tmp_path / "c"), "x")

        assert [entry.change.path for entry in workspace.history.log() if entry.ok] == [str(other / "b"), "a"]
    assert ((one / "a").read_bytes(), (other / "b").read_bytes()) == (b"relative\n", b"absolute\n")


@requirement("engine:state:place")
def test_the_state_lies_below_xdg_state_home_one_folder_per_root_and_never_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    roots = [tmp_path / "a" / "same name", tmp_path / "b" / "same name"]
    for root in roots:
        root.mkdir(parents=True)
        with open_workspace(root) as workspace:
            workspace.session().create("file", "x")
        assert list(root.iterdir()) == [root / "file"]

    folders = sorted((tmp_path / "xdg" / "surehold").iterdir())
    assert folders == sorted(default_state_dir(str(root)) for root in roots)
    assert all((folder / "state.db").is_file() for folder in folders)


@requirement("engine:state:place")
def test_without_xdg_state_home_the_state_lies_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert default_state_dir("/some/root").parent == tmp_path / ".local" / "state" / "surehold"


@requirement("engine:state:place")
def test_the_state_lies_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "root").mkdir()

    real_workspace(tmp_path / "root", state=tmp_path / "here").close()

    assert (tmp_path / "here" / "state.db").is_file()
    assert not (tmp_path / "xdg").exists()

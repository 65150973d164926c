"""The library selects changes with the words of the command line."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.errors import InvalidArgument, NotFound
from surehold.front.shared.ledger_json import entry_record
from surehold.library.workspace import AgentWorkspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[AgentWorkspace]:
    (tmp_path / "root").mkdir()
    with open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state", durability="none")) as made:
        yield made


def test_changes_are_selected_by_agent_turn_path_and_time(workspace: AgentWorkspace) -> None:
    ada, bob = workspace.session(agent="ada"), workspace.session(agent="bob")
    with ada.turn("first") as turn:
        first = ada.create_file("a.txt", "one\n")
    second = bob.create_file("b.txt", "two\n")
    third = ada.edit_file("a.txt", [("one", "1")], expected_sha256=first.sha256)

    def ids(*paths: str, **words: object) -> list[str]:
        return [one.id for one in workspace.changes(*paths, **words)]  # pyright: ignore[reportArgumentType]

    assert ids() == [third.change_id, second.change_id, first.change_id]
    times = [datetime.fromisoformat(one.timestamp) for one in workspace.changes()]
    assert times == sorted(times, reverse=True)
    assert times[0].tzinfo
    assert ids(agent="ada") == [third.change_id, first.change_id]
    assert ids(session=ada.id, turn=turn.id) == [first.change_id]
    assert ids("b.txt") == [second.change_id]
    assert ids(limit=1) == [third.change_id]
    assert ids(since=datetime.now(UTC) - timedelta(hours=1)) == ids(since="1h") == ids()
    assert [one.id for one in workspace.changes(until="1h")] == []


@requirement("history:library:selectors")
def test_a_selection_is_undone_and_redone_as_one_change(workspace: AgentWorkspace) -> None:
    root = Path(workspace.roots[0])
    ada, bob = workspace.session(agent="ada"), workspace.session(agent="bob")
    made = ada.create_file("a.txt", "one\ntwo\n")
    bob.create_file("b.txt", "two\n")
    ada.edit_file("a.txt", [("two", "2")], expected_sha256=made.sha256)

    preview = workspace.undo(agent="ada", dry_run=True)
    assert preview.dry_run
    assert (root / "a.txt").read_text() == "one\n2\n"

    done = workspace.undo(agent="ada")
    assert sorted(path.name for path in root.iterdir()) == ["b.txt"]
    edited, created = workspace.changes(agent="ada")
    assert {edited.undone_by, created.undone_by} == {done.change_id}
    assert [(one.added, one.removed, one.undoes) for one in (edited, created)] == [(1, 1, ()), (2, 0, ())]
    undone = workspace.changes(limit=1)[0]
    assert (undone.added, undone.removed, undone.undoes) == (0, 2, tuple(sorted((created.id, edited.id))))
    assert entry_record(undone.entries[0])["undoes"] is None
    assert entry_record(undone.entries[0])["undoes_all"] == list(undone.undoes)

    workspace.redo(agent="ada")
    assert (root / "a.txt").read_text() == "one\n2\n"

    workspace.undo(paths=["a.txt"], agent="ada")
    assert sorted(path.name for path in root.iterdir()) == ["b.txt"]
    workspace.undo()  # the newest that is in effect
    assert list(root.iterdir()) == []
    workspace.redo()
    assert sorted(path.name for path in root.iterdir()) == ["b.txt"]


@requirement("history:library:author")
def test_an_undo_says_who_made_it_and_why(workspace: AgentWorkspace) -> None:
    ada = workspace.session(agent="ada")
    first = ada.create_file("a.txt", "one\n")
    ada.create_file("b.txt", "two\n")
    workspace.undo(agent="ada", by="reviewer", reason="Not what was asked for")
    workspace.redo(agent="ada", reason="It was, after all")
    workspace.undo(first.change_id, by="reviewer")

    made = [(one.agent, one.reason) for one in workspace.changes(limit=3)]
    assert made == [("reviewer", ""), ("library", "It was, after all"), ("reviewer", "Not what was asked for")]
    with pytest.raises(InvalidArgument, match="`reason` must be a text"):
        workspace.undo(reason=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_selectors_that_match_no_change_are_named_and_a_session_alone_is_said_to_have_changed_nothing(
    workspace: AgentWorkspace,
) -> None:
    ada, reader = workspace.session(agent="ada"), workspace.session(agent="reader")
    ada.create_file("a.txt", "one\n")
    ada.read_file("a.txt")
    reader.read_file("a.txt")

    def message(**words: str) -> str:
        with pytest.raises(NotFound) as caught:
            workspace.undo(**words)  # pyright: ignore[reportArgumentType]
        assert caught.value.reason == "no_changes"
        return caught.value.message

    assert message(session=reader.id) == f"Session `{reader.id}` has changed nothing."
    assert message(agent="ada", until="1h") == "No change matches `--agent ada --until 1h`."
    assert message(session=ada.id, until="1h") == f"No change matches `--session {ada.id} --until 1h`."


def test_wrong_selectors_are_refused_and_nothing_changes(workspace: AgentWorkspace) -> None:
    ada = workspace.session(agent="ada")
    made = ada.create_file("a.txt", "one\n")

    with pytest.raises(InvalidArgument, match="selectors too"):
        workspace.undo(made.change_id, agent="ada")
    with pytest.raises(InvalidArgument, match="is a list"):
        workspace.undo(paths="a.txt")
    with pytest.raises(InvalidArgument, match="is not a time"):
        workspace.undo(since="noon")
    with pytest.raises(InvalidArgument, match="in the future"):
        workspace.changes(since=datetime.now(UTC) + timedelta(days=1))
    with pytest.raises(NotFound):
        workspace.undo(agent="bob")
    assert (Path(workspace.roots[0]) / "a.txt").exists()

"""Whose bytes are whose where running commands, or a command and an edit, change one file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.disk.local import LocalDisk
from surehold.errors import LockTimeout
from surehold.stores.base import LedgerQuery
from surehold.workspace.runs import shared_paths
from surehold.workspace.workspace import Workspace
from workspace.commands import Command, chain
from workspaces import real_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("zero")
    with real_workspace(root, durability="none") as opened:
        yield opened


def edit(workspace: Workspace, path: str, old: str, new: str) -> None:
    workspace.session(agent="editor").edit(path, (old, new))


def test_each_piece_of_a_file_that_two_commands_write_in_turns_is_of_the_one_that_wrote_it(
    workspace: Workspace,
) -> None:
    one, two = Command(workspace, "one"), Command(workspace, "two")
    one.write("a", "by one")
    two.write("a", "by two")
    one.write("a", "by one again")
    two.write("a", "by two at last")
    one.finish()
    two.finish()

    assert chain(workspace, "a") == [
        ("one", "zero", "by one"),
        ("two", "by one", "by two"),
        ("one", "by two", "by one again"),
        ("two", "by one again", "by two at last"),
    ]
    assert workspace.history.verify().ok


def test_a_command_that_wrote_before_any_other_ran_is_known_by_what_was_kept_for_it(workspace: Workspace) -> None:
    one = Command(workspace, "one")
    one.write("a", "by one")
    one.write("new", "made by one")
    two = Command(workspace, "two")
    two.write("a", "by two")
    two.remove("new")
    two.finish()
    one.finish()

    assert chain(workspace, "a") == [("one", "zero", "by one"), ("two", "by one", "by two")]
    assert chain(workspace, "new") == [("one", "-", "made by one"), ("two", "made by one", "-")]
    assert workspace.history.log(LedgerQuery(path="a"))[0].change_id == "change-of-two"


def test_files_that_only_one_of_two_commands_touches_are_in_its_own_change_alone(workspace: Workspace) -> None:
    one, two = Command(workspace, "one"), Command(workspace, "two")
    one.write("a", "by one")
    two.write("b", "by two")
    one.write("a", "by one again")
    settled = [each.finish() for each in (one, two)]

    assert chain(workspace, "a") == [("one", "zero", "by one again")]
    assert chain(workspace, "b") == [("two", "-", "by two")]
    assert [each.not_kept for each in settled] == [[], []]
    assert {entry.change_id for entry in workspace.history.log()} == {"change-of-one", "change-of-two"}


def test_an_edit_of_what_a_command_wrote_comes_after_the_piece_of_the_command(workspace: Workspace) -> None:
    one = Command(workspace, "one")
    one.write("a", "by one")
    edit(workspace, "a", "by one", "edited")
    one.write("a", "by one again")
    one.finish()

    assert chain(workspace, "a") == [
        ("one", "zero", "by one"),
        ("editor", "by one", "edited"),
        ("one", "edited", "by one again"),
    ]


def test_what_a_command_is_about_to_put_in_place_is_not_its_own_before_that_has_happened(workspace: Workspace) -> None:
    one, two = Command(workspace, "one"), Command(workspace, "two")
    one.write("a", "by one")
    two.write("new", "by two")
    two.begin_rename("new", "a")
    edit(workspace, "a", "by one", "edited")
    two.end_rename("new", "a")
    edit(workspace, "a", "by two", "edited again")
    one.finish()
    two.finish()

    assert chain(workspace, "a") == [
        ("one", "zero", "by one"),
        ("editor", "by one", "edited"),
        ("two", "edited", "by two"),
        ("editor", "by two", "edited again"),
    ]


def test_a_command_that_ends_while_the_other_runs_on_records_what_that_one_wrote_last(workspace: Workspace) -> None:
    one, two = Command(workspace, "one"), Command(workspace, "two")
    one.write("a", "by one")
    two.write("a", "by two")
    one.finish()

    assert chain(workspace, "a") == [("one", "zero", "by one"), ("two", "by one", "by two")]
    two.write("a", "by two again")
    two.finish()
    assert chain(workspace, "a")[2:] == [("two", "by two", "by two again")]


def test_the_list_of_writers_goes_with_the_last_command_and_a_new_one_begins_anew(workspace: Workspace) -> None:
    assert workspace.runs_dir
    writers = workspace.runs_dir / "writers"
    one, two, three = (Command(workspace, name) for name in ("one", "two", "three"))
    one.write("a", "by one, which writes a long line")
    two.write("a", "by two")
    rows = [json.loads(row) for row in writers.read_text().splitlines()]
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [
        ("a", "change-of-one", "", 0),
        ("a", "change-of-two", "", 0),
    ]
    assert rows[0][4] < rows[1][4]
    one.finish()
    assert writers.exists()
    two.finish()
    writers.unlink()  # as if the last one had ended; `three` goes on with what it knows
    four = Command(workspace, "four")
    four.write("a", "by four")
    three.write("a", "by three")
    four.finish()
    three.finish()

    assert not writers.exists()
    assert chain(workspace, "a")[-2:] == [("four", "by two", "by four"), ("three", "by four", "by three")]


@pytest.mark.parametrize("most", [3, 4])
def test_a_piece_that_is_too_large_is_not_recorded_by_itself(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(shared_paths, "_MAX_PIECE_BYTES", most)  # it was `zero` before
    one = Command(workspace, "one")
    one.write("a", "by one")
    two = Command(workspace, "two")
    two.write("a", "by two")

    assert [who for who, _, _ in chain(workspace, "a")] == (["one"] if most == 4 else [])


def test_a_call_goes_on_where_the_file_cannot_be_held_in_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_paths, "_PATIENCE_SECONDS", 0)
    monkeypatch.setattr(shared_paths, "TURN_SECONDS", 0)
    one, two = Command(workspace, "one"), Command(workspace, "two")
    one.write("a", "by one")
    other = LocalDisk([workspace.roots[0]], durability="none")

    with other.lock([other.resolve("a")], timeout=0):
        with pytest.raises(LockTimeout), workspace.disk.lock([workspace.disk.resolve("a")], timeout=0):
            raise AssertionError
        two.write("a", "by two")
        assert chain(workspace, "a") == []

    assert (Path(workspace.roots[0]) / "a").read_text() == "by two"


def test_the_name_of_a_path_in_the_list_is_its_key_below_the_first_root_or_the_path_itself(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("first", "second")]
    for root in roots:
        root.mkdir()
        (root / "a").write_text("zero")
    from surehold import Settings, open_workspace

    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(*roots, settings=settings) as workspace:
        one, two = Command(workspace, "one"), Command(workspace, "two")
        for command in (one, two):
            command.write("a", f"by {command.id}")
            command.write(os.fspath(roots[1] / "a"), f"by {command.id}")
        two.finish()
        one.finish()

        both = [("one", "zero", "by change-of-one"), ("two", "by change-of-one", "by change-of-two")]
        assert [chain(workspace, key) for key in ("a", str(roots[1] / "a"))] == [both, both]

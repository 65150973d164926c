"""What the history keeps of one command: its change, how it ended, and what of it is not known apart."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.capture.settled.settlement import Settlement, UnkeptPath
from surehold.errors import StateUnavailable
from surehold.stores.base import ApprovalRecord, LedgerQuery
from surehold.stores.upkeep import ALL_TRASH
from surehold.text.rewrite import WriteText
from surehold.workspace.proposal import Proposal, Unproven
from surehold.workspace.recovery import SettledIntent
from surehold.workspace.runs import recorder
from surehold.workspace.runs.recorder import key_maker, recover_run
from surehold.workspace.workspace import Workspace
from workspace.commands import Command, chain
from workspaces import call, make_bench, real_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("zero")
    with real_workspace(root, durability="none") as opened:
        yield opened


def names_in(directory: Path) -> list[str]:
    return sorted(one.name for one in directory.iterdir())


def folders(workspace: Workspace) -> list[str]:
    """List what is kept for commands."""
    assert workspace.runs_dir
    return names_in(workspace.runs_dir) if workspace.runs_dir.exists() else []


def write_unheard(workspace: Workspace, path: str, text: str) -> None:
    """Change a file as a process does that knows nothing of running commands."""
    blind = Workspace(disk=workspace.disk, store=workspace.store, owner=workspace._owner)  # pyright: ignore[reportPrivateUsage]
    blind.write(Proposal(path=path, edit=WriteText(text), proof=Unproven()), call=call("edit", agent="editor"))


def test_a_command_is_one_change_with_its_exit_code_and_what_a_person_said_of_it(workspace: Workspace) -> None:
    command = Command(workspace, "one", session="s")
    command.write("a", "changed")
    command.write("b", "made")
    approval = ApprovalRecord(asked=True, rule="command", who="ada")
    assert [change.path for change in command.recorder.preview().changes] == ["a", "b"]
    assert (workspace.history.log(), folders(workspace)) == ((), ["change-of-one"])

    settled = command.recorder.finish(3, approval)

    entries = workspace.history.log()
    assert [(one.change_id, one.change.path) for one in entries] == [("change-of-one", "b"), ("change-of-one", "a")]
    assert {(one.call.operation, one.call.exit_code, one.call.session) for one in entries} == {("run", 3, "s")}
    assert [one.call.approval for one in entries] == [approval] * 2
    assert (settled.count_paths(), settled.not_kept) == ({"created": 1, "changed": 1, "deleted": 0, "moved": 0}, [])
    assert (folders(workspace), workspace.store.open_intents()) == ([], ())
    workspace.history.undo()
    assert names_in(Path(workspace.roots[0])) == ["a"]


def test_a_command_that_changed_nothing_leaves_no_trace(workspace: Workspace) -> None:
    command = Command(workspace, "one")
    command.write("b", "for a moment")
    command.remove("b")
    assert len(workspace.store.open_intents()) == 1

    settled = command.finish()

    assert (settled.changes, settled.has_effects) == ([], False)
    assert (workspace.history.log(), workspace.store.open_intents(), folders(workspace)) == ((), (), [])


def test_a_command_that_made_no_call_has_nothing_to_say(workspace: Workspace) -> None:
    record = workspace.record_run(call("run"), "change")

    assert (record.preview(), record.finish(0)) == (Settlement(), Settlement())
    assert folders(workspace) == []


def test_two_commands_cannot_have_one_id_and_a_workspace_without_a_place_records_none(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.record_run(call("run"), "change").open_keeper()
    with pytest.raises(StateUnavailable) as refused:
        workspace.record_run(call("run"), "change").open_keeper()
    assert refused.value.reason == "run_in_use"

    (tmp_path / "bench").mkdir()
    with pytest.raises(StateUnavailable) as refused:
        make_bench("sqlite", "local", tmp_path / "bench").workspace.record_run(call("run"), "change")
    assert refused.value.reason == "no_runs"


def test_an_edit_in_between_that_was_not_heard_of_is_named_and_the_change_begins_with_it(workspace: Workspace) -> None:
    command = Command(workspace, "one")
    command.write("a", "by one")
    command.write("new", "made")
    command.write("b", "made")
    command.write("b", "zero")
    for name in ("a", "new"):
        write_unheard(workspace, name, "edited")
    command.write("a", "by one again")
    assert [one.key for one in command.recorder.preview().not_kept] == ["a", "new"]

    settled = command.finish()

    between = "it was also changed by an edit or by another command while this one ran; what this one did to it before that is not in this change but by itself"
    assert settled.not_kept == [UnkeptPath(key="a", why=between), UnkeptPath(key="new", why=between)]
    assert not settled.complete
    assert chain(workspace, "a")[-1] == ("one", "edited", "by one again")
    assert ("editor", "by one", "edited") in chain(workspace, "a")
    assert [change.path for change in settled.changes] == ["a", "b"]
    trash = workspace.history.trash(ALL_TRASH)
    assert [one.path for one in trash] == ["a"]
    assert workspace.store.read_blob(trash[0].version.sha256) == b"zero"


def test_what_an_edit_made_before_the_command_looked_is_its_beginning(workspace: Workspace) -> None:
    command = Command(workspace, "one")
    write_unheard(workspace, "a", "edited")
    command.write("a", "by one")
    settled = command.finish()

    assert (settled.not_kept, settled.displaced) == ([], [])
    assert chain(workspace, "a") == [("editor", "zero", "edited"), ("one", "edited", "by one")]


def test_a_file_that_another_command_has_begun_to_change_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Command(workspace, "one"), Command(workspace, "two")
    for command in (one, two):
        command.keeper.before_change = None  # as if each had not heard of the other
        command.write("a", f"by {command.id}")
        command.write(f"only by {command.id}", "made")

    (named,) = one.finish().not_kept

    assert named == UnkeptPath(
        key="a",
        why="another command that still runs changes it too (change change-of-two); what both wrote at the same moment may be in this change",
    )
    assert [one.key for one in two.finish().not_kept] == ["a"]  # since an edit or a command changed it in between


def test_of_many_files_those_are_held_at_the_end_that_an_edit_has_changed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = list[list[str]]()
    lock = workspace.disk.lock

    def spy(targets: list[object], *, timeout: float) -> object:
        held.append(sorted(one.key for one in targets))  # type: ignore[attr-defined]
        return lock(targets, timeout=timeout)  # type: ignore[arg-type]

    command = Command(workspace, "one")
    for name in ("a", "b", "c"):
        command.write(name, "by one")
    write_unheard(workspace, "b", "edited")
    monkeypatch.setattr(workspace.disk, "lock", spy)
    monkeypatch.setattr(recorder, "_HELD_PATHS", 3)
    command.recorder._list_contested()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(recorder, "_HELD_PATHS", 2)
    command.finish()

    assert held == [["b"]]


def test_names_are_keys_below_the_first_root_and_paths_below_any_other() -> None:
    key_of = key_maker(["/r", "/other"])
    assert [key_of(path) for path in (b"/r", b"/r/a/b", b"/other/a", b"/rest", b"/r/\xff")] == [
        ".",
        "a/b",
        "/other/a",
        "/rest",
        "\udcff",
    ]
    assert [key_maker(["/"])(path) for path in (b"/", b"/a")] == [".", "a"]


@pytest.mark.parametrize("wrote", [True, False])
def test_what_a_command_did_whose_supervisor_died_is_recorded_when_the_workspace_is_opened(
    tmp_path: Path, wrote: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("zero")
    if (child := os.fork()) == 0:
        try:
            command = Command(real_workspace(root, durability="none"), "one")
            command.write("a" if wrote else "b", "by one")
            _ = wrote or command.remove("b")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with real_workspace(root, durability="none", recover_on_open=False) as workspace:
        (left,) = workspace.store.open_intents()
        assert (left.intent.id, left.owner_is_dead) == ("change-of-one", True)

        settled = workspace.recover()

        entries = workspace.history.log(LedgerQuery(limit=10))
        assert [one.paths for one in settled] == ([("a",)] if wrote else [()])
        assert [(one.change_id, one.call.exit_code) for one in entries] == [("change-of-one", -1)] * wrote
        assert chain(workspace, "a") == [("one", "zero", "by one")] * wrote
        assert (folders(workspace), workspace.store.open_intents(), workspace.recover()) == ([], (), ())


def test_a_command_of_which_nothing_was_kept_is_forgotten(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    if (child := os.fork()) == 0:
        try:
            opened = real_workspace(root, durability="none")
            Command(opened, "one")
            assert opened.runs_dir
            (opened.runs_dir / "change-of-one" / "journal").unlink()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with real_workspace(root, durability="none", recover_on_open=False) as workspace:
        settled = workspace.recover()

        assert [(one.change_id, one.paths) for one in settled] == [("change-of-one", ())]
        assert (workspace.history.log(), workspace.store.open_intents()) == ((), ())
        assert isinstance(settled[0], SettledIntent)


@requirement("engine:ledger:bounded_diff")
def test_a_long_difference_is_cut_and_its_lines_are_counted(workspace: Workspace) -> None:
    command = Command(workspace, "one")
    command.write("a", "".join(f"row number {number}\n" for number in range(8_000)))
    (change,) = command.finish().changes

    assert len(change.diff.encode()) <= 64 * 1024
    assert (change.diff_truncated, change.added, change.removed) == (True, 8_000, 1)


def test_what_a_command_did_that_still_runs_is_left_to_it(workspace: Workspace) -> None:
    command = Command(workspace, "one")
    command.write("a", "by one")
    (busy,) = workspace.store.open_intents()
    assert workspace.runs_dir

    for _ in range(2):
        facts = {"store": workspace.store, "disk": workspace.disk, "runs": workspace.runs_dir, "limit": 1 << 20}
        assert recover_run(busy.intent, **facts) is None  # type: ignore[arg-type]

    assert (folders(workspace), workspace.store.open_intents()) == (["change-of-one"], (busy,))
    assert [change.path for change in command.finish().changes] == ["a"]

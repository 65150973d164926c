"""What the history says of commands that still run, and of those whose record was never finished."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from surehold.errors import InvalidArgument, NotFound
from surehold.stores.conversations import SessionRow
from surehold.text.rewrite import WriteText
from surehold.workspace.past.selectors import ChangeSelection, Selectors
from surehold.workspace.proposal import Proposal, Unproven
from surehold.workspace.recovery import SettledIntent
from surehold.workspace.workspace import Workspace
from workspace.commands import Command
from workspaces import call, real_workspace

LATER, EARLIER = ((datetime.now(UTC) + timedelta(days=days)).isoformat() for days in (1, -1))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "root"
    root.mkdir()
    with real_workspace(root, durability="none", recover_on_open=False) as opened:
        yield opened


def leave_dead_run(workspace: Workspace) -> str:
    """Let a process die while a command runs; return the id of the change."""
    root = Path(workspace.roots[0])
    if (child := os.fork()) == 0:
        try:
            Command(real_workspace(root, durability="none"), "dead").write("by-dead", "1")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return "change-of-dead"


def edit(workspace: Workspace, text: str) -> str:
    proposal = Proposal(path="a", edit=WriteText(text), proof=Unproven())
    return workspace.write(proposal, call=call("edit", session="s")).change_id


@pytest.mark.parametrize(
    ("selection", "is_meant"),
    [
        (ChangeSelection(), True),
        (ChangeSelection(session="s"), True),
        (ChangeSelection(session="other"), False),
        (ChangeSelection(agent="on"), True),
        (ChangeSelection(agent="two"), False),
        (ChangeSelection(turn="t1"), True),
        (ChangeSelection(turn="t2"), False),
        (ChangeSelection(turn=""), False),
        (ChangeSelection(until=LATER), True),
        (ChangeSelection(until=EARLIER), False),
        (ChangeSelection(since=LATER), True),
        (ChangeSelection(outside=True), False),
    ],
)
def test_a_command_that_runs_may_do_what_is_selected(
    workspace: Workspace, selection: ChangeSelection, is_meant: bool
) -> None:
    command = Command(workspace, "one", session="s", turn="t1")

    assert [one.id for one in selection.find_open_runs(workspace.store)] == [command.id] * is_meant


def test_the_newest_change_is_not_an_older_one_while_a_command_runs(workspace: Workspace) -> None:
    history = workspace.history
    edited = edit(workspace, "one")
    command = Command(workspace, "one")
    for undo, message in (
        (history.undo, "The newest change is that of `one`, which still runs."),
        (lambda: history.undo(command.id), "Change change-of-one still runs."),
    ):
        with pytest.raises(InvalidArgument) as refused:
            undo()
        assert (refused.value.reason, refused.value.message) == ("still_running", message)

    edit(workspace, "two")
    history.undo()
    assert workspace.read("a").data == b"one"
    with pytest.raises(InvalidArgument, match="which still runs"):
        history.undo()  # what is left is older than the command
    history.undo(edited)
    with pytest.raises(InvalidArgument, match="which still runs"):
        history.undo()
    command.finish()
    with pytest.raises(NotFound, match="No change can be undone"):
        history.undo()


def test_what_a_session_does_is_awaited_where_its_command_still_runs(workspace: Workspace) -> None:
    workspace.store.open_session(SessionRow(id="session-s", agent="", opened=EARLIER))
    words = Selectors(session="session-s")
    with pytest.raises(NotFound, match="Session `session-s` has changed nothing"):
        workspace.history.select_done(words)
    command = Command(workspace, "one", session="session-s")

    with pytest.raises(InvalidArgument) as refused:
        workspace.history.select_done(words)

    assert refused.value.message == "What is selected is done by `one`, which still runs."
    assert [one.id for one in workspace.history.open_runs(workspace.history.select(words))] == [command.id]
    command.write("a", "1")
    command.finish()
    assert [one.change_id for one in workspace.history.select_done(words)] == [command.id]


def test_a_command_whose_record_was_not_finished_is_said_to_be_kept_and_is_recorded_by_recovery(
    workspace: Workspace,
) -> None:
    edited, dead = edit(workspace, "one"), leave_dead_run(workspace)
    for undo, what in ((workspace.history.undo, "`dead`"), (lambda: workspace.history.undo(dead), f"change {dead}")):
        with pytest.raises(InvalidArgument) as refused:
            undo()
        message = f"What {what} did is kept, and not in the history yet."
        assert (refused.value.reason, refused.value.message) == ("not_recorded", message)

    assert workspace.recover() == (SettledIntent(change_id=dead, direction="forward", paths=("by-dead",)),)
    workspace.history.undo()
    assert sorted(one.name for one in Path(workspace.roots[0]).iterdir()) == ["a"]
    assert workspace.history.undo().files[0].change.undoes == ()
    assert workspace.history.show(edited).undone_by


def test_a_run_that_cannot_be_recorded_stays_open_and_the_reason_is_told(workspace: Workspace) -> None:
    dead = leave_dead_run(workspace)
    assert workspace.runs_dir
    journal = workspace.runs_dir / dead / "journal"
    journal.rename(journal.with_name("aside"))
    journal.mkdir()

    (settled,) = workspace.recover()

    assert (settled.change_id, settled.direction, settled.paths) == (dead, "failed", ())
    assert settled.problem
    journal.rmdir()
    journal.with_name("aside").rename(journal)
    elsewhere = Workspace(disk=workspace.disk, store=workspace.store, owner=workspace._owner)  # pyright: ignore[reportPrivateUsage]
    kept = SettledIntent(change_id=dead, direction="failed", paths=(), problem="The run was kept elsewhere.")
    assert elsewhere.recover() == (kept,)
    assert [one.direction for one in workspace.recover()] == ["forward"]


def test_a_run_that_another_process_records_is_left_to_it(workspace: Workspace) -> None:
    Command(workspace, "one")
    problem = "Another process is recording this run."

    settled = workspace.reader.recovery.settle_intents(workspace.store.open_intents(), timeout=0)

    assert settled == (SettledIntent(change_id="change-of-one", direction="failed", paths=(), problem=problem),)

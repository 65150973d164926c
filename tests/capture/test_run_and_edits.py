"""An agent edits through our tools while a command changes the same files."""

import json
import os
import stat
from typing import Any

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.app import open_workspace as open_core
from surehold.capture.filter import can_listen
from surehold.errors import LockTimeout
from surehold.stores.base import Call
from surehold.workspace.past.blame import blame_file
from surehold.workspace.runs import recorder as recorder_module
from surehold.workspace.runs import shared_paths
from surehold.workspace.runs.recorder import record_run

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def run_around_edit(desk: RunDesk, first: str, second: str, *, delete: bool = False) -> None:
    """Run the first part of a command, then edit (or delete) `a.txt`, then let the command go on."""
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"{first}; echo > {here}; read x < {there}; {second}")
    here.read_bytes()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        session = workspace.session(agent="me")
        if delete:
            session.read_file("a.txt")
            session.delete("a.txt")
        else:
            session.edit("a.txt", ("one", "ONE"))
    there.write_text("go\n")
    assert program.wait() == 0


@requirement("run:report:complete")
@pytest.mark.parametrize("first", ["echo x >> a.txt", "chmod 755 a.txt", "touch -d 2001-01-01 a.txt"])
def test_a_file_that_was_edited_after_the_command_changed_it_makes_the_run_incomplete(
    desk: RunDesk, first: str
) -> None:
    run_around_edit(desk, first, "true")

    report = desk.read_report()
    assert (report["complete"], [one["path"] for one in report["not_kept"]]) == (False, ["a.txt"])
    assert (report["change_id"], report["changed"]) == (None, 0)


@requirement("run:report:complete", "run:report:fields")
def test_a_file_that_was_deleted_after_the_command_changed_it_is_no_deletion_of_the_command(desk: RunDesk) -> None:
    run_around_edit(desk, "echo x >> a.txt", "true", delete=True)

    report = desk.read_report()
    assert (report["change_id"], report["deleted"], report["complete"]) == (None, 0, False)


@requirement("run:report:complete", "run:undo:exact")
def test_a_file_that_was_edited_before_the_command_changed_it_comes_back_as_edited(desk: RunDesk) -> None:
    run_around_edit(desk, "true", "chmod 755 a.txt; echo x >> a.txt; rm sub/b.txt")

    report = desk.read_report()
    assert (report["complete"], report["changed"], report["deleted"]) == (True, 1, 1)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    facts = take_fingerprint(desk.root)
    assert (desk.root / "a.txt").read_text() == "ONE\n"
    assert stat.S_IMODE((desk.root / "a.txt").stat().st_mode) == 0o644
    assert "sub/b.txt" in facts


@requirement("run:report:complete")
def test_what_a_command_did_on_both_sides_of_an_edit_is_named_and_the_later_part_is_undone(desk: RunDesk) -> None:
    run_around_edit(desk, "echo early >> a.txt", "echo late >> a.txt")

    report = desk.read_report()
    assert (report["complete"], report["changed"]) == (False, 1)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert (desk.root / "a.txt").read_text() == "ONE\nearly\n"


@requirement("run:together:attributed", "run:together:undone_alone")
def test_what_a_command_wrote_before_an_edit_of_the_same_file_is_its_own_and_undone_alone(desk: RunDesk) -> None:
    here, there = desk.make_gates("here", "there")
    program = desk.start(
        f"echo early >> a.txt; echo > {here}; read x < {there}; echo late >> a.txt", "--agent", "shell"
    )
    here.read_bytes()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me").edit("a.txt", ("one", "ONE"))
        there.write_text("go\n")
        assert program.wait() == 0

        assert [line.entry and line.entry.call.agent for line in blame_file(workspace, "a.txt")] == [
            "me",
            "shell",
            "shell",
        ]
        workspace.undo(agent="shell")
    assert (desk.root / "a.txt").read_text() == "ONE\n"


@requirement("run:together:attributed", "run:together:undone_alone")
def test_of_two_commands_that_append_in_turns_each_has_its_own_lines(desk: RunDesk) -> None:
    reached, go_on = desk.make_gates("reached", "go_on")
    other = desk.start(f"echo other >> a.txt; echo > {reached}; cat {go_on}; echo more >> a.txt", "--agent", "other")
    reached.read_text()

    desk.run("echo mine >> a.txt", "--agent", "mine")
    go_on.write_text("")
    other.wait()

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        authors = [line.entry.call.agent if line.entry else "" for line in blame_file(workspace, "a.txt")]
        assert authors == ["", "other", "mine", "other"]
        workspace.undo(agent="other")
    assert (desk.root / "a.txt").read_text() == "one\nmine\n"


@requirement("run:undo:exact")
def test_a_deleted_file_and_a_command_are_undone_together_although_the_directory_is_gone(desk: RunDesk) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        session = workspace.session(agent="me")
        session.delete_file("sub/b.txt", expected_sha256=session.read_file("sub/b.txt").sha256)
        (desk.root / "sub").rmdir()
        workspace.run(["sh", "-c", "echo x > a.txt"], session=session)
        workspace.undo(session=session.id)

    assert (desk.root / "sub/b.txt").read_text() == "two\n"
    assert (desk.root / "a.txt").read_text() == "one\n"
    assert stat.S_IMODE((desk.root / "sub").stat().st_mode) == stat.S_IMODE(desk.root.stat().st_mode)


@requirement("run:report:complete")
def test_a_path_that_two_commands_change_at_once_is_named_by_both(desk: RunDesk) -> None:
    reached, go_on = desk.make_gates("reached", "go_on")
    other = desk.start(f"echo other >> a.txt; echo > {reached}; cat {go_on}; echo more >> a.txt")
    reached.read_text()
    first = desk.report.with_name("first.json")

    desk.run("echo mine >> a.txt; echo mine >> sub/b.txt", "--report", str(first))
    go_on.write_text("")
    other.wait()

    mine, theirs = json.loads(first.read_text()), desk.read_report()
    assert [one["path"] for one in mine["not_kept"]] == ["a.txt"]
    assert theirs["change_id"] in mine["not_kept"][0]["why"]
    assert [one["path"] for one in theirs["not_kept"]] == ["a.txt"]
    assert (mine["complete"], theirs["complete"]) == (False, False)


@requirement("run:report:complete")
@pytest.mark.parametrize("text", ["more\n", "X"])
def test_a_file_that_another_program_wrote_while_the_command_renamed_it_is_named(desk: RunDesk, text: str) -> None:
    here, there = desk.make_gates("here", "there")
    with (desk.root / "a.txt").open("r+" if text == "X" else "a") as other:
        program = desk.start(f"mv a.txt c.txt; echo > {here}; read x < {there}; true")
        here.read_bytes()
        other.write(text)
    there.write_text("go\n")
    assert program.wait() == 0

    report = desk.read_report()
    assert (report["complete"], [one["path"] for one in report["not_kept"]]) == (False, ["a.txt"])
    written = (desk.root / "c.txt").read_text()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert ((desk.root / "a.txt").read_text(), (desk.root / "c.txt").exists()) == (written, False)


@requirement("run:report:complete", "run:undo:exact")
def test_times_that_the_command_set_are_not_taken_for_the_writing_of_others(desk: RunDesk) -> None:
    before = take_fingerprint(desk.root)

    desk.run(
        "mv a.txt c.txt; touch -c -d 2001-01-01 c.txt; python3 -c \"import os; os.utime('sub/b.txt', (1, 1))\"; mv sub d"
    )

    report = desk.read_report()
    assert (report["complete"], report["moved"]) == (True, 3)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:report:complete", "run:together:attributed")
def test_a_file_that_an_edit_holds_when_the_command_ends_is_named_and_the_others_are_held(
    desk: RunDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_paths, "TURN_SECONDS", 0.1)
    (desk.root / "link").symlink_to("/elsewhere")  # no edit can be about it, which does not matter for the others
    with (
        open_core(desk.root, settings=desk.settings()) as editing,
        open_core(desk.root, settings=desk.settings()) as workspace,
    ):
        call = Call(tool="run", operation="run", writer="run", argv=("sh",))
        recorder = workspace.record_run(call, workspace.new_id())
        keeper = recorder.open_keeper()
        for name in ("a.txt", "sub/b.txt", "link"):
            keeper.keep_removed(os.fsencode(desk.root / name))
            (desk.root / name).unlink()
        held, free = (editing.reader.disk.resolve(name) for name in ("a.txt", "sub/b.txt"))
        was_free = list[bool]()

        def settle_while_held(*words: Any, **more: Any) -> Any:
            try:
                with editing.reader.disk.lock([free], timeout=0):
                    was_free.append(True)
            except LockTimeout:
                was_free.append(False)
            return record_run(*words, **more)

        monkeypatch.setattr(recorder_module, "record_run", settle_while_held)
        with editing.reader.disk.lock([held], timeout=10):
            settled = recorder.finish(0)

    assert [one.key for one in settled.not_kept] == ["a.txt"]
    assert was_free == [False]
    assert settled.count_paths()["deleted"] == 3

"""An agent edits through our tools while a command changes the same files."""

import stat

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen

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

"""Commands in the history: what `log`, `show` and `undo` say of them."""

import json
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from capture.desk import RunDesk
from capture.driver import call
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.capture.filter import can_listen
from surehold.errors import InvalidArgument
from text.work import count_calls

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def surehold(desk: RunDesk, *words: str) -> str:
    return start(desk, *words).stdout


def start(desk: RunDesk, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    where = ["--root", str(desk.root), "--state-dir", str(desk.state)]
    command = [sys.executable, "-m", "surehold", words[0], *where, *words[1:]]
    done = subprocess.run(command, cwd=desk.root, capture_output=True, check=False, text=True)
    assert done.returncode == code, done.stderr
    return done


@requirement("run:history:command")
def test_the_history_names_the_command_and_how_it_ended_and_no_folder_whose_time_alone_changed(desk: RunDesk) -> None:
    desk.run("rm sub/b.txt; exit 5")
    change = desk.read_report()["change_id"]

    rows: list[dict[str, Any]] = json.loads(surehold(desk, "log", "--json"))["entries"]
    assert {(tuple(row["argv"]), row["exit_code"]) for row in rows} == {(("bash", "-c", "rm sub/b.txt; exit 5"), 5)}
    log = surehold(desk, "log", "--stat")
    assert "bash -c 'rm sub/b.txt; exit 5'" in log
    assert "exit 5" in log
    assert [line.split()[0] for line in log.splitlines()[1:]] == ["sub/b.txt"]
    shown = surehold(desk, "show", change).splitlines()
    assert [line for line in shown if line.startswith(("Command", "Exit"))] == [
        "Command  bash -c 'rm sub/b.txt; exit 5'",
        "Exit     5",
    ]
    assert [line.split()[2] for line in shown if line.startswith("What")] == ["sub/b.txt"]
    assert [line.split()[1] for line in surehold(desk, "undo").splitlines()] == ["sub/b.txt"]


@requirement("run:history:long_command")
def test_a_command_that_names_thousands_of_files_is_recorded_in_full_once(desk: RunDesk) -> None:
    names = [f"a-file-with-a-rather-long-name-{number:04}.txt" for number in range(400)]
    for name in names:
        (desk.root / name).write_text(name)
    command = ("rm", *names)

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        receipt = workspace.run(command)
        entries = workspace.history.show(receipt.change_id).entries

    assert entries[0].call.argv == command
    shortened = {entry.call.argv for entry in entries[1:]}
    (words,) = shortened
    assert words[:20] == command[:20]
    assert words[-1].endswith("…")
    assert sum(map(len, words)) <= 1_001
    assert f"rm {names[0]} {names[1]}" in surehold(desk, "log")
    assert names[-1] in surehold(desk, "show", receipt.change_id)


@requirement("run:undo:cost")
def test_undoing_many_files_costs_no_more_for_each_of_them(desk: RunDesk) -> None:
    _, few, more, many = [count_undo_calls(desk, files) for files in (10, 50, 150, 400)]  # the first one loads modules

    assert (many - more) / 250 < (more - few) / 100 * 1.15


def count_undo_calls(desk: RunDesk, files: int) -> int:
    for number in range(files):
        (desk.root / f"f{number:03}").write_text(str(number))
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        change = workspace.run(["sh", "-c", "rm f*"]).change_id or ""
        return count_calls(lambda: workspace.undo(change))


@requirement("run:history:still_running")
def test_an_undo_of_the_newest_change_says_that_its_command_still_runs(desk: RunDesk) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me").create("early.txt", "x\n")
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}")
    here.read_bytes()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        with pytest.raises(InvalidArgument, match=r"that of `bash -c rm a\.txt.*still runs"):
            workspace.history.undo()
        assert (desk.root / "early.txt").exists()
        workspace.session(agent="me").create("late.txt", "x\n")
        workspace.history.undo()  # that is the newest change now
    assert not (desk.root / "late.txt").exists()
    there.write_text("go\n")
    assert program.wait() == 0


@requirement("run:history:left_out")
@pytest.mark.parametrize(
    "words", [("undo", "--session", "work"), ("undo", "--since", "1h"), ("rewind",)], ids=["session", "since", "rewind"]
)
def test_a_command_that_still_runs_is_named_as_left_out(desk: RunDesk, words: tuple[str, ...]) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session(agent="me", id="work-1").create("early.txt", "x\n")
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}", "--session", "work-1", "--agent", "me")
    here.read_bytes()

    undone = start(desk, *words, "--json")

    assert not (desk.root / "early.txt").exists()
    (running,) = json.loads(undone.stdout)["still_running"]
    assert undone.stderr.startswith(f"Left out, since it still runs: bash -c rm a.txt; echo > {here}; read x < {there}")
    assert f"(change {running})" in undone.stderr
    there.write_text("go\n")
    assert program.wait() == 0
    assert start(desk, "undo", running).stderr == ""
    assert (desk.root / "a.txt").exists()


@requirement("run:history:left_out")
def test_a_selection_of_nothing_but_a_command_that_still_runs_is_refused(desk: RunDesk) -> None:
    here, there = desk.make_gates("here", "there")
    program = desk.start(f"rm a.txt; echo > {here}; read x < {there}", "--agent", "me")
    here.read_bytes()

    refused = start(desk, "undo", "--since", "1h", code=1)

    assert "which still runs. Next: Wait until its last process has ended, then: surehold undo " in " ".join(
        refused.stderr.split()
    )
    there.write_text("go\n")
    assert program.wait() == 0


@requirement("run:history:session")
def test_what_an_agent_runs_without_a_session_is_a_session_of_its_own(desk: RunDesk) -> None:
    desk.run("rm a.txt", "--agent", "claude")
    change = desk.read_report()["change_id"]

    (row,) = json.loads(surehold(desk, "sessions", "--json"))["sessions"]
    assert (row["agent"], row["session"], row["changes"]) == ("claude", change, 1)
    surehold(desk, "undo", "--session", "last")
    assert (desk.root / "a.txt").exists()


@requirement("run:history:session")
def test_a_turn_without_a_session_can_be_selected(desk: RunDesk) -> None:
    desk.run("rm a.txt", "--turn", "tidy")

    surehold(desk, "undo", "--turn", "tidy")

    assert (desk.root / "a.txt").exists()


@requirement("run:history:session")
def test_names_of_more_than_one_line_are_recorded_in_one(desk: RunDesk) -> None:
    desk.run("rm a.txt", "--agent", "one\ntwo", "--session", "three\nfour", "--turn", "five\x1b[31m")

    (row,) = json.loads(surehold(desk, "sessions", "--json"))["sessions"]
    assert (row["agent"], row["session"]) == ("one\\ntwo", "three\\nfour")
    assert json.loads(surehold(desk, "log", "--json"))["entries"][0]["turn"] == "five\\x1b[31m"


@requirement("run:undo:exact")
def test_a_change_of_the_root_directory_alone_is_taken_back(desk: RunDesk) -> None:
    before = desk.root.stat().st_mode
    desk.run("chmod 700 .")
    assert desk.root.stat().st_mode != before

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.undo()
        assert desk.root.stat().st_mode == before
        workspace.redo()
    assert stat.S_IMODE(desk.root.stat().st_mode) == 0o700


@requirement("run:undo:exact")
def test_holes_that_were_dug_in_a_file_with_two_names_are_filled_again(desk: RunDesk) -> None:
    (desk.root / "x").write_bytes(b"a" * 8192 + bytes(1 << 20) + b"b")
    (desk.root / "y").hardlink_to(desk.root / "x")
    before = take_fingerprint(desk.root)
    desk.run("fallocate -d x")
    after = take_fingerprint(desk.root)
    assert after != before

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.undo()
        assert take_fingerprint(desk.root) == before
        workspace.redo()
    assert take_fingerprint(desk.root) == after


@requirement("run:history:large")
def test_a_file_of_several_megabytes_has_its_history_also_after_an_outside_edit(desk: RunDesk) -> None:
    lines = [f"line {number} of a text that has some words\n" for number in range(1, 60_001)]
    path = desk.root / "c.txt"
    path.write_text("".join(lines))
    assert path.stat().st_size > 2 << 20
    desk.run("sed -i 's/^line 3 /THREE /' c.txt", "--agent", "aa")
    changed = path.read_bytes()

    blamed = json.loads(surehold(desk, "blame", "c.txt", "--json"))["lines"]
    assert [row["number"] for row in blamed if row["agent"] == "aa"] == [3]
    assert surehold(desk, "log", "--stat").splitlines()[1].split() == ["c.txt", "+1", "-1"]
    with path.open("a") as file:
        file.write("damage\n")
    diff = surehold(desk, "diff")
    assert [row for row in diff.splitlines() if row.startswith(("-line", "+THREE"))] == [
        "-line 3 of a text that has some words",
        "+THREE of a text that has some words",
    ]
    assert surehold(desk, "diff", "c.txt").splitlines()[-1] == "+damage"
    surehold(desk, "undo")
    assert path.read_text() == "".join([*lines, "damage\n"])
    surehold(desk, "redo")
    with path.open("a") as file:
        file.write("more damage\n")
    surehold(desk, "revert", "c.txt")
    assert path.read_bytes() == changed + b"damage\n"


@requirement("run:history:large")
def test_a_rewrite_of_a_file_of_several_megabytes_can_be_reverted_to(desk: RunDesk) -> None:
    path = desk.root / "c.txt"
    path.write_text("".join(f"line {number} is long enough\n" for number in range(120_000)))
    desk.run("sed -i 's/line/row/' c.txt")
    rewritten = path.read_bytes()
    assert surehold(desk, "log", "--stat").splitlines()[1].split()[0] == "c.txt"
    path.write_bytes(b"")

    surehold(desk, "revert", "c.txt")

    assert path.read_bytes() == rewritten


@requirement("run:history:large")
def test_what_is_too_large_to_be_kept_after_a_command_is_said_so_with_a_way_out(desk: RunDesk) -> None:
    path = desk.root / "big"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    desk.run("printf x >> big")
    change = desk.read_report()["change_id"]
    with path.open("ab") as file:
        file.write(b"damage")

    assert "Files big and big differ: not all of their bytes are stored (68157440 bytes" in surehold(desk, "diff")
    assert "differ: the bytes of the last recorded change are not stored" in surehold(desk, "diff", "big")
    refused = start(desk, "revert", "big", code=1).stderr
    assert f"`big` as the command of change {change} left it (68157441 bytes) was not kept" in refused
    assert f"surehold read big --before {change}" in refused
    assert "`surehold read big --before CHANGE` has the earlier bytes" in start(desk, "undo", code=1).stderr
    assert surehold(desk, "read", "big", "--before", change) == "\0" * (65 << 20)


@requirement("run:history:large")
def test_new_files_beyond_what_is_kept_of_a_command_are_said_to_be_that_and_pruned_ones_to_be_pruned(
    desk: RunDesk,
) -> None:
    desk.run("head -c 17825792 /dev/zero > new; printf small > small")
    change = desk.read_report()["change_id"]
    for name in ("new", "small"):
        (desk.root / name).write_bytes(b"damage")

    assert "Files new and new differ: the bytes of the last recorded change are not stored" in surehold(
        desk, "diff", "new"
    )
    refused = start(desk, "revert", "new", code=1).stderr
    assert f"`new` as the command of change {change} left it (17825792 bytes) was not kept" in refused
    assert "of the new files of a command 16 MiB are stored, all together." in refused
    assert "pruned" not in refused
    desk.run("printf later > small")
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert workspace.history.gc(keep=timedelta()).blobs
    assert "The history was pruned" in start(desk, "revert", "small", "--to", change, code=1).stderr


@requirement("run:history:large")
def test_a_new_file_beyond_what_is_kept_of_a_command_is_kept_when_it_is_undone(desk: RunDesk) -> None:
    desk.run("head -c 17825792 /dev/zero > new")

    surehold(desk, "undo")
    assert not (desk.root / "new").exists()
    surehold(desk, "redo")
    assert (desk.root / "new").read_bytes() == bytes(17825792)


@requirement("run:history:large")
def test_changed_files_beyond_what_is_kept_of_a_command_are_said_to_be_that(desk: RunDesk) -> None:
    names = [f"big{number}" for number in range(5)]
    for name in names:
        with (desk.root / name).open("wb") as file:
            file.truncate(60 << 20)
    script = "for f in big*; do printf x | dd of=$f conv=notrunc status=none; printf $f >> $f; done"
    desk.run(script)
    change = desk.read_report()["change_id"]
    for name in names:
        (desk.root / name).write_bytes(b"damage")

    surehold(desk, "revert", "big3")
    assert (desk.root / "big3").stat().st_size == (60 << 20) + 4

    name, refused = "big4", start(desk, "revert", "big4", code=1).stderr
    assert f"`{name}` as the command of change {change} left it ({(60 << 20) + 4} bytes) was not kept" in refused
    assert "256 MiB of changes in large files are stored of a command, all together." in refused
    assert f"surehold read {name} --before {change}" in refused
    assert "pruned" not in refused


@requirement("run:undo:root")
def test_a_workspace_that_a_command_removed_comes_back(desk: RunDesk) -> None:
    before = take_fingerprint(desk.root)
    where = ["--root", str(desk.root), "--state-dir", str(desk.state)]
    assert desk.run('rm -rf "$PWD"').returncode == 0
    assert not desk.root.exists()

    assert call("recover", *where)[0] == 0
    desk.root.rmdir()
    assert "rm -rf" in call("log", *where)[1]
    desk.root.rmdir()
    code, said = call("undo", *where)

    assert (code, "Made again" in said) == (0, True)
    assert take_fingerprint(desk.root) == before
    assert call("redo", *where)[0] == 0
    assert list(desk.root.iterdir()) == []
    assert call("undo", *where)[0] == 0
    assert take_fingerprint(desk.root) == before


@requirement("run:undo:root")
def test_a_missing_directory_that_was_no_workspace_is_not_made(desk: RunDesk) -> None:
    gone = desk.root / "gone"

    code, said = call("undo", "--root", str(gone), "--state-dir", str(desk.state / "other"))

    assert (code, "is not a directory" in said, gone.exists()) == (1, True, False)


def test_a_list_of_changes_names_other_programs_and_only_what_really_changed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "old").mkdir(parents=True)
    (root / "kept").mkdir(mode=0o755)
    (root / "a.txt").write_text("one\n")
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(agent="my-agent")
        session.edit_file("a.txt", [("one", "two")], expected_sha256=session.read_file("a.txt").sha256)
        workspace.run(["sh", "-c", "rmdir old; chmod 700 kept"], session=session)
        (root / "a.txt").write_text("three\n")
        session.read_file("a.txt")

        found = [(one.agent, set(one.paths)) for one in workspace.changes()]
    assert found == [("outside", {"a.txt"}), ("my-agent", {"old", "kept"}), ("my-agent", {"a.txt"})]

"""log, show, diff, undo and redo."""

import sqlite3
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.app import Settings, default_state_dir, open_workspace


def test_an_empty_log_is_a_friendly_sentence_and_leaves_nothing_behind(shell: Shell) -> None:
    said = shell("log")

    assert said.code == 0
    assert said.out.startswith(f"Nothing has been changed through Surehold in {shell.root} yet.\nTry it: surehold edit")
    assert list(shell.root.iterdir()) == []
    assert not shell.state_home.exists()
    assert shell.json("log") == {"entries": [], "more": False}


@requirement("front:cli:log")
def test_the_log_lists_what_happened_and_what_was_refused_newest_first(shell: Shell) -> None:
    shell.write("a.txt", "one\ntwo\n")
    change = shell.edit("a.txt", "one", "uno\ndue")
    shell("edit", "a.txt", "--old", "missing", "--new", "x")

    lines = [line.split() for line in shell("log").out.splitlines()]

    assert lines[0] == ["WHEN", "CHANGE", "WHO", "WHAT", "PATH", "RESULT"]
    assert lines[1][2:] == ["ada", "edit", "a.txt", "refused:", "old_text_not_found"]
    assert lines[2][1:] == [change[-8:], "ada", "edit", "a.txt", "+2", "-1"]


@requirement("outside:record:counted")
def test_the_log_counts_the_lines_of_an_outside_edit_and_names_it_whole(shell: Shell) -> None:
    path = shell.write("a.txt", "one\ntwo\n")
    shell.edit("a.txt", "one", "uno")
    path.write_text("uno\ntwo\nthree\nfour\n")
    shell("read", "a.txt")
    path.write_text("uno\n" + "x\n" * 200_000)
    shell("read", "a.txt")

    large, outside = [entry for entry in shell.json("log")["entries"] if entry["operation"] == "external"]
    row = next(line.split() for line in shell("log").out.splitlines() if outside["change_id"] in line)
    patched = shell("log", "--stat").out.splitlines()

    assert (outside["added"], outside["removed"]) == (2, 0)
    assert (large["added"], large["removed"]) == (0, 0)
    assert row[1:] == [outside["change_id"], "outside", "external", "a.txt", "+2"]
    assert "    a.txt  +2" in patched
    assert shell.json("show", outside["change_id"])["entries"][0]["added"] == 2


def test_the_log_as_json_has_every_fact(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "uno")

    document = shell.json("log")

    (entry,) = document["entries"]
    assert document["more"] is False
    assert list(entry) == [
        *(
            "seq",
            "change_id",
            "timestamp",
            "agent",
            "session",
            "turn",
            "call_id",
            "tool",
            "operation",
            "reason",
            "path",
            "to_path",
        ),
        *(
            "before",
            "after",
            "added",
            "removed",
            "ok",
            "error_kind",
            "message",
            "undoes",
            "undoes_all",
            "undone_by",
            "trash_id",
            "approval",
            "previous_hash",
            "hash",
        ),
    ]
    assert entry["change_id"] == change
    assert (entry["agent"], entry["operation"], entry["path"], entry["ok"]) == ("ada", "edit", "a.txt", True)
    assert (entry["added"], entry["removed"], entry["undone_by"]) == (1, 1, None)
    assert entry["timestamp"].endswith("+00:00")
    assert entry["before"]["size"] == 4


@requirement("front:cli:log", "engine:history:log")
def test_the_log_can_be_narrowed(shell: Shell) -> None:
    for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "srcs.txt"):
        shell.write(name, "one\n")
        shell.edit(name, "one", "two")
    shell("edit", "a.txt", "--old", "missing", "--new", "x")
    with open_workspace(shell.root) as workspace:
        workspace.session(agent="robot", id="s1").edit("a.txt", ("two", "three"))

    def paths(*argv: str) -> list[str]:
        return [entry["path"] for entry in shell.json("log", *argv)["entries"]]

    assert paths("src") == ["src/deep/c.txt", "src/b.txt"]
    assert paths("src/") == ["src/deep/c.txt", "src/b.txt"]
    assert paths("src/b.txt") == ["src/b.txt"]
    assert paths(str(shell.root / "src" / "b.txt")) == ["src/b.txt"]
    assert paths(".") == paths()
    assert paths("--agent", "robot") == ["a.txt"]
    assert paths("--session", "s1") == ["a.txt"]
    assert paths("--failed") == ["a.txt"]
    assert paths("--limit", "2") == ["a.txt", "a.txt"]
    assert len(paths("--limit", "2", "--all")) == 6
    assert paths("--agent", "rob", "--since", "1h") == ["a.txt"]
    assert paths("src", "a.txt", "--limit", "2") == ["a.txt", "a.txt"]
    assert paths("--until", "1h") == []
    assert "matches" in shell("log", "--until", "1h").out
    assert shell.json("log", "nothing-there", code=1)["error"]["reason"] == "no_history"


def test_a_deleted_directory_still_has_its_log(shell: Shell) -> None:
    shell.write("gone/a.txt", "one\n")
    assert shell("delete", "gone/a.txt").code == 0
    (shell.root / "gone").rmdir()

    assert [entry["operation"] for entry in shell.json("log", "gone")["entries"]] == ["delete"]


def test_a_move_shows_both_names(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell("move", "a.txt", "b.txt")

    assert "a.txt → b.txt" in shell("log").out


@requirement("front:cli:show")
def test_show_says_who_when_what_and_the_diff(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "uno")

    said = shell("show", change[-8:])

    lines = said.out.splitlines()
    assert lines[0] == f"Change   {change}"
    assert lines[2].startswith("Who      ada, session ")
    assert lines[3] == "What     edit a.txt (4 B → 4 B)"
    assert lines[6:] == ["Outcome  applied", "", "--- a.txt", "+++ a.txt", "@@ -1 +1 @@", "-one", "+uno"]


def test_show_as_json_has_entries_and_the_diff(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "uno")

    document = shell.json("show", change)

    assert list(document) == ["change_id", "undone_by", "entries", "diff"]
    assert document["diff"] == "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+uno\n"


def test_show_says_why_a_call_was_refused(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell("edit", "a.txt", "--old", "missing", "--new", "x")
    refused = shell.json("log", "--failed")["entries"][0]["change_id"]

    assert "Outcome  refused: old_text_not_found. " in shell("show", refused).out


def test_an_unknown_change_is_refused_with_the_way_to_find_it(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    said = shell("show", "zzzzzzzz")

    assert (said.code, said.out) == (1, "")
    assert said.err == "Refused: No change is called `zzzzzzzz`.\nNext: Look it up with `surehold log`.\n"
    assert shell.json("show", "zzzzzzzz", code=1)["error"]["reason"] == "no_such_change"


def test_a_difference_of_a_name_that_is_no_change_and_no_file_says_both(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    said = shell("diff", "nope.txt")

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Refused: Neither a change nor a file in the history is called `nope.txt`.\n")
    assert shell.json("diff", "nope.txt", code=1)["error"]["reason"] == "no_such_change"


@requirement("engine:history:show")
def test_an_ambiguous_change_names_the_candidates(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    changes = [shell.edit("a.txt", "one", "two"), shell.edit("a.txt", "two", "one")]

    said = shell("undo", changes[0][:5])

    assert said.code == 1
    assert "names 2 changes" in said.err
    assert all(change in said.err for change in changes)
    assert shell.json("show", changes[0][:5], code=1)["error"]["details"]["candidates"] == sorted(changes)


def test_diff_shows_the_newest_change_by_default_and_skips_refusals(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "uno")
    shell("edit", "a.txt", "--old", "missing", "--new", "x")

    assert shell("diff").out.splitlines()[-2:] == ["-one", "+uno"]
    assert shell("diff", change[-8:]).out == shell("diff").out
    assert shell.json("diff")["change_id"] == change


def test_diff_of_a_file_shows_what_happened_to_it_outside(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "uno")
    assert shell("diff", "a.txt").out == "a.txt is unchanged since its last recorded change.\n"

    path.write_text("outside\n")
    assert shell("diff", "a.txt").out.splitlines()[-2:] == ["-uno", "+outside"]
    path.unlink()

    assert shell("diff", "a.txt").out.splitlines() == ["--- a.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-uno"]
    assert shell.json("diff", "a.txt")["after_sha256"] == ""


def test_diff_of_a_file_without_history_says_so(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.write("b.txt", "one\n")
    shell.edit("a.txt", "one", "uno")

    said = shell("diff", "b.txt")

    assert (said.code, said.err.splitlines()[0]) == (1, "Refused: `b.txt` is not in the history.")


@requirement("front:cli:undo", "front:cli:redo")
def test_undo_and_redo_go_back_and_forth(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "two")

    assert shell("undo").out == "Undone: a.txt (+1 -1)\n"
    assert path.read_text() == "one\n"
    undone = shell.json("log")["entries"][0]["change_id"]
    assert f"undone by {undone[-8:]}" in shell("log").out
    assert shell("redo").out == "Redone: a.txt (+1 -1)\n"
    assert shell("log").out.splitlines()[1].endswith(f"+1 -1, redoes what {undone[-8:]} undid")
    redone = shell.json("log")["entries"][0]["change_id"]
    assert f"Redoes   what {undone} undid\n" in shell("show", redone).out
    assert path.read_text() == "two\n"
    assert shell("undo", change[-8:]).code == 0
    assert path.read_text() == "one\n"

    again = shell("undo", change)
    assert (again.code, again.err.splitlines()[-1]) == (1, f"Next: To make it again: surehold redo {change}")


@requirement("front:cli:undo")
def test_an_undo_leaves_later_changes_alone_or_refuses(shell: Shell) -> None:
    path = shell.write("a.txt", "".join(f"{n}\n" for n in range(20)))
    first = shell.edit("a.txt", "\n3\n", "\nthree\n")
    shell.edit("a.txt", "\n15\n", "\nfifteen\n")

    assert shell("undo", first).code == 0
    assert "\n3\n" in path.read_text()
    assert "fifteen" in path.read_text()

    second = shell.edit("a.txt", "\n7\n", "\nseven\n")
    shell.edit("a.txt", "seven", "sieben")
    said = shell("undo", second)
    assert said.code == 1
    assert "later changes touch the same lines" in said.err


def test_a_dry_run_shows_the_diff_and_changes_nothing(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    said = shell("undo", "--dry-run")

    assert said.out.splitlines()[0] == "Nothing was written. This would change 1 file:"
    assert said.out.splitlines()[-2:] == ["-two", "+one"]
    assert path.read_text() == "two\n"
    assert shell.json("undo", "--dry-run")["dry_run"] is True


@requirement("front:cli:undo")
def test_the_dry_run_of_a_large_undo_says_how_much_it_is_and_leaves_out_what_follows(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n" * 80_000)
    done = shell.process("run", "--", "sh", "-c", "mkdir sub; sed -i 1s/one/three/ a.txt")
    assert done.returncode == 0, done.stderr

    rows = shell("undo", "--dry-run").out.splitlines()
    assert rows[0] == "Nothing was written. This would change 2 files:"
    assert sorted(rows[1:]) == ["a.txt: 313 KB → 312 KB, not compared line by line", "sub"]
    assert path.read_text().startswith("three")


def test_a_receipt_as_json_has_every_file(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    document = shell.json("undo")

    assert list(document) == ["change_id", "dry_run", "already_applied", "replayed", "files", "warnings"]
    (file,) = document["files"]
    assert (file["path"], file["changed"], file["added"], file["removed"]) == ("a.txt", True, 1, 1)
    assert file["diff"].endswith("-two\n+one\n")


def test_nothing_to_undo_or_redo_is_refused(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell("edit", "a.txt", "--old", "missing", "--new", "x")

    assert shell("undo").err == "Refused: No change can be undone.\nNext: Look at `surehold log`.\n"
    assert shell("redo").err == "Refused: No change was undone.\nNext: Look at `surehold log`.\n"
    assert shell("diff").code == 1


@pytest.mark.parametrize("command", ["show abcd", "diff", "undo", "redo", "restore abcd", "trash empty --yes"])
def test_a_root_without_history_is_refused_and_nothing_is_made(shell: Shell, command: str) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    below = shell.root / "below"
    below.mkdir()

    said = shell("--root", str(below), *command.split())

    assert said.code == 1
    assert "Refused: There is no history here yet." in said.err
    assert list(below.iterdir()) == []
    assert not default_state_dir(str(below)).exists()


@requirement("front:cli:nearest_history")
def test_a_command_below_a_workspace_works_in_that_workspace(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    below = shell.root / "below"
    below.mkdir()
    shell.patch.chdir(below)

    said = shell("write", "sub.md", stdin=b"text\n")

    assert (said.code, said.err) == (0, f"Workspace: {shell.root}\n")
    assert (below / "sub.md").read_text() == "text\n"
    assert not default_state_dir(str(below)).exists()
    assert [row["path"] for row in shell.json("log")["entries"]] == ["below/sub.md", "a.txt"]
    assert [row["path"] for row in shell.json("log", "sub.md")["entries"]] == ["below/sub.md"]
    assert shell("read", "../a.txt").out == "two\n"
    (below / "sub.md").write_text("changed\n")
    assert "+changed" in shell("diff", "sub.md").out
    assert shell("log", "--root", ".").out.startswith(f"Nothing has been changed through Surehold in {below} yet.")


@requirement("front:cli:nearest_history")
def test_a_directory_that_is_named_is_where_the_command_was_typed(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    (shell.root / "below").mkdir()

    for words in (["-C", "below", "write", "b.txt"], ["write", "c.txt", "-C", "below"]):
        shell.patch.chdir(shell.root)
        said = shell(*words, stdin=b"text\n")
        assert (said.code, said.err.splitlines()[0]) == (0, f"Workspace: {shell.root}")

    shell.patch.chdir(shell.root)
    assert [row["path"] for row in shell.json("log")["entries"]] == ["below/c.txt", "below/b.txt", "a.txt"]
    assert not default_state_dir(str(shell.root / "below")).exists()
    assert shell("log", "--root", "below").out.startswith("Nothing has been changed through Surehold")
    refused = shell.json("-C", "missing", "log", code=1)["error"]
    assert (refused["reason"], bool(refused["suggested_action"])) == ("no_such_root", True)


@requirement("front:cli:nearest_history")
def test_without_a_history_the_repository_is_the_workspace(shell: Shell) -> None:
    (shell.root / ".git").mkdir()
    (shell.root / "deep" / "er").mkdir(parents=True)
    shell.patch.chdir(shell.root / "deep" / "er")

    shell("write", "new.txt", stdin=b"text\n")

    assert (shell.root / "deep" / "er" / "new.txt").read_text() == "text\n"
    assert default_state_dir(str(shell.root)).exists()


@requirement("front:cli:counts")
def test_lines_are_counted_also_where_the_diff_is_cut(shell: Shell) -> None:
    shell.write("big.txt", "".join(f"line {n} {'x' * 60}\n" for n in range(15_000)))
    said = shell.json("write", "big.txt", "--force", stdin="".join(f"row {n}\n" for n in range(14_000)).encode())
    (entry,) = shell.json("log")["entries"]

    assert said["files"][0]["diff_truncated"] is True
    assert (said["files"][0]["added"], said["files"][0]["removed"]) == (14_000, 15_000)
    assert (entry["added"], entry["removed"]) == (14_000, 15_000)
    assert "+14000 -15000" in shell("log").out


@requirement("front:cli:root")
def test_global_options_work_before_and_after_the_command(shell: Shell, tmp_path: Path) -> None:
    shell.write("a.txt", "one\n")
    state = str(tmp_path / "elsewhere")
    shell("--state-dir", state, "edit", "a.txt", "--old", "one", "--new", "two")

    before = shell("--root", str(shell.root), "--state-dir", state, "--json", "log")
    after = shell("log", "--root", str(shell.root), "--state-dir", state, "--json")

    assert before == after
    assert len(before.document["entries"]) == 1
    assert shell.json("log") == {"entries": [], "more": False}


def test_a_history_of_a_newer_version_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    database = default_state_dir(str(shell.root)) / "state.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()

    said = shell("log")

    assert said.code == 1
    assert said.err.startswith("Refused: A newer Surehold wrote this history.\nNext: Upgrade Surehold")
    assert shell.json("log", code=1)["error"]["reason"] == "state_too_new"


def test_a_state_directory_that_cannot_be_made_is_named(shell: Shell, tmp_path: Path) -> None:
    shell.write("a.txt", "one\n")
    (tmp_path / "file").write_text("not a directory")

    said = shell("edit", "a.txt", "--old", "one", "--new", "two", "--state-dir", str(tmp_path / "file" / "state"))

    assert said.code == 1
    assert said.err.splitlines()[0] == "Refused: The state directory cannot be used."
    assert said.err.splitlines()[1].startswith("Reason: ")
    assert str(tmp_path / "file") in said.err.splitlines()[1]
    assert said.err.splitlines()[2].startswith("Next: Make the state directory writable")
    assert (shell.root / "a.txt").read_text() == "one\n"


def test_the_truncated_diff_of_the_log_is_whole_in_show(shell: Shell) -> None:
    shell.write("big.txt", "".join(f"line {n} {'x' * 60}\n" for n in range(3000)))
    (shell.root / "new.txt").write_text("y\n" * 3000)
    said = shell.json("write", "big.txt", "--force", stdin=b"y\n" * 3000)
    assert said["files"][0]["diff_truncated"] is True

    assert "+3000 -3000" in shell("log").out
    assert shell.json("show", said["change_id"])["diff"].count("\n+y") == 3000


@requirement("promise:one_engine:library")
def test_settings_of_the_library_and_of_the_command_line_share_one_history(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    with open_workspace(shell.root, settings=Settings()) as workspace:
        receipt = workspace.session(agent="robot").edit("a.txt", ("one", "two"))

    assert shell.json("log")["entries"][0]["change_id"] == receipt.change_id
    assert shell("undo").code == 0


@requirement("front:cli:undo", "engine:undo:advice")
def test_undo_after_outside_damage_says_what_happened_and_what_can_be_undone(shell: Shell) -> None:
    other = shell.write("other.txt", "one\n")
    possible = shell.edit("other.txt", "one", "1")
    path = shell.write("a.txt", "one\ntwo\n")
    shell.edit("a.txt", "two", "2")
    path.write_text("one\nTWO\n")

    damaged = shell("undo")
    path.unlink()
    removed = shell("undo")

    assert damaged.code == removed.code == 1
    assert "`a.txt` cannot be taken back: an outside edit touches the same lines (2)." in damaged.err
    assert "`a.txt` cannot be taken back: it was removed outside of Surehold." in removed.err
    for said in (damaged, removed):
        assert "later changes" not in said.err
        assert f"The newest change that can be undone now: surehold undo {possible}" in said.err
    assert shell("undo", possible).code == 0
    assert other.read_text() == "one\n"


@requirement("front:cli:redo")
def test_redo_of_a_file_that_is_missing_speaks_of_making_the_change_again(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    shell("undo")
    path.unlink()

    said = shell("redo")

    assert said.err.startswith("Refused: `a.txt` cannot be made again: it was removed outside of Surehold.\n")


@requirement("front:cli:undo", "front:cli:log", "engine:undo:moves")
def test_log_show_and_diff_tell_where_a_moved_change_was_undone(shell: Shell) -> None:
    shell.write("f.txt", "one\n")
    moved = shell.json("move", "f.txt", "g.txt")["change_id"]
    edited = shell.edit("g.txt", "one", "two")

    assert shell("undo", moved).out == "Undone: g.txt → f.txt\n"
    assert shell("undo", edited).out == "Undone: f.txt (+1 -1)\n"

    undo, _, *_ = shell.json("log")["entries"]
    assert (undo["path"], undo["undoes"]) == ("f.txt", edited)
    assert shell.json("show", edited)["undone_by"] == undo["change_id"]
    assert shell.json("diff", undo["change_id"])["diff"].endswith("-two\n+one\n")
    assert shell.json("diff", "f.txt")["diff"] == ""
    assert {row["change_id"] for row in shell.json("log", "g.txt")["entries"]} >= {moved, edited}
    assert shell("redo", edited).out == "Redone: f.txt (+1 -1)\n"
    assert shell.json("show", edited)["undone_by"] is None

"""What a person wants to know of the history and do with it, through the real commands."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.app import open_workspace
from surehold.errors import NotFound
from surehold.workspace.session import CurrentServer, Session

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


def work(shell: Shell) -> None:
    """Let two agents work: one in two turns, then another one beside it."""
    shell.write("a.txt", TEXT)
    shell.write("b.txt", "bee\n")
    with open_workspace(shell.root) as workspace:
        claude, codex = (workspace.session(agent=name, id=f"session-{name}") for name in ("claude-code", "codex"))
        with claude.turn("Shout two"):
            claude.edit("a.txt", ("line 2\n", "LINE 2\n"), reason="two is important")
            claude.create("new.txt", "new\n", reason="a place for notes")
        with claude.turn("Shout ten"):
            claude.edit("a.txt", ("line 10\n", "LINE 10\n"), reason="ten too")
        codex.edit("a.txt", ("line 20\n", "LINE 20\n"), reason="codex was here")
        codex.move("b.txt", "c.txt")


def text(shell: Shell, name: str = "a.txt") -> str:
    return (shell.root / name).read_text()


def shouted(*numbers: int) -> str:
    return "".join(f"LINE {n}\n" if n in numbers else f"line {n}\n" for n in range(1, 31))


@requirement("history:log:selectors", "history:log:limit")
def test_what_happened_in_the_last_hour_with_the_reasons(shell: Shell) -> None:
    work(shell)

    said = shell("log", "--since", "1h", "--agent", "claude", "--oneline").out.splitlines()

    assert [line.split("  ", 2)[2] for line in said] == [
        "claude-code  edit  a.txt  (+1 -1)  ten too",
        "claude-code  create  new.txt  (+1)  a place for notes",
        "claude-code  edit  a.txt  (+1 -1)  two is important",
    ]
    assert len(shell("log", "--limit", "2", "--oneline").out.splitlines()) == 2
    assert "    new.txt  +1\n" in shell("log", "--stat").out
    assert "+LINE 10\n" in shell("log", "--patch", "a.txt").out


@requirement("history:undo:selection", "history:undo:keeps_later")
def test_all_of_one_agent_is_undone_as_one_change_and_made_again(shell: Shell) -> None:
    work(shell)

    preview = shell("undo", "--agent", "claude", "--since", "1h", "--dry-run")
    assert "Nothing was written." in preview.out
    assert text(shell) == shouted(2, 10, 20)
    undone = shell.json("undo", "--agent", "claude", "--since", "1h")

    assert (text(shell), (shell.root / "new.txt").exists()) == (shouted(20), False)
    rows = shell.json("log", "--agent", "claude")["entries"]
    assert {row["undone_by"] for row in rows} == {undone["change_id"]}
    assert shell.json("undo", "--agent", "claude", code=1)["error"]["message"].startswith("Everything that was")

    shell.json("redo")
    assert (text(shell), text(shell, "new.txt")) == (shouted(2, 10, 20), "new\n")
    assert shell.json("verify")["ok"]


@requirement("history:undo:any_order")
def test_undoing_everything_in_any_order_gives_the_original_bytes(shell: Shell) -> None:
    work(shell)
    ids = list(dict.fromkeys(row["change_id"] for row in shell.json("log")["entries"]))
    parts = [["--session", "last"], ["--turn", "1", "--session", "session-claude"], [ids[2]]]
    random.Random(7).shuffle(parts)

    for words in parts:
        shell.json("undo", *words)

    assert (text(shell), text(shell, "b.txt")) == (TEXT, "bee\n")
    assert sorted(path.name for path in shell.root.iterdir()) == ["a.txt", "b.txt"]


@requirement("history:undo:path")
def test_one_file_of_a_session_is_undone_and_the_rest_stays(shell: Shell) -> None:
    work(shell)

    shell.json("undo", "--session", "session-claude", "a.txt")

    assert (text(shell), text(shell, "new.txt")) == (shouted(20), "new\n")
    shell.json("redo", "--session", "session-claude")
    assert text(shell) == shouted(2, 10, 20)


@requirement("history:undo:path")
@pytest.mark.parametrize("way", ["selected", "one"])
def test_a_file_is_undone_alone_also_where_an_undo_of_several_files_touched_it(shell: Shell, way: str) -> None:
    for name in ("a.txt", "b.txt"):
        shell.write(name, TEXT)
    with open_workspace(shell.root) as workspace:
        patch = "".join(f"--- {name}\n+++ {name}\n@@ -2 +2 @@\n-line 2\n+LINE 2\n" for name in ("a.txt", "b.txt"))
        changed = workspace.session(agent="claude-code").apply_patch(patch)
        workspace.session(agent="codex").edit("a.txt", ("line 9\n", "LINE 9\n"))
    shell.json("undo", *(["--agent", "claude"] if way == "selected" else [str(changed.change_id)]))
    assert text(shell, "b.txt") == TEXT

    shell.json("undo", "a.txt")

    assert (text(shell), text(shell, "b.txt")) == (TEXT, TEXT)


@requirement("history:undo:path", "history:undo:selection")
@pytest.mark.parametrize("undone", [["a.txt", "b.txt"], ["b.txt", "a.txt"], ["b.txt"]], ids=" ".join)
def test_a_change_that_was_undone_file_by_file_is_made_again_whole(shell: Shell, undone: list[str]) -> None:
    for name in ("a.txt", "b.txt"):
        shell.write(name, TEXT)
    with open_workspace(shell.root) as workspace:
        patch = "".join(f"--- {name}\n+++ {name}\n@@ -2 +2 @@\n-line 2\n+LINE 2\n" for name in ("a.txt", "b.txt"))
        changed = str(workspace.session(agent="claude-code").apply_patch(patch).change_id)
    for name in undone:
        shell.json("undo", name)

    shell.json("redo", changed)

    assert text(shell) == text(shell, "b.txt") == TEXT.replace("line 2\n", "LINE 2\n")
    assert shell("redo", changed).code == 1
    shell.json("undo", changed)
    assert (text(shell), text(shell, "b.txt")) == (TEXT, TEXT)


@requirement("history:selectors:moved")
def test_a_file_is_followed_back_through_its_moves(shell: Shell) -> None:
    shell.write("old.txt", TEXT)
    with open_workspace(shell.root) as workspace:
        claude = workspace.session(agent="claude-code")
        first = claude.edit("old.txt", ("line 2\n", "LINE 2\n"), reason="first")
        claude.move("old.txt", "mid.txt")
        claude.edit("mid.txt", ("line 5\n", "LINE 5\n"), reason="second")
        claude.move("mid.txt", "src/new.txt")
        other = claude.create("old.txt", "another file\n", reason="not meant")

    said = shell("log", "--oneline", "src/new.txt").out.splitlines()
    assert [line.split("  ", 3)[3].split("  ")[0] for line in said] == ["move", "edit", "move", "edit"]
    assert "+LINE 2\n" in shell("diff", "--agent", "claude", "src/new.txt").out
    assert shell("read", "src/new.txt", "--at", first.change_id, "--lines", "2").out.endswith("LINE 2\n")
    assert shell("read", "src/new.txt", "--at", other.change_id).out == shouted(2, 5)

    assert shell("undo", "src/new.txt").code == 1
    shell("move", "old.txt", "other.txt")
    shell("undo", "src/new.txt")

    assert {path.name: path.read_text() for path in shell.root.glob("*.txt")} == {
        "old.txt": TEXT,
        "other.txt": "another file\n",
    }


@requirement("history:undo:partial")
def test_a_conflict_is_named_by_its_lines_and_the_rest_can_be_undone(shell: Shell) -> None:
    work(shell)
    shell.edit("a.txt", "LINE 2\n", "line two\n")

    refused = shell.json("undo", "--agent", "claude", code=1)["error"]
    assert refused["details"]["conflicts"] == [
        {"path": "a.txt", "why": "later changes touch the same lines (2)", "lines": [2]}
    ]
    assert refused["suggested_action"] == "--partial does what can be done: 2 of 3 changes."
    assert text(shell) == shouted(2, 10, 20).replace("LINE 2\n", "line two\n")

    left = next(one for one in shell.json("log", "--all")["entries"] if one["reason"] == "two is important")
    expected = f"`a.txt`: not undone ({left['change_id']}), since later changes touch the same lines (2)."
    assert shell.json("undo", "--agent", "claude", "--partial", "--dry-run")["warnings"] == [expected]
    assert f"Left out: {expected}" in shell("undo", "--agent", "claude", "--partial", "--dry-run").out
    done = shell("undo", "--agent", "claude", "--partial")
    assert f"Left out: {expected}" in done.out
    assert text(shell) == shouted(20).replace("line 2\n", "line two\n")
    assert not (shell.root / "new.txt").exists()


@requirement("history:undo:partial")
def test_a_file_that_another_agent_deleted_is_named_among_what_is_left_out(shell: Shell) -> None:
    work(shell)
    with open_workspace(shell.root) as workspace:
        codex = workspace.session(agent="codex")
        codex.read("new.txt")
        codex.delete("new.txt")

    left = next(one for one in shell.json("log", "--all")["entries"] if one["reason"] == "a place for notes")
    said = shell.json("undo", "--agent", "claude", "--partial", "--dry-run")["warnings"]
    assert said == [f"`new.txt`: not undone ({left['change_id']}), since it was deleted later."]


@requirement("history:rewind:turn")
def test_rewind_goes_back_turn_by_turn_and_can_be_undone(shell: Shell) -> None:
    work(shell)

    shell.json("rewind")
    assert (text(shell), text(shell, "b.txt")) == (shouted(2, 10), "bee\n")
    shell.json("rewind")
    assert text(shell) == shouted(2)
    change = shell.json("rewind")["change_id"]
    assert (text(shell), (shell.root / "new.txt").exists()) == (TEXT, False)

    shell.json("undo", change)
    assert text(shell) == shouted(2)


@requirement("history:diff:net")
def test_a_conversation_is_one_difference(shell: Shell) -> None:
    work(shell)
    with open_workspace(shell.root) as workspace:
        workspace.session(id="session-claude-code", agent="claude-code").edit("a.txt", ("LINE 10\n", "TEN\n"))

    files = shell.json("diff", "--session", "session-claude-code")["files"]

    assert [(one["path"], one["added"], one["removed"], one["conflict"]) for one in files] == [
        ("a.txt", 2, 2, None),
        ("new.txt", 1, 0, None),
    ]
    assert "-line 10\n+TEN\n" in files[0]["diff"]
    assert "LINE 20" not in [row[1:] for row in files[0]["diff"].split("\n") if row[:1] in "+-"]


@requirement("history:blame:lines")
def test_who_changed_a_line(shell: Shell) -> None:
    work(shell)
    shell.write("a.txt", text(shell).replace("line 30\n", "outside\n"))

    lines = shell.json("blame", "a.txt")["lines"]

    assert lines[1] == {
        "number": 2,
        "text": "LINE 2",
        "change_id": shell.json("log", "--turn", "1", "a.txt")["entries"][0]["change_id"],
        "agent": "claude-code",
        "session": "session-claude-code",
        "turn": "1",
        "reason": "two is important",
    }
    known = {n + 1: (one["agent"], one["turn"]) for n, one in enumerate(lines) if one["agent"] != "outside"}
    assert known == {2: ("claude-code", "1"), 10: ("claude-code", "2"), 20: ("codex", None)}
    assert {lines[0]["agent"], lines[29]["agent"]} == {"outside"}


@requirement("history:blame:lines")
def test_lines_that_came_back_are_those_of_who_wrote_them(shell: Shell) -> None:
    work(shell)
    before = shell.json("blame", "a.txt")["lines"]
    new = shell.json("blame", "new.txt")["lines"]
    middle = shell.json("log", "--turn", "2", "--session", "session-claude", "a.txt")["entries"][0]["change_id"]

    shell.json("undo", "--agent", "claude")
    assert [one["agent"] for one in shell.json("blame", "a.txt")["lines"]].count("codex") == 1
    assert {one["agent"] for one in shell.json("blame", "a.txt")["lines"]} == {"outside", "codex"}
    shell.json("redo")
    assert (shell.json("blame", "a.txt")["lines"], shell.json("blame", "new.txt")["lines"]) == (before, new)

    shell.json("undo", middle)
    assert shell.json("blame", "a.txt")["lines"][9]["agent"] == "outside"
    shell.json("redo", middle)
    assert shell.json("blame", "a.txt")["lines"] == before
    trash = shell.json("delete", "new.txt")["files"][0]["trash_id"]
    shell.json("restore", trash)
    assert shell.json("blame", "new.txt")["lines"] == new
    (shell.root / "a.txt").write_text("damaged\n")
    shell.json("revert", "a.txt")
    assert shell.json("blame", "a.txt")["lines"] == before


def test_the_last_session_and_turn_are_those_of_what_else_is_selected(shell: Shell) -> None:
    work(shell)

    def reasons(*words: str) -> list[str]:
        return [one["reason"] for one in shell.json("log", *words)["entries"]]

    assert reasons("--agent", "claude", "--turn", "last") == ["ten too"]
    assert reasons("--session", "last", "--agent", "claude") == ["ten too", "a place for notes", "two is important"]
    assert reasons("--turn", "last", "new.txt") == ["a place for notes"]
    assert reasons("--session", "last") == ["", "codex was here"]
    error = shell.json("log", "--session", "last", "--agent", "outside", code=1)["error"]
    assert error["reason"] == "no_such_session"


def test_an_id_is_named_by_the_beginning_of_what_tables_show(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    change = shell.edit("a.txt", "one", "two")
    shown = shell("log", "--oneline").out.split()[0]

    assert shell.json("show", shown[:5])["change_id"] == change
    session = shell.json("log")["entries"][0]["session"]
    assert len(shell.json("log", "--session", session[-8:][:5])["entries"]) == 1


@requirement("history:read:earlier")
def test_a_file_as_it_was(shell: Shell) -> None:
    work(shell)
    ids = [row["change_id"] for row in shell.json("log", "a.txt")["entries"]][::-1]

    assert shell("read", "a.txt", "--at", ids[1]).out == shouted(2, 10)
    assert shell("read", "a.txt", "--before", ids[0]).out == TEXT
    assert shell("read", "a.txt", "--at-time", "1h").out == TEXT
    assert shell("read", "b.txt", "--before", ids[0]).out == "bee\n"
    refused = shell.json("read", "new.txt", "--before", ids[0], code=1)["error"]
    assert refused["reason"] == "not_at_that_time"


@requirement("history:revert:files")
def test_damage_by_other_programs_is_reverted(shell: Shell) -> None:
    work(shell)
    shell.write("a.txt", "damaged\n")
    (shell.root / "new.txt").unlink()
    assert shell.json("status")["outside"] == ["a.txt", "new.txt"]

    shell.json("revert", "a.txt", "new.txt")
    assert "Outside edits: none since those in `surehold log --agent outside`\n" in shell("status").out

    assert (text(shell), text(shell, "new.txt")) == (shouted(2, 10, 20), "new\n")
    first = shell.json("log", "a.txt")["entries"][-1]["change_id"]
    change = shell.json("revert", "a.txt", "--to", first)["change_id"]
    assert text(shell) == shouted(2)
    shell.json("undo", change)
    assert text(shell) == shouted(2, 10, 20)


@requirement("history:sessions:facts", "history:status:facts")
def test_sessions_and_status_have_their_facts(shell: Shell) -> None:
    work(shell)

    codex, claude = shell.json("sessions")["sessions"]
    assert (codex["session"], codex["files"]) == ("session-codex", 3)
    assert {name: claude[name] for name in ("agent", "turns", "changes", "files", "added", "removed")} == {
        "agent": "claude-code",
        "turns": 2,
        "changes": 3,
        "files": 2,
        "added": 3,
        "removed": 2,
    }
    assert codex["turns"] == 1, "none was marked"
    assert "Outside edits: none\n" in shell("status").out
    status = shell.json("status")
    assert list(status) == ["workspace", "state", "questions", "agents", "outside", "last"]
    assert (status["workspace"], len(status["last"]), status["outside"]) == (str(shell.root), 5, [])


@contextmanager
def watch_log(shell: Shell, *words: str) -> Generator[subprocess.Popen[str]]:
    """Follow the log in a process of its own, which is interrupted in the end."""
    watching = subprocess.Popen(
        [sys.executable, "-u", "-m", "surehold", "log", "--follow", *words],
        cwd=shell.root,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads here
    )
    try:
        yield watching
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate()
    assert watching.returncode == 130


@requirement("history:log:follow")
def test_the_log_is_watched_live(shell: Shell) -> None:
    work(shell)
    with watch_log(shell, "--oneline", "--limit", "1") as watching:
        assert watching.stdout is not None
        assert "move  b.txt" in watching.stdout.readline()
        shell.edit("a.txt", "line 5\n", "five\n")
        assert "edit  a.txt" in watching.stdout.readline()


@requirement("history:log:follow")
def test_the_log_waits_for_the_first_change_and_each_line_has_one_shape(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    with watch_log(shell, "--json") as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "waiting for the first change" in watching.stderr.readline()
        changes = [shell.edit("a.txt", "one", "two"), shell.edit("a.txt", "two", "three")]
        rows = [json.loads(watching.stdout.readline()) for _ in changes]

    assert [row["change_id"] for row in rows] == changes
    assert rows[0].keys() == rows[1].keys()


@requirement("history:export:patch", "history:export:jsonl")
def test_the_history_is_exported_as_a_patch_and_as_json_lines(shell: Shell) -> None:
    work(shell)

    patch = shell("export", "--session", "session-claude").out
    rows = [json.loads(line) for line in shell("export", "--agent", "claude", "--format", "jsonl").out.splitlines()]

    assert [row["turn"] for row in rows] == ["1", "1", "2"]
    assert all(row["diff"].startswith("--- ") for row in rows)
    shell.json("undo", "--session", "session-claude")
    subprocess.run(["patch", "-p1", "--binary"], cwd=shell.root, input=patch.encode(), check=True, capture_output=True)
    assert (text(shell), text(shell, "new.txt")) == (shouted(2, 10, 20), "new\n")


@requirement("history:export:bundle")
def test_a_bundle_verifies_elsewhere_and_every_flipped_bit_is_found(shell: Shell, tmp_path: Path) -> None:
    work(shell)
    bundle, bad = tmp_path / "work.bundle", tmp_path / "bad.bundle"
    shell.json("export", "--session", "session-claude", "--format", "bundle", "--output", str(bundle))
    assert shell.json("verify", str(bundle)) == {"ok": True, "entries": 3, "versions": 4, "problem": ""}
    data = bundle.read_bytes()
    places = (
        range(len(data) * 8) if os.environ.get("SUREHOLD_SOAK") else random.Random(3).sample(range(len(data) * 8), 150)
    )

    for place in places:
        broken = bytearray(data)
        broken[place // 8] ^= 1 << place % 8
        bad.write_bytes(broken)
        assert shell("verify", str(bad)).code == 1, place
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        bad.write_bytes(data[:cut])
        assert shell("verify", str(bad)).code == 1, cut
    exists = shell("export", "--session", "session-claude", "--format", "bundle", "--output", str(bundle))
    assert (exists.code, bundle.read_bytes()) == (1, data)


NESTED = b"[" * 100_000 + b"]" * 100_000
HEADER = b'{"entries":1,"format":"surehold-bundle","made":"","version":1}'


@pytest.mark.parametrize(
    "data",
    [
        *(b"[]\n{}\n", b"1\n2\n", b'"text"\n\n', b"null\n[]\n", NESTED + b"\n{}\n"),
        *(HEADER + b"\n" + line + b"\n{}\n" for line in (b"[1]", NESTED, b'{"entry":[1]}', b'{"entry":{"seq":[]}}')),
        b'{"entries":1e999,"format":"surehold-bundle","version":1}\n{}\n',
    ],
    ids=range(10),
)
@requirement("history:export:bundle")
def test_what_is_no_bundle_is_refused(shell: Shell, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad").write_bytes(data)

    assert shell("verify", str(tmp_path / "bad")).code == 1


@requirement("front:exit:usage")
@pytest.mark.parametrize(
    "words",
    [
        *(["read", "a.txt", "--at"], ["read", "a.txt", "--before"], ["read", "a.txt", "--at-time"]),
        *(["revert", "a.txt", "--to"], ["restore", "a.txt", "--to"]),
    ],
    ids=" ".join,
)
def test_an_option_whose_value_a_script_lost_is_not_taken_for_left_out(shell: Shell, words: list[str]) -> None:
    (shell.root / "a.txt").write_text("now\n", encoding="utf-8")

    said = shell(*words, "")

    assert (said.code, said.out) == (2, "")
    assert words[-1] in said.err


BAD_WORDS: list[tuple[list[str], str]] = [
    (["undo", "--session", "unknown"], "no_such_session"),
    (["undo", "--session", "session-c"], "ambiguous_session"),
    (["undo", "--agent", "gemini"], "no_such_agent"),
    (["undo", "--turn", "9"], "no_such_turn"),
    (["undo", "--since", "2999-01-01"], "future_time"),
    (["log", "--until", "2999-01-01T00:00"], "future_time"),
    (["log", "--since", "1h", "--until", "2h"], "empty_period"),
    (["undo", "--session", "session-idle"], "no_changes"),
    (["undo", "--agent", "claude", "--until", "1h"], "no_changes"),
    (["blame", "never.txt"], "not_found"),
    (["revert", "never.txt"], "no_history"),
    (["undo", "--agent", "codex", "never.txt"], "no_history"),
    (["read", "never.txt", "--at-time", "1h"], "no_history"),
    (["export"], "no_selector"),
    (["commit", "--session", "last"], "no_repository"),
]


@requirement("front:exit:usage")
@pytest.mark.parametrize(
    "words",
    [
        *(["log", "--since", "soon"], ["diff", "--until", "soon"], ["undo", "--since", "25:00"]),
        *(["read", "a.txt", "--at-time", "soon"], ["sessions", "--since", "soon"], ["export", "--since", "0x"]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("has_history", [True, False])
def test_what_is_not_a_time_is_wrong_usage(shell: Shell, words: list[str], *, has_history: bool) -> None:
    if has_history:
        work(shell)
    before = {path.name: path.read_bytes() for path in shell.root.iterdir()}

    error: dict[str, Any] = shell.json(*words, code=2)["error"]

    assert error["reason"] == "bad_time"
    assert "2026-11-17T10:00" in error["suggested_action"]
    assert {path.name: path.read_bytes() for path in shell.root.iterdir()} == before


@requirement("history:selectors:bad")
@pytest.mark.parametrize(
    ("words", "reason"), [pytest.param(words, reason, id=" ".join(words)) for words, reason in BAD_WORDS]
)
def test_what_names_nothing_is_refused_in_clear_words(shell: Shell, words: list[str], reason: str) -> None:
    work(shell)
    with open_workspace(shell.root) as workspace:
        workspace.session(id="session-idle", agent="idle")
    before = {path.name: path.read_bytes() for path in shell.root.iterdir()}

    error: dict[str, Any] = shell.json(*words, code=1)["error"]

    assert reason in {error.get("reason"), error["kind"]}, error
    assert error["suggested_action"]
    assert {path.name: path.read_bytes() for path in shell.root.iterdir()} == before


@requirement("history:diff:net")
def test_a_net_difference_of_a_file_that_was_changed_outside_since_is_told_at_once(shell: Shell) -> None:
    shell.write("a.txt", "one\ntwo\n")
    shell.edit("a.txt", "one", "1")
    shell.write("a.txt", "1\nOUTSIDE\n")

    (file,) = shell.json("diff", "--agent", "ada")["files"]

    assert (file["added"], file["removed"]) == (1, 1)
    assert "-one\n+1\n" in file["diff"]


@requirement("history:selectors:bad")
@pytest.mark.parametrize("option", ["--session", "--agent", "--turn", "--since", "--until"])
def test_an_empty_selector_is_refused_and_takes_nothing_back(shell: Shell, option: str) -> None:
    work(shell)

    answer = shell("undo", option, "")

    assert (answer.code, text(shell)) == (2, shouted(2, 10, 20))
    assert "it is empty" in answer.err


@requirement("history:log:selectors")
def test_any_beginning_of_one_session_alone_names_it(shell: Shell) -> None:
    with open_workspace(shell.root) as workspace:
        workspace.session(agent="a", id="abc-first").create("1.txt", "1\n")
        workspace.session(agent="a", id="abd-other").create("2.txt", "2\n")

    said = shell("log", "--session", "abc").out
    assert ("1.txt" in said, "2.txt" in said) == (True, False)
    assert "names 2 sessions" in shell("log", "--session", "ab").err


@requirement("history:selectors:bad")
def test_a_turn_without_changes_names_nothing_and_no_other_turn(shell: Shell) -> None:
    with open_workspace(shell.root) as workspace:
        session = workspace.session(agent="a")
        with session.turn("only a question") as turn:
            empty = turn.id
        for number in range(2, 13):
            with session.turn(f"request {number}"):
                session.create(f"{number}.txt", "x\n")
        assert workspace.changes(session=session.id, turn=empty) == []
        with pytest.raises(NotFound):
            workspace.undo(session=session.id, turn=empty)
        assert len(workspace.changes(session=session.id)) == 11


@requirement("history:selectors:bad")
def test_a_number_is_no_beginning_of_a_turns_number(shell: Shell) -> None:
    session = "of-a-host"
    for turn in ("12", "31", "request-12"):
        shell("run", "--session", session, "--turn", turn, "--", "touch", f"{turn}.txt")

    assert "No turn is called `1`" in shell("log", "--session", session, "--turn", "1").err
    assert "request-12.txt" in shell("log", "--session", session, "--turn", "request").out


@requirement("history:selectors:bad")
def test_a_turn_that_did_nothing_to_a_file_is_a_turn_all_the_same(shell: Shell) -> None:
    shell("run", "--session", "s", "--turn", "first", "--", "touch", "1.txt")
    shell("run", "--session", "s", "--turn", "other", "--", "touch", "2.txt")

    refused = shell("undo", "--turn", "first", "2.txt")

    assert refused.code == 1
    assert "No change matches `--turn first 2.txt`" in refused.err
    assert "No entry" in shell("log", "--turn", "first", "2.txt").out
    assert "No turn is called `third`" in shell("undo", "--turn", "third", "2.txt").err


@requirement("history:status:facts")
def test_status_names_the_agents_that_work_and_no_server_that_ended(shell: Shell) -> None:
    with open_workspace(shell.root) as workspace:
        called, silent = CurrentServer(workspace), CurrentServer(workspace)
        served = called.choose_session("codex", fresh="session-codex")

        assert [one["session"] for one in shell.json("status")["agents"]] == [served]

        silent.end()
        called.end()
        assert shell.json("status")["agents"] == []


@requirement("history:sessions:facts")
def test_sessions_take_the_selectors_that_the_other_commands_take(shell: Shell) -> None:
    work(shell)

    def rows(*words: str) -> list[tuple[str, int, int]]:
        found = shell.json("sessions", *words)["sessions"]
        return [(one["agent"], one["changes"], one["files"]) for one in found]

    assert rows("--agent", "claude") == [("claude-code", 3, 2)]
    assert rows("--since", "1h") == [("codex", 2, 3), ("claude-code", 3, 2)]
    assert rows("new.txt") == [("claude-code", 1, 1)]
    assert rows("--session", "session-claude-code", "--turn", "last") == [("claude-code", 1, 1)]
    assert shell.json("sessions", "--agent", "unknown", code=1)["error"]["reason"] == "no_such_agent"


@requirement("history:selectors:bad")
def test_what_cannot_be_undone_or_redone_says_what_works_instead(shell: Shell) -> None:
    work(shell)
    done = shell.edit("a.txt", "LINE 10\n", "ten\n")
    shell("edit", "a.txt", "--old", "not there", "--new", "x")
    refused = next(one["change_id"] for one in shell.json("log", "--failed")["entries"])

    for words in (("undo", refused), ("redo", refused), ("redo", done)):
        error = shell.json(*words, code=1)["error"]
        assert error["suggested_action"] != "Correct the call and try again."
        assert ("surehold undo" if words[-1] == done else "refused") in error["suggested_action"]


@requirement("history:commit:exact")
def test_a_commit_names_only_changes_that_head_does_not_have_and_asks_who_one_is(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=shell.root, check=True, capture_output=True, text=True).stdout

    work(shell)
    git("init", "-q", ".")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("EMAIL", "")
    git("config", "user.useConfigOnly", "true")
    refused = shell.json("commit", "--session", "session-claude-code", code=1)["error"]
    assert (refused["reason"], refused["message"]) == ("no_git_identity", "Git does not know who you are.")
    assert "git config user.email" in refused["suggested_action"]

    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    ids = {one["reason"]: one["change_id"] for one in shell.json("log", "--all")["entries"]}
    shell("commit", ids["a place for notes"])
    again = shell.json("commit", "--session", "session-claude-code")
    assert again["paths"] == ["a.txt"]
    named = [ids["two is important"], ids["ten too"]]
    trailers = ["Agent: claude-code", *(f"Surehold-Change: {name}" for name in named)]
    assert again["message"].splitlines()[-3:] == trailers
    assert "a place for notes" not in again["message"]


@requirement("front:cli:safe_text")
def test_names_and_reasons_of_agents_are_escaped_where_they_leave_the_history(shell: Shell) -> None:
    for words in (["init", "-q", "."], ["config", "user.name", "Ada"], ["config", "user.email", "a@example.org"]):
        subprocess.run(["git", *words], cwd=shell.root, check=True)
    shell.write("a.txt", "one\n")
    subprocess.run(["git", "add", "-A"], cwd=shell.root, check=True)
    subprocess.run(["git", "commit", "-qm", "base"], cwd=shell.root, check=True)
    with open_workspace(shell.root) as workspace:
        session = Session(workspace, id="named by a client", agent="evil\n\x1b[31mred")
        session.read("a.txt")
        session.edit("a.txt", ("one", "two"), reason="fix \x1b[2J \u202e it")

    error = shell.json("log", "--agent", "unknown", code=1)["error"]
    assert not any(one in error["suggested_action"] for one in ("\n", "\x1b"))
    message = shell.json("commit", "--session", "last")["message"]
    assert not any(one in message for one in ("\x1b", "\u202e"))


@requirement("history:sessions:facts")
def test_a_session_that_only_ran_a_command_is_listed_whatever_selects_it(shell: Shell) -> None:
    shell("run", "--agent", "runner", "--", "sh", "-c", "echo 1 > made.txt")
    (everything,) = shell.json("sessions")["sessions"]

    assert (everything["agent"], everything["changes"], everything["files"]) == ("runner", 1, 1)
    for words in (["--agent", "run"], ["--since", "1h"], ["--session", "last"], ["made.txt"]):
        assert shell.json("sessions", *words)["sessions"] == [everything]

"""What holds for every command: JSON on demand, plain text in pipes, nothing that steers a terminal, diffs that apply."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from front.shell import Shell
from spec.marks import requirement
from stores.scenes import fill_history
from surehold.app import open_workspace
from surehold.front.cli.command import COMMAND_MODULES
from surehold.library.session import AgentSession

SCRIPT = """
read a.txt
view a.txt
grep one
glob a.txt
edit a.txt --old one --new two
rewind --dry-run
write b.txt --force
move b.txt c.txt
delete c.txt
trash list
trash
restore c.txt
undo
redo
status
sessions
log
blame a.txt
export CHANGE --format bundle --output out.bundle
commit a.txt --dry-run
revert a.txt
show CHANGE
diff CHANGE
diff a.txt
verify
recover
gc --keep 30d
doctor
config
completion bash
setup gemini --dry-run
version
schema --format openai
prompt
trash empty --yes
""".strip().splitlines()


@requirement("front:cli:json")
def test_every_command_takes_json_and_prints_one_document(shell: Shell) -> None:
    shell.write("a.txt", "zero\n")
    change = shell.edit("a.txt", "zero", "one")
    used = set[str]()
    subprocess.run(["git", "init", "-q", "."], cwd=shell.root, check=True)

    for line in SCRIPT:
        words = line.replace("CHANGE", change).split()
        said = shell(*words, "--json", stdin=b"text\n")
        assert (said.code, said.err) == (0, ""), line
        assert isinstance(json.loads(said.out), (dict, list)), line
        used.add(words[0])

    servers, with_arguments = (
        {"mcp", "serve", "acp", "review"},
        {"tool", "hook", "run", "state"},
    )  # they have tests of their own; the first two always print JSON, `state` needs a database
    assert used == set(COMMAND_MODULES) - {"help"} - servers - with_arguments


@requirement("front:cli:diff")
@pytest.mark.skipif(shutil.which("patch") is None, reason="GNU patch is not installed")
def test_a_diff_in_a_pipe_is_applied_by_patch(shell: Shell) -> None:
    old, new = b"one\ntwo\r\n\tthree\x1b[2J\nfour", b"one\n2\n\t3\x1b[2J\nfour\n"
    path = shell.root / "a.txt"
    path.write_bytes(old)
    change = shell.json("write", "a.txt", "--force", stdin=new)["change_id"]
    assert path.read_bytes() == new

    diff = shell.process("diff", change).stdout
    command = ["patch", "-R", "-p0", "--binary", "--force", "--fuzz=0"]
    done = subprocess.run(command, cwd=shell.root, input=diff, capture_output=True, check=False)

    assert (done.returncode, path.read_bytes()) == (0, old), (diff, done.stdout)


@requirement("front:cli:gc", "engine:gc:recorded")
def test_gc_removes_what_is_old_says_so_and_records_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shell.write("a.txt", "one\n")
    with monkeypatch.context() as patch:
        patch.setattr("surehold.stores.ledger_entries.utc_now", lambda: datetime.now(UTC) - timedelta(days=40))
        with open_workspace(shell.root) as workspace:
            old = workspace.session().edit("a.txt", ("one", "two")).change_id
    new = shell.edit("a.txt", "two", "three")

    planned = shell.json("gc", "--keep", "30d", "--dry-run")
    said = shell("gc", "--keep", "30d")

    assert (planned["blobs"], planned["dry_run"]) == (1, True)
    assert said.code == 0
    assert "1 stored version" in said.out
    assert shell.json("log")["entries"][0]["operation"] == "gc"
    assert shell("undo", old).code == 1
    assert shell("undo", new).code == 0
    assert path.read_text() == "two\n"


@requirement("engine:archive:read", "engine:archive:sealed", "front:cli:gc")
def test_archived_changes_are_shown_as_before(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shell.write("a.txt", "one\n")
    with monkeypatch.context() as patch:
        patch.setattr("surehold.stores.ledger_entries.utc_now", lambda: datetime.now(UTC) - timedelta(days=40))
        with open_workspace(shell.root) as workspace:
            old = workspace.session().edit("a.txt", ("one", "two")).change_id
    (state,) = (place.parent for place in shell.state_home.rglob("state.db"))
    fill_history(state, 300)
    new = shell.edit("a.txt", "two", "three")
    questions = (["log", "a.txt"], ["log", "--patch", "--until", "20d"], ["show", old], ["blame", "a.txt"])
    before = [shell(*question) for question in questions]

    assert shell("gc", "--keep", "30d", "--dry-run").out.endswith(" Would archive 255 entries.\n")
    assert shell("gc", "--keep", "30d").out.endswith(" Archived 255 entries.\n")

    after = [shell(*question) for question in questions]
    assert after[:3] == before[:3]
    assert (after[3].code, after[3].out) == (0, before[3].out)
    assert "entries and " in shell("verify").out
    assert shell("undo", new).code == 0
    said = shell("undo", old)
    assert (said.code, "not stored any more" in said.err) == (1, True), said
    assert path.read_text() == "two\n"


@requirement("front:cli:terminal")
def test_a_pipe_gets_the_whole_text_whatever_the_width(shell: Shell) -> None:
    name = "a/rather/deep/directory/with/a/long/name/file.py"
    shell.write(name, "one\n")
    shell.edit(name, "one", "two")

    said = shell.process("log", COLUMNS="30")

    assert name in said.stdout.decode()
    assert b"\x1b" not in said.stdout


@requirement("front:cli:safe_text")
@pytest.mark.parametrize("words", [["log"], ["show", "CHANGE"], ["trash", "list"], ["diff", "CHANGE"]])
def test_neither_an_agent_nor_its_reason_nor_content_can_steer_the_terminal(shell: Shell, words: list[str]) -> None:
    shell.write("a.txt", "one\n")
    shell.write("b.txt", "one\n")
    evil = "\x1b[2J\x07\x9b31m\u202e"
    with open_workspace(shell.root) as workspace:
        session = AgentSession(workspace, id=f"session{evil}", agent=f"robot{evil}")  # as an older history may have it
        change = session.edit("a.txt", ("one", f"two{evil}"), reason=f"because{evil}").change_id
        session.delete("b.txt", expected_sha256=workspace.fingerprint("b.txt"), reason=evil)

    code, shown = shell.terminal(*(word.replace("CHANGE", change) for word in words), "--no-color")

    assert code == 0
    assert [sign for sign in shown if (ord(sign) < 32 and sign != "\n") or 0x7F <= ord(sign) < 0xA0] == []
    assert "\u202e" not in shown

"""What a person sees on a real terminal."""

import os
import re

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.app import open_workspace
from surehold.front.cli.output import display_width
from surehold.workspace.session import Session

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def plain(shown: str) -> str:
    return ESCAPE.sub("", shown)


@requirement("front:cli:terminal")
def test_a_terminal_gets_colour_relative_times_and_the_next_step(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    code, shown = shell.terminal("edit", "a.txt", "--old", "one", "--new", "two")
    assert code == 0
    assert "\x1b[32mEdited\x1b[0m: a.txt (+1 -1)\n" in shown
    assert "To reverse this: surehold undo " in shown

    _, log = shell.terminal("log")
    assert "just now" in plain(log) or " s ago" in plain(log)
    _, diff = shell.terminal("diff")
    assert "\x1b[31m-one\x1b[0m\n\x1b[32m+two\x1b[0m\n" in diff


@pytest.mark.parametrize(
    ("flags", "environment"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_colour_can_be_turned_off(shell: Shell, flags: list[str], environment: dict[str, str]) -> None:
    _, shown = shell.terminal("read", "missing", *flags, **environment)

    assert "Refused: `missing` does not exist." in shown
    assert "\x1b[" not in shown


@requirement("front:cli:terminal")
def test_a_pipe_gets_no_colour_unless_it_is_forced(shell: Shell) -> None:
    assert b"\x1b[" not in shell.process("read", "missing").stderr
    assert shell.process("read", "missing", FORCE_COLOR="1").stderr.startswith(b"\x1b[31;1mRefused\x1b[0m: ")


@requirement("front:cli:terminal")
@pytest.mark.parametrize("columns", ["30", "40", "60", "80", "120"])
def test_the_log_fits_the_terminal_and_keeps_the_end_of_long_paths(shell: Shell, columns: str) -> None:
    name = "a/rather/deep/directory/with/a/long/name/漢字漢字/file.py"
    shell.write(name, "one\n")
    shell.edit(name, "one", "two")

    _, shown = shell.terminal("log", COLUMNS=columns)

    lines = plain(shown).splitlines()
    assert all(display_width(line) <= int(columns) for line in lines)
    assert "file.py" in lines[1]


def test_read_numbers_the_lines_and_says_the_sha256(shell: Shell) -> None:
    shell.write("a.txt", "".join(f"{n}\n" for n in range(1, 12)) + "\x1b[2J\ttab")

    code, shown = shell.terminal("read", "a.txt")

    lines = plain(shown).splitlines()
    assert code == 0
    assert re.fullmatch(r"a\.txt: 12 lines, \d+ B", lines[0])
    assert re.fullmatch(r"sha256 [0-9a-f]{64}", lines[1])
    assert lines[2] == " 1  1"
    assert lines[-1].startswith("12  \\x1b[2J")
    assert "\x1b[2J" not in shown


def test_a_binary_file_is_not_poured_onto_the_terminal(shell: Shell) -> None:
    (shell.root / "a.bin").write_bytes(bytes(range(256)))

    code, shown = shell.terminal("read", "a.bin")

    assert code == 1
    assert "Refused" in shown


HOSTILE = [
    "new\nline.txt",
    "clear\x1b[2J\x1b]0;title\x07.txt",
    "gpj.\u202eexe.txt",
    os.fsdecode(b"caf\xe9.txt"),
    "tab\t.txt",
]


@requirement("front:cli:safe_text")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_name_cannot_attack_the_terminal(shell: Shell, name: str) -> None:
    (shell.root / name).write_text("one\n")
    change = shell.edit(name, "one", "two")
    shell.edit(name, "two", "three")
    shell("delete", name)

    for words in (["log"], ["show", change], ["diff", change], ["trash", "list"], ["restore", name], ["undo", change]):
        code, shown = shell.terminal(*words)
        rest = ESCAPE.sub("", shown)
        assert code in {0, 1}
        assert not any(ord(c) < 32 and c != "\n" for c in rest), words
        assert "\u202e" not in rest
        assert "new\nline" not in rest
    assert [entry["path"] for entry in shell.json("log", "--all")["entries"]][-1] == name


@requirement("front:cli:safe_text")
def test_a_command_that_status_offers_can_be_pasted(shell: Shell) -> None:
    name = "-two words.txt"
    shell("write", "--", name, stdin=b"one\n")
    shell.write(name, "two\n")

    _, shown = shell.terminal("status")

    assert "surehold diff './-two words.txt'; to remove it: surehold revert './-two words.txt'" in shown


@requirement("front:cli:safe_text")
@pytest.mark.parametrize("agent", ["x\x1b]0;pwn\x07\x1b[31mred", "two\nlines", "gpj.\u202eexe"])
def test_the_name_of_an_agent_cannot_attack_the_terminal(shell: Shell, agent: str) -> None:
    shell.write("a.txt", "one\n")
    with open_workspace(shell.root) as workspace:
        session = Session(workspace, id="named by a client", agent=agent)  # the library itself refuses such a name
        session.read("a.txt")
        session.edit("a.txt", ("one", "two"))

    shown = {
        " ".join(words): shell.terminal(*words, typed="n\n")
        for words in (["status"], ["sessions"], ["log"], ["log", "--stat"], ["blame", "a.txt"], ["rewind"])
    }

    for words, (_, text) in shown.items():
        rest = ESCAPE.sub("", text)
        assert not any(ord(c) < 32 and c != "\n" for c in rest), words
        assert "\u202e" not in rest
        assert "two\nlines" not in rest, words
        assert "]0;pwn\x07" not in text, words
        assert "\x1b[31mred" not in text, words
    assert "[y/N]" in shown["rewind"][1]
    assert "Nothing was undone" in shown["rewind"][1]

"""Completion in real shells, and the pager on a real terminal."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement


def complete_in_bash(shell: Shell, tmp_path: Path, line: str) -> set[str]:
    script = tmp_path / "surehold.bash"
    script.write_text(shell("completion", "bash").out)
    words = line.split(" ")
    probe = f"source {script}; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _surehold"
    done = subprocess.run(
        ["bash", "-c", f'{probe}; printf "%s\\n" "${{COMPREPLY[@]}}"'], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@requirement("history:completion:shells")
def test_bash_completes_commands_options_and_values(shell: Shell, tmp_path: Path) -> None:
    assert complete_in_bash(shell, tmp_path, "surehold re") == {
        "read",
        "redo",
        "recover",
        "restore",
        "revert",
        "review",
        "rewind",
    }
    assert complete_in_bash(shell, tmp_path, "surehold log --s") == {
        "--session",
        "--since",
        "--stat",
        "--state",
        "--state-dir",
    }
    assert complete_in_bash(shell, tmp_path, "surehold -C work mcp --mode d") == {"default", "dontAsk"}
    assert complete_in_bash(shell, tmp_path, "surehold trash e") == {"empty"}
    assert complete_in_bash(shell, tmp_path, "surehold completion z") == {"zsh"}
    assert complete_in_bash(shell, tmp_path, "surehold --root lo") == set()
    assert complete_in_bash(shell, tmp_path, "surehold read a.t") == set()


@requirement("history:completion:shells")
@pytest.mark.parametrize(("name", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_the_script_is_one_that_its_shell_can_read(shell: Shell, tmp_path: Path, name: str, check: str) -> None:
    said = shell("completion", name)
    assert said.code == 0
    for word in ("rewind", "since" if name == "fish" else "--since", "bypassPermissions"):
        assert word in said.out
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    script = tmp_path / "script"
    script.write_text(said.out)

    done = subprocess.run([name, check, str(script)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_shell_is_wrong_usage(shell: Shell) -> None:
    assert shell("completion", "tcsh").code == 2


def make_pager(tmp_path: Path, text: str) -> str:
    program = tmp_path / "pager"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@requirement("history:terminal:pager")
def test_history_goes_through_the_pager_on_a_terminal_only(shell: Shell, tmp_path: Path) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    pager = make_pager(tmp_path, "sed 's/^/paged: /'")

    for words in (["log"], ["show", shell.json("log")["entries"][0]["change_id"]], ["diff"], ["blame", "a.txt"]):
        code, shown = shell.terminal(*words, SUREHOLD_PAGER=pager)
        assert code == 0
        assert shown
        assert all(line.startswith("paged: ") for line in shown.splitlines()), shown
        assert "paged: " not in shell.terminal(*words, "--no-pager", SUREHOLD_PAGER=pager)[1]
        assert "paged: " not in shell.terminal(*words, "--json", SUREHOLD_PAGER=pager)[1]
        assert b"paged: " not in shell.process(*words, SUREHOLD_PAGER=pager).stdout
    assert "paged: " not in shell.terminal("version", SUREHOLD_PAGER=pager)[1]


@requirement("history:terminal:pager")
def test_a_person_may_leave_the_pager_early(shell: Shell, tmp_path: Path) -> None:
    shell.write("a.txt", "one\n" * 50_000)
    shell.edit("a.txt", "one\n" * 50_000, "two\n" * 50_000)

    code, shown = shell.terminal("diff", SUREHOLD_PAGER=make_pager(tmp_path, "head -n 1"))

    assert code == 0
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("pager", ["", "cat", "no-such-program", "'open"])
def test_without_a_pager_everything_is_printed(shell: Shell, pager: str) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    code, shown = shell.terminal("diff", SUREHOLD_PAGER=pager)

    assert code == 0
    assert "+two" in shown


def test_less_ends_by_itself_when_everything_fits(shell: Shell) -> None:
    if not shutil.which("less"):
        pytest.skip("less is not installed")
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    code, shown = shell.terminal("diff", SUREHOLD_PAGER="less")

    assert code == 0
    assert "+two" in shown
    assert os.linesep in shown

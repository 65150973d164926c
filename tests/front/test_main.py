"""Usage, help, exit codes, and whatever may go wrong."""

import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.front.cli import command as commands
from surehold.front.cli.command import COMMAND_MODULES, load_command

GOLDEN = Path(__file__).parent / "help.txt"
COMMANDS = [load_command(name) for name in COMMAND_MODULES]
NAMES = [command.name for command in COMMANDS]


def test_the_commands_are_those_of_the_contract() -> None:
    assert set(NAMES) >= {
        *("log", "show", "diff", "undo", "redo", "trash", "restore", "verify", "recover", "doctor", "gc", "version"),
        *("read", "edit", "write", "delete", "move"),
    }
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command_with_its_sentence(shell: Shell, words: list[str]) -> None:
    said = shell(*words)

    assert (said.code, said.err) == (0, "")
    for command in COMMANDS:
        assert f"  {command.name:<10}  {command.help}\n" in said.out


def test_the_overview_fits_80_columns(shell: Shell) -> None:
    assert all(len(line) <= 80 for line in shell().out.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_every_command_has_a_sentence_and_an_example(shell: Shell, name: str) -> None:
    said = shell(name, "--help")
    command = next(one for one in COMMANDS if one.name == name)

    assert (said.code, said.err) == (0, "")
    assert command.help.endswith(".")
    assert f"example:\n  {command.example}\n" in said.out
    assert f"surehold {name}" in command.example
    assert "--json" in said.out
    assert shell("help", name).out == said.out


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse words its help differently elsewhere")
def test_the_help_texts_are_the_golden_ones(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the file anew with SUREHOLD_GOLDEN=1."""
    monkeypatch.setenv("COLUMNS", "100")
    texts = [
        f"$ surehold {' '.join(words)}\n{shell(*words).out}" for words in [["--help"], *([n, "--help"] for n in NAMES)]
    ]
    found = "\n".join(texts)
    if os.environ.get("SUREHOLD_GOLDEN"):
        GOLDEN.write_text(found, encoding="utf-8")

    assert found == GOLDEN.read_text(encoding="utf-8")


@requirement("front:exit:usage")
@pytest.mark.parametrize(
    ("word", "guess"), [("lgo", "surehold log"), ("dlete", "surehold delete"), ("shwo", "surehold show")]
)
def test_an_unknown_command_gets_a_guess(shell: Shell, word: str, guess: str) -> None:
    said = shell(word)

    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"Wrong usage: `{word}` is not a command.\nDid you mean: {guess}")


def test_a_word_like_no_command_leads_to_the_help(shell: Shell) -> None:
    assert shell("xyzzy").err == "Wrong usage: `xyzzy` is not a command.\nSee: surehold --help\n"


def test_wrong_usage_is_json_too(shell: Shell) -> None:
    error = shell.json("lgo", code=2)["error"]

    assert (error["reason"], error["message"]) == ("usage", "`lgo` is not a command.")


@requirement("front:exit:usage")
def test_an_unknown_option_leads_to_the_help_of_its_command(shell: Shell) -> None:
    said = shell("log", "--nonsense")

    assert (said.code, said.err) == (2, "Wrong usage: unrecognized arguments: --nonsense\nSee: surehold log --help\n")


def test_options_are_not_guessed_from_their_beginning(shell: Shell) -> None:
    assert shell("log", "--lim", "3").code == 2


@pytest.mark.parametrize("limit", ["0", "-1", "x"])
def test_a_limit_must_be_a_positive_number(shell: Shell, limit: str) -> None:
    assert shell("log", f"--limit={limit}").code == 2


@requirement("front:exit:refused")
def test_a_refusal_is_a_message_and_the_next_step_on_standard_error(shell: Shell) -> None:
    said = shell("read", "missing.txt")

    assert (said.code, said.out) == (1, "")
    assert said.err == "Refused: `missing.txt` does not exist.\nNext: Check the path, or create the file first.\n"


@requirement("front:exit:refused")
@pytest.mark.parametrize("name", ["gone.txt", f"{'gone/' * 4000}x"])
def test_a_refusal_that_is_not_read_is_one_all_the_same(shell: Shell, name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "surehold", "read", name, "--json"]
    done = subprocess.run(
        command, cwd=shell.root, env=shell.environment(), stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (1, b"")


@requirement("front:exit:refused")
@pytest.mark.parametrize("words", ["verify", "verify --json", "tool read_file --json {}", "tool read_file --text"])
def test_a_bad_verdict_that_is_not_read_is_one_all_the_same(shell: Shell, words: str) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    (database,) = shell.state_home.glob("surehold/*/state.db")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE blobs SET data = zeroblob(length(data))")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "surehold", *words.split()]
    environment = shell.environment(PYTHONUNBUFFERED="1")  # as with output that is longer than a buffer
    done = subprocess.run(command, cwd=shell.root, env=environment, stdout=writer, check=False)
    os.close(writer)

    assert done.returncode == 1


@requirement("front:cli:json", "front:exit:refused")
def test_a_refusal_as_json_is_the_error_as_data(shell: Shell) -> None:
    error = shell.json("read", "missing.txt", code=1)["error"]

    assert set(error) == {"kind", "reason", "code", "message", "path", "suggested_action", "recoverable", "details"}
    assert error["kind"] == "not_found"


def test_a_root_that_does_not_exist_is_refused_by_every_command(shell: Shell) -> None:
    for words in (["log"], ["verify"], ["trash"], ["read", "x"], ["undo"]):
        said = shell(*words, "--root", "missing")
        assert (said.code, said.err.splitlines()[0]) == (1, "Refused: `missing` is not a directory.")


def break_everything(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(_: object) -> bool:
        raise error

    monkeypatch.setattr(commands.CommandContext, "has_history", broken)


@requirement("front:exit:bug")
def test_a_bug_leaves_a_report_and_ends_in_3(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    break_everything(monkeypatch, RuntimeError("the moon is full"))

    said = shell("log")

    assert said.code == 3
    assert said.err.startswith("Bug: Surehold itself failed (RuntimeError); this is a bug.\n")
    report = Path(said.err.strip().rpartition(" ")[2])
    assert report.stat().st_mode & 0o777 == 0o600
    assert "RuntimeError: the moon is full" in report.read_text()
    assert "surehold: 0." in report.read_text()
    error = shell.json("log", code=3)["error"]
    assert error["reason"] == "bug"
    assert Path(error["details"]["report"]).exists()


def test_a_bug_is_printed_even_without_a_report_file(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    break_everything(monkeypatch, RuntimeError("the moon is full"))

    assert "the moon is full" in shell("log").err


@requirement("front:exit:interrupted")
def test_an_interruption_ends_in_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    break_everything(monkeypatch, KeyboardInterrupt())

    said = shell("log")

    assert (said.code, said.err) == (130, "Interrupted.\n")


@requirement("front:exit:interrupted")
def test_ctrl_c_ends_a_real_process_in_130_without_a_traceback(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "surehold", "write", "a.txt"],
        cwd=shell.root,
        env=shell.environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Whoever runs the tests in the background may have told us to ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads here
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"Type the content")  # printed right before it reads
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    os.close(ours)
    os.close(theirs)

    assert (process.returncode, err) == (130, b"Interrupted.\n")
    assert list(shell.root.iterdir()) == []


def test_a_reader_that_has_enough_ends_the_output_quietly(shell: Shell) -> None:
    shell.write("big.txt", "a line of text\n" * 200_000)
    for words in (["read", "big.txt"], ["read", "big.txt", "--json"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "surehold", *words],
            cwd=shell.root,
            env=shell.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert (process.wait(), err) == (0, b"")


def test_an_output_that_cannot_be_written_is_said_without_a_traceback(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    for words in (["--help"], ["read", "a.txt"], ["read", "a.txt", "--json"]):
        with Path("/dev/full").open("wb") as full:
            said = subprocess.run(
                [sys.executable, "-m", "surehold", *words],
                cwd=shell.root,
                env=shell.environment(),
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert (said.returncode, said.stderr) == (1, b"The output cannot be written: No space left on device.\n")


@pytest.mark.parametrize(("closed", "words", "code"), [(0, "write x", 1), (1, "log", 0), (2, "read missing", 1)])
def test_closed_streams_are_not_a_bug(shell: Shell, closed: int, words: str, code: int) -> None:
    command = f"exec {sys.executable} -m surehold {words} {closed}>&-"

    said = subprocess.run(
        ["/bin/sh", "-c", command], cwd=shell.root, env=shell.environment(), capture_output=True, check=False
    )

    assert said.returncode == code
    assert b"Traceback" not in said.stderr


def test_a_current_directory_that_is_gone_is_refused(shell: Shell) -> None:
    gone = shell.root / "gone"
    command = f"mkdir gone; cd gone; rmdir {gone}; exec {sys.executable} -m surehold log"

    said = subprocess.run(
        ["/bin/sh", "-c", command], cwd=shell.root, env=shell.environment(), capture_output=True, check=False
    )

    assert (said.returncode, said.stderr.splitlines()[0]) == (1, b"Refused: The current directory no longer exists.")


@requirement("front:exit:done", "front:exit:refused", "front:exit:usage")
def test_the_real_command_answers_with_the_same_exit_codes(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    assert shell.process("edit", "a.txt", "--old", "one", "--new", "two").returncode == 0
    assert shell.process("edit", "a.txt", "--old", "one", "--new", "two").returncode == 1
    assert shell.process("nonsense").returncode == 2
    assert shell.process("log", "--json").stdout.startswith(b"{")


def test_characters_that_the_output_lacks_are_escaped(shell: Shell) -> None:
    shell.write("漢.txt", "one\n")
    shell.edit("漢.txt", "one", "two")

    said = shell.process("log", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")

    assert said.returncode == 0
    assert b"\\u6f22.txt" in said.stdout


HEAVY = ("pydantic", "zstandard", "xxhash", "sqlite3", "pathspec", "ctypes", "pathlib", "platform", "surehold.app")


def imported(shell: Shell, *argv: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "surehold", *argv]
    said = subprocess.run(command, cwd=shell.root, env=shell.environment(), capture_output=True, text=True, check=True)
    return set(re.findall(r"\|\s+([\w.]+)$", said.stderr, re.MULTILINE))


def test_help_is_answered_before_anything_heavy_is_imported(shell: Shell) -> None:
    for words in (["--help"], ["log", "--help"]):
        modules = imported(shell, *words)
        assert "surehold.front.cli.main" in modules
        assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("words", [["--help"], ["help"], ["--json", "-h"], []])
def test_the_overview_is_shown_before_any_command_is_imported(shell: Shell, words: list[str]) -> None:
    named = {name for name in imported(shell, *words) if name.startswith("surehold.front.cli.")}

    assert named == {"surehold.front.cli.command", "surehold.front.cli.main", "surehold.front.cli.output"}


def test_the_log_is_shown_without_what_only_tools_and_servers_need(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    modules = imported(shell, "log")

    assert "surehold.app" in modules
    assert modules.isdisjoint({"pydantic", "asyncio", "mcp", "pathspec", "surehold.tools.spec", "subprocess", "shutil"})
    assert modules.isdisjoint({"surehold.workspace.workspace", "surehold.disk.local", "surehold.text.plan"})


def test_a_token_file_that_cannot_be_read_is_said_once(shell: Shell) -> None:
    missing = str(shell.root / "missing")
    (shell.root / "binary").write_bytes(b"\xff\xfe")
    no_file, no_text = (shell("serve", "--token-file", str(shell.root / name)) for name in ("missing", "binary"))

    assert (no_file.code, no_text.code) == (2, 2)
    assert f"The token file `{missing}` cannot be read: No such file or directory." in no_file.err
    assert no_file.err.count(missing) == 1
    assert "cannot be read: it is not UTF-8 text." in no_text.err

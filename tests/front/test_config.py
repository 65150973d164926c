"""Settings in files: what counts, what a file of the workspace may say, and what is refused."""

import json
import os
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement


@pytest.fixture
def user_file(shell: Shell, tmp_path: Path) -> Path:
    shell.patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "surehold" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def settings(shell: Shell, name: str = "") -> dict[str, tuple[object, str]]:
    document = json.loads(shell("config", *filter(None, [name]), "--json").out)
    return {row["name"]: (row["value"], row["source"]) for row in document["settings"]}


def call(shell: Shell, path: str, *options: str) -> tuple[int, str]:
    """Create a file as an agent would; return the exit code, and the kind of the error."""
    said = shell("tool", "create_file", "--json", json.dumps({"path": path, "content": "x\n"}), *options)
    return said.code, said.document.get("error", {}).get("kind", "")


@requirement("history:config:sources")
def test_each_setting_is_shown_with_its_source(shell: Shell, user_file: Path) -> None:
    user_file.write_text('mode = "default"\ndeny = ["private/**"]\nlean = true\n')
    shell.write("surehold.toml", 'deny = ["secrets/**"]\nread_only = true\nmax-chars = 5000\n')
    workspace_file = os.path.realpath("surehold.toml")

    found = settings(shell)

    assert found["mode"] == ("default", str(user_file))
    assert found["lean"] == (True, str(user_file))
    assert found["deny"] == (["private/**", "secrets/**"], f"{user_file}, {workspace_file}")
    assert found["read-only"] == (True, workspace_file)
    assert found["max-chars"] == (5000, workspace_file)
    assert found["require-read"] == ("strict", "default")
    assert settings(shell, "max_chars") == {"max-chars": (5000, workspace_file)}


@requirement("history:config:tightens")
def test_a_file_of_the_workspace_denies_and_asks(shell: Shell, user_file: Path) -> None:
    del user_file
    shell.write("surehold.toml", 'deny = ["secrets/**"]\nask = ["*.sql"]\n')

    assert call(shell, "secrets/a") == (1, "permission_denied")
    assert call(shell, "a.sql")[0] == 1
    assert call(shell, "a.txt") == (0, "")


@requirement("history:config:tightens")
@pytest.mark.parametrize(
    "text",
    [
        'allow = ["**"]',
        'unprotect = ["**"]',
        'mode = "bypassPermissions"',
        'require_read = "off"',
        'on-stale = "rebase"',
        "allow-unchecked = true",
        'deny = ["!private/**"]',
        'state = "elsewhere"',
        'state_dir = "elsewhere"',
        'approver = "yes"',
        'command = "true"',
        'tools = "all"',
        "max-file-bytes = 99999999999999",
    ],
)
def test_a_file_of_the_workspace_never_loosens(shell: Shell, user_file: Path, text: str) -> None:
    user_file.write_text('deny = ["private/**"]\n')
    before = settings(shell)
    shell.write("surehold.toml", f"{text}\n")

    assert settings(shell) == before
    said = shell("tool", "create_file", "--json", '{"path": ".bashrc", "content": "x"}')
    assert said.code == 1
    assert "has no effect" in said.err
    assert call(shell, "private/a") == (1, "permission_denied")


@requirement("history:config:tightens")
def test_a_stricter_mode_of_the_workspace_counts_unless_an_option_says_otherwise(shell: Shell, user_file: Path) -> None:
    user_file.write_text('mode = "bypassPermissions"\n')
    shell.write("surehold.toml", 'mode = "plan"\n')

    assert call(shell, "a.txt")[0] == 1
    assert call(shell, "a.txt", "--mode", "acceptEdits") == (0, "")


@requirement("history:config:protected")
def test_an_agent_cannot_write_the_file_without_approval(shell: Shell, user_file: Path) -> None:
    del user_file

    assert call(shell, "surehold.toml") == (1, "permission_denied")


@requirement("history:config:bad")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deny = [", "not TOML"),
        ("dney = []", "did you mean `deny`?"),
        ('deny = "secrets"', "must be a list of patterns"),
        ("max-chars = -1", "must be a positive number"),
        ("max-chars = true", "must be a positive number"),
        ('read-only = "yes"', "must be true or false"),
        ('mode = "yolo"', "must be one of default, acceptEdits"),
        ("\udcff", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_before_anything_happens(
    shell: Shell, user_file: Path, text: str, said: str
) -> None:
    for file in (shell.root / "surehold.toml", user_file):
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        for command in (("config",), ("tool", "create_file", "--json", '{"path": "a.txt", "content": "x"}')):
            answer = shell(*command)
            assert answer.code == 1
            assert said in answer.out + answer.err
            assert file.name in answer.out + answer.err
        file.unlink()
    assert not (shell.root / "a.txt").exists()


def test_what_is_no_file_is_not_waited_for(shell: Shell, user_file: Path) -> None:
    del user_file
    os.mkfifo(shell.root / "surehold.toml")

    answer = shell("config")

    assert (answer.code, "not a file" in answer.err) == (1, True)


@requirement("front:exit:usage")
def test_an_unknown_setting_is_named_with_those_that_exist(shell: Shell, user_file: Path) -> None:
    del user_file
    answer = shell("config", "colour")

    assert answer.code == 2
    assert "There is no setting `colour`." in answer.err
    assert "max-chars" in answer.err

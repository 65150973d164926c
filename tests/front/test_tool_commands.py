import json
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import cast

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.library.families import tools_of
from surehold.tools.export import export_tools
from tool_names import FAMILY_TOOLS


@requirement("front:cli:tool")
def test_a_tool_is_run_once_and_its_result_printed(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")

    said = shell("tool", "read_file", "--json", '{"path": "a.txt"}')

    assert (said.code, said.document["ok"], said.document["data"]["content"]) == (0, True, "hello\n")


@requirement("front:cli:tool")
def test_a_refusal_of_a_tool_is_exit_code_1_and_the_same_document_as_an_agent_gets(shell: Shell) -> None:
    said = shell(
        "tool", "write_file", "--json", '{"path": "a.txt", "content": "x", "expectedSha256": "%s"}' % ("0" * 64)
    )

    assert (said.code, said.document["error"]["kind"]) == (1, "not_found")


def test_arguments_may_come_from_standard_input_and_the_text_of_a_model_be_shown(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")

    said = shell("tool", "read_file", "--json", "-", "--text", stdin=b'{"path": "a.txt"}')

    assert (said.code, said.out.splitlines()[1]) == (0, "hello")


def test_a_change_by_a_tool_from_the_shell_is_in_the_log_under_its_name(shell: Shell) -> None:
    shell("tool", "create_file", "--json", '{"path": "a.txt", "content": "x"}')

    (entry,) = shell.json("log")["entries"]
    assert (entry["tool"], entry["agent"]) == ("create_file", "ada")


def test_unchecked_changes_are_taken_when_the_person_says_so(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")
    words = ("tool", "write_file", "--json", '{"path": "a.txt", "content": "x\\n"}')

    assert (shell(*words).code, shell(*words, "--allow-unchecked").code) == (1, 0)
    assert (shell.root / "a.txt").read_text() == "x\n"


def test_wrong_arguments_and_unknown_tools_are_refused_with_the_next_step(shell: Shell) -> None:
    no_json, no_object = shell("tool", "read_file", "--json", "{path"), shell("tool", "read_file", "--json", "[1]")
    unknown = shell("tool", "frobnicate")

    assert [no_json.code, no_object.code, unknown.code] == [1, 1, 1]
    assert "read_file" in unknown.out + unknown.err


@requirement("front:cli:tool_errors")
@pytest.mark.parametrize("name", ["read_file", "edit", "Read", "edit_text_file"])
def test_what_is_wrong_with_a_call_is_spelled_as_the_family_of_the_tool_does(shell: Shell, name: str) -> None:
    wrong = [shell("tool", name, "--json", text) for text in ("{path", "[1]", '{"path": 7, "file_path": 7}')]
    shapes = [[list(said.document), _keys_of(said.document["error"])] for said in wrong]

    assert [said.code for said in wrong] == [1, 1, 1]
    assert shapes[0] == shapes[1] == shapes[2]
    assert "not JSON" in shell("tool", name, "--json", "{path", "--text").out


@requirement("front:cli:tool_errors")
def test_an_unknown_tool_is_refused_in_the_format_of_the_default_family(shell: Shell) -> None:
    unknown, wrong = (shell("tool", name, "--json", "{}") for name in ("frobnicate", "read_file"))

    assert (unknown.code, wrong.code) == (1, 1)
    assert list(unknown.document) == list(wrong.document)
    assert _keys_of(unknown.document["error"]) == _keys_of(wrong.document["error"])
    assert "read_file" in str(unknown.document["error"])


def _keys_of(error: object) -> list[str]:
    return [key for key in cast("dict[str, object]", error) if key != "path"] if isinstance(error, dict) else []


@requirement("front:cli:schema")
def test_the_definitions_are_exported_in_three_notations(shell: Shell) -> None:
    for name in ("openai", "anthropic", "mcp"):
        said = shell("schema", "--format", name)

        assert (said.code, json.loads(said.out)) == (0, export_tools(tools_of(), name))
    assert len(json.loads(shell("schema", "--tools", "anchored").out)) == len(FAMILY_TOOLS["anchored"])


@requirement("front:exit:usage")
@pytest.mark.parametrize("name", ["mcp", "serve", "acp", "schema", "prompt"])
@pytest.mark.parametrize(("families", "named"), [("nonsense", "nonsense"), ("files,Claude", "Claude"), (",", ",")])
def test_an_unknown_tool_family_is_wrong_usage_wherever_it_is_named(
    shell: Shell, name: str, families: str, named: str
) -> None:
    said = shell(name, "--tools", families)

    message = f"Wrong usage: --tools: No tool family is called `{named}`."
    assert (said.code, said.out) == (2, "")
    assert said.err == f"{message}\nChoose from anchored, files, multi_edit, claude, or `all`.\n"


def typed(shell: Shell, keys: str, *argv: str) -> tuple[int, str, str]:
    """Run a command with a person at the keyboard; return its code, its output, and what the terminal showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "surehold", *argv],
        cwd=shell.root,
        env=shell.environment(TERM="xterm-256color"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, keys.encode())
    with ThreadPoolExecutor() as pool:  # a terminal that is not read would stop the command
        showing = pool.submit(_read_terminal, ours)
        out, _ = process.communicate()
        shown = showing.result()
    os.close(ours)
    return process.returncode, out.decode(), shown.decode().replace("\r\n", "\n")


def _read_terminal(terminal: int) -> bytes:
    shown = b""
    with suppress(OSError):  # the other side is gone
        while part := os.read(terminal, 65536):
            shown += part
    return shown


MAKE = ("tool", "create_file", "--json", '{"path": "a.txt", "content": "x\\n"}', "--mode", "default")


@requirement("claude:permission:channels")
def test_the_person_at_the_keyboard_sees_the_difference_and_is_asked(shell: Shell) -> None:
    code, out, shown = typed(shell, "perhaps\ny\n", *MAKE)

    assert (code, json.loads(out)["ok"], (shell.root / "a.txt").read_text()) == (0, True, "x\n")
    assert "The mode default asks before `a.txt` is changed." in shown
    assert "\x1b[32m+x\x1b[0m\n" in shown
    assert shown.count("Allow this change?") == 2


@pytest.mark.parametrize("keys", ["n\n", "\x04"])
def test_no_at_the_keyboard_is_a_no(shell: Shell, keys: str) -> None:
    code, out, _ = typed(shell, keys, *MAKE)

    assert (code, json.loads(out)["error"]["reason"]) == (1, "approval_denied")
    assert list(shell.root.iterdir()) == []


def test_all_of_this_call_is_asked_once(shell: Shell) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch\n"
    arguments = json.dumps({"patch": patch, "atomic": False})
    code, _, shown = typed(shell, "a\n", "tool", "apply_patch", "--json", arguments, "--mode", "default")

    assert (code, shown.count("Allow this change?")) == (0, 1)
    assert sorted(path.name for path in shell.root.iterdir()) == ["a.txt", "b.txt"]


@requirement("approval:shown:pages")
def test_a_long_change_is_shown_page_by_page_at_the_keyboard(shell: Shell) -> None:
    rows = "".join(f"row {n} of the data\n" for n in range(2_000))
    make = ("tool", "create_file", "--json", json.dumps({"path": "a.txt", "content": rows}), "--mode", "default")
    code, _, shown = typed(shell, "a\nm\ny\n", *make)

    assert (code, (shell.root / "a.txt").read_text()) == (0, rows)
    assert "1 file, +2,000 −0 lines, 0 → 40,890 bytes." in shown
    assert (
        shown.index("unseen lines? m = show more")
        < shown.index("+row 1999 of the data")
        < shown.index("Allow this change?")
    )
    approval = shell.json("log")["entries"][0]["approval"]
    assert (approval["where"], approval["who"], approval["rule"]) == ("terminal", "ada", "mode default")


@requirement("approval:shown:protected")
def test_a_protected_file_is_not_allowed_at_the_keyboard_before_all_of_it_was_shown(shell: Shell) -> None:
    line = json.dumps({"path": ".envrc", "content": "x" * 30_000})
    code, _, shown = typed(shell, "y\nn\n", "tool", "create_file", "--json", line)

    assert (code, list(shell.root.iterdir())) == (1, [])
    assert shown.count("1 unseen line of a protected file") == 2


@requirement("claude:permission:no_channel")
def test_without_a_terminal_no_one_is_asked_and_the_rules_still_hold(shell: Shell) -> None:
    refused = shell(*MAKE)
    allowed, denied = shell(*MAKE, "--allow", "a.*"), shell(*MAKE[:-2], "--deny", "a.*")
    protected = ("tool", "create_file", "--json", '{"path": ".envrc", "content": "x"}')

    assert (refused.code, refused.document["error"]["reason"]) == (1, "permission_required")
    assert refused.document["error"]["details"]["diff"].endswith("+x\n")
    assert (allowed.code, denied.document["error"]["reason"]) == (0, "policy")
    assert (shell(*protected).code, shell(*protected, "--unprotect", ".envrc").code) == (1, 0)


def test_a_named_session_remembers_what_it_read(shell: Shell) -> None:
    (shell.root / "a.txt").write_bytes(b"one\n")
    read, edit = '{"file_path": "a.txt"}', '{"file_path": "a.txt", "old_string": "one", "new_string": "two"}'

    assert shell("tool", "Edit", "--json", edit).code == 1
    assert shell("tool", "Read", "--json", read, "--session", "mine").code == 0
    assert shell("tool", "Edit", "--json", edit, "--session", "other").code == 1
    assert shell("tool", "Edit", "--json", edit, "--session", "mine").code == 0
    assert (shell.root / "a.txt").read_bytes() == b"two\n"

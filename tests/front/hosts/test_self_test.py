"""What the doctor says about a host."""

import json
import sys
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.capture.filter import can_listen
from surehold.front.hosts.agent_host import HOST_KEYS


@requirement("host:hook:doctor")
def test_the_doctor_says_what_is_covered_and_what_is_not(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    before = shell.json("doctor", "--host", "codex", code=1)
    assert (before["setup"], before["covered"], before["not_covered"][0]["what"]) == ([], [], "everything")

    shell("setup", "codex")
    shell("hook", "codex", stdin=b"{")
    after, table = shell.json("doctor", "--host", "codex"), shell("doctor", "--host", "codex").out

    assert (after["ok"], after["setup"]) == (True, ["project"])
    assert any("edit tools" in one for one in after["covered"])
    assert {one["what"] for one in after["not_covered"]} >= {"write_stdin", "hooks that are not trusted"}
    assert all(one["why"] for one in after["not_covered"])
    assert "not JSON" in after["failures"][0]
    assert all(one["what"] in table for one in after["not_covered"])


@requirement("host:hook:doctor")
@pytest.mark.parametrize("host", HOST_KEYS)
def test_an_edit_and_a_script_go_the_way_of_the_settings_and_are_undone(
    shell: Shell, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shell("setup", host)
    entries = shell.json("log")["entries"]

    found = shell.json("doctor", "--host", host)

    said = [one.partition(":")[0] for one in found["covered"]]
    assert said == ["our own tools", "its own edit tools", "turns", *([] if can_listen() else ["its shell"])]
    assert (found["broken"], found["failures"]) == ([], [])
    assert shell.json("log")["entries"] == entries  # a trial leaves no trace


@requirement("host:hook:doctor")
def test_hooks_that_are_set_up_and_do_not_work_are_not_covered(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shell("setup", "claude")
    package = tmp_path / "broken" / "surehold" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("raise SystemExit('not today')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parents[1]))  # for the programs that the settings name

    found = shell.json("doctor", "--host", "claude", code=1)

    assert found["setup"] == ["project"]
    assert found["covered"] == []
    assert "not today" in found["not_covered"][0]["why"]
    assert found["broken"][:2] == ["our own tools", "its own edit tools, and turns"]


@requirement("host:hook:doctor")
@pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
def test_a_shell_that_is_not_ours_is_not_covered(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shell.write("opencode.json", '{"shell": "/bin/sh"}\n')
    shell("setup", "opencode")

    found = shell.json("doctor", "--host", "opencode", code=1)

    assert found["broken"] == ["its shell"]
    assert "not recorded" in found["not_covered"][0]["why"]


@requirement("host:hook:doctor")
@pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
def test_inside_of_a_run_the_shell_is_not_tried(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shell("setup", "claude")
    words = ("run", "--", sys.executable, "-m", "surehold", "doctor", "--host", "claude", "--json")

    found = json.loads(shell.process(*words).stdout)

    assert found["broken"] == []
    assert "part of a recorded run" in found["not_covered"][0]["why"]

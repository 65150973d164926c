"""What the doctor says about a host."""

from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement


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

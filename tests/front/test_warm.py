"""A warm start cannot be told from a cold one: what the other tests save, they do not lose."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from front.mcp.client import StdioClient, surehold
from warm import cold

LOOK = Path(__file__).with_name("look.py")


@pytest.mark.parametrize("words", [["0", "é"], ["7"]])
def test_a_warm_program_sees_what_a_cold_one_sees(tmp_path: Path, words: list[str]) -> None:
    seen = list[subprocess.CompletedProcess[str]]()
    for start in (cold, nullcontext):
        with start():
            command = [sys.executable, str(LOOK), *words]
            environment = {**os.environ, "A": "ä"}
            ended = subprocess.run(
                command, cwd=tmp_path, env=environment, input="in\n", capture_output=True, text=True, check=False
            )
            seen.append(ended)

    assert (seen[0].returncode, seen[0].stderr) == (int(words[0]), "in\n\n")
    assert (seen[1].stdout, seen[1].stderr, seen[1].returncode) == (seen[0].stdout, seen[0].stderr, seen[0].returncode)
    assert str(os.getpid()) in seen[0].stdout


@pytest.mark.parametrize("words", [["version"], ["nonsense"], ["read", "missing"], ["mcp", "."]])
def test_a_warm_command_answers_as_a_cold_one(tmp_path: Path, words: list[str]) -> None:
    seen = list[tuple[int, bytes, bytes]]()
    for start in (cold, nullcontext):
        with start():
            command = [sys.executable, "-m", "surehold", *words]
            environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
            ended = subprocess.run(command, cwd=tmp_path, env=environment, input=b"", capture_output=True, check=False)
            seen.append((ended.returncode, ended.stdout, ended.stderr))

    assert seen[0] == seen[1]


def test_a_warm_server_can_be_killed_and_waited_for(tmp_path: Path) -> None:
    client = StdioClient(surehold("mcp", tmp_path, "--state-dir", tmp_path.with_name("state")))
    client.process.kill()

    assert client.wait() == -9

"""The programs of examples/frameworks, each with a model on the loopback that changes files and runs a command."""

import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

from adapters.loopback_model import ModelCall, own_event_loop, scripted_apis, send_frameworks_to
from docs.snippets import PROJECT
from spec.marks import requirement
from surehold import open_workspace

EXAMPLES = PROJECT / "examples" / "frameworks"
WANTED = {"hello.txt": "Hello, world\n"}


def command(name: str, **more: Any) -> ModelCall:
    return name, {"command": "echo 'Hello, world' > hello.txt", **more}


SCRIPTS: dict[str, list[ModelCall]] = {
    "with_openai_agents": [
        ("apply_patch", {"type": "create_file", "path": "hello.txt", "diff": "+Hello\n"}),
        ("shell", {"commands": [command("")[1]["command"]], "timeout_ms": None, "max_output_length": 1000}),
    ],
    "with_anthropic": [
        ("str_replace_based_edit_tool", {"command": "create", "path": "hello.txt", "file_text": "Hello\n"}),
        (
            "str_replace_based_edit_tool",
            {"command": "str_replace", "path": "hello.txt", "old_str": "Hello", "new_str": "Hello, world"},
        ),
    ],
    "with_langchain": [("create_file", {"path": "hello.txt", "content": "Hello\n"}), command("run_command")],
    "with_deepagents": [("write_file", {"file_path": "/hello.txt", "content": "Hello\n"}), command("execute")],
    "with_pydantic_ai": [("create_file", {"path": "hello.txt", "content": "Hello\n"}), command("run_command")],
    "with_google_adk": [("WriteFile", {"path": "hello.txt", "content": "Hello\n"}), command("Execute")],
}


def test_every_framework_has_its_program() -> None:
    assert sorted(path.stem for path in EXAMPLES.iterdir() if path.suffix == ".py") == sorted(SCRIPTS)


@requirement("front:adapters:frameworks", "front:adapters:shell")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_lets_its_agent_work_lists_what_changed_and_all_of_it_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with scripted_apis(SCRIPTS[name]) as (address, requests), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn of their own experiments
        send_frameworks_to(address, monkeypatch)
        monkeypatch.setattr("sys.argv", [f"{name}.py", str(work), "Say hello to the world."])
        with own_event_loop():
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")

    said = capsys.readouterr().out
    assert {path.name: path.read_text("utf-8") for path in work.iterdir()} == WANTED, requests[-1]
    assert len(re.findall(r"^\w{26}: hello\.txt \(\+1 -[01]\)$", said, re.MULTILINE)) == 2, said
    row = r"^To take it back: surehold undo --session (\S+) --turn (\S+)$"
    session, turn = re.findall(row, said, re.MULTILINE)[0]
    with open_workspace(work) as workspace:
        assert workspace.undo(session=session, turn=turn).change_id
    assert list(work.iterdir()) == []

"""Every program of docs/frameworks.md runs as it is shown, with a model on the loopback."""

import json
import re
import runpy
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

from adapters.loopback_model import own_event_loop, scripted_apis, send_frameworks_to
from docs.snippets import PROJECT, snippets_of
from spec.marks import requirement

PAGE = "docs/frameworks.md"


@requirement("front:docs:snippets", "front:adapters:frameworks")
def test_every_program_of_the_page_runs_and_gives_its_tools_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = (
        ("apply_patch", "shell"),
        ("text_editor_20250728", "memory_20250818"),
        ("edit_file", "run_command"),
        ("write_file", "execute"),
        ("edit_file", "run_command"),
        ("EditFile", "Execute"),
        (),
    )
    programs = [block for block in snippets_of(PAGE) if block.language == "python"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    with scripted_apis() as (address, requests), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn of their own experiments
        send_frameworks_to(address, monkeypatch)
        for number, (block, names) in enumerate(zip(programs, expected, strict=True)):
            work, program = tmp_path / f"work{number}", tmp_path / f"program{number}.py"
            work.mkdir()
            program.write_text(block.text, encoding="utf-8")
            monkeypatch.chdir(work)
            requests.clear()
            with own_event_loop():
                runpy.run_path(str(program), run_name="__main__")
            told = json.dumps([one.get("tools") for one in requests])
            assert [name for name in names if f'"{name}"' not in told] == [], block
    assert [path.name for path in (tmp_path / "work6").iterdir()] == ["hello.txt"]


def test_the_versions_of_the_page_are_those_that_are_tested() -> None:
    rows = re.findall(r"\| ([a-z-]+) (\d[\d.]*) \| `", (PROJECT / PAGE).read_text("utf-8"))

    assert len(rows) == 6
    tested = {name: version(name).split(".")[:2] for name, _ in rows}
    assert {name: number.split(".")[:2] for name, number in rows} == tested

"""Everything that the pages of the site tell people to type or to write is tried here, from top to bottom of each page."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from build_docs import pages

from docs.page_shell import PageShell
from docs.snippets import LANGUAGES, PROJECT, Snippet, snippets_of
from spec.marks import requirement
from surehold.front.cli.config.configuration import SETTINGS
from surehold.front.cli.main import build_parser

TYPED = ("docs/recipes.md", "docs/start/host.md", "docs/start/team.md", "docs/upgrade.md")
PROGRAMS = [block for block in snippets_of("docs/start/python.md") if block.language == "python"]


@requirement("front:docs:snippets")
@pytest.mark.parametrize("page", TYPED)
def test_the_commands_of_a_page_run_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    shell = PageShell(tmp_path)
    for block in snippets_of(page):
        if block.language == "sh":
            shell.run_block(block.text)


@requirement("front:docs:snippets")
@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_every_program_of_the_start_page_runs(
    block: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, program = tmp_path / "work", tmp_path / "program.py"
    work.mkdir()
    program.write_text(block.text, encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(work)

    runpy.run_path(str(program), run_name="__main__")

    assert capsys.readouterr().err == ""


@requirement("front:docs:snippets")
def test_every_settings_file_that_a_page_shows_names_real_settings() -> None:
    names = {one.name for one in SETTINGS}
    shown = [block for page in (*TYPED, "docs/history.md") for block in snippets_of(page) if block.language == "toml"]

    assert len(shown) == 3
    assert [str(block) for block in shown if not set(block.data) <= names] == []


@requirement("front:docs:snippets")
def test_every_command_of_every_other_page_is_understood() -> None:
    generated = re.compile(r"reference/|contract|conformance|examples\.md|ARCHITECTURE|CHANGELOG|RELEASING")
    names = {str(page.relative_to(PROJECT)) for page in pages()} - set(TYPED)
    blocks = [one for name in sorted(names) if not generated.search(name) for one in snippets_of(name)]
    lines = [line for one in blocks if one.language == "sh" for line in one.text.splitlines()]
    ours = [words[1:] for line in lines if (words := shlex.split(line, comments=True))[:1] == ["surehold"]]

    assert ours
    for words in ours:
        build_parser().parse_args(words)
    assert {one.language for one in blocks} <= {*LANGUAGES, "py"}


@requirement("front:docs:snippets")
def test_the_cost_of_the_tool_definitions_is_what_the_questions_page_says() -> None:
    import json

    from surehold import tools_for

    said = re.search(r"about ([\d,]+) characters of JSON", (PROJECT / "docs/faq.md").read_text("utf-8"))
    assert said is not None
    assert round(len(json.dumps(tools_for("anthropic"), indent=2)), -3) == int(said[1].replace(",", ""))

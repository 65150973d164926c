"""Everything that the pages of the site tell people to type or to write is tried here, from top to bottom of each page."""

import ast
import asyncio
import os
import re
import runpy
import shlex
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from build_docs import pages

import surehold
from databases.schemas import PostgresSchema
from docs.page_shell import PageShell
from docs.snippets import LANGUAGES, PROJECT, Snippet, snippets_of
from doubles.object_service import ObjectService
from spec.marks import requirement
from surehold.front.cli.config.configuration import SETTINGS
from surehold.front.cli.main import build_parser

TYPED = (
    "docs/recipes.md",
    "docs/review.md",
    "docs/shell.md",
    "docs/start/host.md",
    "docs/start/team.md",
    "docs/upgrade.md",
)
PROGRAMS = [
    block
    for page in ("docs/start/python.md", "docs/shell.md")
    for block in snippets_of(page)
    if block.language == "python"
]
AWAITED = [block for block in snippets_of("docs/reference/python.md") if "async with" in block.text]


@requirement("front:docs:snippets")
@pytest.mark.parametrize("page", TYPED)
def test_the_commands_of_a_page_run_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    shell = PageShell(tmp_path)
    for block in snippets_of(page):
        if block.language == "sh":
            shell.run_block(block.text)


@requirement("front:docs:snippets")
@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_every_program_of_a_page_runs(
    block: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, program = tmp_path / "work", tmp_path / "program.py"
    work.mkdir()
    program.write_text(block.text, encoding="utf-8")
    (work / "Makefile").write_text("format:\n\ttouch formatted\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(work)

    runpy.run_path(str(program), run_name="__main__")

    assert capsys.readouterr().err == ""


@requirement("front:docs:snippets")
def test_what_the_reference_shows_of_the_awaitable_library_runs_and_undoes_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_sample_project(tmp_path, monkeypatch)
    (block,) = AWAITED
    program = compile(block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names = dict[str, Any]()

    asyncio.run(FunctionType(program, names)())

    assert names["page"].content == "The colour.\n"
    assert (names["done"].exit_code, names["done"].created) == (0, 1)
    assert sorted(one.name for one in project.iterdir()) == ["Makefile", "README.md"]


@requirement("front:docs:snippets")
def test_what_the_package_says_of_itself_runs_and_undoes_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_sample_project(tmp_path, monkeypatch)
    (tmp_path / "program.py").write_text((surehold.__doc__ or "").partition("```python\n")[2].partition("```")[0])

    names = runpy.run_path(str(tmp_path / "program.py"))

    assert names["done"].change_id
    assert (project / "README.md").read_text() == "The colour.\n"


def make_sample_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the directory that these programs name, in the working directory."""
    project = tmp_path / "my-project"
    project.mkdir()
    (project / "README.md").write_text("The colour.\n")
    (project / "Makefile").write_text("format:\n\ttouch formatted\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return project


@requirement("front:docs:snippets")
def test_the_commands_for_a_shared_history_run_with_a_database_and_objects(
    tmp_path: Path, worker_schema: PostgresSchema, service: ObjectService
) -> None:
    database, role = f"{worker_schema.url}_page", f"page_{os.getpid()}"
    with worker_schema.connect() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    there = {
        "postgresql://owner@db.example/surehold": database,
        "postgresql://agents@db.example/surehold": database.replace("postgres@", f"{role}@"),
        "--role agents": f"--role {role}",
    }
    shell = PageShell(tmp_path)
    shell.environment |= service.environment
    blocks = [block.text for block in snippets_of("docs/fleet.md") if block.language == "sh"]
    assert [name for name in there if not any(name in text for text in blocks)] == []

    for text in blocks:
        for shown, real in there.items():
            text = text.replace(shown, real)  # noqa: PLW2901 - the addresses of here
        shell.run_block(text)


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

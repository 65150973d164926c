"""`surehold.adapters.functions`, and what all adapters share: lazy imports, schemas, bad calls, closed workspaces."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from adapters.project import make_project
from adapters.story import begin, check_end, tell_story
from spec.marks import requirement
from surehold import Settings, aio, tools_for
from surehold.adapters import frameworks
from surehold.adapters.functions import async_functions, plain_functions
from surehold.adapters.tool_calls import session_tools
from waiting import wait_until

MODULES = {"anthropic": "anthropic", "langchain": "langchain-core", "openai_agents": "openai-agents"}
"""The modules with a framework, and the package that brings it."""


def tell(story: Any, call: Callable[[str, dict[str, Any]], str]) -> None:
    """Let the functions answer a story."""
    step = next(story)
    while True:
        try:
            step = story.send(call(*step))
        except StopIteration:
            return


@requirement("front:adapters:functions")
@requirement("front:adapters:frameworks")
def test_plain_functions_read_edit_are_refused_and_try_again(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    begin(project)
    functions = {one.__name__: one for one in plain_functions(project.session, shell=True)}

    tell(tell_story(project, shell=True), lambda name, arguments: functions[name](**arguments))

    check_end(project, shell=True)


def test_coroutine_functions_do_the_same(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    begin(project)
    functions = {one.__name__: one for one in async_functions(project.session)}

    tell(tell_story(project), lambda name, arguments: asyncio.run(functions[name](**arguments)))

    check_end(project)


@requirement("front:adapters:functions")
def test_every_function_has_the_arguments_of_its_tool_with_types_and_words(tmp_path: Path) -> None:
    from pydantic import TypeAdapter

    functions = {one.__name__: one for one in plain_functions(make_project(tmp_path).session)}
    ours = {one["name"]: one["inputSchema"] for one in tools_for("mcp")}

    assert functions.keys() == ours.keys()
    for name, function in functions.items():
        adapter: Any = TypeAdapter
        schema = adapter(function).json_schema()
        assert set(schema["properties"]) == set(ours[name]["properties"])
        assert sorted(schema.get("required", [])) == sorted(ours[name].get("required", []))
        assert get_type_hints(function)["return"] is str
        assert all(f"    {argument}: " in str(inspect.getdoc(function)) for argument in schema["properties"])
    edits = functions["edit_file"].__annotations__["edits"]
    assert edits == list[dict[str, Any]]


@requirement("front:adapters:lazy")
def test_importing_the_adapters_imports_no_framework() -> None:
    names = ("agents", "anthropic", "deepagents", "google.adk", "langchain_core", "pydantic_ai")
    program = (
        "import sys; import surehold.adapters, surehold.adapters.functions;"
        f"print([name for name in {names!r} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@requirement("front:adapters:lazy")
@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_missing_or_old_framework_is_named_with_its_version(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    def is_missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    def is_old(_: str) -> str:
        return "0.0.9"

    said = {is_missing: " or later: pip install", is_old: "and 0.0.9 is installed: pip install"}
    for answer, words in said.items():
        monkeypatch.setattr(frameworks, "version", answer)
        monkeypatch.delitem(sys.modules, f"surehold.adapters.{module}", raising=False)
        with pytest.raises(ImportError, match=words) as caught:
            import_module(f"surehold.adapters.{module}")
        assert MODULES[module] in str(caught.value)
    monkeypatch.delitem(sys.modules, f"surehold.adapters.{module}", raising=False)


@requirement("front:adapters:lazy")
def test_a_framework_that_lost_a_name_is_named_with_its_version() -> None:
    with (
        pytest.raises(ImportError, match=r"does not know pytest .*no_such_name"),
        frameworks.import_framework("pytest", "1"),
    ):
        raise ImportError("cannot import name 'no_such_name'")


@pytest.mark.parametrize(
    "arguments", ["{broken", "[1]", {"command": 3}, {"command": "true", "timeoutSeconds": "x"}, {}]
)
def test_a_broken_call_is_answered_and_nothing_runs(tmp_path: Path, arguments: object) -> None:
    project = make_project(tmp_path)
    tools = {one.name: one for one in session_tools(project.session, shell=True)}

    for name in ("run_command", "edit_file"):
        reply = tools[name].call(arguments)
        assert not reply.ok
        assert reply.text.startswith("Nothing was written.")


def test_a_closed_workspace_is_an_answer_and_not_a_crash(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    functions = {one.__name__: one for one in plain_functions(project.session, shell=True)}
    project.workspace.close()

    assert "This workspace is closed." in functions["read_file"]("a.txt")
    assert "This workspace is closed." in functions["create_file"]("a.txt", "text")
    assert project.files() == {}


@requirement("front:adapters:shell")
def test_a_cancelled_command_is_ended_and_what_it_did_is_undone(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state")

    async def run() -> None:
        async with aio.open_workspace(tmp_path / "project", settings=settings) as workspace:
            session = workspace.session(agent="tester")
            run_command = {one.__name__: one for one in async_functions(session, shell=True)}["run_command"]
            task = asyncio.ensure_future(run_command("echo begun > begun.txt; sleep 600; echo late > late.txt"))
            await asyncio.to_thread(wait_until, (tmp_path / "project/begun.txt").exists)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [path.name for path in (tmp_path / "project").iterdir()] == ["begun.txt"]
            await workspace.undo()

    (tmp_path / "project").mkdir()
    asyncio.run(run())
    assert list((tmp_path / "project").iterdir()) == []

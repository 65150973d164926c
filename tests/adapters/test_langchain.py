"""`surehold.adapters.langchain` with the real package, and with LangGraph's node for tools."""

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from adapters.project import make_project
from adapters.story import begin, check_end, tell_story
from spec.marks import requirement


@requirement("front:adapters:frameworks")
@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_of_langchain_reads_edits_and_is_refused(tmp_path: Path, *, is_async: bool) -> None:
    from adapters.scripted_chat import Call, ScriptedChat
    from surehold.adapters.langchain import langchain_tools

    project = make_project(tmp_path)
    begin(project)
    story = tell_story(project, shell=not is_async)

    def step(answers: list[str]) -> Call | None:
        try:
            return story.send(answers[-1]) if answers else next(story)
        except StopIteration:
            return None

    model = ScriptedChat.of([step] * 10)
    agents: Any = import_module("langchain.agents")  # its types are not complete
    agent = agents.create_agent(model, langchain_tools(project.session, shell=True))
    given = {"messages": [{"role": "user", "content": "go"}]}
    config = {"recursion_limit": 100}
    _ = asyncio.run(agent.ainvoke(given, config)) if is_async else agent.invoke(given, config)

    assert model.statuses == ["success", "success", "error"] + ["success"] * (4 if is_async else 5)
    check_end(project, shell=not is_async)


def test_the_schema_is_that_of_the_tools_and_a_wrong_call_is_answered(tmp_path: Path) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from surehold import tools_for
    from surehold.adapters.langchain import langchain_tools

    project = make_project(tmp_path)
    tools = {one.name: one for one in langchain_tools(project.session)}
    ours = {one["function"]["name"]: one["function"] for one in tools_for("openai-chat")}

    assert tools.keys() == ours.keys()
    shown = convert_to_openai_tool(tools["edit_file"])["function"]
    assert shown["parameters"]["properties"] == ours["edit_file"]["parameters"]["properties"]
    call = {"type": "tool_call", "id": "c1", "name": "edit_file", "args": {"path": 3}}
    answer = tools["edit_file"].invoke(call)
    assert answer.status == "error"
    assert answer.content.startswith("Nothing was written.")

"""`surehold.adapters.pydantic_ai` in a real agent, with the package's own function model."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.project import Project, make_project
from adapters.story import begin, check_end, tell_story
from spec.marks import requirement

if TYPE_CHECKING:
    from pydantic_ai import Agent

Step = Callable[[list[str]], tuple[str, dict[str, Any]] | None]


def make_agent(toolset: Any, step: Step, *, answers: list[tuple[str, str]]) -> "Agent[None, Any]":
    """Return an agent whose model asks `step` what to call next; what the tools answered is collected with its outcome."""
    from pydantic_ai import (
        Agent,
        DeferredToolRequests,
        ModelMessage,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {one.name for one in info.function_tools} >= {"read_file", "edit_file"}
        parts = [part for message in messages if message.kind == "request" for part in message.parts]
        told = [part for part in parts if isinstance(part, ToolReturnPart)]
        answers[:] = [(part.outcome, str(part.content)) for part in told]
        call = step([text for _, text in answers])
        return ModelResponse(parts=[ToolCallPart(call[0], call[1]) if call else TextPart("done")])

    return Agent(FunctionModel(respond), toolsets=[toolset], output_type=[str, DeferredToolRequests])


@requirement("front:adapters:frameworks")
def test_an_agent_reads_edits_is_refused_and_tries_again(tmp_path: Path) -> None:
    from surehold.adapters.pydantic_ai import SessionToolset

    project = make_project(tmp_path)
    begin(project)
    story = tell_story(project, shell=True)
    answers = list[tuple[str, str]]()

    def step(told: list[str]) -> tuple[str, dict[str, Any]] | None:
        try:
            return story.send(told[-1]) if told else next(story)
        except StopIteration:
            return None

    agent = make_agent(SessionToolset(project.session, shell=True), step, answers=answers)
    asyncio.run(agent.run("go"))

    assert [outcome for outcome, _ in answers] == ["success", "success", "retried"] + ["success"] * 5
    check_end(project, shell=True)


def edit_once(project: Project) -> Step:
    call = {"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}], "expectedSha256": project.sha256("a.txt")}
    return lambda told: ("edit_file", call) if not told else None


@requirement("front:adapters:approvals")
def test_a_change_is_deferred_and_happens_when_it_is_approved(tmp_path: Path) -> None:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    from surehold.adapters.pydantic_ai import SessionToolset

    project = make_project(tmp_path, mode="default")
    project.put("a.txt", b"one\n")
    answers = list[tuple[str, str]]()
    agent = make_agent(SessionToolset(project.session, defer_approvals=True), edit_once(project), answers=answers)

    async def run() -> None:
        first = await agent.run("go")
        assert isinstance(first.output, DeferredToolRequests)
        (call,) = first.output.approvals
        shown: Any = first.output.metadata[call.tool_call_id]
        assert shown["summary"] == "change a.txt"
        assert "+1" in shown["diff"]
        assert project.files() == {"a.txt": b"one\n"}
        approved = DeferredToolResults(approvals={call.tool_call_id: True})
        await agent.run(message_history=first.all_messages(), deferred_tool_results=approved)

    asyncio.run(run())

    assert answers[-1][0] == "success"
    assert project.files() == {"a.txt": b"1\n"}
    project.undo_all()
    assert project.files() == {"a.txt": b"one\n"}


@requirement("front:adapters:approvals")
def test_an_approval_is_not_for_another_change_than_was_shown_nor_is_a_denial_one(tmp_path: Path) -> None:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    from surehold.adapters.pydantic_ai import SessionToolset

    project = make_project(tmp_path, mode="default")
    project.put("a.txt", b"one\n")
    toolset = SessionToolset(project.session, defer_approvals=True)
    call = {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n"}
    agent = make_agent(toolset, lambda told: None if told else ("apply_patch", call), answers=[])

    async def run() -> None:
        first = await agent.run("go")
        assert isinstance(first.output, DeferredToolRequests)
        name = first.output.approvals[0].tool_call_id
        project.put("a.txt", b"zero\none\n")
        approved = DeferredToolResults(approvals={name: True})
        again = await agent.run(message_history=first.all_messages(), deferred_tool_results=approved)
        assert isinstance(again.output, DeferredToolRequests)
        assert project.files() == {"a.txt": b"zero\none\n"}
        denied = DeferredToolResults(approvals={name: False})
        await agent.run(message_history=first.all_messages(), deferred_tool_results=denied)

    asyncio.run(run())
    assert project.files() == {"a.txt": b"zero\none\n"}


@requirement("front:adapters:approvals")
def test_what_the_approver_of_the_session_denies_is_no_reason_to_retry(tmp_path: Path) -> None:
    from surehold.adapters.pydantic_ai import SessionToolset

    project = make_project(tmp_path, mode="default", approver=lambda request: False)
    project.put("a.txt", b"one\n")
    answers = list[tuple[str, str]]()
    agent = make_agent(SessionToolset(project.session), edit_once(project), answers=answers)

    asyncio.run(agent.run("go"))

    assert answers[0][0] == "failed"
    assert answers[0][1].startswith("Nothing was written.")
    assert project.files() == {"a.txt": b"one\n"}

"""`surehold.adapters.google_adk` in a real ADK agent. Its import is slow, so that one test has it all."""

import asyncio
import warnings
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from adapters.project import make_project
from spec.marks import requirement

Step = Callable[[list[dict[str, Any]]], tuple[str, dict[str, Any]]]


def run_adk_agent(tools: list[Any], steps: list[Step], on_error: Any) -> list[dict[str, Any]]:
    """Run an agent whose model makes these calls, and return what the tools answered."""
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    answers = list[dict[str, Any]]()

    class ScriptedLlm(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            parts = [part for content in llm_request.contents for part in content.parts or []]
            found = [part.function_response.response for part in parts if part.function_response]
            answers[:] = [dict(one) for one in found if one is not None]
            part = types.Part(text="done")
            if len(answers) < len(steps):
                name, args = steps[len(answers)](answers)
                part = types.Part(function_call=types.FunctionCall(name=name, args=args))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    async def run() -> None:
        agent = LlmAgent(
            name="tester", model=ScriptedLlm(model="scripted"), tools=tools, on_tool_error_callback=on_error
        )
        runner = InMemoryRunner(agent=agent, app_name="test")
        session = await runner.session_service.create_session(app_name="test", user_id="me")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(user_id="me", session_id=session.id, new_message=message):
            pass
        await runner.close()

    asyncio.run(run())
    return answers


@requirement("front:adapters:frameworks", "front:adapters:shell")
def test_an_adk_agent_reads_edits_is_refused_and_runs_commands(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns of its own experiments while it is imported
        from google.adk.tools.environment import EnvironmentToolset

        from surehold.adapters.functions import plain_functions
        from surehold.adapters.google_adk import SessionEnvironment, tell_refusal

        project = make_project(tmp_path)
        before = {
            "a.txt": b"one\r\ntwo\r\n",
            "latin.txt": "caf\xe9 one\n".encode("latin-1"),
            "old.txt": b"old\n",
            "unwanted.txt": b"unwanted\n",
        }
        for path, data in before.items():
            project.put(path, data)

        def change(_: object) -> tuple[str, dict[str, Any]]:
            project.put("a.txt", b"one\r\n2\r\noutside\r\n")
            return "WriteFile", {"path": "a.txt", "content": "all new\n"}

        tools = [EnvironmentToolset(environment=SessionEnvironment(project.session))]
        moves = [one for one in plain_functions(project.session) if one.__name__ in {"move_file", "delete_file"}]
        moved = {"fromPath": "old.txt", "toPath": "renamed.txt", "expectedSha256": project.sha256("old.txt")}
        deleted = {"path": "unwanted.txt", "expectedSha256": project.sha256("unwanted.txt")}
        answers = run_adk_agent(
            [*tools, *moves],
            [
                lambda _: ("ReadFile", {"path": "a.txt"}),
                lambda _: ("EditFile", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
                change,
                lambda _: ("ReadFile", {"path": "a.txt"}),
                lambda _: ("WriteFile", {"path": "a.txt", "content": "all new\n"}),
                lambda _: ("WriteFile", {"path": "new/b.txt", "content": "new\n"}),
                lambda _: ("ReadFile", {"path": "none.txt"}),
                lambda _: ("EditFile", {"path": "latin.txt", "old_string": "one", "new_string": "two"}),
                lambda _: ("move_file", moved),
                lambda _: ("delete_file", deleted),
                lambda _: ("Execute", {"command": "echo said; echo more > shell.txt; exit 2"}),
            ],
            tell_refusal,
        )

    assert "two" in answers[0]["content"]
    assert answers[1]["status"] == "ok"
    assert "changed since this session read it" in answers[2]["error"]
    assert "outside" in answers[3]["content"]
    assert answers[6]["status"] == "error"
    assert "not UTF-8" in answers[7]["error"]
    assert (answers[10]["stdout"], answers[10]["exit_code"]) == ("said\n", 2)
    assert project.files() == {
        "a.txt": b"all new\r\n",
        "latin.txt": before["latin.txt"],
        "new/b.txt": b"new\n",
        "renamed.txt": b"old\n",
        "shell.txt": b"more\n",
    }
    project.undo_all()
    assert project.files() == {**before, "a.txt": b"one\r\ntwo\r\noutside\r\n"}

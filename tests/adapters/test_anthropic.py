"""`surehold.adapters.anthropic` in the real tool runner, with a model that answers inside of the HTTP client."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapters.project import Project, make_project
from adapters.story import begin, check_end, tell_story
from spec.marks import requirement

Results = list[dict[str, Any]]
"""The blocks that answered the tool calls so far."""
Step = Callable[[Results], tuple[str, dict[str, Any]] | None]


def scripted_api(steps: list[Step]) -> Callable[[httpx2.Request], httpx2.Response]:
    """Return an API whose model makes these calls, one in each message."""
    waiting = iter(enumerate(steps))
    results: Results = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent = json.loads(request.content)
        last = sent["messages"][-1]["content"]
        results.extend([] if isinstance(last, str) else last)
        number, step = next(waiting, (0, None))
        call = step(results) if step else None
        content: list[dict[str, Any]] = [{"type": "text", "text": "done"}]
        if call:
            content = [{"type": "tool_use", "id": f"t{number}", "name": call[0], "input": call[1]}]
        body = {"id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": content}
        body |= {"stop_reason": "tool_use" if call else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}
        return httpx2.Response(200, json=body)

    return answer


def run_tools(tools: list[Any], steps: list[Step]) -> None:
    from anthropic import Anthropic

    transport = httpx2.MockTransport(scripted_api(steps))
    with Anthropic(api_key="none", http_client=httpx2.Client(transport=transport)) as client:
        runner = client.beta.messages.tool_runner(
            model="scripted", max_tokens=10, tools=tools, messages=[{"role": "user", "content": "go"}]
        )
        runner.until_done()


def run_tools_async(tools: list[Any], steps: list[Step]) -> None:
    from anthropic import AsyncAnthropic

    async def run() -> None:
        transport = httpx2.MockTransport(scripted_api(steps))
        async with AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=10, tools=tools, messages=[{"role": "user", "content": "go"}]
            )
            await runner.until_done()

    asyncio.run(run())


def text_of(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@requirement("front:adapters:frameworks")
@pytest.mark.parametrize("is_async", [False, True])
def test_the_tools_of_a_session_in_the_tool_runner(tmp_path: Path, *, is_async: bool) -> None:
    from surehold.adapters.anthropic import AsyncTool, runner_tools

    project = make_project(tmp_path)
    begin(project)
    story = tell_story(project, shell=not is_async)
    failed = list[bool]()

    def step(results: Results) -> tuple[str, dict[str, Any]] | None:
        failed[:] = [bool(one.get("is_error")) for one in results]
        try:
            return story.send(text_of(results[-1])) if results else next(story)
        except StopIteration:
            return None

    tools = runner_tools(project.session, shell=True)
    if is_async:
        run_tools_async([AsyncTool(one) for one in tools], [step] * 10)
    else:
        run_tools([*tools], [step] * 10)

    assert failed == [False, False, True, False, False, False, False, *([] if is_async else [False])]
    check_end(project, shell=not is_async)


def run_commands(project: Project, tool: Any, commands: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    """Let a model send commands to one tool, and return what it was told."""
    told = list[tuple[bool, str]]()

    def step_of(command: dict[str, Any]) -> Step:
        before = command.pop("before", None)

        def step(results: Results) -> tuple[str, dict[str, Any]]:
            told[:] = [(not one.get("is_error"), text_of(one)) for one in results]
            if before:
                before()
            return tool.name, command

        return step

    def end(results: Results) -> None:
        told[:] = [(not one.get("is_error"), text_of(one)) for one in results]

    run_tools([tool], [*map(step_of, commands), end])
    return told


@requirement("front:adapters:anthropic")
def test_the_text_editor_views_edits_inserts_and_refuses_what_changed(tmp_path: Path) -> None:
    from surehold.adapters.anthropic import TextEditorTool

    project = make_project(tmp_path)
    project.put("a.txt", b"one\r\ntwo\r\nthree")
    changed = b"zero\r\none\r\n2\r\nthree\r\nend"

    def change() -> None:
        project.put("a.txt", b"zero\r\n" + project.files()["a.txt"])

    told = run_commands(
        project,
        TextEditorTool(project.session, max_characters=30),
        [
            {"command": "view", "path": "a.txt"},
            {"command": "view", "path": "a.txt", "view_range": [3, -1]},
            {"command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "2"},
            {"command": "insert", "path": "a.txt", "insert_line": 3, "insert_text": "end\n"},
            {"command": "insert", "path": "a.txt", "insert_line": 1, "insert_text": "after one\n", "before": change},
            {"command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "3"},
            {"command": "create", "path": "a.txt", "file_text": "all new\n"},
            {"command": "create", "path": "made/b.txt", "file_text": "new\n"},
            {"command": "view", "path": "."},
            {"command": "delete", "path": "a.txt"},
            {"command": "insert", "path": "a.txt", "insert_text": "no line\n"},
            {"command": "view", "path": "../outside.txt"},
            {"command": "view", "path": "a.txt", "view_range": ["x"]},
        ],
    )

    assert told[0] == (True, "     1\tone\r\n     2\ttwo\r\n\n[lines from 3 on are not shown]")
    assert told[1] == (True, "     3\tthree")
    assert [ok for ok, _ in told] == [True] * 4 + [False] * 3 + [True] * 2 + [False] * 4
    assert "changed since this session read it" in told[4][1]
    assert "made/b.txt" in told[8][1]
    reasons = (
        "No command is called `delete`",
        "`insert` requires `insert_line`",
        "outside",
        "`view_range` is two numbers",
    )
    assert all(reason in text for reason, (_, text) in zip(reasons, told[9:], strict=True)), told[9:]
    assert project.files() == {"a.txt": changed, "made/b.txt": b"new\n"}
    project.undo_all()
    assert project.files() == {"a.txt": b"zero\r\none\r\ntwo\r\nthree"}


@requirement("front:adapters:anthropic")
def test_memory_lives_below_memories_and_is_undone(tmp_path: Path) -> None:
    from surehold.adapters.anthropic import MemoryTool

    project = make_project(tmp_path)
    project.put("secret.txt", b"secret\n")
    (project.root / "memories").mkdir()
    (project.root / "memories/link").symlink_to("../secret.txt")

    told = run_commands(
        project,
        MemoryTool(project.session),
        [
            {"command": "create", "path": "/memories/a/one.md", "file_text": "likes tea\n"},
            {"command": "create", "path": "/memories/a/one.md", "file_text": "again\n"},
            {"command": "str_replace", "path": "/memories/a/one.md", "old_str": "tea", "new_str": "coffee"},
            {"command": "insert", "path": "/memories/a/one.md", "insert_line": 0, "insert_text": "Of the user:"},
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
            {"command": "view", "path": "/memories"},
            {"command": "view", "path": "/memories/b/one.md"},
            {"command": "delete", "path": "/memories/b"},
            {"command": "view", "path": "/memories/../secret.txt"},
            {"command": "view", "path": "/memories/link"},
            {"command": "delete", "path": "/memories/none.md"},
            {"command": "view", "path": "/etc/passwd"},
        ],
    )

    assert [ok for ok, _ in told] == [True, False, True, True, True, True, True, True, False, False, False, False]
    assert "exists already" in told[1][1]
    assert "/memories/b/one.md" in told[5][1]
    assert told[6][1] == "     1\tOf the user:\n     2\tlikes coffee\n"
    assert not any("secret\n" in text or "root:" in text for _, text in told)
    assert not (project.root / "memories/b").exists()
    assert not (project.root / "memories/a").exists()
    assert project.files() == {"memories/link": b"secret\n", "secret.txt": b"secret\n"}
    project.undo_all()
    assert project.files() == {"memories/link": b"secret\n", "secret.txt": b"secret\n"}


def test_an_empty_memory_is_no_error_and_its_methods_take_the_commands_of_the_package(tmp_path: Path) -> None:
    from anthropic.types.beta import BetaMemoryTool20250818CreateCommand, BetaMemoryTool20250818ViewCommand

    from surehold.adapters.anthropic import MemoryTool

    project = make_project(tmp_path)
    memory = MemoryTool(project.session)

    assert memory.view(BetaMemoryTool20250818ViewCommand(command="view", path="/memories")) == "/memories is empty."
    created = BetaMemoryTool20250818CreateCommand(command="create", path="/memories/a.md", file_text="a\n")
    assert str(memory.create(created)).startswith("Done: /memories/a.md")
    assert project.files() == {"memories/a.md": b"a\n"}

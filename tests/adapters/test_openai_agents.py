"""`surehold.adapters.openai_agents` in the real SDK, with its own scripted model."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adapters.project import Project, make_project
from adapters.story import begin, check_end, tell_story
from spec.marks import requirement

if TYPE_CHECKING:
    from agents import RunHooks, Tool
    from agents.testing import ModelCall

Steps = list[Callable[[list[str]], list[Any]]]
"""Each gets the outputs of the tools so far, and returns the items of the next response."""


def patch_call(kind: str, path: str, diff: str = "", *, number: int = 1) -> dict[str, Any]:
    operation = {"type": kind, "path": path, **({"diff": diff} if diff else {})}
    return {
        "type": "apply_patch_call",
        "id": f"p{number}",
        "call_id": f"p{number}",
        "status": "completed",
        "operation": operation,
    }


def shell_call(command: str, *, timeout_ms: int | None = None) -> dict[str, Any]:
    action = {"commands": [command], "timeout_ms": timeout_ms, "max_output_length": 1000}
    name = f"s{timeout_ms}"
    return {"type": "shell_call", "id": name, "call_id": name, "status": "completed", "action": action}


def run_agent(tools: "list[Tool]", steps: Steps, hooks: "RunHooks[Any] | None" = None) -> list[str]:
    """Run an agent whose model makes these steps, and return the outputs of all tools."""
    from agents import Agent, RunConfig, Runner
    from agents.testing import ModelStep, ScriptedModel, assistant_message
    from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall

    kinds: dict[str, Any] = {
        "apply_patch_call": ResponseApplyPatchToolCall,
        "shell_call": ResponseFunctionShellToolCall,
    }
    outputs = list[str]()

    def respond(step: Callable[[list[str]], list[Any]]) -> Callable[["ModelCall"], list[Any]]:
        def answer(call: "ModelCall") -> list[Any]:
            given: Any = call.input
            items = cast("list[dict[str, Any]]", given) if isinstance(given, list) else []
            outputs[:] = [str(one.get("output", "")) for one in items if str(one.get("type")).endswith("_output")]
            found = step(outputs)
            made = [kinds[one["type"]].model_validate(one) if isinstance(one, dict) else one for one in found]
            return made or [assistant_message("done")]

        return answer

    def end(_: list[str]) -> list[Any]:
        return []

    model = ScriptedModel([ModelStep.respond(respond(step)) for step in (*steps, end)])
    agent = Agent(name="tester", model=model, tools=tools)
    asyncio.run(Runner.run(agent, "go", hooks=hooks, max_turns=30, run_config=RunConfig(tracing_disabled=True)))
    model.assert_complete()
    return outputs


def editor_tool(project: Project) -> "tuple[Any, RunHooks[Any]]":
    from agents import ApplyPatchTool

    from surehold.adapters.openai_agents import PatchEditor

    editor = PatchEditor(project.session)
    return ApplyPatchTool(editor=editor), editor.hooks


@requirement("front:adapters:frameworks")
def test_function_tools_read_edit_are_refused_and_try_again(tmp_path: Path) -> None:
    from agents.testing import function_call

    from surehold.adapters.openai_agents import function_tools

    project = make_project(tmp_path)
    begin(project)
    story = tell_story(project, shell=True)
    calls = iter(range(100))

    def step(outputs: list[str]) -> list[Any]:
        try:
            name, arguments = story.send(outputs[-1]) if outputs else next(story)
        except StopIteration:
            return []
        return [function_call(name, arguments, call_id=f"c{next(calls)}")]

    steps: Steps = [step] * 8
    run_agent([*function_tools(project.session, shell=True)], steps)

    recorded = {one.call.call_id for change in project.workspace.changes() for one in change.entries}
    assert recorded >= {"c1", "c4"}
    check_end(project, shell=True)


@requirement("front:adapters:openai_patch")
def test_the_operations_of_a_response_are_one_change(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    before = {"a.txt": b"one\r\ntwo\r\nthree\n", "gone.txt": b"gone\n"}
    for path, data in before.items():
        project.put(path, data)
    tool, hooks = editor_tool(project)

    outputs = run_agent(
        [tool],
        [
            lambda _: [
                patch_call("update_file", "a.txt", "@@\n one\n-two\n+TWO\n three\n"),
                patch_call("create_file", "b/c.txt", "+new\n", number=2),
                patch_call("delete_file", "gone.txt", number=3),
            ]
        ],
        hooks,
    )

    assert project.files() == {"a.txt": b"one\r\nTWO\r\nthree\n", "b/c.txt": b"new\n"}
    assert len(project.workspace.changes()) == 1
    assert "Patch applied: 3 files" in outputs[0]
    assert outputs[1:] == ["The 3 operations of this response are one change; see the first of them."] * 2
    project.workspace.undo()
    assert project.files() == before


@requirement("front:adapters:openai_patch")
def test_one_operation_that_does_not_apply_refuses_the_whole_response_and_a_retry_succeeds(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.put("a.txt", b"one\ntwo\n")
    tool, hooks = editor_tool(project)

    def first(_: list[str]) -> list[Any]:
        project.put("a.txt", b"one\nchanged outside\n")
        return [
            patch_call("create_file", "b.txt", "+new\n"),
            patch_call("update_file", "a.txt", "@@\n one\n-two\n+TWO\n", number=2),
        ]

    def second(outputs: list[str]) -> list[Any]:
        assert outputs[0].startswith("Nothing was written.")
        assert project.files() == {"a.txt": b"one\nchanged outside\n"}
        return [
            patch_call("create_file", "b.txt", "+new\n", number=3),
            patch_call("update_file", "a.txt", "@@\n one\n-changed outside\n+TWO\n", number=4),
        ]

    run_agent([tool], [first, second], hooks)

    assert project.files() == {"a.txt": b"one\nTWO\n", "b.txt": b"new\n"}


def test_without_hooks_and_with_approvals_of_the_sdk_every_operation_is_its_own_change(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    tool, hooks = editor_tool(project)
    both = [patch_call("create_file", "a.txt", "+a\n"), patch_call("create_file", "b.txt", "+b\n", number=2)]

    run_agent([tool], [lambda _: both])
    assert len(project.workspace.changes()) == 2
    project.undo_all()

    async def approve(_: Any, item: Any) -> Any:
        return {"approve": "b.txt" not in str(item.raw_item)}

    tool.needs_approval, tool.on_approval = True, approve
    run_agent([tool], [lambda _: both], hooks)
    assert project.files() == {"a.txt": b"a\n"}


@requirement("front:adapters:openai_patch")
def test_a_move_keeps_line_endings_and_a_file_that_changed_since_it_was_read_is_not_deleted(tmp_path: Path) -> None:
    from agents.editor import ApplyPatchOperation

    from surehold.adapters.openai_agents import PatchEditor

    project = make_project(tmp_path)
    project.put("a.txt", b"one\r\ntwo\r\n")
    project.put("seen.txt", b"seen\n")
    editor = PatchEditor(project.session)
    moved = ApplyPatchOperation(type="update_file", path="a.txt", diff="@@\n one\n-two\n+2\n", move_to="b.txt")
    project.session.read("seen.txt")
    project.put("seen.txt", b"changed\n")
    deleted = ApplyPatchOperation(type="delete_file", path="seen.txt")

    done = asyncio.run(editor.update_file(moved))
    refused = asyncio.run(editor.delete_file(deleted))

    assert done.status == "completed"
    assert refused.status == "failed"
    assert "changed since this session read it" in str(refused.output)
    assert project.files() == {"b.txt": b"one\r\n2\r\n", "seen.txt": b"changed\n"}


def test_a_diff_that_names_other_files_is_refused(tmp_path: Path) -> None:
    from agents.editor import ApplyPatchOperation

    from surehold.adapters.openai_agents import PatchEditor

    project = make_project(tmp_path)
    project.put("a.txt", b"one\n")
    project.put("b.txt", b"two\n")
    editor = PatchEditor(project.session)
    hidden = ApplyPatchOperation(type="update_file", path="a.txt", diff="@@\n-one\n+1\n*** Delete File: b.txt\n")
    in_name = ApplyPatchOperation(type="create_file", path="c.txt\n*** Delete File: b.txt", diff="+x\n")

    for operation, method in ((hidden, editor.update_file), (in_name, editor.create_file)):
        refused = asyncio.run(method(operation))
        assert refused.status == "failed"
        assert "names more than one file" in str(refused.output)
    assert project.files() == {"a.txt": b"one\n", "b.txt": b"two\n"}


@requirement("front:adapters:shell")
def test_commands_are_recorded_end_in_time_and_are_undone(tmp_path: Path) -> None:
    from agents import ShellTool

    from surehold.adapters.openai_agents import shell_executor

    project = make_project(tmp_path)
    project.put("a.txt", b"one\n")
    tool = ShellTool(executor=shell_executor(project.session))

    outputs = run_agent(
        [tool],
        [
            lambda _: [shell_call("echo out; echo err >&2; rm a.txt; exit 3")],
            lambda _: [shell_call("sleep 60; echo late > late.txt", timeout_ms=300)],
        ],
    )

    assert "out" in outputs[0]
    assert "err" in outputs[0]
    assert "'exit_code': 3" in outputs[0]
    assert "timeout" in outputs[1]
    assert project.files() == {}
    project.undo_all()
    assert project.files() == {"a.txt": b"one\n"}


def test_in_plan_mode_no_command_runs(tmp_path: Path) -> None:
    from agents import RunContextWrapper, ShellCommandRequest, ShellResult
    from agents.tool import ShellActionRequest, ShellCallData

    from surehold.adapters.openai_agents import shell_executor

    project = make_project(tmp_path, mode="plan")
    data = ShellCallData(call_id="s1", action=ShellActionRequest(commands=["touch a.txt"]))
    execute: Any = shell_executor(project.session)

    result = asyncio.run(execute(ShellCommandRequest(ctx_wrapper=RunContextWrapper(None), data=data)))

    assert isinstance(result, ShellResult)
    assert "plan mode" in result.output[0].stderr
    assert project.files() == {}

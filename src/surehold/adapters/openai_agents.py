"""The OpenAI Agents SDK: an editor for its `ApplyPatchTool`, an executor for its `ShellTool`, and function tools.

The SDK hands an editor one operation at a time. With `hooks=editor.hooks` the editor knows all operations of a response before
the first of them, and makes one change of them: all or none, and undone together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from surehold import Delete, Keep, Proposal, SureholdError, Unchanged
from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession, CommandOutcome, plain_session, run_shell_async
from surehold.adapters.tool_calls import SessionTool, refusal, session_tools
from surehold.errors import PatchParseError
from surehold.library.async_session import call_in_thread
from surehold.library.families import DEFAULT_FAMILIES

with import_framework("openai-agents", "0.24"):
    from agents import (
        Agent,
        ApplyPatchTool,
        FunctionTool,
        ModelResponse,
        RunContextWrapper,
        RunHooks,
        ShellCallOutcome,
        ShellCommandOutput,
        ShellCommandRequest,
        ShellExecutor,
        ShellResult,
        ToolOutputImage,
        ToolOutputText,
    )
    from agents.editor import ApplyPatchOperation, ApplyPatchResult
    from agents.tool_context import ToolContext

_HEADERS = {"create_file": "*** Add File: ", "update_file": "*** Update File: ", "delete_file": "*** Delete File: "}
_END_OF_FILE = "*** End of File"


class PatchOperation(NamedTuple):
    """One operation, apart from the run that it belongs to."""

    type: str
    path: str
    diff: str = ""
    move_to: str = ""


@dataclass(slots=True)
class ResponsePatch:
    """All operations of one response, which become one change, and what came of it."""

    operations: list[PatchOperation]
    result: ApplyPatchResult | None = None


class PatchEditor:
    """Applies the operations of `apply_patch` to the files of a session: `ApplyPatchTool(editor=PatchEditor(session))`."""

    def __init__(self, session: AnySession) -> None:
        self._session = plain_session(session)
        self._responses = WeakKeyDictionary[RunContextWrapper[Any], ResponsePatch]()

    @property
    def hooks(self) -> RunHooks[Any]:
        """What `Runner.run` takes as hooks, so that the operations of a response become one change."""
        return ResponseHooks(self)

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._do(operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._do(operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._do(operation)

    def expect(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Learn which operations will come, if they can be made together: for hooks of your own, in `on_llm_end`."""
        self._responses.pop(context, None)
        calls = (item for item in response.output if _field(item, "type") == "apply_patch_call")
        operations = [_plain_operation(_field(call, "operation")) for call in calls]
        names = [name for one in operations for name in (one.path, one.move_to) if name]
        tools = [tool for tool in agent.tools if isinstance(tool, ApplyPatchTool)]
        # A person may allow one operation and not the other; and a patch has each file once.
        if len(names) == len(set(names)) and len(operations) > 1 and not any(tool.needs_approval for tool in tools):
            self._responses[context] = ResponsePatch(operations)

    async def _do(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        context, one = operation.ctx_wrapper, _plain_operation(operation)
        expected = self._responses.get(context) if context is not None else None
        if expected is None or one not in expected.operations:
            return await call_in_thread(self._apply, [one])
        if expected.result is None:
            expected.result = await call_in_thread(self._apply, expected.operations)
            return expected.result
        shared = f"The {len(expected.operations)} operations of this response are one change; see the first of them."
        return ApplyPatchResult(status=expected.result.status, output=shared)

    def _apply(self, operations: Sequence[PatchOperation]) -> ApplyPatchResult:
        try:
            rows = [row for one in operations for row in _patch_rows(one)]
            known = {
                one.path: self._hash_unquoted(one) for one in operations if one.type == "delete_file" or one.move_to
            }
        except SureholdError as error:
            return ApplyPatchResult(status="failed", output=refusal(error).text)
        patch = "\n".join(["*** Begin Patch", *rows, "*** End Patch"])
        answer = self._session.answer("apply_patch", {"patch": patch, "expectedSha256ByPath": known})
        return ApplyPatchResult(status="completed" if answer.ok else "failed", output=answer.text)

    def _hash_unquoted(self, operation: PatchOperation) -> str:
        """Return the sha256 of a file that is deleted or moved, unless it changed since this session read it."""
        edit = Delete() if operation.type == "delete_file" else Keep()
        return self._session.apply(Proposal(path=operation.path, edit=edit, proof=Unchanged()), dry_run=True).sha256


class ResponseHooks(RunHooks[Any]):
    """Tells an editor of every response."""

    def __init__(self, editor: PatchEditor) -> None:
        self._editor = editor

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        self._editor.expect(context, agent, response)


def shell_executor(session: AnySession) -> ShellExecutor:
    """Return what `ShellTool(executor=…)` takes: commands run under capture, in the first root of the workspace."""
    plain = plain_session(session)

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action, call = request.data.action, plain.with_call_id(request.data.call_id)
        limit = action.timeout_ms / 1000 if action.timeout_ms else None
        outputs = list[ShellCommandOutput]()
        for command in action.commands:
            try:
                outputs.append(_shell_output(command, await run_shell_async(call, command, limit=limit)))
            except SureholdError as error:
                ended = ShellCallOutcome(type="exit", exit_code=1)
                outputs.append(ShellCommandOutput(command=command, stderr=refusal(error).text, outcome=ended))
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    return execute


def function_tools(session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False) -> list[FunctionTool]:
    """Return the tools of a session; with `shell` also `run_command`, for models without `ShellTool`."""
    return [_function_tool(one) for one in session_tools(session, tools, shell=shell)]


def _function_tool(tool: SessionTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        reply = await tool.call_async(arguments, call_id=context.tool_call_id)
        urls = [f"data:{image['mimeType']};base64,{image['data']}" for image in reply.images]
        return (
            [ToolOutputText(text=reply.text), *(ToolOutputImage(image_url=url) for url in urls)] if urls else reply.text
        )

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _patch_rows(operation: PatchOperation) -> list[str]:
    rows = operation.diff.removesuffix("\n").split("\n") if operation.diff else []
    foreign = [row for row in rows if row.startswith("*** ") and row.strip() != _END_OF_FILE]
    if foreign or any("\n" in name or "\r" in name for name in (operation.path, operation.move_to)):
        action = "Send one operation for each file; a diff has the rows of one file alone, and a path is one line."
        raise PatchParseError(
            "This operation names more than one file.", path=operation.path, reason="header_in_diff", action=action
        )
    moved = [f"*** Move to: {operation.move_to}"] if operation.move_to else []
    return [f"{_HEADERS[operation.type]}{operation.path}", *moved, *rows]


def _shell_output(command: str, outcome: CommandOutcome) -> ShellCommandOutput:
    ended = (
        ShellCallOutcome(type="timeout")
        if outcome.timed_out
        else ShellCallOutcome(type="exit", exit_code=outcome.exit_code)
    )
    return ShellCommandOutput(command=command, stdout=outcome.stdout, stderr=outcome.stderr, outcome=ended)


def _plain_operation(operation: object) -> PatchOperation:
    kind, path, diff, move_to = (_field(operation, name) for name in PatchOperation._fields)
    return PatchOperation(str(kind), str(path), diff or "", move_to or "")


def _field(item: object, name: str) -> Any:
    return cast("Mapping[str, Any]", item).get(name) if isinstance(item, dict) else getattr(item, name, None)

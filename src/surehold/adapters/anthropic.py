"""Anthropic's tool runner: the text editor `text_editor_20250728`, the memory `memory_20250818`, and the tools of a session.

A refusal is raised as `ToolError`, which the runner sends to the model as a failed result. Memory lives in `memories/` of the
workspace, so that it is recorded and undone like everything else.
"""

from typing import Any, cast

from surehold import SureholdError
from surehold.adapters.file_commands import FileCommands, MemoryCommands
from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession
from surehold.adapters.tool_calls import SessionTool, refusal, session_tools
from surehold.library.async_session import call_in_thread
from surehold.library.families import DEFAULT_FAMILIES

with import_framework("anthropic", "2.9"):
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncBuiltinFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionToolResultType,
        ToolError,
    )


class TextEditorTool(BetaBuiltinFunctionTool):
    """`text_editor_20250728` on the files of a session, for the tool runner."""

    def __init__(self, session: AnySession, *, max_characters: int | None = None) -> None:
        self._commands = FileCommands(session, tool="text_editor", max_characters=max_characters)
        self._limits = {"max_characters": max_characters} if max_characters else {}

    def to_dict(self) -> Any:
        return {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", **self._limits}

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - as the base class has it
        return _run(self._commands, input)


class MemoryTool(BetaAbstractMemoryTool):
    """`memory_20250818` in `memories/` of the workspace, for the tool runner."""

    def __init__(self, session: AnySession) -> None:
        super().__init__()
        self._commands = MemoryCommands(session, tool="memory")

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - as the base class has it
        return _run(self._commands, input)

    def _run_one(self, command: Any) -> BetaFunctionToolResultType:
        return _run(self._commands, command.to_dict())

    view = create = str_replace = insert = delete = rename = _run_one


class RunnerTool(BetaBuiltinFunctionTool):
    """One tool of a session, for the tool runner."""

    def __init__(self, tool: SessionTool) -> None:
        self._tool = tool

    def to_dict(self) -> Any:
        return {"name": self._tool.name, "description": self._tool.description, "input_schema": self._tool.schema}

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - as the base class has it
        reply = self._tool.call(input)
        if not reply.ok:
            raise ToolError(reply.text)
        sources = [{"type": "base64", "media_type": one["mimeType"], "data": one["data"]} for one in reply.images]
        images = [{"type": "image", "source": source} for source in sources]
        return cast("Any", [{"type": "text", "text": reply.text}, *images]) if images else reply.text


class AsyncTool(BetaAsyncBuiltinFunctionTool):
    """Any of these tools for the asynchronous runner; a cancelled call is done or not done, never half."""

    def __init__(self, tool: BetaBuiltinFunctionTool) -> None:
        self._tool = tool

    def to_dict(self) -> Any:
        return self._tool.to_dict()

    async def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002 - as the base class has it
        return await call_in_thread(self._tool.call, input)


def runner_tools(session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False) -> list[RunnerTool]:
    """Return the tools of a session for `tool_runner`; with `shell` also `run_command`, which runs under capture."""
    return [RunnerTool(one) for one in session_tools(session, tools, shell=shell)]


def _run(commands: FileCommands, given: object) -> str:
    try:
        return commands.run(given)
    except SureholdError as error:
        raise ToolError(refusal(error, reads=commands.is_view(given)).text) from error

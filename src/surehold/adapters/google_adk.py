"""Google's Agent Development Kit: an environment for its `EnvironmentToolset`, on the files of a session.

Its tools read a file whole and write it whole, so a write refuses what changed outside since it was read. Commands run under
capture. The tools `WriteFile` and `ReadFile` tell a model of refusals; `EditFile` raises them, which `tell_refusal` turns into
an answer: `LlmAgent(…, on_tool_error_callback=tell_refusal)`.
"""

from pathlib import Path
from typing import Any

from surehold import Proposal, SureholdError, Unchanged, WriteBytes, WriteText
from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession, plain_session, run_shell_async
from surehold.adapters.tool_calls import refusal
from surehold.errors import NotEncodable, NotFound
from surehold.library.async_session import call_in_thread

with import_framework("google-adk", "2.13"):
    from google.adk.environment import BaseEnvironment, ExecutionResult

_UNREADABLE = "\ufffd"


class SessionEnvironment(BaseEnvironment):
    """The first root of a workspace, read and changed through a session: `EnvironmentToolset(environment=…)`."""

    def __init__(self, session: AnySession) -> None:
        self._session = plain_session(session)

    @property
    def working_dir(self) -> Path:
        return Path(self._session.workspace.roots[0])

    async def initialize(self) -> None:
        self.is_initialized = True

    async def close(self) -> None:
        """Leave the workspace open, since it belongs to the program."""
        self.is_initialized = False

    async def execute(self, command: str, *, timeout: float | None = None) -> ExecutionResult:  # noqa: ASYNC109 - as the base class has it
        done = await run_shell_async(self._session, command, limit=timeout)
        return ExecutionResult(
            exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr, timed_out=done.timed_out
        )

    async def read_file(self, path: str | Path) -> bytes:
        try:
            return (await call_in_thread(self._session.read, str(path))).data
        except NotFound as error:
            raise FileNotFoundError(refusal(error, reads=True).text) from error

    async def write_file(self, path: str | Path, content: str | bytes) -> None:
        await call_in_thread(self._write, str(path), content)

    def _write(self, path: str, content: str | bytes) -> None:
        if isinstance(content, str) and _UNREADABLE in content:
            self._refuse_lost_bytes(path)
        edit = WriteText(content) if isinstance(content, str) else WriteBytes(content)
        proposal = Proposal(path=path, edit=edit, proof=Unchanged(may_be_new=True))
        self._session.submit(proposal, operation="write", tool="write_file")

    def _refuse_lost_bytes(self, path: str) -> None:
        """Refuse a text in which the tools replaced bytes that they could not decode: writing it would lose them."""
        try:
            before = self._session.workspace.read(path).data
        except NotFound:
            return
        if _UNREADABLE.encode() not in before:
            action = "Change it with a command, or with a tool that names its encoding."
            message = f"`{path}` has bytes that are not UTF-8, and this text no longer has them."
            raise NotEncodable(message, path=path, reason="bytes_lost", action=action)


async def tell_refusal(tool: Any, args: dict[str, Any], tool_context: Any, error: Exception) -> dict[str, Any] | None:  # noqa: ARG001 - as the callback is called
    """Answer a refusal to the model; every other error stays one."""
    if not isinstance(error, SureholdError):
        return None
    return {"status": "error", "error": refusal(error, reads=tool.name == "ReadFile").text}

"""Pydantic AI: the tools of a session as a toolset, `Agent(…, toolsets=[SessionToolset(session)])`.

A refusal is a `ModelRetry`, so that the model corrects its call; what a person or a rule forbids is a `ToolFailed`. With
`defer_approvals` a change that requires approval ends the run with `DeferredToolRequests`, and happens when the run goes on with
the approval, if it still is what was shown.
"""

import base64
from typing import Any

from surehold import Approval, PermissionRequest
from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession
from surehold.adapters.tool_calls import SessionTool, ToolReply, session_tools
from surehold.errors import PermissionDenied, PermissionRequired
from surehold.library.async_session import call_in_thread
from surehold.library.families import DEFAULT_FAMILIES

with import_framework("pydantic-ai-slim", "2.66"):
    from pydantic_ai import ApprovalRequired, BinaryContent, ModelRetry, RunContext, ToolDefinition
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""The tools say themselves what is wrong with a call."""
Versions = tuple[tuple[str, str | None, str | None], ...]


class DeferredApprover:
    """Allows a call that was approved, as it was shown; of every other it keeps what would have to be approved."""

    def __init__(self, *, is_approved: bool, shown: Versions | None) -> None:
        self._is_approved, self._shown = is_approved, shown
        self.request: PermissionRequest | None = None

    @property
    def versions(self) -> Versions:
        files = self.request.files if self.request else ()
        return tuple((one.path, one.before_sha256, one.after_sha256) for one in files)

    def __call__(self, request: PermissionRequest) -> Approval:
        if request.command:  # it runs already, and cannot wait for another run
            raise PermissionRequired("Commands are not asked about later.", reason="not_deferred")
        self.request = request
        if self._is_approved and self._shown in (None, self.versions):
            self.request = None
            return Approval(allowed=True)
        raise PermissionRequired("This waits for approval.", reason="deferred")


class SessionToolset(AbstractToolset[Any]):
    """The tools of a session; with `shell` also `run_command`, which runs under capture."""

    def __init__(
        self,
        session: AnySession,
        tools: str = DEFAULT_FAMILIES,
        *,
        shell: bool = False,
        defer_approvals: bool = False,
        max_retries: int = 5,
        id: str = "surehold",  # noqa: A002 - as the base class has it
    ) -> None:
        self._tools = {one.name: one for one in session_tools(session, tools, shell=shell)}
        self._defers, self._max_retries, self._id = defer_approvals, max_retries, id
        self._shown = dict[str, Versions]()
        """What the approval of a call is for, by its id."""

    @property
    def id(self) -> str:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - as it is called
        return {name: self._toolset_tool(one) for name, one in self._tools.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - as it is called
    ) -> Any:
        one, call_id = self._tools[name], ctx.tool_call_id or ""
        if not self._defers:
            return _returned(await one.call_async(tool_args, call_id=call_id))
        approver = DeferredApprover(is_approved=ctx.tool_call_approved, shown=self._shown.pop(call_id, None))
        session = one.session.with_call_id(call_id).with_approver(approver)
        reply = await call_in_thread(one.call_in, session, tool_args)
        if (request := approver.request) is None:
            return _returned(reply)
        self._shown[call_id] = approver.versions
        raise ApprovalRequired(metadata={"summary": request.summary, "why": request.why, "diff": request.diff})

    def _toolset_tool(self, tool: SessionTool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.schema,
            strict=False,
            sequential=not tool.read_only,
            metadata={"read_only": tool.read_only},
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=self._max_retries, args_validator=_ANY_ARGUMENTS
        )


def _returned(reply: ToolReply) -> Any:
    if isinstance(reply.error, PermissionDenied):
        raise ToolFailed(reply.text)
    if not reply.ok:
        raise ModelRetry(reply.text)
    images = [(base64.b64decode(one["data"]), one["mimeType"]) for one in reply.images]
    return [reply.text, *(BinaryContent(data=data, media_type=kind) for data, kind in images)] if images else reply.text

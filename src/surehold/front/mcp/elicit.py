"""Elicitation in the words of the SDK: whether a client can ask, how it is asked, and what it answered."""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from surehold.errors import Cancelled, PermissionRequired, SureholdError
from surehold.front.mcp.asking import Deliver
from surehold.front.mcp.questions import Question, Reply

Ctx = ServerRequestContext[Any, Any]


def can_elicit(ctx: Ctx) -> bool:
    """Tell whether the client shows forms to a person; one that names no mode means forms."""
    capabilities = ctx.session.client_capabilities
    declared = capabilities.elicitation if capabilities else None
    return declared is not None and (declared.form is not None or declared.url is None)


def replies_in(params: types.CallToolRequestParams) -> dict[str, Reply]:
    """Return the answers that a call brings along."""
    given = params.input_responses or {}
    return {key: _reply(one) for key, one in given.items() if isinstance(one, types.ElicitResult)}


def delivery(ctx: Ctx, *, seconds: float) -> Deliver:
    """Return the way to ask the client of a call while the call waits."""

    async def deliver(question: Question) -> Reply:
        params = types.ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
        try:
            result = await ctx.session.send_request(
                types.ElicitRequest(params=params),
                types.ElicitResult,
                request_read_timeout_seconds=seconds,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except MCPError as error:
            raise _unanswered(error, seconds) from None
        except ValidationError:
            raise _unreachable("its answer cannot be understood") from None
        return _reply(result)

    return deliver


def _reply(result: types.ElicitResult) -> Reply:
    return Reply(action=result.action, content=result.content or {})


def _unanswered(error: MCPError, seconds: float) -> SureholdError:
    if error.code == types.CONNECTION_CLOSED:
        return Cancelled("The client left while somebody was asked.")
    if error.code == types.REQUEST_TIMEOUT:
        return PermissionRequired(
            f"Nobody answered within {seconds:,.0f} seconds.",
            reason="approval_timeout",
            action="Tell the person what you want to change; call again when they are there to answer.",
        )
    return _unreachable(error.message)


def _unreachable(cause: str) -> PermissionRequired:
    return PermissionRequired("The client could not ask anybody.", cause=cause)

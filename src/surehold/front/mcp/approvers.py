"""Chooses who approves a change over MCP: the person at the client, in the way of each era, or a fallback."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.mcp.approval_form import Ask, ElicitationReply, approval_from_reply, form_for_request
from surehold.front.mcp.approval_rounds import PERMISSION_KEY, ApprovalRounds, InputRequired, PendingRound
from surehold.front.mcp.results import Keep
from surehold.front.mcp.sessions import INVALID_PARAMS, Caller, CallerSession, RpcError
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.session import Session


class FallbackApprover(Protocol):
    """Asks somebody who is not at the client."""

    def __call__(self, request: PermissionRequest, *, cancelled: Callable[[], bool]) -> Approval:
        """Return what the person said; give up when the call is taken back."""
        ...


class ApprovalRouter:
    """Finds out whom a call can ask, and what was answered to it before."""

    def __init__(self, *, keep: Keep, seconds: float, elsewhere: FallbackApprover | None = None) -> None:
        self._keep = keep
        self._elsewhere = elsewhere
        self._rounds = ApprovalRounds(seconds=seconds)

    def take_earlier_round(self, tool: str, caller: Caller) -> PendingRound | None:
        """Return what somebody was asked about before this call was made again."""
        if caller.round is None or not caller.round.state:
            return None
        asked = self._rounds.take_round(caller.round.state)
        if asked is None or asked.tool != tool:
            raise RpcError(INVALID_PARAMS, "No question is open under this requestState; call again without it.")
        return asked

    def session_for_call(
        self, seat: CallerSession, caller: Caller, tool: str, asked: PendingRound | None, *, atomic: bool
    ) -> Session:
        """Return the session of a call, which asks the person at its client where there is one."""
        if asked and asked.session != seat.session.id:
            raise RpcError(INVALID_PARAMS, "Another session was asked; call again without requestState.")
        if caller.ask is not None:
            return seat.session.with_approver(
                ElicitingApprover(caller.ask, keep=self._keep, cancelled=caller.cancelled)
            )
        if caller.round is None:
            page = self._elsewhere
            return seat.session.with_approver(partial(page, cancelled=caller.cancelled)) if page else seat.session
        if not atomic:
            return seat.session.with_approver(refuse_one_by_one)
        reply = caller.round.replies.get(PERMISSION_KEY)
        answered = (asked, reply) if asked and reply else None
        return seat.session.with_approver(
            RoundTripApprover(self._rounds, answered, tool=tool, handle=seat.handle, keep=self._keep)
        )


class ElicitingApprover:
    """Asks while the call waits: an era in which a server may call its client."""

    def __init__(self, ask: Ask, *, keep: Keep, cancelled: Callable[[], bool]) -> None:
        self._ask = ask
        self._keep = keep
        self._cancelled = cancelled

    def __call__(self, request: PermissionRequest) -> Approval:
        """Return what the person said."""
        reply = self._ask(form_for_request(request, keep=self._keep))
        if self._cancelled():
            raise Cancelled("The call was taken back while somebody was asked.")
        return approval_from_reply(reply, request)


class RoundTripApprover:
    """Ends the call with a question, and takes the answer from the call that comes back with it."""

    def __init__(
        self,
        rounds: ApprovalRounds,
        answered: tuple[PendingRound, ElicitationReply] | None,
        *,
        tool: str,
        handle: str,
        keep: Keep,
    ) -> None:
        self._rounds = rounds
        self._answered = answered
        self._tool = tool
        self._handle = handle
        self._keep = keep

    def __call__(self, request: PermissionRequest) -> Approval:
        """Return what the person said before, about this very change; else ask."""
        answered, self._answered = self._answered, None
        if answered is None:
            state = self._rounds.keep_request(request, tool=self._tool, handle=self._handle)
            raise InputRequired(form_for_request(request, keep=self._keep), state)
        asked, reply = answered
        asked.check_same_change(request)
        return approval_from_reply(reply, request)


def refuse_one_by_one(request: PermissionRequest) -> Approval:
    """Refuse to ask: the call would begin anew with the answer, and what it did so far would happen twice."""
    raise PermissionRequired(
        f"{request.why[:-1]}, and the files of one call cannot be asked about one by one here.",
        path=request.files[0].path,
        action="Send it with `atomic: true`, or each file in a call of its own.",
    )

"""What goes to the client of one session: events, and questions. The only place that sends them."""

from contextlib import suppress
from typing import TYPE_CHECKING

from surehold.front.acp.event import Dialect, ToolEvent
from surehold.front.acp.question import PLAN_KEY, approval_of, asked_call, bound_plan, options
from surehold.front.acp.spelling import SPELLINGS
from surehold.workspace.permission import Approval, PermissionRequest

if TYPE_CHECKING:
    from acp.interfaces import Client


class Messenger:
    """Speaks to the client of one session, on the loop."""

    def __init__(self, client: "Client", session_id: str, *, dialect: Dialect = "v1") -> None:
        self._client = client
        self._session_id = session_id
        self._dialect: Dialect = dialect

    async def tell(self, event: ToolEvent) -> None:
        """Report an event; when nobody listens any more, the call is not to suffer from that."""
        update = SPELLINGS[self._dialect](event)
        with suppress(ConnectionError):
            if self._dialect == "v1":
                from acp.schema import ToolCallProgress, ToolCallStart

                model = ToolCallStart if event.status == "pending" else ToolCallProgress
                await self._client.session_update(session_id=self._session_id, update=model.model_validate(update))
                return
            wire = vars(self._client)["_conn"]  # the package's own methods refuse a shape that they do not know
            await wire.send_notification("session/update", {"sessionId": self._session_id, "update": update})

    async def ask(self, begun: ToolEvent, request: PermissionRequest, *, root: str) -> Approval:
        """Ask the person, and wait for the answer as long as it takes."""
        from acp.schema import PermissionOption, ToolCallUpdate

        answer = await self._client.request_permission(
            session_id=self._session_id,
            tool_call=ToolCallUpdate.model_validate(asked_call(begun, request, root=root)),
            options=[PermissionOption.model_validate(one) for one in options()],
            **{PLAN_KEY: bound_plan(request)},
        )
        return approval_of(answer.outcome)

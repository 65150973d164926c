"""A session with a typed method for every tool."""

from collections.abc import Mapping
from typing import Any

from surehold.dialects.shared.delivery_record import DeliveryRecord
from surehold.library.families import tool_named
from surehold.library.tool_methods import CANCELLED, ToolMethods
from surehold.tools.call import Answer, AnswerBudget, CallContext
from surehold.workspace.access.permission import Permission
from surehold.workspace.session import Session
from surehold.workspace.workspace import Workspace


class AgentSession(ToolMethods, Session):
    """One agent's conversation with one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        id: str,  # noqa: A002 - it is the id
        agent: str = "",
        permission: Permission | None = None,
    ) -> None:
        super().__init__(workspace, id=id, agent=agent, permission=permission)
        self.deliveries = DeliveryRecord()  # here, so that the copies that `with_approver` makes share it

    def notify_compaction(self) -> None:
        """Forget what the host no longer shows: nothing is answered with `file_unchanged` until it was sent again."""
        self.deliveries.notify_compaction()

    def answer(self, name: str, arguments: Mapping[str, Any], *, budget: AnswerBudget | None = None) -> Answer:
        """Call a tool by its name with plain data, as a model does; a refusal is an answer too."""
        context = CallContext(session=self, budget=budget or AnswerBudget(), cancelled=CANCELLED.get())
        return tool_named(name).call(context, arguments)

"""A session that calls tools: what the typed methods of all families stand on."""

from collections.abc import Mapping
from typing import Any

from surehold.dialects.families import tool_named
from surehold.dialects.shared.deliveries import Deliveries
from surehold.tools.context import Budget, Context
from surehold.tools.spec import Answer
from surehold.workspace.permission import Permission
from surehold.workspace.session import Session
from surehold.workspace.write_path import WritePath

_PROGRAM = Budget(lines=1 << 30, characters=1 << 40, tokens=1 << 40)
"""A program is given everything at once."""


class ToolSession(Session):
    """One agent's conversation with one workspace, which can call every tool by its name."""

    def __init__(
        self,
        workspace: WritePath,
        *,
        id: str,  # noqa: A002 - it is the id
        agent: str = "",
        permission: Permission | None = None,
    ) -> None:
        super().__init__(workspace, id=id, agent=agent, permission=permission)
        self.deliveries = Deliveries()  # here, so that the copies that `asking` makes share it

    def notify_compaction(self) -> None:
        """Hear that the host shortened the conversation: nothing is answered with `file_unchanged` before it is shown again."""
        self.deliveries.notify_compaction()

    def answer(self, name: str, arguments: Mapping[str, Any], *, budget: Budget | None = None) -> Answer:
        """Call a tool by its name with plain data, as a model does; a refusal is an answer too."""
        return tool_named(name).call(Context(session=self, budget=budget or Budget()), arguments)

    @property
    def _context(self) -> Context:
        return Context(session=self, budget=_PROGRAM)

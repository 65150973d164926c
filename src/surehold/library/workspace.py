"""A workspace whose sessions can call the tools.

The tools are imported by the first session, since most commands need none.
"""

from typing import TYPE_CHECKING

from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.settings import Mode


class AgentWorkspace(Workspace):
    """One or several directories that agents may edit."""

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: "Mode | None" = None,
        approver: "Approver | None" = None,
    ) -> "AgentSession":
        """Begin a session, or continue the one of that id, in a mode and with an approver to ask."""
        from surehold.library.session import AgentSession

        return AgentSession(self, id=id or self.new_id(), agent=agent, permission=self.permission(mode, approver))

"""The workspace as library users see it. Its parts are loaded on first use, because most commands need only one of them."""

from functools import cached_property
from typing import TYPE_CHECKING

from surehold.workspace.writer import WorkspaceWriter

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.history import History
    from surehold.workspace.session import Session
    from surehold.workspace.settings import Mode
    from surehold.workspace.tracking import CheckpointManager, FileWriteTracker


class Workspace(WorkspaceWriter):
    """One or several directories that we may edit, with their memory and their rules."""

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: "Mode | None" = None,
        approver: "Approver | None" = None,
    ) -> "Session":
        """Begin a conversation, or go on with the one of that id, in a mode and with somebody to ask."""
        from surehold.workspace.session import Session

        return Session(self, id=id or self.new_id(), agent=agent, permission=self.permission(mode, approver))

    @cached_property
    def history(self) -> "History":
        """What happened here, and the way back."""
        from surehold.workspace.history import History

        return History(self)

    @property
    def checkpoints(self) -> "CheckpointManager":
        """The writes that are under way."""
        from surehold.workspace.tracking import CheckpointManager

        return CheckpointManager(self)

    @property
    def writers(self) -> "FileWriteTracker":
        """Which tool family last wrote a file."""
        from surehold.workspace.tracking import FileWriteTracker

        return FileWriteTracker(self)

"""What a user holds."""

from functools import cached_property

from surehold.workspace.history import History
from surehold.workspace.session import Session
from surehold.workspace.views import CheckpointManager, FileWriteTracker
from surehold.workspace.write_path import WritePath


class Workspace(WritePath):
    """One or several directories that we may edit, with their memory and their rules."""

    def session(self, *, agent: str = "", id: str = "") -> Session:  # noqa: A002 - it is the id
        """Begin a conversation, or go on with the one of that id."""
        return Session(self, id=id or self.new_id(), agent=agent)

    @cached_property
    def history(self) -> History:
        """What happened here, and the way back."""
        return History(self)

    @property
    def checkpoints(self) -> CheckpointManager:
        """The writes that are under way."""
        return CheckpointManager(self)

    @property
    def writers(self) -> FileWriteTracker:
        """Which tool family last wrote a file."""
        return FileWriteTracker(self)

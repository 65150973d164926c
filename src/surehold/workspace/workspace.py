"""The workspace as library users see it. Its parts are loaded on first use, because most commands need only one of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from surehold.stores.base import Intent
from surehold.workspace.paths import AnyPath
from surehold.workspace.recovery import SettledIntent
from surehold.workspace.writer import WorkspaceWriter

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.history import History
    from surehold.workspace.session import Session
    from surehold.workspace.settings import Mode


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
        return CheckpointManager(self)

    @property
    def writers(self) -> "FileWriteTracker":
        """Which tool family last wrote a file."""
        return FileWriteTracker(self)


@dataclass(frozen=True, slots=True)
class CheckpointManager:
    """The writes that are under way, with the old bytes kept for each."""

    workspace: "Workspace"

    def open(self) -> tuple[Intent, ...]:
        """List checkpoints that are neither committed nor rolled back."""
        return tuple(busy.intent for busy in self.workspace.store.open_intents())

    def old_bytes(self, checkpoint: Intent, path: AnyPath) -> bytes | None:
        """Return what a path held before; None when it held nothing."""
        for change in checkpoint.changes:
            for name, before, _ in change.transitions():
                if name == str(path):
                    return self.workspace.store.read_blob(before.sha256) if before else None
        return None

    def roll_back_abandoned(self) -> tuple[SettledIntent, ...]:
        """Close the checkpoints of dead processes."""
        return self.workspace.recover()


@dataclass(frozen=True, slots=True)
class FileWriteTracker:
    """Which tool family last wrote a file."""

    workspace: "Workspace"

    def last_writer(self, path: AnyPath) -> str:
        """Return the writer of the newest version: a tool family, `external`, or nothing when it was never written."""
        return self.workspace.know_file(path).last_writer

    def writers_since(self, path: AnyPath, seq: int) -> tuple[str, ...]:
        """List everybody who wrote a file after a point of the ledger, oldest first, without repetition."""
        known = self.workspace.know_file(path)
        spans = self.workspace.store.list_writers(known.path, after_seq=seq)
        return known.with_outside_writer(one.writer for one in spans)

    def baseline_continuity(self, path: AnyPath, session: str) -> Literal["clean", "mixed"]:
        """Tell whether anything but `edit` wrote the file since this session last read all of it with anchors."""
        return self.workspace.know_file(path, session=session).baseline_continuity

"""Open checkpoints and the last writer of each file, as views over the store. Neither keeps state of its own."""

from dataclasses import dataclass
from typing import Literal

from surehold.stores.base import Intent
from surehold.workspace.paths import AnyPath
from surehold.workspace.recovery import SettledIntent
from surehold.workspace.writer import WorkspaceWriter


@dataclass(frozen=True, slots=True)
class CheckpointManager:
    """The writes that are under way, with the old bytes kept for each."""

    workspace: WorkspaceWriter

    def open(self) -> tuple[Intent, ...]:
        """List checkpoints that are neither committed nor rolled back."""
        return tuple(busy.intent for busy in self.workspace.store.open_intents())

    def old_bytes(self, checkpoint: Intent, path: str) -> bytes | None:
        """Return what a path held before; None when it held nothing."""
        for change in checkpoint.changes:
            for name, before, _ in change.transitions():
                if name == path:
                    return self.workspace.store.read_blob(before.sha256) if before else None
        return None

    def roll_back_abandoned(self) -> tuple[SettledIntent, ...]:
        """Close the checkpoints of dead processes."""
        return self.workspace.recover()


@dataclass(frozen=True, slots=True)
class FileWriteTracker:
    """Which tool family last wrote a file."""

    workspace: WorkspaceWriter

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

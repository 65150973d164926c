"""Open checkpoints and the last writer of each file, as views over the store. Neither keeps state of its own."""

from dataclasses import dataclass
from typing import Literal

from surehold.stores.base import Intent, LedgerQuery
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

    def last_writer(self, path: str) -> str:
        """Return the writer of the newest version: a tool family, `external`, or nothing when it was never written."""
        key = self.workspace.target(path).key
        head = self.workspace.store.head_of(key)
        if head is None:
            return ""
        now = self.workspace.fingerprint(path)
        return head.writer if now == (head.version.sha256 if head.version else "") else "external"

    def writers_since(self, path: str, seq: int) -> tuple[str, ...]:
        """List everybody who wrote a file after a point of the ledger, oldest first, without repetition."""
        key = self.workspace.target(path).key
        entries = self.workspace.store.list_entries(LedgerQuery(path=key, after_seq=seq, ok_only=True, limit=10_000))
        names = [entry.call.writer for entry in reversed(entries)]
        if self.last_writer(path) == "external":
            names.append("external")
        return tuple(dict.fromkeys(names))

    def baseline_continuity(self, path: str, session: str) -> Literal["clean", "mixed"]:
        """Tell whether anything but `edit` wrote the file since this session last read all of it with anchors."""
        key = self.workspace.target(path).key
        full = [s.seq for s in self.workspace.store.list_sightings(session, key) if s.read_with_anchors]
        others = set(self.writers_since(path, max(full, default=0))) - {"edit"}
        return "mixed" if others else "clean"

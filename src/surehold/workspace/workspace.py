"""The workspace as library users see it: a reader, a writer, a finder and a history over one disk and one store.

Its larger parts are loaded on first use, because most commands need only one of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from surehold.disk.base import Disk, Target
from surehold.errors import StateUnavailable, SureholdError, WorkspaceClosed
from surehold.stores.base import ApprovalRecord, Blob, Call, Intent, Store
from surehold.stores.ledger_entries import utc_now, utc_timestamp
from surehold.stores.owner import Owner, new_id
from surehold.stores.run_records import NewEntries
from surehold.text.encoding import EncodingDetector
from surehold.text.snapshot import Snapshot, sha256_hex
from surehold.workspace.paths import AnyPath, Policy
from surehold.workspace.reader import WorkspaceReader
from surehold.workspace.settings import Limits, Mode, ReadGateSettings

if TYPE_CHECKING:
    from surehold.disk.base import StoredEntry
    from surehold.text.page import FilePage
    from surehold.workspace.access.permission import Approver, Permission, PermissionRequest
    from surehold.workspace.access.question_board import QuestionBoard
    from surehold.workspace.access.seen_lines import KnownFile
    from surehold.workspace.finder import Finder
    from surehold.workspace.history import History
    from surehold.workspace.proposal import Proposal, Receipt
    from surehold.workspace.recovery import SettledIntent
    from surehold.workspace.refusal_log import RefusalLog
    from surehold.workspace.runs.recorder import RunRecorder
    from surehold.workspace.session import Session
    from surehold.workspace.writer import WorkspaceWriter


class Workspace:
    """One or several directories that we may edit, with their memory and their rules."""

    def __init__(
        self,
        *,
        disk: Disk,
        store: Store,
        owner: Callable[[], Owner],
        policy: Policy | None = None,
        limits: Limits | None = None,
        mode: Mode | None = None,
        approver: "Approver | None" = None,
        gate: ReadGateSettings | None = None,
        detector: EncodingDetector | None = None,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = new_id,
        runs: Path | None = None,
        opened_with: tuple[str, ...] = (),
        state_url: str = "",
    ) -> None:
        """Take what it works with; what commands are about to change is kept in `runs` while they run.

        `opened_with` are the options with which another process opens the same history, `state_url` is its database.
        """
        self._owner, self.runs_dir, self.opened_with, self.state_url = owner, runs, opened_with, state_url
        self.disk, self.store, self.clock, self.new_id = disk, store, clock, new_id
        self.mode: Mode | None = mode
        self._is_closed = False
        self.approver = approver
        self.gate = gate or ReadGateSettings()
        self.reader = WorkspaceReader(
            disk=disk, store=store, policy=policy, limits=limits, detector=detector, runs=runs
        )
        self.limits, self.policy = self.reader.limits, self.reader.policy

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories below which everything happens."""
        return self.disk.roots

    def read_caution(self) -> str:
        """Say why what is read may not be what the paths of the roots lead to; empty when it is."""
        return self.disk.read_caution()

    def check_history(self) -> bool:
        """Return True if the history can be written to, and is one that we know; raise what is wrong with it."""
        self.store.look([])
        return not self.store.renew("", lease=0)

    def count_open_changes(self) -> int:
        """Count the changes that are under way, in any process."""
        return len(self.store.open_intents())

    def follow_history(self, cursor: str = "") -> NewEntries:
        """Return what was recorded since a cursor, by any process, each entry once; without one, where to begin."""
        return self.store.tail(cursor)

    def keep_bytes(self, data: bytes) -> str:
        """Keep bytes in the history until a clean-up, for every process; return their sha256."""
        name = sha256_hex(data)
        self.store.keep_blobs([Blob(data=data, sha256=name)])
        return name

    def read_bytes(self, sha256: str) -> bytes:
        """Return bytes of the history."""
        return self.store.read_blob(sha256)

    def target(self, path: AnyPath) -> Target:
        """Resolve a path that may be read."""
        return self.reader.target(path)

    def read(self, path: AnyPath, *, encoding: str | None = None, limit: int | None = None) -> Snapshot:
        """Return a file as it is now; `FileTooLarge` above the limit."""
        return self.reader.read(path, encoding=encoding, limit=limit)

    def read_entry(self, key: str) -> "StoredEntry | None":
        """Return what a recorded name leads to, of any kind; no link is followed."""
        return self.disk.read_entry(self.disk.locate(key), limit=self.limits.max_file_bytes)

    def page(
        self, path: AnyPath, *, start: int = 1, count: int = 2000, max_bytes: int = 262_144, encoding: str | None = None
    ) -> "FilePage":
        """Return some lines of a file of any size, with the facts about all of it, in one pass."""
        return self.reader.page(path, start=start, count=count, max_bytes=max_bytes, encoding=encoding)

    def read_chunks(self, path: AnyPath) -> Iterator[bytes]:
        """Yield the bytes of a file of any size."""
        return self.disk.read_chunks(self.target(path))

    def fingerprint(self, path: AnyPath) -> str:
        """Return the sha256 of a file as it is now; empty when nothing is there."""
        return self.reader.fingerprint(path)

    def know_file(self, path: AnyPath, *, session: str = "") -> "KnownFile":
        """Return a file as it is now, with what the store knows of it and what a session was shown of it."""
        return self.reader.know_file(path, session=session)

    def may_show_recorded(self, key: str) -> bool:
        """Tell whether the rules let agents know of a path that the history names."""
        return self.reader.names.may_show_recorded(key)

    def write(
        self, *proposals: "Proposal", call: Call, dry_run: bool = False, permission: "Permission | None" = None
    ) -> "Receipt":
        """Make all proposals happen, or none of them; the approver is asked first if the permission says so."""
        return self.writer.write(*proposals, call=call, dry_run=dry_run, permission=permission)

    def record_refusal(
        self, paths: Sequence[tuple[str, str]], call: Call, change_id: str, error: SureholdError
    ) -> None:
        """Write a refused call into the ledger."""
        self._refusals.record_paths(paths, call, change_id, error)

    def record_unanswered(self, request: "PermissionRequest", error: SureholdError) -> None:
        """Write a change into the ledger that a person was asked about and never answered, with its diff."""
        files, call = request.files, request.call
        approval = replace(call.approval or ApprovalRecord(), asked=True, at=utc_timestamp(self.clock()))
        self._refusals.record_rehearsal(files, replace(call, approval=approval), self.new_id(), error)

    def record_run(self, call: Call, change_id: str) -> "RunRecorder":
        """Begin the record of a command: one intent, one change, as many paths as it touches."""
        from surehold.workspace.runs.recorder import RunRecorder

        if self.runs_dir is None:
            message, action = "This workspace has no place to keep earlier bytes in.", "Open it with a state directory."
            raise StateUnavailable(message, reason="no_runs", action=action)
        return RunRecorder(
            store=self.store,
            roots=self.roots,
            folder=self.runs_dir / change_id,
            excluded=[str(self.runs_dir.parent.resolve())],
            call=call,
            change_id=change_id,
            owner=self._owner,
            clock=self.clock,
            limit=self.limits.max_file_bytes,
            shared=self.reader.shared_paths(self.runs_dir),
        )

    def recover(self, *, timeout: float | None = None) -> "tuple[SettledIntent, ...]":
        """Close every change that a dead process left open. Safe to run twice; what is locked is waited for, or left."""
        patience = self.limits.lock_timeout if timeout is None else timeout
        return self.reader.recovery.settle_dead(timeout=patience)

    def permission(self, mode: Mode | None = None, approver: "Approver | None" = None) -> "Permission":
        """Return what a new conversation may do; without a mode, an approver is asked if there is one."""
        from surehold.workspace.access.permission import Permission

        asked = approver or self.approver
        usual: Mode = "default" if asked else "acceptEdits"
        chosen = self.mode or usual if mode is None else mode
        return Permission(chosen, approver=asked)

    def has_session(self, session_id: str) -> bool:
        """Tell whether a session of this id was begun before."""
        return self.store.find_session(session_id) is not None

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: Mode | None = None,
        approver: "Approver | None" = None,
    ) -> "Session":
        """Begin a conversation, or go on with the one of that id, in a mode and with an approver."""
        from surehold.workspace.session import Session

        return Session(self, id=id or self.new_id(), agent=agent, permission=self.permission(mode, approver))

    @cached_property
    def writer(self) -> "WorkspaceWriter":
        """What `write` goes through: the one way to change a file."""
        from surehold.workspace.writer import WorkspaceWriter

        return WorkspaceWriter(self.reader, owner=self._owner, clock=self.clock, new_id=self.new_id)

    @property
    def _refusals(self) -> "RefusalLog":
        from surehold.workspace.refusal_log import RefusalLog

        return RefusalLog(self.store, self.reader.names)

    @cached_property
    def finder(self) -> "Finder":
        """The way to files whose names are not known: listing, globbing, searching."""
        from surehold.workspace.finder import Finder

        return Finder(self.reader)

    @cached_property
    def history(self) -> "History":
        """What happened here, and the way back."""
        from surehold.workspace.history import History

        return History(self)

    @cached_property
    def questions(self) -> "QuestionBoard":
        """The questions that wait for a person, of all processes."""
        from surehold.workspace.access.question_board import QuestionBoard

        return QuestionBoard(self.store.questions, self._owner)

    @property
    def checkpoints(self) -> "CheckpointManager":
        """The writes that are under way."""
        return CheckpointManager(self)

    @property
    def writers(self) -> "FileWriteTracker":
        """Which tool family last wrote a file."""
        return FileWriteTracker(self)

    def require_open(self) -> None:
        """Refuse what would begin after the end, and what neither the disk nor the history would refuse."""
        if self._is_closed:
            raise WorkspaceClosed("This workspace is closed.")

    def close(self) -> None:
        """Let go of files and connections."""
        self._is_closed = True
        self.reader.recovery.leases.close()
        self.store.close()
        self.disk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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

    def roll_back_abandoned(self) -> "tuple[SettledIntent, ...]":
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
        """Tell whether anything but `edit` wrote the file since this session first saw it."""
        return self.workspace.know_file(path, session=session).baseline_continuity

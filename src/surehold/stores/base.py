"""The contract that every store fulfils, and the values it works with.

`read → check → blobs → begin(intent) → disk → finish(intent)`

Rules for every store:
1. An intent is the lock of its paths, the write-ahead record and the idempotency record at once.
2. `begin`, `finish`, `abort` and what `record` says of a change are durable when they return, and so is a `Replay`. Sightings
   are written together, a moment later, and known to this store at once; one that is lost means that the agent reads again.
3. The ledger only grows. Every entry carries the hash of the one before it.
4. An intent of a living owner is never settled by another process; a lease counts for owners that cannot be seen.
5. A blob is immutable, named by its sha256 and checked against it when it is read.
6. Safe to use from several threads and several processes at once.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from surehold.stores.conversations import Conversations
from surehold.stores.owner import Owner
from surehold.stores.questions import KeepsQuestions
from surehold.stores.run_records import FollowedLedger, RefusalRecords, RunRecords
from surehold.stores.server_runs import ServerRuns
from surehold.stores.upkeep import KeepsTrash, LedgerCheck, Pruned
from surehold.text.snapshot import Version

_USUAL_ENTRIES = 50

Operation = Literal[
    "create", "write", "edit", "delete", "move", "patch", "restore", "undo", "redo", "external", "gc", "run"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """Whether a person was asked about a change, by which rule, and what they answered."""

    asked: bool = False
    rule: str = ""
    """What decided whether to ask, such as `mode default`, `ask *.lock` or `protected .bashrc`."""
    where: str = ""
    """Where it was answered: `page`, `form`, `editor`, `terminal` or `callback`; empty when no answer came."""
    who: str = ""
    at: str = ""
    """When the answer came, or the question was given up: UTC, ISO 8601."""
    note: str = ""
    left_out: str = ""
    """The refused change that has the files which the person left out; empty when they left none out."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that do not hold their default: only those are part of an entry's hash."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who asked for a change, and how."""

    tool: str
    operation: Operation
    writer: str
    """The tool family that writes: `edit`, `write_file`, `undo` …, or `external`."""
    agent: str = ""
    session: str = ""
    turn: str = ""
    """The request of a person inside the session that it was made for."""
    call_id: str = ""
    """What the host calls the tool call."""
    reason: str = ""
    idempotency_key: str = ""
    undoes: str = ""
    """The change that this one takes back."""
    restores: str = ""
    """The trash item that this change brings back."""
    approval: ApprovalRecord | None = None
    argv: tuple[str, ...] = ()
    """The command that ran, for changes of other programs."""
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after."""

    path: str
    before: Version | None
    after: Version | None
    to_path: str = ""
    """Where it went, when the change is a move: `before` was at `path`, `after` is at `to_path`."""
    displaced: Version | None = None
    """What a move overwrote at `to_path`."""
    diff: str = ""
    diff_truncated: bool = False
    added: int = 0
    removed: int = 0
    """Lines of each kind, where the diff is cut and cannot tell."""
    trash_id: str = ""
    """Under which id the removed (or displaced) bytes lie in the trash; empty when they do not."""
    proposal_sha256: str = ""
    """What the agent proposed, when the person who was asked wrote something else; empty when they did not."""
    undoes: tuple[str, ...] = ()
    """The entries, as `CHANGE#INDEX`, that this takes back or makes again, when it is part of undoing several changes."""
    in_place: bool = False
    """The new bytes go into the same inode (hard links, foreign owner), so a crash can leave a torn file."""
    whole: bool = False
    """The entry is switched as a whole: its kind, its facts and its names too."""
    makes: tuple[str, ...] = ()
    """The directories above it that were missing, and are made for it."""

    @property
    def sets_times_only(self) -> bool:
        """Whether nothing but the time of a directory differs, which follows from other changes."""
        before, after = self.before, self.after
        if before is None or after is None or before.meta is None or after.meta is None or self.to_path:
            return False
        is_directory = before.kind == after.kind == "directory"
        return is_directory and before.meta == replace(after.meta, mtime_ns=before.meta.mtime_ns)

    def transitions(self) -> tuple[tuple[str, Version | None, Version | None], ...]:
        """List every path this change touches, as (path, before, after)."""
        if not self.to_path:
            return ((self.path, self.before, self.after),)
        return ((self.path, self.before, None), (self.to_path, self.displaced, self.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes to keep, with a hint which earlier version they resemble, and how many bytes at both ends are known to be shared."""

    data: bytes
    sha256: str
    base: str = ""
    shared: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """All changes of one call, recorded before the first of them happens. Its id is the change id."""

    id: str
    call: Call
    changes: tuple[Change, ...]
    owner: Owner
    began: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger: one change that happened, one call that was refused, or one outside edit."""

    seq: int = 0
    """Position in the ledger; 0 as long as it has none."""
    change_id: str
    index: int = 0
    timestamp: str
    call: Call
    change: Change
    ok: bool = True
    error_kind: str = ""
    message: str = ""
    previous: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the ledger last knew of a path."""

    path: str
    version: Version | None
    writer: str
    seq: int
    timestamp: str

    def has_bytes(self, sha256: str | None) -> bool:
        """Tell whether the ledger knows the path with these bytes; None or nothing means no file."""
        return (self.version.sha256 if self.version else "") == (sha256 or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The intent is open and its paths are ours. `external` are outside edits noticed on the way."""

    external: tuple[Entry, ...] = ()
    reach_disk: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """If the disk was not waited for: returns when the intent is on it, or raises, and then the intent is not open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The same idempotency key was finished before; these are its entries."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another intent holds one of the paths, or the same idempotency key is still under way."""

    intent: Intent
    owner_is_dead: bool
    """Provably dead, or unseen and its lease is over: anybody may settle it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRead:
    """The bytes that were read are an older version of ours, and too recent to be anything but a stale cache."""

    path: str
    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerQuery:
    """Which entries to list, newest first."""

    path: str = ""
    """Exact path, as source or destination."""
    under: str = ""
    session: str = ""
    agent: str = ""
    """The beginning of the agent's name."""
    since: str = ""
    until: str = ""
    """Only entries from one moment on, and before another; in the ledger's own spelling of time."""
    change_id: str = ""
    operation: str = ""
    undoes: str = ""
    """Only changes that take this one back."""
    before_seq: int = 0
    """Only entries older than this one; 0 for no limit."""
    after_seq: int = 0
    limit: int = _USUAL_ENTRIES
    ok_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A session was shown these lines of this version."""

    session: str
    path: str
    sha256: str
    spans: tuple[tuple[int, int], ...]
    """Line numbers shown, as inclusive pairs, sorted and merged."""
    whole: bool = False
    anchored: tuple[tuple[int, int], ...] = ()
    """Lines that were shown with their anchors; of some, in a refusal, only the beginning beside it."""
    seq: int = 0
    """The newest entry of the ledger before the session first saw the file, in any version; filled in by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRecord:
    """What the store knows of one path, and what one session was shown of it, newest version first."""

    key: str
    head: Head | None = None
    sightings: Sequence[Sighting] = ()
    writers: "tuple[WriterSpan, ...] | None" = field(default=None, compare=False)  # where they are known already


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """What a call must know before it looks at its files, as of one moment."""

    holding: tuple[Busy, ...]
    """The open intents that hold one of the paths; those of other paths are not looked at."""
    earlier: Replay | Busy | None
    """The first answer to a repeated call, or the attempt that is still open."""
    records: dict[str, PathRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSpan:
    """The first and the last entry in which a writer changed a path."""

    writer: str
    first_seq: int
    last_seq: int


class Store(
    ServerRuns, Conversations, RunRecords, RefusalRecords, FollowedLedger, KeepsQuestions, KeepsTrash, Protocol
):
    """The memory of a workspace."""

    def begin(
        self, intent: Intent, blobs: Sequence[Blob], *, lease: float, fence: float, early: bool = False
    ) -> Begun | Replay | Busy | StaleRead:
        """Open an intent, or say why not.

        When it returns `early`, the caller waits for `Begun.reach_disk` before anything of the change is visible.
        Notices outside edits: where a head differs from a change's `before`, an `external` entry is written first.
        When that `before` is an older version of ours and the head is younger than `fence` seconds, it is a `StaleRead`.
        """
        ...

    def renew(self, intent_id: str, *, lease: float) -> bool:
        """Extend the lease; False when the intent was settled by another process."""
        ...

    def finish(self, intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        """Turn the intent into entries, heads and trash items, with what its session was `shown` of the new versions."""
        ...

    def withdraw(self, intent_id: str) -> None:
        """Close the intent without a record: nothing of it happened, and its call starts again."""
        ...

    def abort(self, intent_id: str, *, error_kind: str, message: str) -> tuple[Entry, ...]:
        """Close the intent as failed and record that; nothing of it is visible on the disk any more."""
        ...

    def confirm(self) -> None:
        """Return when everything that can be seen in the store is durable."""
        ...

    def look(self, paths: Sequence[str], *, session: str = "", idempotency_key: str = "") -> StoreView:
        """Return everything that a call on these paths must know first, in one transaction."""
        ...

    def open_intents(self) -> tuple[Busy, ...]:
        """List every open intent, oldest first, with whether its owner is dead. For people: a call never asks for all."""
        ...

    def dead_intents(self, *, limit: int, skip: Collection[str] = ()) -> tuple[Busy, ...]:
        """List the oldest open intents whose owner is dead, at most `limit`, without those whose ids are to be skipped."""
        ...

    def is_open(self, intent_id: str) -> bool:
        """Tell whether an intent is neither finished nor aborted nor withdrawn."""
        ...

    def head_of(self, path: str) -> Head | None:
        """Return what the ledger last knew of a path."""
        ...

    def list_heads(self) -> tuple[Head, ...]:
        """List what the ledger last knew of every path."""
        ...

    def knows_version(self, path: str, sha256: str) -> bool:
        """Tell whether these bytes were a version of this path, as far as its entries are not archived."""
        ...

    def record(
        self, call: Call, change: Change, *, change_id: str, ok: bool, error_kind: str = "", message: str = ""
    ) -> Entry:
        """Write an entry for something that had no intent: a refused call, an outside edit, a clean-up."""
        ...

    def note_outside(
        self, path: str, found: Version | None, blobs: Sequence[Blob], *, fence: float, shown: Head | None = None
    ) -> Entry | None:
        """Record an outside edit of a locked path; None if there is none. `shown` counts if the ledger knows nothing."""
        ...

    def keep_outside(self, path: str, blob: Blob) -> tuple[Entry, ...]:
        """Record bytes of an outside program that could not stay at a path: as a version of it, and in the trash."""
        ...

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        """List entries, newest first."""
        ...

    def list_writers(self, key: str, *, after_seq: int = 0) -> tuple[WriterSpan, ...]:
        """List who changed a path after an entry, each once, in the order of their first change."""
        ...

    def verify(self, *, blobs: bool = True) -> LedgerCheck:
        """Check the whole chain, and every blob against its name."""
        ...

    def read_blob(self, sha256: str) -> bytes:
        """Return stored bytes; `NotFound` (reason `blob_missing`) or `StateCorrupt`."""
        ...

    def prune(self, *, before: str, dry_run: bool = False) -> Pruned:
        """Archive entries older than `before`, and drop bytes that only they need: no head, kept trash or open intent."""
        ...

    def record_sightings(
        self, sightings: Sequence[Sighting], blobs: Sequence[Blob] = (), *, after_seq: int | None = None
    ) -> None:
        """Remember what was shown after an entry, by default the newest. Nothing is waited for, and old ones are forgotten."""
        ...

    def flush_sightings(self) -> None:
        """Write what was remembered but not written yet; it happens by itself after a moment, and in `close`."""
        ...

    def list_sightings(self, session: str, path: str) -> tuple[Sighting, ...]:
        """List what a session was shown of a path, newest version first."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...

"""What a store promises to those who record commands and refused calls, and to those who follow what is recorded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surehold.stores.base import Blob, Call, Change, Entry, Store

_MOST_ENTRIES = 10_000_000
RUN_LEASE_SECONDS = 365 * 24 * 3600.0
"""A command may take long; whether its supervisor lives is seen by the process, not by the lease."""

MAX_KEPT_AFTER_BYTES = 64 << 20
"""Larger files are not stored as a command left them: only what they were before it is."""
SMALL_AFTER_BYTES = 1 << 20
"""Changed files up to this size are always stored as a command left them."""
DIFFERING_BUDGET_BYTES = 256 << 20
"""How much of larger files may differ for them to be stored as a command left them, all files of it together."""
CREATED_BUDGET_BYTES = 16 << 20
"""How many bytes of new files are stored as a command left them, all files of it together."""


class RunRecords(Protocol):
    """Records what commands changed, which is known only when they have ended."""

    def finish_run(self, intent_id: str, call: "Call", changes: "Sequence[Change]") -> "tuple[Entry, ...]":
        """Turn the intent of a command into entries for what it changed, which was not known when it began."""
        ...

    def keep_blobs(self, blobs: "Sequence[Blob]") -> None:
        """Store many bytes; they are durable with the next durable transaction."""
        ...

    def keep_blob(self, blob: "Blob") -> None:
        """Store bytes durably; storing them twice is nothing."""
        ...

    def has_blob(self, sha256: str) -> bool:
        """Tell whether these bytes are stored."""
        ...


class RefusalRecords(Protocol):
    """Records calls that were refused, without letting them wait for that."""

    def record_refusal(
        self, call: "Call", changes: "Sequence[Change]", *, change_id: str, error_kind: str, message: str
    ) -> None:
        """Record what a refused call asked for, unless it is under way or recorded; whoever lists entries here finds it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntries:
    """What was recorded since a cursor was given out, oldest first, and the cursor to go on with."""

    entries: "tuple[Entry, ...]"
    cursor: str


class FollowedLedger(Protocol):
    """Lets others follow the ledger."""

    def tail(self, cursor: str = "") -> NewEntries:
        """Return each entry once that was committed since a cursor, by any process; without one, where to begin."""
        ...


class OneWriterAtATime:
    """Records refusals while their callers wait, and numbers entries as they are committed: for stores on one machine."""

    def tail(self: "Store", cursor: str = "") -> NewEntries:
        from surehold.stores.base import LedgerQuery

        query = LedgerQuery(after_seq=int(cursor), limit=_MOST_ENTRIES) if cursor else LedgerQuery(limit=1)
        found = self.list_entries(query)[::-1]
        newest = str(found[-1].seq) if found else cursor or "0"
        return NewEntries(entries=found if cursor else (), cursor=newest)

    def record_refusal(
        self: "Store", call: "Call", changes: "Sequence[Change]", *, change_id: str, error_kind: str, message: str
    ) -> None:
        from surehold.stores.base import LedgerQuery

        if self.is_open(change_id) or self.list_entries(LedgerQuery(change_id=change_id, limit=1)):
            return
        for change in changes:
            self.record(call, change, change_id=change_id, ok=False, error_kind=error_kind, message=message)

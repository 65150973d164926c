"""What a store promises to those who record commands: bytes are kept, and changes come at the end."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surehold.stores.base import Blob, Call, Change, Entry

RUN_LEASE_SECONDS = 365 * 24 * 3600.0
"""A command may take long; whether its supervisor lives is seen by the process, not by the lease."""


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

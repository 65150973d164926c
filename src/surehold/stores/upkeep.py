"""What checks and clean-ups of a store found."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheck:
    """What a check of the ledger and the blobs found."""

    entries: int
    blobs: int
    broken_seq: int = 0
    """The first entry that does not fit the chain; 0 when all do."""
    broken_blobs: tuple[str, ...] = ()
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not (self.broken_seq or self.broken_blobs or self.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What a clean-up removed."""

    blobs: int
    bytes: int
    sightings: int
    details: dict[str, Any] = field(default_factory=dict[str, Any])

"""The trash of a store, page by page, and what checks and clean-ups found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from surehold.text.snapshot import Version

_PAGE_ITEMS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashItem:
    """A deleted file that can come back."""

    id: str
    path: str
    version: Version
    change_id: str
    trashed: str
    agent: str = ""
    session: str = ""
    state: Literal["kept", "restored", "emptied"] = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashQuery:
    """Which page of the trash to list, newest first."""

    state: str = "kept"
    path: str = ""
    """Only what was deleted at this path."""
    after: str = ""
    """Only what comes after this item, the last one of the page before, whatever became of it since."""
    limit: int = _PAGE_ITEMS


ALL_TRASH = TrashQuery()


class KeepsTrash(Protocol):
    """Deleted files that can come back."""

    def list_trash(self, query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        """List one page of trash items, newest first."""
        ...

    def count_trash(self) -> int:
        """Return how many items can come back."""
        ...

    def trash_item(self, trash_id: str) -> TrashItem | None:
        """Return one item."""
        ...

    def empty_trash(self, trash_ids: Sequence[str]) -> int:
        """Mark items as emptied, so that `prune` may drop their bytes; return how many there were."""
        ...


def iterate_trash(store: KeepsTrash, query: TrashQuery = ALL_TRASH) -> Iterator[tuple[TrashItem, ...]]:
    """Yield the trash page by page, newest first; what is deleted from now on is not part of it."""
    while page := store.list_trash(query):
        yield page
        query = replace(query, after=page[-1].id)


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

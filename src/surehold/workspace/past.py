"""Looking at what happened: all that is needed for it is the store, so it starts quickly."""

from dataclasses import dataclass
from typing import Self

from surehold.errors import InvalidArgument, NotFound
from surehold.stores.base import Entry, Query, Store, TrashItem, Verdict

SCAN = 100_000
"""How far back a change is looked for by a part of its id."""
_MIN_REFERENCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One change: its entries, and what became of it."""

    id: str
    entries: tuple[Entry, ...]
    undone_by: str = ""
    """The change that took it back and still stands; empty when it stands itself."""


class Past:
    """What happened in a workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def log(self, query: Query | None = None) -> tuple[Entry, ...]:
        """List entries, newest first."""
        return self._store.entries(query or Query())

    def show(self, reference: str) -> ChangeView:
        """Return one change by its id, or by a unique beginning or end of it."""
        change_id = self._find(reference)
        entries = tuple(reversed(self._store.entries(Query(change_id=change_id, limit=SCAN))))
        return ChangeView(id=change_id, entries=entries, undone_by=self.undone_by(change_id))

    def undone_by(self, change_id: str) -> str:
        """Return the change that took this one back and still stands; empty when there is none."""
        for entry in self._store.entries(Query(undoes=change_id, ok_only=True, limit=SCAN)):
            if not self.undone_by(entry.change_id):
                return entry.change_id
        return ""

    def trash(self) -> tuple[TrashItem, ...]:
        """List deleted files that can come back, newest first."""
        return self._store.trash()

    def trash_item(self, reference: str) -> TrashItem:
        """Return one deleted file by its id, or by a unique end of it."""
        item = self._store.trash_item(reference)
        if item is None and len(reference) >= _MIN_REFERENCE:
            found = [one for one in self._store.trash() if one.id.endswith(reference.lower())]
            item = found[0] if len(found) == 1 else None
        if item is None or item.state == "emptied":
            raise NotFound(
                f"Nothing in the trash is called `{reference[:80]}`.",
                reason="trash_entry_missing",
                action="Look at `surehold trash list`.",
            )
        return item

    def verify(self, *, blobs: bool = True) -> Verdict:
        """Check that nobody altered the ledger or the kept bytes."""
        return self._store.verify(blobs=blobs)

    def _find(self, reference: str) -> str:
        if not reference:
            raise InvalidArgument(
                "An empty reference names no change.",
                reason="empty_reference",
                action="Look its id up with `surehold log`.",
            )
        if self._store.entries(Query(change_id=reference, limit=1)):
            return reference
        name = reference.lower()
        if len(name) >= _MIN_REFERENCE:
            ids = {entry.change_id for entry in self._store.entries(Query(limit=SCAN))}
            found = sorted(i for i in ids if i.startswith(name) or i.endswith(name))
            if len(found) == 1:
                return found[0]
            if found:
                raise InvalidArgument(
                    f"`{reference}` names {len(found)} changes.", reason="ambiguous_change", candidates=found[:10]
                )
        raise NotFound(
            f"No change is called `{reference}`.", reason="no_such_change", action="Look it up with `surehold log`."
        )

"""Moves a history from one store to another: entries with their moments, bytes, trash, sessions, turns and answers.

1. The source is checked first, and must have nothing open; the target must be empty. The source is not changed.
   The target is marked until all of it has arrived: nothing else opens it, and the same move goes on where it ended.
2. Entries keep their ids, moments and order, so everything can still be undone. Hashes are those of the target's own chain,
   made from the same bodies: back in a store of the same kind and with the same numbers they are what they were.
3. What agents were shown is not moved: they read again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from surehold.errors import NotFound, StateCorrupt, StateUnavailable
from surehold.stores.base import Blob, Entry, Head, LedgerQuery, Store
from surehold.stores.conversations import SessionTurn
from surehold.stores.upkeep import TrashItem, TrashQuery, iterate_trash

_PAGE_ENTRIES = 500
_PAGE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A finished call, by its idempotency key."""

    key: str
    change_id: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRest:
    """What a history has besides entries, bytes, sessions and trash."""

    heads: tuple[Head, ...]
    turns: tuple[SessionTurn, ...]
    answers: tuple[StoredAnswer, ...]


class WholeHistory(Protocol):
    """What only those see of a store who move its history."""

    def list_blob_names(self) -> Iterator[str]:
        """List all stored bytes, oldest first."""
        ...

    def list_answers(self) -> tuple[StoredAnswer, ...]:
        """List finished calls that had an idempotency key."""
        ...

    def is_importing(self) -> bool:
        """Tell whether only a part of a history was moved here."""
        ...

    def mark_importing(self, *, unfinished: bool) -> None:
        """Remember, durably, whether only a part of a history is here."""
        ...

    def import_entries(self, entries: Sequence[Entry]) -> None:
        """Append entries of another store, oldest first, with their own moments."""
        ...

    def import_trash(self, items: Sequence[TrashItem]) -> None:
        """Say of items of the trash, which the entries brought, what became of them."""
        ...

    def import_rest(self, rest: HistoryRest) -> None:
        """Set what cannot be derived from the entries alone."""
        ...


class PortableStore(Store, Protocol):
    """A store whose whole history can be taken out and put in."""

    def whole_history(self) -> WholeHistory:
        """Return what a move of the history needs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedHistory:
    """What was moved."""

    entries: int
    blobs: int
    sessions: int


def copy_history(source: PortableStore, target: PortableStore) -> MovedHistory:
    """Copy a whole history into an empty store, and check it there."""
    _check_ends(source, target)
    into = target.whole_history()
    arrived = _check_part(source, target) if into.is_importing() else 0
    into.mark_importing(unfinished=True)
    blobs = _copy_blobs(source, target)
    entries = 0
    for page in _pages_of_entries(source):
        if missing := page[max(arrived - entries, 0) :]:
            into.import_entries(missing)
        entries += len(page)
    sessions = source.list_sessions()
    for session in reversed(sessions):
        target.open_session(session)
    for query in (TrashQuery(state="kept"), TrashQuery(state="restored"), TrashQuery(state="emptied")):
        for items in iterate_trash(source, query):
            into.import_trash(items)
    into.import_rest(
        HistoryRest(
            heads=source.list_heads(),
            turns=tuple(turn for session in sessions for turn in source.list_turns(session.id)),
            answers=source.whole_history().list_answers(),
        )
    )
    _refuse_broken(target, "target")
    into.mark_importing(unfinished=False)
    return MovedHistory(entries=entries, blobs=blobs, sessions=len(sessions))


def _check_ends(source: PortableStore, target: PortableStore) -> None:
    source.flush_sightings()
    if target.list_entries(LedgerQuery(limit=1)) and not target.whole_history().is_importing():
        raise StateUnavailable(
            "The target has a history already.",
            reason="target_not_empty",
            action="Nothing was written. Name a directory or a workspace (?workspace=NAME) without a history.",
        )
    if opened := source.open_intents():
        raise StateUnavailable(
            f"{len(opened)} changes are under way in the source.",
            reason="changes_under_way",
            action="Nothing was written. Stop every server and agent of this workspace, run `surehold recover`, then try again.",
        )
    _refuse_broken(source, "source")


def _check_part(source: Store, target: Store) -> int:
    """Return how many entries of the source have arrived at a target; refuse one that has other entries."""
    arrived, expected = _pages_of_entries(target), chain.from_iterable(_pages_of_entries(source))
    count = 0
    for entry in chain.from_iterable(arrived):
        wanted = next(expected, None)
        if wanted is None or (entry.change_id, entry.index, entry.timestamp) != (
            wanted.change_id,
            wanted.index,
            wanted.timestamp,
        ):
            raise StateUnavailable(
                "The target has a part of another history.",
                reason="target_not_empty",
                action="Nothing was written. Name a directory or a workspace (?workspace=NAME) without a history.",
            )
        count += 1
    return count


def _refuse_broken(store: Store, which: str) -> None:
    verdict = store.verify()
    if not verdict.ok:
        message = f"The history of the {which} is damaged."
        raise StateCorrupt(message, action="See: surehold verify", seq=verdict.broken_seq, problem=verdict.problem)


def _pages_of_entries(store: Store) -> Iterator[Sequence[Entry]]:
    """Return all entries, oldest first; only a page of them is in memory, and where each page begins."""
    begins, before = list[int](), 0
    while page := store.list_entries(LedgerQuery(before_seq=before, limit=_PAGE_ENTRIES)):
        before = page[-1].seq
        begins.append(before)
    ends = [0, *begins]
    for begin, end in reversed(list(zip(begins, ends, strict=False))):
        yield store.list_entries(LedgerQuery(after_seq=begin - 1, before_seq=end, limit=_PAGE_ENTRIES))[::-1]


def _copy_blobs(source: PortableStore, target: PortableStore) -> int:
    """Copy all bytes, each with the version before it at its path, so that it is packed as a difference again."""
    bases = {
        entry.change.after.sha256: entry.change.before.sha256
        for page in _pages_of_entries(source)
        for entry in page
        if entry.change.before and entry.change.after
    }
    batch, size, copied = list[Blob](), 0, 0
    for name in source.whole_history().list_blob_names():
        try:
            data = source.read_blob(name)
        except NotFound:
            continue  # pruned since it was listed
        batch.append(Blob(data=data, sha256=name, base=bases.get(name, "")))
        size, copied = size + len(data), copied + 1
        if size > _PAGE_BYTES or len(batch) >= _PAGE_ENTRIES:
            target.keep_blobs(batch)
            batch, size = [], 0
    target.keep_blobs(batch)
    return copied

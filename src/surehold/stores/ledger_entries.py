"""Derives ledger entries, outside edits and trash items from an intent; pure, so that every store agrees."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from surehold.stores.base import Call, Change, Entry, Head, Intent, TrashItem
from surehold.text.snapshot import Version

EXTERNAL = Call(tool="external", operation="external", writer="external")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEdit:
    """A path whose bytes are not those that the ledger knew."""

    head: Head
    found: Version | None


def utc_timestamp(moment: datetime) -> str:
    """Return the one spelling of a moment; as text it sorts as in time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def normalize_timestamp(text: str) -> str:
    """Return a caller's ISO 8601 spelling in ours; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return utc_timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def touched_paths(changes: Iterable[Change]) -> tuple[str, ...]:
    """List every path that the changes touch, once each."""
    return tuple(dict.fromkeys(path for change in changes for path, _, _ in change.transitions()))


def find_outside_edits(intent: Intent, head_of: Callable[[str], Head | None]) -> Iterator[OutsideEdit]:
    """Find where the ledger knew other bytes than the intent found.

    Only the first transition of a path speaks of the disk; a later one starts from what the first will leave there.
    """
    found: dict[str, Version | None] = {}
    for change in intent.changes:
        for path, before, _ in change.transitions():
            found.setdefault(path, before)
    for path, version in found.items():
        head = head_of(path)
        if head is not None and _sha256_of(head.version) != _sha256_of(version):
            yield OutsideEdit(head=head, found=version)


def is_stale_read(surprise: OutsideEdit, *, now: datetime, fence: float, knows: Callable[[str, str], bool]) -> bool:
    """Tell whether the bytes found are an older version of ours, so soon that only a stale cache explains them."""
    if fence <= 0 or surprise.found is None:
        return False
    # A head from the future is a clock that was set back: by more than the fence, it proves nothing.
    age = abs((now - datetime.fromisoformat(surprise.head.timestamp)).total_seconds())
    return age < fence and knows(surprise.head.path, surprise.found.sha256)


def draft_entry(
    call: Call,
    change: Change,
    *,
    change_id: str,
    timestamp: str,
    index: int = 0,
    ok: bool = True,
    error_kind: str = "",
    message: str = "",
) -> Entry:
    """Return an entry that has no place in the chain yet."""
    return Entry(
        seq=0,
        change_id=change_id,
        index=index,
        timestamp=timestamp,
        call=call,
        change=change,
        ok=ok,
        error_kind=error_kind,
        message=message,
    )


def entries_of(
    intent: Intent, *, timestamp: str, ok: bool = True, error_kind: str = "", message: str = ""
) -> Iterator[Entry]:
    """Return one entry for every change of an intent."""
    for index, change in enumerate(intent.changes):
        yield draft_entry(
            intent.call,
            change,
            change_id=intent.id,
            timestamp=timestamp,
            index=index,
            ok=ok,
            error_kind=error_kind,
            message=message,
        )


def external_entries(intent: Intent, found: Sequence[OutsideEdit], *, timestamp: str) -> Iterator[Entry]:
    """Return an entry for every edit that was made outside of Surehold; its id is one that undo can name."""
    for number, surprise in enumerate(found):
        change = Change(path=surprise.head.path, before=surprise.head.version, after=surprise.found)
        yield draft_entry(EXTERNAL, change, change_id=f"{intent.id}-x{number}", timestamp=timestamp)


def gc_entry(*, blobs: int, sightings: int, before: str, seq: int, timestamp: str) -> Entry:
    """Return the entry for a clean-up."""
    return draft_entry(
        Call(tool="gc", operation="gc", writer="gc"),
        Change(path="", before=None, after=None),
        change_id=f"gc-{seq}",
        timestamp=timestamp,
        message=f"Removed {blobs} blobs and {sightings} sightings that only entries before {before} needed.",
    )


def makes_heads(entry: Entry) -> bool:
    """Tell whether the entry says something about what is at its paths now."""
    return entry.ok and entry.call.operation != "gc"


def trash_item(entry: Entry) -> TrashItem | None:
    """Return the item that an entry put into the trash: what was deleted, or what a move displaced."""
    change = entry.change
    path, version = (change.to_path, change.displaced) if change.to_path else (change.path, change.before)
    if not change.trash_id or version is None:
        return None
    return TrashItem(
        id=change.trash_id,
        path=path,
        version=version,
        change_id=entry.change_id,
        trashed=entry.timestamp,
        agent=entry.call.agent,
        session=entry.call.session,
    )


def version_hashes(change: Change) -> Iterator[str]:
    """List the versions that a change names."""
    for version in (change.before, change.after, change.displaced):
        if version is not None:
            yield version.sha256


def _sha256_of(version: Version | None) -> str | None:
    return None if version is None else version.sha256

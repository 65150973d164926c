"""The rules of the ledger: which entries a change gets, where other programs wrote, and what an entry puts into the trash."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from surehold.stores.base import Call, Change, Entry, Head, Intent
from surehold.stores.ledger_entries import text_of, version_from_text
from surehold.stores.upkeep import TrashItem
from surehold.text.snapshot import Version

_ARGV_CHARS = 1_000
"""How much of a command line is in every entry of its change but the first, which has all of it."""
EXTERNAL = Call(tool="external", operation="external", writer="external")
_KEPT_MESSAGE = (
    "Another program wrote these bytes while the file was being changed; they were kept, and can be restored."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEdit:
    """A path whose bytes are not those that the ledger knew."""

    head: Head
    found: Version | None


def touched_paths(changes: Sequence[Change]) -> tuple[str, ...]:
    if len(changes) == 1 and not changes[0].to_path:
        return (changes[0].path,)
    return tuple(dict.fromkeys(path for change in changes for path, _, _ in change.transitions()))


def find_outside_edits(intent: Intent, heads: Mapping[str, Head | None]) -> Iterator[OutsideEdit]:
    """Find where the ledger knew other bytes than the intent found.

    Only the first transition of a path speaks of the disk; a later one starts from what the first will leave there.
    """
    found: dict[str, Version | None] = {}
    for change in intent.changes:
        for path, before, _ in change.transitions():
            found.setdefault(path, before)
    for path, version in found.items():
        head = heads.get(path)
        if head is not None and not head.has_bytes(version and version.sha256):
            yield OutsideEdit(head=head, found=version)


def is_stale_read(surprise: OutsideEdit, *, now: datetime, fence: float, knows: Callable[[str, str], bool]) -> bool:
    """Tell whether the bytes found are an older version of ours, so soon that only a stale cache explains them."""
    if fence <= 0 or surprise.found is None:
        return False
    # A head from the future is a clock that was set back: by more than the fence, it proves nothing.
    age = abs((now - datetime.fromisoformat(surprise.head.timestamp)).total_seconds())
    return age < fence and knows(surprise.head.path, surprise.found.sha256)


def entries_of(intent: Intent, *, timestamp: str) -> Iterator[Entry]:
    """Yield one entry for each change. Only the first has all of a long command line: it may name each of their paths."""
    call = intent.call
    for index, change in enumerate(intent.changes):
        yield Entry(change_id=intent.id, index=index, timestamp=timestamp, call=call, change=change)
        if call.argv and not index:
            call = replace(call, argv=_cut_argv(call.argv))


def _cut_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    room = _ARGV_CHARS
    for number, word in enumerate(argv):
        if len(word) >= room:
            return (*argv[:number], word[:room] + "…")
        room -= len(word) + 1
    return argv


def outside_entry(path: str, before: Version | None, after: Version | None, *, seq: int, timestamp: str) -> Entry:
    """Return the entry for what an outside program did to a path; its id is one that undo can name."""
    change = Change(path=path, before=before, after=after)
    return Entry(change_id=f"outside-{seq}", timestamp=timestamp, call=EXTERNAL, change=change)


def kept_entry(path: str, kept: Version, there: Version | None, *, seq: int, timestamp: str) -> Entry:
    """Return the entry for bytes of an outside program that had to leave a path: they are in the trash."""
    name = f"kept-{seq}"
    change = Change(path=path, before=kept, after=there, trash_id=name)
    return Entry(change_id=name, timestamp=timestamp, call=EXTERNAL, change=change, message=_KEPT_MESSAGE)


def gc_entry(*, blobs: int, sightings: int, before: str, seq: int, timestamp: str) -> Entry:
    return Entry(
        change_id=f"gc-{seq}",
        timestamp=timestamp,
        call=Call(tool="gc", operation="gc", writer="gc"),
        change=Change(path="", before=None, after=None),
        message=f"Removed {blobs} blobs and {sightings} sightings that only entries before {before} needed.",
    )


def pruned_before(entry: Entry) -> str:
    """Return up to when an entry about a clean-up says that bytes were removed; empty for any other entry."""
    return entry.message.partition(" only entries before ")[2].partition(" ")[0] if entry.call.operation == "gc" else ""


def switched_changes(change: Change) -> tuple[str, ...]:
    """Return the changes whose entries a change takes back or makes again, each once."""
    return tuple(dict.fromkeys(name.partition("#")[0] for name in change.undoes))


def makes_heads(entry: Entry) -> bool:
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


def trash_item_from_row(row: tuple[bytes, bytes, str, bytes, str, bytes, bytes, str]) -> TrashItem:
    version = version_from_text(row[2])
    assert version is not None
    return TrashItem(
        id=text_of(row[0]),
        path=text_of(row[1]),
        version=version,
        change_id=text_of(row[3]),
        trashed=row[4],
        agent=text_of(row[5]),
        session=text_of(row[6]),
        state=row[7],  # pyright: ignore[reportArgumentType] - only those three words are ever written
    )


def version_hashes(change: Change) -> list[str]:
    versions = [version.sha256 for version in (change.before, change.after, change.displaced) if version is not None]
    return [*versions, change.proposal_sha256] if change.proposal_sha256 else versions

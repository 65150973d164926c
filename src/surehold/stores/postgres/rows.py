"""Entries, heads and intents as PostgreSQL takes and returns them: documents of plain words, bytes as hexadecimal digits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from surehold.stores import ledger_entries, ledger_rules
from surehold.stores.base import Busy, Entry, Head, Intent, Replay, Sighting, WriterSpan
from surehold.stores.ledger_entries import Json, from_json, to_canonical_json, to_key, version_from_text, version_text
from surehold.stores.owner import counts_as_dead
from surehold.stores.sightings import merge_sightings, ranges_to_text
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.sightings import ShownSighting

HEAD_COLUMNS = "version, writer, seq, timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentColumns:
    """An intent as its row has it."""

    id: bytes
    key: bytes
    owner: str
    paths: list[bytes]
    read: list[str]
    """What was found at each path: the sha256, or nothing."""
    versions: list[bytes]
    body: str


def entry_documents(entries: Iterable[Entry], *, dated: bool = False) -> str:
    """Return entries for `append_entries`, which numbers those that have no number, dates those that are not, and seals them."""
    return to_canonical_json(
        [_entry_document(entry) | ({"timestamp": entry.timestamp} if dated else {}) for entry in entries]
    )


def _entry_document(entry: Entry) -> Json:
    call, change = entry.call, entry.change
    text = ledger_entries.entry_text(entry, 0)
    heads = ledger_rules.makes_heads(entry)
    transitions = change.transitions() if heads else ()
    item = ledger_rules.trash_item(entry) if heads else None
    there = [_hex(path) for path, _, after in transitions if after]
    switched = ledger_rules.switched_changes(change) if heads else ()
    return {
        "text": text[: text.rindex('"seq":')],
        "seq": entry.seq or None,
        "change_id": _hex(entry.change_id),
        "path": _hex(change.path),
        "to_path": _hex(change.to_path),
        "session": _hex(call.session),
        "agent": _hex(call.agent),
        "operation": call.operation,
        "undoes": _hex(call.undoes),
        "restores": _hex(call.restores) if heads else "",
        "ok": entry.ok,
        "writer": call.writer,
        "before": _sha256(change.before),
        "after": _sha256(change.after),
        "displaced": _sha256(change.displaced),
        "proposal": change.proposal_sha256 or None,
        "heads": [[_hex(path), version_text(after), _sha256(after) or ""] for path, _, after in transitions],
        "switched": [[_hex(name), there] for name in switched],
        "trash": [_hex(item.id), _hex(item.path), version_text(item.version)] if item else None,
    }


def sealed_entries(drafts: Sequence[Entry], made: Sequence[tuple[int, str, str, str]]) -> tuple[Entry, ...]:
    """Return entries as `append_entries` wrote them."""
    return tuple(
        replace(draft, seq=seq, previous=previous, hash=own, timestamp=moment)
        for draft, (seq, previous, own, moment) in zip(drafts, made, strict=True)
    )


def sighting_documents(shown: "Sequence[ShownSighting]", own: Sequence[Sighting] = ()) -> str:
    """Return sightings for `note_sightings`; `own`: those of a change that is being finished, dated by its entry."""
    documents = [[*_sighting_document(one), one.seq, moment] for one, moment in shown]
    documents += [_sighting_document(merge_sightings(None, one, seq=0)) for one in own]
    return to_canonical_json(documents)


def _sighting_document(one: Sighting) -> list[object]:
    spans, anchored = ranges_to_text(one.spans), ranges_to_text(one.anchored)
    return [_hex(one.session), _hex(one.path), one.sha256, spans, one.whole, anchored]


def intent_columns(intent: Intent) -> IntentColumns:
    read = dict[str, str]()
    for change in intent.changes:
        for path, before, _ in change.transitions():
            read.setdefault(path, before.sha256 if before else "")
    return IntentColumns(
        id=to_key(intent.id),
        key=to_key(intent.call.idempotency_key),
        owner=ledger_entries.owner_text(intent.owner),
        paths=[to_key(path) for path in read],
        read=list(read.values()),
        versions=[bytes.fromhex(name) for change in intent.changes for name in ledger_rules.version_hashes(change)],
        body=ledger_entries.intent_text(intent),
    )


def busy_of(described: tuple[str, bool]) -> Busy:
    """Return an intent as `describe_intent` tells of it."""
    body, lease_over = described
    intent = ledger_entries.intent_from_text(body)
    return Busy(intent=intent, owner_is_dead=counts_as_dead(intent.owner, lease_over=lease_over))


def earlier_of(answer: Json | None) -> Replay | Busy | None:
    """Return what `earlier_attempt` found."""
    if answer is None:
        return None
    if "replay" in answer:
        return Replay(entries=tuple(entry_of(*row) for row in answer["replay"]))
    return busy_of(answer["busy"])


def entry_of(previous: str, own: str, body: str) -> Entry:
    return ledger_entries.entry_from_json(from_json(body), previous=previous, hash=own)


def head_of(path: str, row: Sequence[Any] | None) -> Head | None:
    """Return a head from its columns; the ledger knows nothing of a path without a number."""
    if row is None or row[2] is None:
        return None
    version, writer, seq, timestamp = row
    return Head(path=path, version=version_from_text(version), writer=writer, seq=seq, timestamp=timestamp)


def writer_span_of(row: Sequence[Any]) -> WriterSpan:
    writer, first, last = row
    return WriterSpan(writer=writer, first_seq=first, last_seq=last)


def _hex(text: str) -> str:
    return to_key(text).hex()


def _sha256(version: Version | None) -> str | None:
    return version.sha256 if version else None

"""Edits that a host makes with its own tools: the earlier bytes are kept before, and what became of them is recorded after.

1. The host changes the file, not we: nothing here can refuse or delay its edit.
2. A file is noted before it is changed. What is there afterwards is one change, from the noted version to that.
3. If the history has learned a newer version in between, the change begins there: nothing is counted twice.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surehold.errors import LockTimeout
from surehold.stores.base import Begun, Blob, Call, Change, Entry, Intent, Operation
from surehold.stores.ledger_entries import utc_now, utc_timestamp
from surehold.stores.owner import current_owner, new_id
from surehold.text.snapshot import Snapshot, Version

if TYPE_CHECKING:
    from surehold.workspace.paths import AnyPath
    from surehold.workspace.reader import WorkspaceReader

_WAIT_SECONDS = 2.0
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedFile:
    """A file as it was before a host's tool ran, with its bytes kept."""

    key: str
    version: Version | None
    seq: int
    """The newest entry about it at that time; 0 if there was none."""


def note_before(reader: "WorkspaceReader", paths: Sequence["AnyPath"]) -> tuple[NotedFile, ...]:
    """Keep the bytes of files that are about to change; an absent file is noted too."""
    noted = list[NotedFile]()
    for path in paths:
        target = reader.target(path)
        snapshot = reader.read_snapshot(target)
        if snapshot.exists:
            reader.store.keep_blob(Blob(data=snapshot.data, sha256=snapshot.sha256))
        head = reader.store.head_of(target.key)
        noted.append(NotedFile(key=target.key, version=snapshot.version, seq=head.seq if head else 0))
    return tuple(noted)


def note_after(reader: "WorkspaceReader", noted: Sequence[NotedFile], call: Call) -> tuple[Entry, ...]:
    """Record what became of noted files as one change; nothing if they are what they were."""
    targets = [reader.target(one.key) for one in noted]
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        with reader.disk.lock(targets, timeout=max(deadline - time.monotonic(), 0)):
            found = [reader.read_snapshot(target) for target in targets]
            entries = record_locked(reader, noted, found, call)
            if entries is not None:
                return entries
        if time.monotonic() > deadline:
            raise LockTimeout(
                "Another change of these files did not end in time, so this one was not recorded.",
                reason="busy",
                action="The next change records it as an outside edit.",
            )
        time.sleep(_POLL_SECONDS)


def record_locked(
    reader: "WorkspaceReader", noted: Sequence[NotedFile], now: Sequence[Snapshot], call: Call
) -> tuple[Entry, ...] | None:
    """Record what became of noted files, whose locks the caller holds; None if another change of them is under way."""
    found = [_compare(reader, one, after) for one, after in zip(noted, now, strict=True)]
    changes = [change for change, _ in filter(None, found)]
    if not changes:
        return ()
    blobs = [blob for _, blob in filter(None, found) if blob]
    intent = Intent(
        id=new_id(),
        call=replace(call, operation=_operation_of(changes)),
        changes=tuple(changes),
        owner=current_owner(),
        began=utc_timestamp(utc_now()),
    )
    begun = reader.store.begin(intent, blobs, lease=reader.limits.lease, fence=0.0)
    return reader.store.finish(intent.id) if isinstance(begun, Begun) else None


def _compare(reader: "WorkspaceReader", noted: NotedFile, after: Snapshot) -> tuple[Change, Blob | None] | None:
    """Return how a file changed since it was noted, and its new bytes; None if it did not."""
    head = reader.store.head_of(noted.key)
    version = head.version if head and head.seq > noted.seq else noted.version
    if _facts_of(version) == _facts_of(after.version):
        return None
    from surehold.text.plan import DIFF_LIMIT_BYTES, diff_between

    before = Snapshot(reader.store.read_blob(version.sha256) if version else None)
    diff = diff_between(before, after, from_name=noted.key, to_name=noted.key, limit=DIFF_LIMIT_BYTES)
    change = Change(
        path=noted.key,
        before=version,
        after=after.version,
        diff=diff.text,
        diff_truncated=diff.truncated,
        added=diff.added if diff.truncated else 0,
        removed=diff.removed if diff.truncated else 0,
        trash_id="" if after.exists else new_id(),
    )
    return change, Blob(
        data=after.data, sha256=after.sha256, base=version.sha256 if version else ""
    ) if after.exists else None


def _facts_of(version: Version | None) -> tuple[str, int | None] | None:
    """Return what makes two versions the same: bytes and mode, not times."""
    return (version.sha256, version.mode) if version else None


def _operation_of(changes: Sequence[Change]) -> Operation:
    if len(changes) > 1:
        return "patch"
    return "create" if changes[0].before is None else "delete" if changes[0].after is None else "edit"

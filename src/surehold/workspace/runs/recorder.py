"""Records what a command did as one change of the history, and takes up what a dead supervisor had kept.

An open run is an intent without paths: it begins with the first call that changes something, and ends when the last process
of the command has. What was kept until then is in a folder of its own, which a living supervisor holds locked.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.capture.kept.covered import CoveredPaths
from surehold.capture.kept.keeper import Keeper
from surehold.capture.kept.stash import list_journal, make_stash, open_stash
from surehold.capture.settled.settle import settle_run
from surehold.capture.settled.settlement import Settlement, UnkeptPath
from surehold.disk.base import Disk
from surehold.errors import StateUnavailable
from surehold.stores.base import ApprovalRecord, Begun, Blob, Call, Change, Intent, Store
from surehold.stores.ledger_entries import normalize_timestamp
from surehold.stores.owner import Owner
from surehold.stores.run_records import RUN_LEASE_SECONDS
from surehold.text.snapshot import Version

if TYPE_CHECKING:
    from surehold.stores.base import Entry
    from surehold.workspace.runs.shared_paths import SharedPaths

_BATCH_BYTES = 8 << 20
_UNKNOWN_EXIT_CODE = -1
_HELD_PATHS = 100
"""So many files are held while a change is recorded, against edits that begin just then."""
_CHANGED_BETWEEN = "it was also changed by an edit or by another command while this one ran; what this one did to it before that is not in this change but by itself"

_EDITED_AT_END = "an edit of it was under way when this command ended; what the edit did may be in this change"
_SHARED = "another command that still runs changes it too (change {}); what both wrote at the same moment may be in this change"


@dataclass(slots=True)
class _BlobBatch:
    """Stores bytes many at a time."""

    store: Store
    _waiting: list[Blob] = field(default_factory=list[Blob])
    _size: int = 0

    def add(self, blob: Blob) -> None:
        self._waiting.append(blob)
        self._size += len(blob.data)
        if self._size >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self.store.keep_blobs(self._waiting)
        self._waiting, self._size = [], 0


def key_maker(roots: Sequence[str]) -> Callable[[bytes], str]:
    """Return what names a path as the history does: relative to the first root, absolute below any other."""
    first = os.fsencode(roots[0])
    prefix = first if first == b"/" else first + b"/"

    def key_of(path: bytes) -> str:
        if path == first:
            return "."
        return os.fsdecode(path.removeprefix(prefix))

    return key_of


def covered_paths(roots: Sequence[str], excluded: Sequence[str]) -> CoveredPaths:
    return CoveredPaths([os.fsencode(root) for root in roots], [os.fsencode(path) for path in excluded])


class RunRecorder:
    """The record of one run, from its first change to its entries in the ledger."""

    def __init__(
        self,
        *,
        store: Store,
        roots: Sequence[str],
        folder: Path,
        excluded: Sequence[str],
        call: Call,
        change_id: str,
        owner: Callable[[], Owner],
        clock: Callable[[], datetime],
        limit: int,
        shared: "SharedPaths",
    ) -> None:
        self._shared = shared
        self._store, self._roots, self._folder, self._excluded = store, roots, folder, excluded
        self._call, self.change_id, self._owner, self._clock, self._limit = call, change_id, owner, clock, limit
        self._keeper: Keeper | None = None
        self._began = ""

    def open_keeper(self) -> Keeper:
        """Make the folder, then the intent: whoever finds the intent finds what was kept."""
        stash = make_stash(str(self._folder), self._roots[0])
        _lock_journal(self._folder)
        self._began = self._clock().isoformat()
        intent = Intent(id=self.change_id, call=self._call, changes=(), owner=self._owner(), began=self._began)
        begun = self._store.begin(intent, (), lease=RUN_LEASE_SECONDS, fence=0.0)
        if not isinstance(begun, Begun):
            raise StateUnavailable("The run could not be begun: its id is in use.", reason="run_in_use")
        self._keeper = Keeper(stash, covered_paths(self._roots, (*self._excluded, stash.files)))
        self._keeper.before_change = partial(self._shared.credit_before_call, own=self.change_id)
        self._keeper.turns = self._shared.turns
        return self._keeper

    def preview(self) -> Settlement:
        """Say what changed so far; nothing is recorded."""
        if self._keeper is None:
            return Settlement()
        settled = _settle(self._keeper, self._began, self._roots, lambda _: None, self._limit)
        return _follow_ledger(self._store, settled, self._began)

    def finish(self, exit_code: int, approval: ApprovalRecord | None = None) -> Settlement:
        """Record what changed, and what a person said about it; a run that changed nothing leaves no trace."""
        if self._keeper is None:
            return Settlement()
        call = replace(self._call, exit_code=exit_code, approval=approval)
        contested = self._list_contested() if self._keeper.before_change else []
        with self._shared.hold_at_end(contested, self.change_id) as missed:
            for path in missed:
                self._keeper.add_note(path, _EDITED_AT_END)
            settled, _ = record_run(
                self._store,
                self._keeper,
                change_id=self.change_id,
                call=call,
                began=self._began,
                roots=self._roots,
                limit=self._limit,
            )
        return settled

    def _list_contested(self) -> list[bytes]:
        """Return the files that an edit may be about to change; of many, those that one has changed while the command ran."""
        assert self._keeper is not None
        paths = [path for path, one in self._keeper.occupants.items() if one is None or not one.facts.is_directory]
        if len(paths) <= _HELD_PATHS:
            return paths
        key_of = key_maker(self._roots)
        keys = {key_of(path): path for path in paths}
        return [keys[key] for key in _find_changed_since(self._store, [*keys], self._began)]


def record_run(
    store: Store, keeper: Keeper, *, change_id: str, call: Call, began: str, roots: Sequence[str], limit: int
) -> "tuple[Settlement, tuple[Entry, ...]]":
    """Turn the intent of a run into one change, and drop what was kept for it."""
    batch = _BlobBatch(store)
    settled = _settle(keeper, began, roots, batch.add, limit)
    batch.flush()
    settled = _follow_ledger(store, settled, began)
    for path, version in settled.displaced:
        if store.has_blob(version.sha256):  # a version that no entry has, if a turn was missed
            store.keep_outside(path, Blob(data=store.read_blob(version.sha256), sha256=version.sha256))
    settled.not_kept += _find_shared(Path(keeper.stash.folder), settled, key_maker(roots))
    if settled.changes:
        entries = store.finish_run(change_id, call, settled.changes)
    else:
        store.withdraw(change_id)
        entries = ()
    keeper.stash.remove()
    return settled, entries


def _settle(
    keeper: Keeper, began: str, roots: Sequence[str], keep_blob: Callable[[Blob], None], limit: int
) -> Settlement:
    when = datetime.fromisoformat(began)
    return settle_run(keeper, began=when, key_of=key_maker(roots), keep_blob=keep_blob, limit=limit)


def _find_shared(own: Path, settled: Settlement, key_of: Callable[[bytes], str]) -> list[UnkeptPath]:
    """Name the paths that another command has begun to change too, which still runs: its part is in this change as well."""
    changed = {path for one in settled.changes if not one.sets_times_only for path, _, _ in one.transitions()}
    found = list[UnkeptPath]()
    for folder in sorted(own.parent.iterdir()) if changed else ():
        if folder == own or not (folder / "journal").exists():
            continue
        shared = changed & {key_of(name) for name in list_journal(str(folder))}
        found += [UnkeptPath(key=key, why=_SHARED.format(folder.name)) for key in sorted(shared)]
    return found


def _follow_ledger(store: Store, settled: Settlement, began: str) -> Settlement:
    """Let the changes follow those that the ledger got while the command ran: they were made in between.

    What the command did to a path before such a change is not known apart from it, and is named.
    """
    result = Settlement(not_kept=[*settled.not_kept], renamed=settled.renamed)
    result.unrecorded = settled.unrecorded
    paths = [path for change in settled.changes for path, _, _ in change.transitions()]
    between = _find_changed_since(store, paths, began)
    for change in settled.changes:
        if all(path not in between or _is_same(between[path], before) for path, before, _ in change.transitions()):
            result.changes.append(change)  # all of it came after
            continue
        for path, before, after in change.transitions():
            version = between.get(path, before)
            if not _is_same(version, before):
                result.not_kept.append(UnkeptPath(key=path, why=_CHANGED_BETWEEN))
                if before is not None and before.kind == "file":
                    result.displaced.append((path, before))
            if not _is_same(version, after):
                result.changes.append(Change(path=path, before=version, after=after, diff_truncated=True))
    if not result.has_effects:
        result.changes.clear()
    return result


def _find_changed_since(store: Store, keys: Sequence[str], began: str) -> dict[str, Version | None]:
    """Return those of some paths that the ledger knows to have changed since a moment, with what they became."""
    since, records = normalize_timestamp(began), store.look(keys).records
    return {key: head.version for key in keys if (head := records[key].head) and head.timestamp >= since}


def _is_same(one: Version | None, other: Version | None) -> bool:
    """Compare all but the time: that of a file which an edit leaves is not known when the edit is recorded."""
    if one is None or other is None:
        return one is other
    if (one.kind, one.sha256) != (other.kind, other.sha256):
        return False
    return one.meta is None or other.meta is None or replace(one.meta, mtime_ns=0) == replace(other.meta, mtime_ns=0)


def recover_run(intent: Intent, *, store: Store, disk: Disk, runs: Path, limit: int) -> tuple[str, ...] | None:
    """Record what a run did whose supervisor died; None if another process is at it."""
    folder = runs / intent.id
    if not (folder / "journal").exists():
        store.withdraw(intent.id)
        return ()
    if not _lock_journal(folder):
        return None
    try:
        return _record_kept(intent, folder, store=store, disk=disk, runs=runs, limit=limit)
    finally:
        os.close(_held_journals.pop(str(folder)))


def _record_kept(intent: Intent, folder: Path, *, store: Store, disk: Disk, runs: Path, limit: int) -> tuple[str, ...]:
    stash = open_stash(str(folder))
    keeper = Keeper(stash, covered_paths(disk.roots, (str(runs.parent.resolve()), stash.files)))
    keeper.load_records()
    call = replace(intent.call, exit_code=_UNKNOWN_EXIT_CODE)
    settled, _ = record_run(
        store, keeper, change_id=intent.id, call=call, began=intent.began, roots=disk.roots, limit=limit
    )
    return tuple(path for change in settled.changes for path, _, _ in change.transitions())


_held_journals: dict[str, int] = {}
"""Locked journals of this process; a lock ends with its descriptor."""


def _lock_journal(folder: Path) -> bool:
    """Hold the journal of a run as long as this process lives; False if another process holds it."""
    fd = os.open(folder / "journal", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return False
    old = _held_journals.pop(str(folder), None)
    if old is not None:
        with suppress(OSError):
            os.close(old)
    _held_journals[str(folder)] = fd
    return True

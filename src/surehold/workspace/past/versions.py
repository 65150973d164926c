"""A file as it was: right after a change, before it, or at a moment; and the way back to that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from surehold.disk.base import StoredEntry
from surehold.errors import LOG, NotFound, spell
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.text.plan import Delete, Keep, name_difference
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.access.permission import Permission
from surehold.workspace.past.net_diff import FileNetDiff, diff_versions
from surehold.workspace.past.recorded import load_file, load_recorded, no_history_error, recorded_key, recorded_keys
from surehold.workspace.past.selectors import find_earlier_names
from surehold.workspace.paths import AnyPath
from surehold.workspace.proposal import Absent, CallAuthor, EntrySwitch, Proposal, Receipt, Sha256, Unproven
from surehold.workspace.workspace import Workspace

_MAX_ENTRIES = 10_000_000
_NOT_STORED = "the bytes of the last recorded change are not stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """A point of the ledger: after an entry, or at a moment, whichever is given."""

    seq: int = 0
    moment: str = ""
    name: str = ""
    """What the person called it."""


def point_at(entries: Sequence[Entry], name: str) -> HistoryPoint:
    return HistoryPoint(seq=max(entry.seq for entry in entries), name=f"after {name}")


def point_before(entries: Sequence[Entry], name: str) -> HistoryPoint:
    return HistoryPoint(seq=min(entry.seq for entry in entries) - 1, name=f"before {name}")


def version_at(store: Store, key: str, point: HistoryPoint) -> Version | None:
    """Return what a path held at a point; None for nothing, `NotFound` where the history does not know the path."""
    until = LedgerQuery(path=key, ok_only=True, limit=1, until=point.moment)
    if not point.moment:
        until = LedgerQuery(path=key, ok_only=True, limit=1, before_seq=point.seq + 1)
    earlier = store.list_entries(until) if point.moment or point.seq else ()
    if earlier:
        return {path: after for path, _, after in earlier[0].change.transitions()}[key]
    later = store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES))
    if not later:
        raise no_history_error(key)
    return {path: before for path, before, _ in later[-1].change.transitions()}[key]


def read_version(workspace: Workspace, path: AnyPath, point: HistoryPoint) -> Snapshot:
    """Return a file as it was at a point; `NotFound` if there was none."""
    key = recorded_key(workspace, path)
    version = version_at(workspace.store, key, point)
    if version is None and (name := _name_at(workspace.store, key, point)) != key:
        version = version_at(workspace.store, name, point)
    if version is None:
        names = _other_names(workspace.store, key)
        action = f"It was called {' or '.join(names)} at other times." if names else spell("Look at {}.", LOG)
        message = f"`{key}` did not exist {point.name}."
        raise NotFound(message, path=key, reason="not_at_that_time", action=action)
    return load_file(workspace, version, key)


def _other_names(store: Store, key: str) -> list[str]:
    moved = store.list_entries(LedgerQuery(path=key, operation="move", ok_only=True, limit=100))
    return sorted({name for one in moved for name in (one.change.path, one.change.to_path)} - {key, ""})


def revert_files(
    workspace: Workspace, paths: Sequence[str], point: HistoryPoint | None, *, author: CallAuthor, dry_run: bool = False
) -> Receipt:
    """Make files what they were at a point, or what they were when they were last recorded, as one change."""
    named = {recorded_key(workspace, path) for path in paths}
    wanted = dict[str, Version | None]()
    current = dict[str, StoredEntry | None]()
    for key in dict.fromkeys(key for path in paths for key in recorded_keys(workspace, path)):
        current[key] = workspace.read_entry(key)
        wanted[key] = _wanted_version(workspace.store, key, point, is_there=current[key] is not None)
        if wanted[key] is None and point is None and key in named and current[key] is None:
            wanted[key] = _deleted_version(workspace.store, key)
    versions = (*wanted.values(), *(one.version for one in current.values() if one))
    if any(one and one.kind != "file" for one in versions):
        proposals = [*_propose_entries(workspace, wanted, current)]
    else:
        loaded = {key: load_recorded(workspace, one, key) if one else None for key, one in wanted.items()}
        proposals = [one for key, version in loaded.items() if (one := propose_version(workspace, key, version))]
    if not proposals:
        return Receipt(change_id="", files=(), dry_run=dry_run, already_applied=True)
    call = author.make_call("revert", "restore")
    return workspace.write(*proposals, call=call, dry_run=dry_run, permission=Permission("bypassPermissions"))


def _wanted_version(store: Store, key: str, point: HistoryPoint | None, *, is_there: bool) -> Version | None:
    if point is None:
        return last_version(store, key)
    version = version_at(store, key, point)
    if version is None and is_there and (name := _name_at(store, key, point)) != key:
        return version_at(store, name, point)
    return version


def _name_at(store: Store, key: str, point: HistoryPoint) -> str:
    """Return the name that a file of today had at a point."""
    for one in find_earlier_names(store, key):
        if one.moved_at < point.moment if point.moment else one.before_seq <= point.seq:
            break
        key = one.key
    return key


def last_version(store: Store, key: str) -> Version | None:
    """Return what the last change through Surehold left at a path; outside edits do not count."""
    entries = store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES))
    ours = next((one for one in entries if one.call.operation != "external"), None)
    if ours is not None:
        return {path: after for path, _, after in ours.change.transitions()}[key]
    return entries[-1].change.before if entries else None


def diff_since_recorded(workspace: Workspace, key: str) -> FileNetDiff:
    """Return how a path differs from what the last change through Surehold left there."""
    known, entry = last_version(workspace.store, key), workspace.read_entry(key)
    after = Snapshot(entry.data) if entry and entry.version.kind in {"file", "link"} else ABSENT
    try:
        before = load_recorded(workspace, known, key)
    except NotFound:
        if known is None or known.sha256 == (entry.version.sha256 if entry else ""):
            raise
        row = name_difference(key, key, (known, entry.version if entry else None), why=_NOT_STORED)
        return FileNetDiff(key=key, to_key="", diff=row, after=after, before_version=known)
    return diff_versions(key, key, (known, entry.version if entry else None), (before, after))


def _deleted_version(store: Store, key: str) -> Version | None:
    """Return what a path held when it was last deleted; one that was moved away is elsewhere."""
    for entry in store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES)):
        for path, before, _ in entry.change.transitions():
            if path == key and before is not None:
                if entry.change.path == key and entry.change.to_path:
                    message, action = f"`{key}` was moved.", f"Name it as it is called now: {entry.change.to_path}"
                    raise NotFound(message, path=key, reason="moved_away", action=action)
                return before
    return None


def propose_version(workspace: Workspace, key: str, wanted: Snapshot | None) -> Proposal | None:
    """Return what makes a path the file that it was; None if it is that already."""
    try:
        current = workspace.read(key)
    except NotFound:
        current = ABSENT
    if wanted is None or not wanted.exists:
        return Proposal(path=key, edit=Delete(), proof=Sha256(current.sha256)) if current.exists else None
    if not current.exists:
        return Proposal(path=key, edit=WriteBytes(wanted.data), proof=Absent(), restore=wanted)
    mode = wanted.meta.mode if wanted.meta and current.meta and wanted.meta.mode != current.meta.mode else None
    if current.sha256 == wanted.sha256 and mode is None:
        return None
    return Proposal(path=key, edit=WriteBytes(wanted.data), proof=Sha256(current.sha256), mode=mode)


def _propose_entries(
    workspace: Workspace, wanted: dict[str, Version | None], current: dict[str, StoredEntry | None]
) -> Iterator[Proposal]:
    """Yield what makes paths what they were where not all are files: links, directories, kinds."""
    needed = {key: version for key, version in wanted.items() if version is not None}
    for key in [*needed]:
        for above in _missing_parents(workspace, key):
            if wanted.get(above) is None:
                wanted[above] = _directory_version(workspace, above)
                current.setdefault(above, None)
    for key, version in wanted.items():
        entry = current[key]
        old = entry.version if entry else None
        if _is_like(old, version):
            continue
        data = load_recorded(workspace, version, key).data
        whole = EntrySwitch(old_key=key if old else "", old=old, new_key=key if version else "", new=version, data=data)
        yield Proposal(path=key, edit=Keep(), proof=Unproven(), whole=whole)


def _is_like(one: Version | None, other: Version | None) -> bool:
    if one is None or other is None:
        return one is other
    same_mode = one.kind == "link" or other.mode is None or one.mode == other.mode
    return (one.kind, one.sha256) == (other.kind, other.sha256) and same_mode


def _missing_parents(workspace: Workspace, key: str) -> Iterator[str]:
    above = key.rpartition("/")[0]
    while above and workspace.read_entry(above) is None:
        yield above
        above = above.rpartition("/")[0]


def _directory_version(workspace: Workspace, key: str) -> Version:
    """Return the directory that a path last was, or one like the directory around it."""
    for entry in workspace.store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES)):
        for _, *sides in entry.change.transitions():
            if known := next((one for one in sides if one and one.kind == "directory"), None):
                return known
    near = key.rpartition("/")[0]
    while (around := workspace.read_entry(near or ".")) is None:
        near = near.rpartition("/")[0]
    meta = around.version.meta
    return Version(sha256=around.version.sha256, size=0, meta=meta and replace(meta, mtime_ns=0), kind="directory")

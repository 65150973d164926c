"""A file as it was: right after a change, before it, or at a moment; and the way back to that."""

from collections.abc import Sequence
from dataclasses import dataclass

from surehold.errors import NotFound
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.text.plan import Delete
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.access.permission import Permission
from surehold.workspace.paths import AnyPath
from surehold.workspace.proposal import Absent, CallAuthor, Proposal, Receipt, Sha256
from surehold.workspace.workspace import Workspace

_MAX_ENTRIES = 10_000_000


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
        action = "A file is in the history from its first change through Surehold on."
        raise NotFound(f"`{key}` is not in the history.", path=key, reason="no_history", action=action)
    return {path: before for path, before, _ in later[-1].change.transitions()}[key]


def read_version(workspace: Workspace, path: AnyPath, point: HistoryPoint) -> Snapshot:
    """Return a file as it was at a point; `NotFound` if there was none."""
    target = workspace.target(path)
    version = version_at(workspace.store, target.key, point)
    if version is None:
        names = _other_names(workspace.store, target.key)
        action = f"It was called {' or '.join(names)} at other times." if names else "Look at `surehold log`."
        message = f"`{target.key}` did not exist {point.name}."
        raise NotFound(message, path=target.key, reason="not_at_that_time", action=action)
    return load_version(workspace, version)


def load_version(workspace: Workspace, version: Version) -> Snapshot:
    return Snapshot(workspace.store.read_blob(version.sha256), meta=version.meta)


def _other_names(store: Store, key: str) -> list[str]:
    moved = store.list_entries(LedgerQuery(path=key, operation="move", ok_only=True, limit=100))
    return sorted({name for one in moved for name in (one.change.path, one.change.to_path)} - {key, ""})


def revert_files(
    workspace: Workspace, paths: Sequence[str], point: HistoryPoint | None, *, author: CallAuthor, dry_run: bool = False
) -> Receipt:
    """Make files what they were at a point, or what they were when they were last recorded, as one change."""
    proposals = list[Proposal]()
    for key in dict.fromkeys(key for path in paths for key in _recorded_keys(workspace, path)):
        version = version_at(workspace.store, key, point) if point else last_version(workspace.store, key)
        wanted = load_version(workspace, version) if version else None
        if proposal := propose_version(workspace, key, wanted):
            proposals.append(proposal)
    if not proposals:
        return Receipt(change_id="", files=(), dry_run=dry_run, already_applied=True)
    call = author.make_call("revert", "restore")
    return workspace.write(*proposals, call=call, dry_run=dry_run, permission=Permission("bypassPermissions"))


def _recorded_keys(workspace: Workspace, word: str) -> list[str]:
    """Return the file of a path, or every recorded file below a directory."""
    key = workspace.target(word.rstrip("/") or "/").key
    if workspace.store.list_entries(LedgerQuery(path=key, ok_only=True, limit=1)):
        return [key]
    below = workspace.store.list_entries(LedgerQuery(under=key, ok_only=True, limit=_MAX_ENTRIES))
    names = {name for one in below for name, _, _ in one.change.transitions() if name.startswith(f"{key}/")}
    if not names:
        action = "A file is in the history from its first change through Surehold on."
        raise NotFound(f"`{word}` is not in the history.", path=word, reason="no_history", action=action)
    return sorted(names)


def last_version(store: Store, key: str) -> Version | None:
    """Return what the last change through Surehold left at a path; outside edits do not count."""
    entries = store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES))
    ours = next((one for one in entries if one.call.operation != "external"), None)
    if ours is not None:
        return {path: after for path, _, after in ours.change.transitions()}[key]
    return entries[-1].change.before if entries else None


def propose_version(workspace: Workspace, key: str, wanted: Snapshot | None) -> Proposal | None:
    """Return what makes a path what it was; None if it is that already."""
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

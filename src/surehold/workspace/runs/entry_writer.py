"""Switches entries as a whole, through the same steps as any write: what commands did is taken back and made again here.

    locate → lock → look again → compare → plan the steps → checkpoint → change the disk → ledger entries

Rules:
1. Every path must be what the plan expects, in kind and content; else nothing happens.
2. A fact (mode, owner, attributes, time) that was changed since stays as it is now.
3. A directory that has other entries by now stays.
4. A crash leaves an open intent; `settle_whole` looks at what is there, and finishes or takes back.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from surehold.disk.base import Disk, Step, StoredEntry
from surehold.errors import (
    LockTimeout,
    PermissionDenied,
    PermissionRequired,
    StaleFile,
    SureholdError,
    spell,
    undo_command,
)
from surehold.stores.base import ApprovalRecord, Begun, Blob, Busy, Call, Change, Entry, Intent, Store
from surehold.stores.owner import Owner
from surehold.text.plan import DIFF_LIMIT_BYTES, EditPlan, diff_between
from surehold.text.snapshot import ABSENT, Meta, Snapshot, Version
from surehold.workspace.access.permission import Permission
from surehold.workspace.paths import PathRules
from surehold.workspace.proposal import EntrySwitch, FileReceipt, Proposal, Receipt
from surehold.workspace.reader import WorkspaceReader
from surehold.workspace.recovery import abort_settled
from surehold.workspace.runs.entry_plan import EntryPlan, WantedEntry

_DIFFED_FILES = 200
_DIFFED_BYTES = 256 * 1024


class EntryWriter:
    """Switches entries, and records it."""

    def __init__(self, reader: WorkspaceReader, *, owner: Callable[[], Owner], clock: Callable[[], datetime]) -> None:
        self._disk, self._store, self._names, self._limits = reader.disk, reader.store, reader.names, reader.limits
        self._recovery, self._owner, self._clock = reader.recovery, owner, clock

    def write(
        self, proposals: Sequence[Proposal], *, call: Call, change_id: str, dry_run: bool, permission: Permission | None
    ) -> Receipt:
        switches = [one.whole for one in proposals if one.whole]
        keys = sorted({key for one in switches for key in (one.old_key, one.new_key) if key})
        targets = [self._disk.locate(key) for key in keys]
        rules = [self._names.rules_for(target, ()) for target in targets if target.parts]
        rules = rules or [PathRules(path=".")]  # nothing but the root itself, for which there is no rule
        verdict = (permission or Permission()).judge_paths(rules, dry_run=dry_run)
        if verdict.why and not dry_run:
            action = spell("Ask a person to run: {}", undo_command(call.undoes))
            raise PermissionRequired(verdict.why, path=keys[0], action=action)
        call = replace(call, approval=ApprovalRecord(rule=verdict.rule))
        with self._disk.lock_located(targets, timeout=self._limits.lock_timeout):
            current = {
                key: self._disk.read_entry(self._disk.locate(key), limit=self._limits.max_file_bytes) for key in keys
            }
            for one in switches:
                if one.old_key:
                    current[one.old_key] = _trust_unread(one, current[one.old_key])
            plan = self._make_plan(switches, current)
            steps = plan.make_steps()
            changes = _list_changes(switches, plan)
            if dry_run or not steps:
                return _make_receipt(changes, plan, (), dry_run=dry_run)
            entries = self._perform(change_id, call, changes, plan, steps)
        return _make_receipt(changes, plan, entries, warnings=self._find_shortfalls(plan))

    def _make_plan(self, switches: Sequence[EntrySwitch], current: dict[str, StoredEntry | None]) -> EntryPlan:
        wanted: dict[str, WantedEntry | None] = {one.old_key: None for one in switches if one.old_key}
        for one in switches:
            if one.old_key:
                _check_expected(one.old_key, one.old, current[one.old_key])
            if one.new:
                source = current[one.old_key] if one.old_key else None
                meta = _merge_facts(one.old, source.version.meta if source else None, one.new)
                moved_from = one.old_key if one.old_key != one.new_key else ""
                version = replace(one.new, meta=meta)
                same = source is not None and source.version.sha256 == version.sha256
                data = source.data if source and same else one.data
                parts = bool(one.old and one.old.links and not version.links)
                wanted[one.new_key] = WantedEntry(
                    version=version,
                    data=data,
                    moved_from=moved_from,
                    parts=parts,
                    refits=same and one.old is not None and one.old.holes != version.holes,
                    names_now=one.old.links if one.old else (),
                )
        vacated = {one.old_key for one in switches}
        for one in switches:
            if one.new and one.new_key not in vacated and not _may_take(current[one.new_key], one.new):
                raise StaleFile(f"`{one.new_key}` now exists.", path=one.new_key, reason="displaced_mismatch")
        return EntryPlan(self._disk, self._limits.max_file_bytes, current, wanted)

    def _perform(
        self, change_id: str, call: Call, changes: Sequence[Change], plan: EntryPlan, steps: Sequence[Step]
    ) -> tuple[Entry, ...]:
        began = self._clock().isoformat()
        intent = Intent(id=change_id, call=call, changes=tuple(changes), owner=self._owner(), began=began)
        match self._store.begin(intent, _blobs_of(plan), lease=self._limits.lease, fence=0.0):
            case Begun():
                pass
            case Busy(intent=other):
                raise LockTimeout(f"Another change ({other.call.tool}, {other.id}) holds these paths.", holder=other.id)
            case _:
                raise StaleFile("The history changed while this was planned.", reason="displaced_mismatch")
        applied = False
        try:
            with self._recovery.leases.hold(intent, seconds=self._limits.lease) as lease:
                self._disk.apply(steps, tag=intent.id, fence=lease.check, keep=self._recovery.keep_outside)
                applied = True
                return self._store.finish(intent.id)
        except SureholdError as error:
            entries = self._recovery.settle_failed(intent, error, applied=applied)
            if not entries:
                raise
            return entries
        except BaseException:
            self._recovery.settle_interrupted(intent)
            raise

    def _find_shortfalls(self, plan: EntryPlan) -> list[str]:
        """Name the owners that could not be given, and the directories that stay."""
        found = [
            f"`{key}` stays: {'it is the workspace' if key == '.' else 'it has other entries now'}."
            for key in plan.kept_directories
        ]
        for key, wanted in plan.wanted.items():
            meta = wanted.version.meta if wanted else None
            if meta is None:
                continue
            entry = self._disk.read_entry(self._disk.locate(key), limit=self._limits.max_file_bytes)
            now = entry.version.meta if entry else None
            if now and (now.uid, now.gid) != (meta.uid, meta.gid):
                found.append(f"`{key}` belonged to {meta.uid}:{meta.gid}, and now belongs to {now.uid}:{now.gid}.")
        return found


def _trust_unread(switch: EntrySwitch, found: StoredEntry | None) -> StoredEntry | None:
    """Take a file that we may not read as what it was, if all that becomes of it is another name or other facts."""
    old, new = switch.old, switch.new
    if found is None or found.version.sha256 or found.version.kind != "file":
        return found
    is_old = old is not None and (old.kind, old.size) == ("file", found.version.size)
    if not old or not is_old or not new or (new.kind, new.sha256) != ("file", old.sha256):
        message = f"`{switch.old_key}` may not be read, so what it holds now would be lost."
        raise PermissionDenied(message, path=switch.old_key)
    return replace(found, version=replace(found.version, sha256=old.sha256))


def _check_expected(key: str, expected: Version | None, found: StoredEntry | None) -> None:
    if found is None or expected is None:
        same = found is None and expected is None
    else:
        same = (found.version.kind, found.version.sha256) == (expected.kind, expected.sha256)
    if not same:
        message = f"`{key}` was changed while this was planned."
        raise StaleFile(message, path=key, reason="displaced_mismatch")


def _may_take(found: StoredEntry | None, new: Version) -> bool:
    """Tell whether a name is free; a directory that is there already will do as one."""
    return found is None or new.kind == found.version.kind == "directory"


def _merge_facts(old: Version | None, now: Meta | None, new: Version) -> Meta | None:
    """Return the facts of the new version; those that another program changed since the old one stay as they are."""
    if now is None or old is None or old.meta is None or new.meta is None:
        return new.meta if now is None or new.meta else now
    was, then = old.meta, new.meta
    keeps_time = was.mtime_ns == now.mtime_ns
    written = (old.kind, old.sha256) != (new.kind, new.sha256)
    return Meta(
        mode=then.mode if was.mode == now.mode else now.mode,
        uid=then.uid if was.uid == now.uid else now.uid,
        gid=then.gid if was.gid == now.gid else now.gid,
        xattrs=then.xattrs if was.xattrs == now.xattrs else now.xattrs,
        mtime_ns=then.mtime_ns if keeps_time else 0 if written else now.mtime_ns,
    )


def _list_changes(switches: Sequence[EntrySwitch], plan: EntryPlan) -> list[Change]:
    found, unsaid = list[Change](), set[str]()
    for one in _name_once([one for one in switches if one.old_key not in set(plan.kept_directories)]):
        source = plan.current.get(one.old_key) if one.old_key else None
        wanted = plan.wanted.get(one.new_key) if one.new_key else None
        before = replace(source.version, links=one.old.links) if source and one.old else None
        after = wanted.version if wanted else None
        to_path = one.new_key if one.old_key and one.new_key and one.old_key != one.new_key else ""
        change = Change(path=one.old_key or one.new_key, to_path=to_path, before=before, after=after, whole=True)
        change = replace(change, undoes=one.undoes)
        if before == after and not to_path:
            unsaid.update(one.undoes)
            continue
        found.append(_with_diff(change, source, wanted, is_told=len(found) < _DIFFED_FILES))
    if found and unsaid:
        found[0] = replace(found[0], undoes=tuple(sorted({*found[0].undoes, *unsaid})))
    return found


def _name_once(switches: Sequence[EntrySwitch]) -> Iterator[EntrySwitch]:
    """Yield the switches, with each name for itself where one entry leaves it and another gets it."""
    uses = Counter(key for one in switches for key in {one.old_key, one.new_key} - {""})
    shared = dict[str, EntrySwitch]()
    for one in switches:
        keys = sorted({one.old_key, one.new_key} - {""})
        if all(uses[key] == 1 for key in keys):
            yield one
            continue
        undoes = {*one.undoes}
        for key in keys:
            name = shared.get(key, EntrySwitch(old_key="", old=None, new_key="", new=None))
            name = replace(name, undoes=tuple(sorted({*name.undoes, *undoes})))
            if key == one.old_key:
                name = replace(name, old_key=key, old=one.old)
            if key == one.new_key:
                name = replace(name, new_key=key, new=one.new)
            shared[key], undoes = name, set[str]()
    yield from shared.values()


def _with_diff(change: Change, source: StoredEntry | None, wanted: WantedEntry | None, *, is_told: bool) -> Change:
    old, new = _snapshot_of(source), _snapshot_of(wanted)
    if old == new or not is_told or max(old.size, new.size) > _DIFFED_BYTES:
        return replace(change, diff_truncated=old != new)
    to_name = change.to_path or change.path
    diff = diff_between(old, new, from_name=change.path, to_name=to_name, limit=DIFF_LIMIT_BYTES)
    counts = {"added": diff.added, "removed": diff.removed} if diff.truncated else {}
    return replace(change, diff=diff.text, diff_truncated=diff.truncated, **counts)


def _snapshot_of(entry: StoredEntry | WantedEntry | None) -> Snapshot:
    return Snapshot(entry.data) if entry is not None and entry.version.kind == "file" else ABSENT


def _blobs_of(plan: EntryPlan) -> list[Blob]:
    """Return the bytes that are there now, which a later switch needs, and those that come."""
    found: dict[str, Blob] = {}
    for entry in (*plan.current.values(), *plan.wanted.values()):
        version = entry.version if entry else None
        if (
            entry
            and version
            and version.kind in {"file", "link"}
            and version.sha256
            and version.size == len(entry.data)
        ):
            found.setdefault(version.sha256, Blob(data=entry.data, sha256=version.sha256))
    return list(found.values())


def _make_receipt(
    changes: Sequence[Change],
    plan: EntryPlan,
    entries: tuple[Entry, ...],
    *,
    dry_run: bool = False,
    warnings: Sequence[str] = (),
) -> Receipt:
    files = list[FileReceipt]()
    for change in changes:
        before, after = (
            _snapshot_of(plan.current.get(change.path)),
            _snapshot_of(plan.wanted.get(change.to_path or change.path)),
        )
        edit = EditPlan(before=before if change.before else ABSENT, after=after)
        said = tuple(warnings) if not files else ()
        files.append(FileReceipt(path=change.path, plan=edit, change=change, warnings=said))
    change_id = entries[0].change_id if entries else ""
    return Receipt(change_id=change_id, files=tuple(files), entries=entries, dry_run=dry_run)


def settle_whole(
    intent: Intent, *, disk: Disk, store: Store, limit: int, because: SureholdError | None = None
) -> tuple[bool, tuple[str, ...]]:
    """Close an intent whose steps were interrupted, with its paths locked: finish it, or take it back.

    One that failed, `because` of this error, is taken back. Return whether it was finished, and the paths that hold
    neither version.
    """
    current: dict[str, StoredEntry | None] = {}
    wanted: dict[str, WantedEntry | None] = {}
    stuck, arrived = list[str](), True
    for change in intent.changes:
        for key, before, after in change.transitions():
            found = disk.read_entry(disk.locate(key), limit=limit)
            if found and not found.version.sha256 and before and after and before.sha256 == after.sha256:
                found = replace(found, version=replace(found.version, sha256=after.sha256))  # not for us to read
            current[key] = found
            arrived = arrived and _is_at(found, after)
            if _is_at(found, before) or _is_at(found, after) or found is None:
                data = store.read_blob(before.sha256) if before and before.kind in {"file", "link"} else b""
                names = after.links if after else ()
                wanted[key] = WantedEntry(version=before, data=data, names_now=names) if before else None
            else:
                stuck.append(key)
    if arrived and because is None:
        store.finish(intent.id)
        return True, ()
    for key in stuck:
        del current[key]
    steps = EntryPlan(disk, limit, current, wanted).make_steps()
    if steps:
        disk.apply(steps, tag=f"{intent.id}r", fence=lambda: None, keep=lambda _, data: store.keep_blob(_blob(data)))
    abort_settled(store, intent, stuck, because)
    return False, tuple(stuck)


def _blob(data: bytes) -> Blob:
    from surehold.text.snapshot import sha256_hex

    return Blob(data=data, sha256=sha256_hex(data))


def _is_at(found: StoredEntry | None, version: Version | None) -> bool:
    if found is None or version is None:
        return found is None and version is None
    if (found.version.kind, found.version.sha256) != (version.kind, version.sha256):
        return False
    one, other = found.version.meta, version.meta
    return one is None or other is None or (one.mode, one.xattrs) == (other.mode, other.xattrs)

"""Works one proposal out in memory: steps 4 to 6 of a write. Nothing here changes a file."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from surehold.disk.base import Create, Remove, Rename, Replace, Step, Target
from surehold.errors import InvalidArgument, StaleFile, SureholdError
from surehold.stores.base import Blob, Call, Change, Entry, PathRecord, Sighting, Store, StoreView
from surehold.text.plan import Delete, Edit, EditPlan, diff_between, diff_of_plan
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version, merge_ranges
from surehold.workspace.access.seen_lines import KnownFile, sighting_after_write
from surehold.workspace.paths import PathRules, spelled_path
from surehold.workspace.proposal import FileReceipt, Proposal, Receipt, Sha256, depends_on_session
from surehold.workspace.reader import WorkspaceReader

_PLANNED_AHEAD_BYTES = 1 << 18
"""A change of many places in a file from this size on is worked out before the file is locked."""
_REPLAYED = "This call was made before with its idempotency key; this is its first answer, and nothing was written now."
_MAX_COMPARED_BYTES = 8 << 20
_TAKEN_OVER = "Another program read this change while it was being made, and wrote it back with its own."
_CHANGES_SINCE_BYTES = 8 * 1024
"""A refusal shows what changed since: for files up to this size together, up to so many bytes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedProposal:
    """A proposal whose paths were resolved."""

    proposal: Proposal
    target: Target
    to: Target | None = None
    rules: tuple[PathRules, ...] = ()
    """What the rules say about each path."""
    tried: EditPlan | None = None
    """What was at the path for a moment, before another program came in between."""

    @property
    def targets(self) -> tuple[Target, ...]:
        return (self.target, self.to) if self.to else (self.target,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a proposal comes to, given the files as they are now."""

    place: ResolvedProposal
    plan: EditPlan
    displaced: Snapshot
    change: Change
    known: KnownFile
    """The file before, and what the session was shown of it."""
    changes_anything: bool
    warnings: tuple[str, ...] = ()
    already_applied: bool = False

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """Every version that must be kept: what was there, what will be, what is displaced, and what was proposed."""
        before, after = self.plan.before, self.plan.after
        kept = [Blob(data=s.data, sha256=s.sha256) for s in (before, self.displaced) if s.exists]
        if after.exists and after is not before:
            spans = self.plan.spans
            shared = (spans[0].start, len(before.data) - spans[-1].end) if spans else (0, 0)
            kept.append(Blob(data=after.data, sha256=after.sha256, base=before.sha256, shared=shared))
        if (proposed := self.place.proposal.instead_of) is not None:
            kept.append(Blob(data=proposed.data, sha256=proposed.sha256, base=before.sha256))
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class DisturbedDrafts:
    """Drafts that are not made, since another program wrote in the last moment; it may have seen them at their paths."""

    error: StaleFile
    drafts: Sequence[Draft]


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """An edit that was worked out before its file was locked, and is worked out again if the file is another one by then."""

    edit: Edit
    made: EditPlan

    def plan(self, before: Snapshot) -> EditPlan:
        """Return what was worked out for these very bytes, or work it out."""
        known = self.made.before
        same = before == known and (before.encoding, before.meta) == (known.encoding, known.meta)
        return self.made if same else self.edit.plan(before)


def plan_ahead(place: ResolvedProposal, read: Callable[[Target], Snapshot]) -> ResolvedProposal:
    """Work a change of many places out before others have to wait for it; refusals are left to the one under the lock."""
    edit = place.proposal.edit
    if depends_on_session(edit) or not _replaces_many(edit):
        return place
    with suppress(SureholdError):
        current = read(place.target)
        if current.size >= _PLANNED_AHEAD_BYTES:
            made = edit.plan(current)
            diff_of_plan(made, from_name=place.target.key, to_name=place.target.key)  # the plan keeps the hunks
            return replace(place, proposal=replace(place.proposal, edit=PlannedEdit(edit, made)))
    return place


def _replaces_many(edit: Edit) -> bool:
    match edit:
        case SnapshotEdits(edits) | SequentialEdits(edits):
            return any(one.replace_all or one.expected_occurrences for one in edits)
        case StyledEdit(replace_all=replace_all):
            return replace_all
        case _:
            return False


def make_draft(
    place: ResolvedProposal, known: KnownFile, displaced: Snapshot, *, in_place: bool, new_id: Callable[[], str]
) -> Draft:
    """Check the proof, plan the edit, run the checks; raise when one of them refuses."""
    proposal, current = place.proposal, known.current
    edit = proposal.edit.edit_for(known) if depends_on_session(proposal.edit) else proposal.edit
    already = taken_over = place.tried is not None and place.to is None and place.tried.is_part_of(current)
    try:
        if not taken_over:
            proposal.proof.check(known)
    except StaleFile as stale:
        if stale.reason != "hash_mismatch":
            raise
        base = known.load_version(proposal.proof.expected) if isinstance(proposal.proof, Sha256) else None
        if place.to is not None or not _already_applied(edit, current, base):
            raise _with_retry_details(stale, edit, known, base) from None
        already = True
    if place.to is not None:
        proposal.to_proof.check(KnownFile(PathRecord(key=place.to.key), displaced))
    try:
        plan = EditPlan(before=current, after=current) if already else edit.plan(current)
    except SureholdError as error:
        error.path = error.path or place.target.key  # an edit does not know which file it looks at
        raise
    warnings = tuple(w for check in proposal.checks for w in check(plan))
    replaces = place.to is None and plan.before.exists and plan.after.exists
    change = _build_change(place, plan, displaced, in_place=in_place and replaces, new_id=new_id)
    return Draft(
        place=place,
        plan=plan,
        displaced=displaced,
        change=change,
        known=known,
        changes_anything=place.to is not None or change.before != change.after,
        warnings=(*plan.warnings, *warnings, *([_TAKEN_OVER] if taken_over else [])),
        already_applied=already,
    )


def _already_applied(edit: Edit, current: Snapshot, base: bytes | None) -> bool:
    """Tell whether the file already is what the call asked for, so that a repeated call is not a conflict."""
    with suppress(SureholdError):
        if not edit.plan(current).changes_bytes:
            return True
        return base is not None and edit.plan(Snapshot(base, encoding=current.encoding)).after == current
    with suppress(SureholdError):
        return base is not None and edit.plan(Snapshot(base)).after == current
    return False


def _with_retry_details(stale: StaleFile, edit: Edit, known: KnownFile, base: bytes | None) -> StaleFile:
    """Say whether the same edits would apply to the file as it is now, and what changed since the caller saw it."""
    current, still_apply = known.current, False
    with suppress(SureholdError):
        still_apply = bool(edit.plan(current).applied)
    stale.details["edits_still_apply"] = still_apply
    if still_apply:
        stale.details["retry_with_sha256"] = current.sha256
    shown = any(one.sha256 == stale.details.get("expected_sha256") for one in known.seen)
    if shown and base is not None and len(base) + current.size <= _MAX_COMPARED_BYTES:
        old, name = Snapshot(base, encoding=current.encoding if current.is_text else None), known.path
        since = diff_between(old, current, from_name=name, to_name=name, limit=_CHANGES_SINCE_BYTES)
        stale.details["changes_since"] = since.text
        stale.details["changes_since_truncated"] = since.truncated
    return stale


def _build_change(
    place: ResolvedProposal, plan: EditPlan, displaced: Snapshot, *, in_place: bool, new_id: Callable[[], str]
) -> Change:
    proposal, to = place.proposal, place.to
    removes = (plan.before.exists and not plan.after.exists) or displaced.exists
    diff = diff_of_plan(plan, from_name=place.target.key, to_name=to.key if to else place.target.key)
    return Change(
        path=place.target.key,
        to_path=to.key if to else "",
        before=plan.before.version,
        after=_version_after(plan, proposal),
        displaced=displaced.version,
        diff=diff.text,
        diff_truncated=diff.truncated,
        added=diff.added if diff.truncated else 0,
        removed=diff.removed if diff.truncated else 0,
        trash_id=new_id() if removes and not proposal.permanent else "",
        proposal_sha256=proposal.instead_of.sha256 if proposal.instead_of is not None else "",
        in_place=in_place,
        undoes=proposal.undoes,
    )


def _version_after(plan: EditPlan, proposal: Proposal) -> Version | None:
    version, meta = plan.after.version, (proposal.restore or plan.before).meta
    if meta is not None and proposal.mode is not None:
        meta = replace(meta, mode=proposal.mode)
    return replace(version, meta=meta) if version else None


def disk_steps(draft: Draft) -> tuple[Step, ...]:
    place, plan, proposal = draft.place, draft.plan, draft.place.proposal
    target, to = place.target, place.to
    before, after = plan.before, plan.after
    if to is not None:
        vacate = (Remove(target=to, expected=draft.displaced.sha256),) if draft.displaced.exists else ()
        if not plan.changes_bytes and proposal.mode is None:
            return (*vacate, Rename(source=target, target=to, expected=before.sha256))
        meta = before.meta
        if meta is not None and plan.changes_bytes:
            meta = replace(meta, mtime_ns=0)  # new bytes are as old as the write
        create = Create(target=to, data=after.data, meta=meta, mode=proposal.mode)
        return (*vacate, create, Remove(target=target, expected=before.sha256))
    if not after.exists:
        return (Remove(target=target, expected=before.sha256),)
    if not before.exists:
        meta = proposal.restore.meta if proposal.restore else None
        return (Create(target=target, data=after.data, meta=meta, mode=proposal.mode, parents=proposal.parents),)
    return (Replace(target=target, data=after.data, expected=before.sha256, old=before.data, mode=proposal.mode),)


def make_receipt(
    drafts: Sequence[Draft], *, entries: tuple[Entry, ...] = (), dry_run: bool = False, replayed: bool = False
) -> Receipt:
    files = tuple(
        FileReceipt(
            path=one.place.target.key,
            plan=one.plan,
            change=one.change,
            warnings=one.warnings,
            mode=one.place.proposal.mode,
            displaced=one.displaced,
        )
        for one in drafts
    )
    return Receipt(
        change_id=entries[0].change_id if entries else "",
        files=files,
        entries=entries,
        dry_run=dry_run,
        replayed=replayed,
        already_applied=any(one.already_applied for one in drafts),
    )


def make_replay(
    places: Sequence[ResolvedProposal],
    entries: tuple[Entry, ...],
    view: StoreView,
    *,
    call: Call,
    reader: WorkspaceReader,
) -> Receipt:
    """Return the first answer to a call that is made again with its key, worked out from the bytes that it found then."""
    made = {entry.change.path: entry.change for entry in entries}
    targets = {target.key for place in places for target in place.targets}
    if not made.keys() <= targets or any(entry.call.tool != call.tool for entry in entries):
        raise _other_call_error(entries)
    files = list[FileReceipt]()
    for place in places:
        if (change := made.get(place.target.key)) is None:  # it had nothing to do there
            current = reader.read_snapshot(place.target)
            plan = EditPlan(before=current, after=current)
            change = Change(path=place.target.key, before=current.version, after=current.version)
        elif (plan := _plan_again(place, change, view, call=call, store=reader.store)) is None:
            raise _other_call_error(entries)
        said = () if files else (_REPLAYED,)
        files.append(
            FileReceipt(path=place.target.key, plan=plan, change=change, warnings=said, mode=place.proposal.mode)
        )
    return Receipt(change_id=entries[0].change_id, files=tuple(files), entries=entries, replayed=True)


def _plan_again(
    place: ResolvedProposal, change: Change, view: StoreView, *, call: Call, store: Store
) -> EditPlan | None:
    """Return what was planned; None if this edit makes other bytes of the same file, so that it is another one."""
    before, after = _load_recorded(store, change.before), _load_recorded(store, change.after)
    if before is None or after is None:  # pruned since: what is left of it are its facts
        return EditPlan(before=before or ABSENT, after=after or ABSENT)
    recorded = WriteBytes(after.data).plan(before) if after.exists else EditPlan(before=before, after=ABSENT)
    asked = place.proposal.edit
    try:
        if depends_on_session(asked):
            known = KnownFile(view.records[place.target.key], before, store=store, session=call.session)
            plan = asked.edit_for(known).plan(before)
        else:
            plan = asked.plan(before)
    except SureholdError:
        return recorded if depends_on_session(asked) else None
    if plan.after.exists == after.exists and plan.after.data == after.data:
        return plan
    return recorded if depends_on_session(asked) or change.proposal_sha256 else None


def _load_recorded(store: Store, version: Version | None) -> Snapshot | None:
    if version is None:
        return ABSENT
    with suppress(SureholdError):
        return Snapshot(store.read_blob(version.sha256), meta=version.meta)
    return None


def _other_call_error(entries: Sequence[Entry]) -> InvalidArgument:
    return InvalidArgument(
        "This idempotency key belongs to another call, which was made.",
        path=entries[0].change.path,
        reason="key_of_another_call",
        action="Send a new key, or none.",
        change_id=entries[0].change_id,
    )


def check_same_targets(places: Sequence[ResolvedProposal], again: Sequence[ResolvedProposal]) -> None:
    """Refuse to go on when an approved path leads to another file by now."""
    if [one.targets for one in again] != [one.targets for one in places]:
        message = "A path now resolves to a different file than the one that was approved."
        raise StaleFile(message, reason="changed_while_asked")


def collect_changes(drafts: Sequence[Draft], find_missing: Callable[[Target], tuple[str, ...]]) -> tuple[Change, ...]:
    """Return what changes anything; what the others would have undone is noted with the first."""
    first, *others = (_with_directories(one, find_missing) for one in drafts if one.changes_anything)
    unchanged = {name for one in drafts if not one.changes_anything for name in one.change.undoes}
    return (replace(first, undoes=tuple(sorted({*first.undoes, *unchanged}))) if unchanged else first, *others)


def _with_directories(one: Draft, find_missing: Callable[[Target], tuple[str, ...]]) -> Change:
    """Note which directories have to be made for a new name."""
    place, change = one.place, one.change
    is_new = not (one.displaced if place.to else one.plan.before).exists and one.plan.after.exists
    makes = find_missing(place.to or place.target) if is_new else ()
    return replace(change, makes=makes) if makes else change


def as_spelled(proposal: Proposal) -> Proposal:
    """Return a proposal whose paths are plain text, to be resolved anew."""
    return replace(proposal, path=spelled_path(proposal.path), to_path=spelled_path(proposal.to_path))


def written_targets(places: Sequence[ResolvedProposal]) -> list[Target]:
    """List where files will be afterwards."""
    return [one.to or one.target for one in places if not isinstance(one.proposal.edit, Delete)]


def sightings_after(call: Call, drafts: Sequence[Draft]) -> list[Sighting]:
    """Return what the session knows of the new versions once the drafts have happened."""
    if not call.session:
        return []
    rows = list[Sighting]()
    for one in drafts:
        plan, proposal, key = one.plan, one.place.proposal, (one.place.to or one.place.target).key
        if not plan.after.exists:
            continue
        carried: Sighting | None = None
        if proposal.instead_of is None:  # what the person wrote was not shown yet
            known = one.known.sighting
            carried = sighting_after_write(plan, session=call.session, key=key, known=known)
        if spans := proposal.shows(plan) if proposal.shows else ():
            anchored = spans if proposal.shows_anchors else ()
            carried = carried or Sighting(session=call.session, path=key, sha256=plan.after.sha256, spans=())
            carried = replace(carried, spans=merge_ranges((*carried.spans, *spans)), anchored=anchored)
        rows += [carried] if carried else []
    return rows

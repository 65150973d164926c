"""Works one proposal out in memory: steps 4 to 6 of a write. Nothing here changes a file."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from surehold.disk.base import Create, Remove, Rename, Replace, Step, Target
from surehold.errors import StaleFile, SureholdError
from surehold.stores.base import Blob, Change, Entry, PathRecord
from surehold.text.plan import Edit, EditPlan, diff_between, diff_of_plan
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.snapshot import Snapshot, Version
from surehold.workspace.access.policy import PathRules
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import FileReceipt, Proposal, Receipt, Sha256, depends_on_session

_PLANNED_AHEAD_BYTES = 1 << 18
"""A change of many places in a file from this size on is worked out before the file is locked."""
_MAX_COMPARED_BYTES = 8 << 20
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
    already = False
    try:
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
        changes_anything=plan.changes_bytes or place.to is not None or change.before != change.after,
        warnings=(*plan.warnings, *warnings),
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
    removes = not plan.after.exists or displaced.exists
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

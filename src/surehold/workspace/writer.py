"""The only way in which a file is written.

The ten steps of a write:
 1 resolve, check the rules, maybe ask    6 run the checks
 2 lock the targets, in one order         7 checkpoint: old bytes and intent, durable
 3 read the files again                   8 change the disk, atomically
 4 check the caller's proof               9 ledger entries, heads, trash: one commit
 5 plan the edit in memory               10 return the receipt

Up to step 6 nothing has happened, and a refusal leaves only a line in the ledger. From step 7 on a crash leaves an open
intent, which any process can settle by looking at the bytes (see recovery).
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from surehold.disk.base import Target
from surehold.disk.side_threads import begin_aside
from surehold.errors import (
    AlreadyExists,
    InvalidArgument,
    LineEditError,
    LockTimeout,
    NotAFile,
    RecoveryRequired,
    StaleFile,
    StateUnavailable,
    SureholdError,
)
from surehold.stores.base import ApprovalRecord, Begun, Busy, Call, Intent, Replay, Sighting, StaleRead, StoreView
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.owner import IntentLost, Owner
from surehold.text.plan import Delete
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.access.permission import Permission, PermissionVerdict
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.draft import (
    DisturbedDrafts,
    Draft,
    ResolvedProposal,
    as_spelled,
    check_same_targets,
    collect_changes,
    disk_steps,
    make_draft,
    make_receipt,
    make_replay,
    plan_ahead,
    sightings_after,
    written_targets,
)
from surehold.workspace.paths import spelled_path
from surehold.workspace.proposal import Absent, Proposal, Receipt
from surehold.workspace.reader import WorkspaceReader
from surehold.workspace.refusal_log import RefusalLog

ReadTarget = Callable[[Target], Snapshot]

_POLL_SECONDS, _CACHE_POLL_SECONDS = 0.005, 0.02
_DISTURBED_REASONS = frozenset({"displaced_mismatch", "vanished"})
"""How the disk says that another program changed a file after it was read: nothing happened, so it is read again."""
_MAX_ROUNDS = 8
_ROUNDS_BEFORE_IN_PLACE = 2
"""From then on the file is written in place: a program that waits for it need not be let in first."""
_SETTLE_SECONDS = 0.05


class _CacheLag(Exception):
    def __init__(self, stale: StaleRead) -> None:
        self.stale = stale


class WorkspaceWriter:
    """Changes the files of a workspace, and keeps its promises."""

    def __init__(
        self,
        reader: WorkspaceReader,
        *,
        owner: Callable[[], Owner],
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._reader, self._disk, self._store = reader, reader.disk, reader.store
        self._names, self._limits, self._recovery = reader.names, reader.limits, reader.recovery
        self._refusals = RefusalLog(reader.store, reader.names)
        self._owner, self._clock, self._new_id = owner, clock, new_id

    def write(
        self, *proposals: Proposal, call: Call, dry_run: bool = False, permission: Permission | None = None
    ) -> Receipt:
        """Make all proposals happen, or none of them; the approver is asked first if the permission says so."""
        change_id = self._new_id()
        if permission and permission.record:
            proposals = tuple(map(permission.record.check_cancelled, proposals))
        if any(one.whole for one in proposals):
            from surehold.workspace.runs.entry_writer import EntryWriter

            writer = EntryWriter(self._reader, owner=self._owner, clock=self._clock)
            return writer.write(proposals, call=call, change_id=change_id, dry_run=dry_run, permission=permission)
        try:
            places = self._resolve_proposals(proposals)  # 1
            rules = [rule for one in places for rule in one.rules]
            verdict = (permission or Permission()).judge_paths(rules, dry_run=dry_run)
            call = replace(call, approval=ApprovalRecord(rule=verdict.rule))
            if verdict.why and permission and not dry_run:
                receipt = self._write_if_allowed(places, call, change_id, permission, verdict)
            else:
                receipt = self._write_locked(places, call, change_id, dry_run=dry_run)
        except SureholdError as error:
            if not dry_run:
                named = [(spelled_path(one.path), spelled_path(one.to_path)) for one in proposals]
                self._refusals.record_paths(named, call, change_id, error)
            raise
        if permission and permission.record:
            permission.record.receipts.append(receipt)
        return receipt

    def _write_if_allowed(
        self,
        places: Sequence[ResolvedProposal],
        call: Call,
        change_id: str,
        permission: Permission,
        verdict: PermissionVerdict,
    ) -> Receipt:
        """Work the change out, let the approver look at it without any lock, and make exactly that happen."""
        keys = [target.key for place in places for target in place.targets]
        view = self._store.look(keys, session=call.session, idempotency_key=call.idempotency_key)
        if isinstance(view.earlier, Replay):
            return make_replay(places, view.earlier.entries, view, call=call, reader=self._reader)
        rehearsal = self._write_locked(places, call, change_id, dry_run=True)
        if not any(one.changed for one in rehearsal.files):
            return replace(rehearsal, dry_run=False)
        answered = permission.request_approval(
            [one.proposal for one in places], rehearsal, call, verdict, timestamp=lambda: utc_timestamp(self._clock())
        )
        call = self._refusals.keep_left_out(answered, rehearsal.files, call, self._new_id)
        try:
            again = self._resolve_proposals([as_spelled(one) for one in answered.proposals])
            check_same_targets(places, again)
            permission.judge_paths([rule for one in again for rule in one.rules])  # the mode may be another one by now
            return answered.with_note(self._write_locked(again, call, change_id, dry_run=False))
        except SureholdError as error:
            self._refusals.record_rehearsal(rehearsal.files, call, change_id, error)
            raise

    def _write_locked(
        self, places: Sequence[ResolvedProposal], call: Call, change_id: str, *, dry_run: bool
    ) -> Receipt:
        places = [plan_ahead(one, self._reader.read_snapshot) for one in places]
        targets = [target for place in places for target in place.targets]
        deadline = time.monotonic() + self._limits.lock_timeout
        key = "" if dry_run else call.idempotency_key
        may_proceed, disturbed = False, 0
        while True:
            with self._disk.lock(targets, timeout=max(deadline - time.monotonic(), 0)):  # 2
                view = self._store.look([one.key for one in targets], session=call.session, idempotency_key=key)
                earlier = (view.earlier,) if isinstance(view.earlier, Busy) and view.earlier not in view.holding else ()
                dead = [busy for busy in (*view.holding, *earlier) if self._recovery.leases.may_settle(busy)]
                if may_proceed or not dead:
                    read = (
                        self._reader.read_snapshot
                        if dry_run
                        else partial(self._reader.read_watched, in_place=disturbed >= _ROUNDS_BEFORE_IN_PLACE)
                    )
                    match self._attempt_write(places, view, call, change_id, read, dry_run=dry_run):
                        case Receipt() as receipt:
                            return receipt
                        case Replay():  # the same call was finished since we looked
                            continue
                        case Busy() as busy:
                            _give_up_after(deadline, busy)
                        case StaleRead() as stale:  # this mount still shows an older version: read it again
                            _wait_for_cache(deadline, stale)
                        case DisturbedDrafts(error, drafts):  # look again, in any case once without showing anything
                            disturbed += 1
                            is_late = time.monotonic() > deadline and disturbed > _ROUNDS_BEFORE_IN_PLACE
                            if disturbed >= _MAX_ROUNDS or is_late:
                                raise error
                            places = [replace(one.place, tried=one.plan) for one in drafts]
            # Without the lock: a dead process may have died with one of these files half written.
            self._recovery.settle_intents(dead, timeout=_SETTLE_SECONDS)
            may_proceed = True

    def _attempt_write(
        self,
        places: Sequence[ResolvedProposal],
        view: StoreView,
        call: Call,
        change_id: str,
        read: ReadTarget,
        *,
        dry_run: bool,
    ) -> Receipt | Replay | Busy | DisturbedDrafts | StaleRead:
        """Do steps 3 to 10 under the lock, or say which other change must be over first, or who came in between."""
        match view.earlier or next((busy for busy in view.holding if busy.owner_is_dead or not dry_run), None):
            case Replay(entries=entries):
                return make_replay(places, entries, view, call=call, reader=self._reader)
            case Busy() as busy:
                return busy
            case None:
                pass
        self._refuse_new_repository(places)
        try:
            drafts = [self._make_draft(place, view, call, read, only_look=dry_run) for place in places]  # 3 to 6
        except _CacheLag as lag:
            return lag.stale
        if dry_run or not any(one.changes_anything for one in drafts):
            return make_receipt(drafts, dry_run=dry_run)
        return self._perform_change(self._make_intent(change_id, call, drafts), drafts)  # 7 to 10

    def _perform_change(
        self, intent: Intent, drafts: Sequence[Draft]
    ) -> Receipt | Replay | Busy | DisturbedDrafts | StaleRead:
        sightings = sightings_after(intent.call, drafts)  # first: if it fails, nothing has happened
        try:
            match self._begin_intent(intent, drafts):  # 7
                case Begun() as begun:
                    return self._commit_change(intent, begun, drafts, sightings)  # 8 to 10
                case (Replay() | Busy() | StaleRead()) as other:
                    return other
        except IntentLost as lost:
            self._give_up_unknown(intent, lost.error)
            raise lost.error from None
        except StaleFile as error:
            if error.reason in _DISTURBED_REASONS:
                return DisturbedDrafts(error, drafts)
            raise
        except SureholdError:
            raise
        except BaseException:
            self._recovery.settle_interrupted(intent)
            raise

    def _resolve_proposals(self, proposals: Sequence[Proposal]) -> list[ResolvedProposal]:
        if not proposals:
            raise InvalidArgument("There is nothing to write.", action="Send at least one change.")
        bare = [self._resolve_proposal(proposal) for proposal in proposals]
        written = written_targets(bare)
        places = [replace(one, rules=tuple(self._names.rules_for(t, written) for t in one.targets)) for one in bare]
        keys = Counter(target.key for place in places for target in place.targets)
        if twice := next((key for key, count in keys.items() if count > 1), None):
            raise InvalidArgument(f"`{twice}` is named twice in one call.", path=twice, reason="duplicate_path")
        return places

    def _resolve_proposal(self, proposal: Proposal) -> ResolvedProposal:
        target = self._names.resolve_readable(proposal.path)
        to = self._names.resolve_readable(proposal.to_path) if proposal.to_path else None
        if to or isinstance(proposal.edit, Delete):
            self._names.refuse_link(target)
        return ResolvedProposal(proposal=proposal, target=target, to=to)

    def _refuse_new_repository(self, places: Sequence[ResolvedProposal]) -> None:
        """Refuse what another call has made part of a git repository since the rules were asked."""
        written = written_targets(places)
        unprotected = [t for one in places for t, r in zip(one.targets, one.rules, strict=True) if not r.protected_by]
        for target in unprotected:
            if directory := self._names.protected_repository(target, written):
                message = f"`{directory}` became a git repository while this change waited for its lock."
                raise StaleFile(message, path=target.key, reason="became_repository", action="Make the change again.")

    def _read_destination(self, target: Target, read: ReadTarget) -> Snapshot:
        """Return what is at a place that a file is to get; a directory there is in the way, not missing."""
        try:
            return read(target)
        except NotAFile as error:
            raise AlreadyExists(
                error.message, path=error.path, reason="directory", action="Choose another path."
            ) from None

    def _make_draft(
        self, place: ResolvedProposal, view: StoreView, call: Call, read: ReadTarget, *, only_look: bool
    ) -> Draft:
        is_new = isinstance(place.proposal.proof, Absent)
        current = self._read_destination(place.target, read) if is_new else read(place.target)
        displaced = self._read_destination(place.to, read) if place.to else ABSENT
        if stale := self._reader.find_stale_read(view.records[place.target.key], current, now=self._clock()):
            raise _CacheLag(stale)
        current = self._reader.as_named(place.target, current, session=call.session)
        known = KnownFile(view.records[place.target.key], current, store=self._store, session=call.session)
        in_place = current.exists and self._disk.replaces_in_place(place.target)
        shown = known.shown_before
        try:
            draft = make_draft(place, known, displaced, in_place=in_place, new_id=self._new_id)
        except SureholdError as error:
            self._record_shown_by(error, place.proposal, known)
            head = view.records[place.target.key].head
            if shown or (head and not head.has_bytes(current.sha256 if current.exists else "")):
                self._note_outside(place.target, current, shown)
            raise
        # A change records what it found there by itself.
        is_look = only_look or not draft.changes_anything
        head = view.records[place.target.key].head if is_look and not view.holding else None
        if shown or (head and not head.has_bytes(current.sha256)):
            self._note_outside(place.target, current, shown)
        return draft

    def _note_outside(self, target: Target, current: Snapshot, shown: str) -> None:
        if self._disk.shows_saved:
            with suppress(SureholdError):  # what the caller asked for comes first
                self._reader.note_outside(target, current, shown=shown)

    def _record_shown_by(self, error: SureholdError, proposal: Proposal, known: KnownFile) -> None:
        """Count the lines that a refusal shows as shown, so that a plain retry works."""
        anchored = error.anchored if isinstance(error, LineEditError) else ()
        if (error.shown is None and not anchored) or proposal.shows is None or not known.session:
            return
        if proposal.shows_anchors or known.seen:  # quoted lines mean nothing to a session that never read the file
            sighting = known.sighting_of(error.shown or ())
            if proposal.shows_anchors:  # of some lines only the anchor is shown, and the beginning
                sighting = replace(sighting, whole=False, anchored=anchored)
            with suppress(SureholdError):  # the refusal itself is what the caller must hear about
                self._reader.record_shown(sighting, known.seen, known.current)

    def _make_intent(self, change_id: str, call: Call, drafts: Sequence[Draft]) -> Intent:
        return Intent(
            id=change_id,
            call=call,
            changes=collect_changes(drafts, self._disk.missing_directories),
            owner=self._owner(),
            began=self._clock().isoformat(),
        )

    def _begin_intent(self, intent: Intent, drafts: Sequence[Draft]) -> Begun | Replay | Busy | StaleRead:
        fence = 0.0 if self._disk.is_coherent else self._limits.fence
        self._reader.credit_commands({one.place.target: one.plan.before for one in drafts})
        try:
            blobs = [blob for one in drafts if one.changes_anything for blob in one.blobs]
            return self._store.begin(intent, blobs, lease=self._limits.lease, fence=fence, early=True)
        except SureholdError as error:
            self._give_up_unknown(intent, error)
            raise

    def _give_up_unknown(self, intent: Intent, error: SureholdError) -> None:
        if isinstance(error, StateUnavailable):  # the store may have taken it all the same
            self._recovery.leases.give_up(intent)

    def _commit_change(
        self, intent: Intent, begun: Begun, drafts: Sequence[Draft], sightings: Sequence[Sighting]
    ) -> Receipt:
        # The intent and the staged files go to the disk at the same time: both must be there before the fence.
        reach_disk = begun.reach_disk and begin_aside(begun.reach_disk)
        steps = [step for one in drafts if one.changes_anything for step in disk_steps(one)]
        applied = False
        try:
            with self._recovery.leases.hold(intent, seconds=self._limits.lease, reach_disk=reach_disk) as lease:
                self._disk.apply(steps, tag=intent.id, fence=lease.check, keep=self._recovery.keep_outside)
                applied = True
                entries = self._store.finish(intent.id, shown=sightings)
        except SureholdError as error:
            begins_again = error.reason in _DISTURBED_REASONS
            entries = self._recovery.settle_failed(intent, error, applied=applied, begins_again=begins_again)
            if not entries:
                raise
            with suppress(SureholdError):  # the change is made; a session that forgot what it saw reads again
                self._store.record_sightings(sightings, after_seq=entries[0].seq - 1)
                self._store.flush_sightings()
        return make_receipt([self._with_disk_warning(one) for one in drafts], entries=entries)

    def _with_disk_warning(self, one: Draft) -> Draft:
        """Add what the disk has to say about the change that it just made."""
        said = self._disk.write_caution(one.place.to or one.place.target) if one.changes_anything else ""
        return replace(one, warnings=(*one.warnings, said)) if said else one


def _give_up_after(deadline: float, busy: Busy) -> None:
    other, path = busy.intent, busy.intent.changes[0].path
    if time.monotonic() > deadline and busy.owner_is_dead:
        raise RecoveryRequired(f"An interrupted change ({other.id}) still holds `{path}`.", path=path)
    if time.monotonic() > deadline:
        raise LockTimeout(f"Another change ({other.call.tool}, {other.id}) holds `{path}`.", path=path, holder=other.id)
    time.sleep(_POLL_SECONDS)


def _wait_for_cache(deadline: float, stale: StaleRead) -> None:
    if time.monotonic() > deadline:
        message, action = f"This mount still shows an older version of `{stale.path}`.", "Try again in a moment."
        newest = stale.head.version.sha256 if stale.head.version else ""
        raise StaleFile(message, path=stale.path, reason="stale_cache", action=action, newest_sha256=newest)
    time.sleep(_CACHE_POLL_SECONDS)

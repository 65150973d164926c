"""Settles the intents that a dead process left open.

1. All paths are locked first; then the intent is read again.
2. If every path holds its new version, the change happened and is recorded (forward).
3. Otherwise every path that holds its new version gets its old one back (backward).
4. A path that holds neither version is left alone, unless Surehold itself caused that: bytes torn by a write into the
   same inode, or nothing where a move had to remove a file first. Then the old version is restored; torn bytes are kept.
5. Safe to run twice, and safe to be killed: every decision is made by looking at the bytes.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from surehold.disk.base import Create, Disk, Remove, Rename, Replace, Step, StoredFile, Target
from surehold.errors import RECOVER, OutsideWorkspace, RecoveryRequired, SureholdError, argument, spell
from surehold.stores.base import Blob, Busy, Change, Entry, Intent, LedgerQuery, Store
from surehold.stores.owner import LeaseKeeper
from surehold.text.align import shared_ends
from surehold.text.snapshot import Version, sha256_hex

_BLOCK_BYTES = 512
_PAGE_INTENTS = 100

Direction = Literal["forward", "backward", "conflict", "gone", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledIntent:
    """How an open intent was closed."""

    change_id: str
    direction: Direction
    paths: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    """Paths that hold neither version; they were left as they are."""
    problem: str = ""
    """Why it could not be closed now; it stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PathState:
    """One path of an intent: what it was, what it should become, and what is there."""

    target: Target
    before: Version | None
    after: Version | None
    torn: bool
    """It is a mixture of both versions, as a crash leaves it that strikes while a file is written in place."""
    vacated: bool
    """A move takes away what is here before its own bytes arrive."""
    now: StoredFile | None
    name: str
    """sha256 of what is there; empty when nothing is."""

    @property
    def at_after(self) -> bool:
        return self._holds(self.after)

    @property
    def at_before(self) -> bool:
        return self._holds(self.before)

    @property
    def is_half_done(self) -> bool:
        """Whether it holds neither version, and that is our own doing."""
        ours = self.torn or (self.vacated and self.now is None)
        return ours and not self.at_before and not self.at_after

    def _holds(self, version: Version | None) -> bool:
        if version is None:
            return self.now is None
        if self.name != version.sha256:
            return False
        assert self.now is not None  # nothing has no name
        one, other = (v.meta.mode if v and v.meta else None for v in (self.before, self.after))
        mode_changes = one is not None and other is not None and one != other
        return not mode_changes or (version.meta is not None and self.now.meta.mode == version.meta.mode)


class Recovery:
    """Settles open intents on one disk and one store."""

    def __init__(self, disk: Disk, store: Store, *, limit: int, runs: Path | None = None) -> None:
        """Take a disk and a store, and where what commands are about to change is kept."""
        self._disk, self._store, self._limit, self._runs = disk, store, limit, runs
        self.leases = LeaseKeeper(store, settle=lambda intent: self._settle_intent(intent, 0).direction != "failed")

    def settle_dead(self, *, timeout: float) -> tuple[SettledIntent, ...]:
        """Settle every intent whose owner is dead; one that cannot be settled is reported and stays open.

        All of them together wait for locks as long as the timeout says: a stopped process keeps its own.
        """
        deadline = time.monotonic() + timeout
        settled = list[SettledIntent]()
        tried = set[str]()  # an intent that stays open is not asked for again
        while page := self._store.dead_intents(limit=_PAGE_INTENTS, skip=tried):
            settled += self.settle_intents(page, timeout=deadline - time.monotonic())
            tried |= {busy.intent.id for busy in page}
        given_up = [one for one in self.leases.list_given_up() if one.id not in tried and self._store.is_open(one.id)]
        settled += [self._settle_intent(one, max(deadline - time.monotonic(), 0)) for one in given_up]
        return tuple(settled)

    def settle_intents(self, dead: Sequence[Busy], *, timeout: float) -> tuple[SettledIntent, ...]:
        """Settle intents of dead owners; all of them together wait for locks as long as the timeout says."""
        deadline = time.monotonic() + timeout
        return tuple(self._settle_intent(busy.intent, max(deadline - time.monotonic(), 0)) for busy in dead)

    def _settle_intent(self, intent: Intent, timeout: float) -> SettledIntent:
        settled = self._try_to_settle(intent, timeout)
        if settled.direction != "failed":
            self.leases.forget(intent.id)
        return settled

    def _try_to_settle(self, intent: Intent, timeout: float) -> SettledIntent:
        paths = paths_of(intent)
        if intent.call.operation == "run":
            return self._settle_run(intent)
        if any(change.whole for change in intent.changes):
            return self._settle_whole(intent, timeout)
        try:
            with self._disk.lock([self._disk.resolve(path) for path in paths], timeout=timeout):
                return self.settle_locked(intent)
        except SureholdError as error:
            return SettledIntent(change_id=intent.id, direction="failed", paths=paths, problem=str(error))

    def _settle_run(self, intent: Intent) -> SettledIntent:
        """Record what a command did whose supervisor died; it is not rolled back."""
        if self._runs is None:
            return SettledIntent(
                change_id=intent.id, direction="failed", paths=(), problem="The run was kept elsewhere."
            )
        from surehold.workspace.runs.recorder import recover_run

        try:
            paths = recover_run(intent, store=self._store, disk=self._disk, runs=self._runs, limit=self._limit)
        except (SureholdError, OSError) as error:
            return SettledIntent(change_id=intent.id, direction="failed", paths=(), problem=str(error))
        if paths is None:
            problem = "Another process is recording this run."
            return SettledIntent(change_id=intent.id, direction="failed", paths=(), problem=problem)
        return SettledIntent(change_id=intent.id, direction="forward", paths=paths)

    def _settle_whole(self, intent: Intent, timeout: float) -> SettledIntent:
        """Close an intent that switches entries as a whole."""
        paths = paths_of(intent)
        try:
            targets = [self._disk.locate(path) for path in paths]
            with self._disk.lock_located(targets, timeout=timeout):
                return self.settle_locked(intent)
        except SureholdError as error:
            return SettledIntent(change_id=intent.id, direction="failed", paths=paths, problem=str(error))

    def _settle_whole_locked(self, intent: Intent, because: SureholdError | None) -> SettledIntent:
        from surehold.workspace.runs.entry_writer import settle_whole

        paths = paths_of(intent)
        targets = [self._disk.locate(path) for path in paths]
        for tag in (intent.id, _recovery_tag(intent)):
            with suppress(OutsideWorkspace):  # a directory may be a link by now, or still: that is put back too
                self._disk.remove_leftovers(targets, tag=tag, keep=partial(self._keep_unknown, intent))
        done, stuck = settle_whole(intent, disk=self._disk, store=self._store, limit=self._limit, because=because)
        direction: Direction = "forward" if done else "conflict" if stuck else "backward"
        return SettledIntent(change_id=intent.id, direction=direction, paths=paths, conflicts=stuck)

    def _keep_unknown(self, intent: Intent, key: str, data: bytes) -> None:
        """Keep what lay beside a file, unless it is one of the versions that the intent has anyway."""
        known = {v.sha256 for c in intent.changes for _, before, after in c.transitions() for v in (before, after) if v}
        if sha256_hex(data) not in known:
            self._keep_leftover(intent, key, data)

    def settle_locked(self, intent: Intent, *, because: SureholdError | None = None) -> SettledIntent:
        """Close one intent whose paths are locked by the caller; `because` says why it failed, when that is known."""
        paths = paths_of(intent)
        if not self._store.is_open(intent.id):
            return SettledIntent(change_id=intent.id, direction="gone", paths=paths)
        if any(change.whole for change in intent.changes):
            return self._settle_whole_locked(intent, because)
        targets = [self._disk.resolve(path) for path in paths]
        for tag in (intent.id, _recovery_tag(intent)):  # an earlier recovery may have died too
            self._disk.remove_leftovers(targets, tag=tag, keep=partial(self._keep_leftover, intent))
        spots = [self._read_path_states(change) for change in intent.changes]
        if because is None and all(spot.at_after for pair in spots for spot in pair):
            self._store.finish(intent.id)
            return SettledIntent(change_id=intent.id, direction="forward", paths=paths)
        return self._roll_back(intent, spots, paths, because)

    def settle_failed(
        self, intent: Intent, error: SureholdError, *, applied: bool, begins_again: bool = False
    ) -> tuple[Entry, ...]:
        """Close an intent that failed; return its entries if they arrived although the store reported them lost.

        Of steps that were not `applied` nothing is visible: what is at the paths now is what other programs put there, also
        where it looks like our own doing. An intent whose call `begins_again` leaves no record.
        """
        is_unmade = not (applied or isinstance(error, RecoveryRequired))
        if is_unmade and self._close_unmade(intent, error, begins_again=begins_again):
            return ()
        try:
            if error.reason == "outcome_unknown":  # the store is away, and was waited for
                raise error
            settled = self.settle_locked(intent, because=error)
            if settled.direction != "gone":
                return ()
            entries = self._find_entries(intent)
            if not (entries or is_unmade):
                self._take_back(intent)
        except SureholdError as worse:
            self.leases.give_up(intent)
            key = intent.call.idempotency_key or intent.id
            raise RecoveryRequired(
                spell(
                    "{} It is unknown whether the change was applied; {} decides that when the disk and the history work again.",
                    error.message,
                    RECOVER,
                ),
                path=intent.changes[0].path,
                change_id=intent.id,
                idempotency_key=key,
                action=spell(
                    "Make the same call again with the idempotency key `{}` (argument `{}`): it returns the first answer, or is made once.",
                    key,
                    argument("idempotencyKey"),
                ),
                cause=worse.message,
            ) from error
        return entries

    def _close_unmade(self, intent: Intent, error: SureholdError, *, begins_again: bool) -> bool:
        with suppress(SureholdError):  # the caller must hear of the first error; an open intent is settled next
            if begins_again:
                self._store.withdraw(intent.id)
            else:
                self._store.abort(intent.id, error_kind=error.kind, message=error.message)
            return True
        return False

    def _find_entries(self, intent: Intent) -> tuple[Entry, ...]:
        self._store.confirm()
        query = LedgerQuery(change_id=intent.id, ok_only=True, limit=len(intent.changes))
        return self._store.list_entries(query)[::-1]

    def settle_interrupted(self, intent: Intent) -> None:
        """Leave nothing open of an intent whose call was interrupted, wherever that was."""
        try:
            self.settle_locked(intent)
        except SureholdError:
            self.leases.give_up(intent)  # the interruption is what the caller must hear of

    def _take_back(self, intent: Intent) -> None:
        """Bring back what became visible after another process had settled the intent as not made."""
        if any(change.whole for change in intent.changes):
            return
        steps = list[Step]()
        for change in intent.changes:
            spots = self._read_path_states(change)
            heads = [self._store.head_of(spot.target.key) for spot in spots]
            if not any(head and head.has_bytes(spot.name) for head, spot in zip(heads, spots, strict=True)):
                steps += self._inverse_steps(spots, change)
        if steps:
            self._disk.apply(steps[::-1], tag=_recovery_tag(intent), fence=lambda: None, keep=self.keep_outside)

    def _roll_back(
        self, intent: Intent, spots: list[list[_PathState]], paths: tuple[str, ...], because: SureholdError | None
    ) -> SettledIntent:
        steps = [
            step
            for pair, change in zip(spots, intent.changes, strict=True)
            for step in self._inverse_steps(pair, change)
        ]
        if steps:
            self._disk.apply(steps[::-1], tag=_recovery_tag(intent), fence=lambda: None, keep=self.keep_outside)
        stuck = [s for pair in spots for s in pair if not (s.at_before or s.at_after or s.is_half_done)]
        conflicts = tuple(spot.target.key for spot in stuck)
        abort_settled(self._store, intent, conflicts, because)
        direction: Direction = "conflict" if conflicts else "backward"
        return SettledIntent(change_id=intent.id, direction=direction, paths=paths, conflicts=conflicts)

    def _read_path_states(self, change: Change) -> list[_PathState]:
        return [self._read_path_state(change, *transition) for transition in change.transitions()]

    def _read_path_state(self, change: Change, key: str, before: Version | None, after: Version | None) -> _PathState:
        target = self._disk.resolve(key)
        now = self._disk.read(target, limit=self._limit)
        return _PathState(
            target=target,
            before=before,
            after=after,
            torn=change.in_place and self._is_torn(now, before, after),
            vacated=change.displaced is not None and key == change.to_path,
            now=now,
            name=sha256_hex(now.data) if now else "",
        )

    def _is_torn(self, now: StoredFile | None, before: Version | None, after: Version | None) -> bool:
        if now is None or before is None or after is None:
            return False
        return is_mixture(now.data, self._store.read_blob(before.sha256), self._store.read_blob(after.sha256))

    def _inverse_steps(self, spots: list[_PathState], change: Change) -> list[Step]:
        is_plain_move = change.to_path and not change.displaced and change.before and change.after
        if is_plain_move and all(s.at_after for s in spots) and change.before == change.after:
            source, to = spots
            return [Rename(source=to.target, target=source.target, expected=to.name)]
        steps = list[Step]()
        for spot in spots:
            if spot.is_half_done and spot.now is not None:
                self._store.keep_blob(Blob(data=spot.now.data, sha256=sha256_hex(spot.now.data)))  # torn by ourselves
            if (spot.at_after and not spot.at_before) or spot.is_half_done:
                steps.append(self._bring_back(spot))
        return steps

    def _bring_back(self, spot: _PathState) -> Step:
        if spot.before is None:
            return Remove(target=spot.target, expected=spot.name)
        data = self._store.read_blob(spot.before.sha256)
        if spot.now is None:
            return Create(target=spot.target, data=data, meta=spot.before.meta)
        mode = spot.before.meta.mode if spot.before.meta else None
        return Replace(target=spot.target, data=data, expected=spot.name, mode=mode)

    def keep_outside(self, key: str, data: bytes) -> None:
        """Take bytes of an outside program that could not stay at their path into the history of that path."""
        blob = Blob(data=data, sha256=sha256_hex(data))
        if key:
            self._store.keep_outside(key, blob)
        else:
            self._store.keep_blob(blob)

    def _keep_leftover(self, intent: Intent, key: str, data: bytes) -> None:
        """Keep what lay beside a file; a version of the intent, whole or only begun, was not written by others."""
        versions = [
            v for change in intent.changes for _, before, after in change.transitions() for v in (before, after)
        ]
        if not any(v and self._store.read_blob(v.sha256).startswith(data) for v in versions):
            self.keep_outside(key, data)


def abort_settled(store: Store, intent: Intent, conflicts: Sequence[str], because: SureholdError | None) -> None:
    """Record that an intent was taken back, and which paths are left as they are."""
    message = because.message if because else "Interrupted; the old version was put back."
    if conflicts:
        message = f"Interrupted; left as they are, since they hold neither version: {', '.join(conflicts)}."
    try:
        store.abort(intent.id, error_kind=because.kind if because else "interrupted", message=message)
    except SureholdError:
        if because is None:
            raise  # else the files are back, as the caller is told; the next recovery records it


def is_mixture(data: bytes, before: bytes, after: bytes) -> bool:
    """Tell whether bytes are what writing `after` over `before` leaves when it stops anywhere.

    What is longer than before is written first. Below that every block must be that of one version, except the one that
    the writing was just going through.
    """
    length, mixed = len(before), 0
    if len(data) < length or not after[length:].startswith(data[length:]):
        return False
    for at in range(0, length, _BLOCK_BYTES):
        end = min(at + _BLOCK_BYTES, length)
        block, old, new = data[at:end], before[at:end], after[at:end]
        if block in (old, new):
            continue
        mixed += 1
        done, _ = shared_ends(block, new)
        if mixed > 1 or block[done:] != old[done:]:
            return False
    return True


def paths_of(intent: Intent) -> tuple[str, ...]:
    return tuple(path for change in intent.changes for path, _, _ in change.transitions())


def _recovery_tag(intent: Intent) -> str:
    return f"{intent.id}r"

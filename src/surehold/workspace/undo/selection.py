"""Switches many changes at once: which entries, which of their files can be, and what is in the way of the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from surehold.errors import LOG, NotFound, SpelledText, UndoConflict, spell
from surehold.stores.base import Entry
from surehold.workspace.past.selectors import SWITCHING
from surehold.workspace.proposal import Proposal
from surehold.workspace.undo.planner import (
    FileOutcome,
    FileSwitch,
    UndoAttempt,
    UndoOperation,
    outside_advice,
    since_advice,
)
from surehold.workspace.undo.recorded_changes import load_related, name_entry
from surehold.workspace.undo.timeline import FileTrail, Timeline
from surehold.workspace.workspace import Workspace

_TRIED_ENTRIES = 200
"""How many entries of one file are tried one by one to find those that can be undone; of more, none is."""
_LISTED_CONFLICTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchConflict:
    """A file that cannot be switched, and why."""

    key: str
    why: str
    lines: tuple[int, ...]
    entries: frozenset[str]
    """The selected entries that stay as they are."""


class SelectionSwitch:
    """Some entries of the ledger, and what undoing or redoing them makes of the files."""

    def __init__(
        self, workspace: Workspace, selected: Sequence[Entry], operation: UndoOperation, *, offers_part: bool = True
    ) -> None:
        """Look at the files; `selected` are entries that happened, in any order."""
        self._operation: UndoOperation = operation
        self._selected, self._offers_part = selected, offers_part
        self.left_out: tuple[str, ...] = ()
        """What the last proposals do not do, file by file, with the reason."""
        changes = load_related(workspace.store, selected)
        for switching in (True, False):
            self._timeline = Timeline(changes, switching=switching)
            self.attempt = UndoAttempt(workspace, self._timeline)
            self.wanted = self._choose_entries(selected)
            """The entries that have to be switched."""
            self.attempt.use_whole_entries(name.partition("#")[0] for name in self.wanted)
            if self.attempt.explains_heads(self.wanted):
                break

    def _choose_entries(self, selected: Sequence[Entry]) -> frozenset[str]:
        timeline = self._timeline
        own = timeline.own_entries.intersection(map(name_entry, selected))
        if self._operation == "redo":
            return own - timeline.active
        return timeline.undo_switches({entry.change_id for entry in selected}, own, self._named_keys(selected))

    def _named_keys(self, selected: Sequence[Entry]) -> frozenset[str] | None:
        """Return the names of the files that are meant, if of a selected undo or redo not everything is; None elsewhere."""
        names = frozenset(map(name_entry, selected))
        ids = {entry.change_id for entry in selected if entry.call.operation in SWITCHING}
        of_switches = (one for one in self._timeline.changes if one.id in ids)
        if all(names.issuperset(map(name_entry, one.entries)) for one in of_switches):
            return None
        return frozenset(key for entry in selected for key in (entry.change.path, entry.change.to_path) if key)

    @cached_property
    def outcomes(self) -> list[FileOutcome]:
        """What becomes of every file if all of them are switched."""
        return self._switch_files(self.wanted)

    @cached_property
    def conflicts(self) -> tuple[SwitchConflict, ...]:
        return tuple(map(self._describe_conflict, (one for one in self.outcomes if one.obstacles)))

    @property
    def switches(self) -> list[FileSwitch]:
        """The files that can be switched, as they are and as they would be."""
        return [one.switch for one in self.outcomes if one.switch and not one.obstacles]

    @property
    def change_count(self) -> int:
        return _count_changes(self.wanted)

    def propose(self, *, partial: bool = False) -> list[Proposal]:
        """Return what to write; `UndoConflict` if something is in the way, unless a part is enough."""
        switched, outcomes = self.wanted, self.outcomes
        if self.conflicts:
            possible = self._possible_part()
            if not partial or not possible:
                raise self._refuse(possible)
            switched, outcomes = possible, self._switch_files(possible)
            self.left_out = tuple(self._name_left_out(self.wanted - possible))
        return self._name_entries([one.switch for one in outcomes if one.switch], switched)

    def _switch_files(self, switched: frozenset[str]) -> list[FileOutcome]:
        return [self.attempt.switch_file(file, switched) for file in self._timeline.files_of(sorted(switched))]

    def _name_entries(self, switches: Sequence[FileSwitch], switched: frozenset[str]) -> list[Proposal]:
        """Say in each proposal which entries it switches; those of files that stay the same are in the first."""
        by_key = dict[str, set[str]]()
        for one in switches:
            for key in one.keys:
                by_key.setdefault(key, set()).update(self._entries_of(one.file) & switched)
        left, named = set(switched), list[Proposal]()
        for proposal in self.attempt.propose(switches):
            own = by_key.get(str(proposal.path), set[str]()) & left
            left -= own
            named.append(_with_entries(proposal, own))
        if named and left:
            named[0] = _with_entries(named[0], {*named[0].undoes, *left})
        return named

    # What can be done if not everything can.

    def _possible_part(self) -> frozenset[str]:
        possible = self.wanted
        for one in self.outcomes:
            if one.obstacles:
                entries = self._entries_of(one.file) & self.wanted
                possible -= entries - self._possible_entries(one.file, entries)
        while blocked := [one for one in self._switch_files(possible) if one.obstacles]:
            for one in blocked:
                possible -= self._entries_of(one.file)
        return possible

    def _name_left_out(self, left: frozenset[str]) -> Iterator[str]:
        """Say of every file which changes stay as they are, and why."""
        verb = "undone" if self._operation == "undo" else "redone"
        reasons = {one.key: one.why for one in self.conflicts}
        for file in self._timeline.files_of(sorted(left)):
            newest = next((step.to_key or step.key for step in reversed(file.steps) if step.entry_name in left), "")
            key = file.find_key(self._timeline.active) or file.key or newest  # it has no name while it does not exist
            names = sorted({name.partition("#")[0] for name in self._entries_of(file) & left})
            why = reasons.get(key) or "other changes that stay depend on it"
            yield f"`{key}`: not {verb} ({', '.join(names)}), since {why}."

    def _possible_entries(self, file: FileTrail, entries: frozenset[str]) -> frozenset[str]:
        """Return the entries of one file that can be switched, tried from the newest on."""
        kept = frozenset[str]()
        if len(entries) > _TRIED_ENTRIES:
            return kept
        for step in reversed(file.steps):
            tried = kept | {step.entry_name}
            if step.entry_name in entries and self.attempt.can_switch(file, tried):
                kept = tried
        return kept

    def _entries_of(self, file: FileTrail) -> frozenset[str]:
        return frozenset(step.entry_name for step in file.steps)

    def _describe_conflict(self, outcome: FileOutcome) -> SwitchConflict:
        why, lines = self.attempt.describe(outcome.obstacles)
        key = outcome.obstacles[0].key or outcome.file.find_key(self._timeline.active)
        entries = self._entries_of(outcome.file) & self.wanted
        return SwitchConflict(key=key, why=why, lines=tuple(lines), entries=entries)

    def _refuse(self, possible: frozenset[str]) -> UndoConflict:
        first, others = self.conflicts[0], len(self.conflicts) - 1
        verb = "taken back" if self._operation == "undo" else "made again"
        more = f" The same goes for {others} more {'file' if others == 1 else 'files'}." if others else ""
        conflicts = [
            {"path": one.key, "why": one.why, "lines": list(one.lines)} for one in self.conflicts[:_LISTED_CONFLICTS]
        ]
        action, details = self._advise(possible)
        message = f"`{first.key}` cannot be {verb}: {first.why}.{more}"
        return UndoConflict(message, path=first.key, action=action, conflicts=conflicts, **details)

    def _advise(self, possible: frozenset[str]) -> tuple[str, dict[str, Any]]:
        obstacle = next(one.obstacles[0] for one in self.outcomes if one.obstacles)
        part = spell(
            "{} does what can be done: {} of {} changes.",
            SpelledText("--partial", "`partial=True`"),
            str(_count_changes(possible)),
            str(self.change_count),
        )
        offered = [part] if possible and self._offers_part else []
        if self._timeline.is_outside(obstacle.change_id):
            return spell(" ".join(["{}"] * (1 + len(offered))), outside_advice(obstacle), *offered), {}
        if offered:
            return part, {}
        undone = self._timeline.undone_since(self.wanted) if self._operation == "redo" else ""
        since = undone or min(entry.timestamp for entry in self._selected)
        return since_advice(since), {"since": since}


def _with_entries(proposal: Proposal, entries: set[str]) -> Proposal:
    names = tuple(sorted(entries))
    whole = replace(proposal.whole, undoes=names) if proposal.whole else None
    return replace(proposal, undoes=names, whole=whole)


def _count_changes(entries: frozenset[str]) -> int:
    return len({name.partition("#")[0] for name in entries})


def nothing_to_switch_error(operation: UndoOperation) -> NotFound:
    if operation == "undo":
        return no_such_change_error("Everything that was selected is undone already.")
    return no_such_change_error("Nothing that was selected is undone.")


def no_such_change_error(message: str) -> NotFound:
    return NotFound(message, reason="no_such_change", action=spell("Look at {}.", LOG))

"""Plans an undo: looks at the files, switches a change, and proposes what to write, or says what must come first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from surehold.errors import NotAFile, NotFound, SpelledText, StaleFile, UndoConflict, redo_command, spell, undo_command
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.past.recorded import read_recorded
from surehold.workspace.proposal import Absent, EntrySwitch, Proposal, Sha256, Unproven
from surehold.workspace.undo.recorded_changes import load_changes
from surehold.workspace.undo.replay import FileReplay, FileState, Obstacle
from surehold.workspace.undo.timeline import (
    OUTSIDE,
    ActiveEntries,
    FileStep,
    FileTrail,
    SwitchedEntries,
    Timeline,
    outside_step,
)
from surehold.workspace.workspace import Workspace

UndoOperation = Literal["undo", "redo"]
UndoCommand = tuple[UndoOperation, str]
_LISTED_COMMANDS = 10
_TRIED_SWITCHES = 50
"""How many changes are switched in memory to see whether an advice works; undoing everything since a time always does."""


def propose_undo(workspace: Workspace, change_id: str, operation: UndoOperation) -> list[Proposal]:
    """Return what takes back a change, or a change that undid another; `UndoConflict` if that needs something else first."""
    changes = load_changes(workspace.store, change_id)
    timeline = Timeline(changes)
    attempt = UndoAttempt(workspace, timeline)
    # A person changed what an undo wrote, or an older version wrote it.
    if not attempt.explains_heads(timeline.entries_of(timeline.root_of(change_id))):
        attempt = UndoAttempt(workspace, Timeline(changes, switching=False))
    return attempt.propose_switch(change_id, operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSwitch:
    """One file as it is, and as it is to be."""

    file: FileTrail
    old: FileState
    new: FileState

    @property
    def keys(self) -> set[str]:
        return {self.old.key, self.new.key} - {""}

    @property
    def has_effect(self) -> bool:
        return (self.old.key, self.old.sha256, self.old.mode) != (self.new.key, self.new.sha256, self.new.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """What switching makes of one file: another state, nothing at all, or what is in the way."""

    file: FileTrail
    switch: FileSwitch | None = None
    obstacles: tuple[Obstacle, ...] = ()


class UndoAttempt:
    """One look at the files of a change, and at what becomes of them without it."""

    def __init__(self, workspace: Workspace, timeline: Timeline) -> None:
        self._workspace, self._timeline = workspace, timeline
        self._replay = FileReplay(partial(read_recorded, workspace))
        self._seen = set[int]()
        self._whole = False
        """Entries are switched as a whole: kinds, facts and names too, as commands change them."""

    def explains_heads(self, entries: Iterable[str]) -> bool:
        """Tell whether replaying the entries in effect gives what the ledger last knew of the files of some."""
        timeline = self._timeline
        for file in timeline.files_of(entries):
            state, left_out = self._replay.state_of(file, timeline.active)
            head = timeline.heads.get(state.key) if state.key else None
            if left_out or state.sha256 != (head.sha256 if head else ""):
                return False
        return True

    def propose_switch(self, change_id: str, operation: UndoOperation) -> list[Proposal]:
        timeline, active = self._timeline, self._timeline.active
        root = timeline.root_of(change_id)
        self.use_whole_entries([root])
        switches, obstacles = self._switch_changes(active, active ^ timeline.entries_of(root))
        if obstacles:
            raise self._explain_obstacles(change_id, obstacles, operation)
        return [*self._propose_files(switches)]

    def use_whole_entries(self, change_ids: Iterable[str]) -> None:
        """Switch entries as a whole if a command made one of these changes."""
        self._whole = self._timeline.has_runs(change_ids)

    def switch_file(self, file: FileTrail, switched: frozenset[str]) -> FileOutcome:
        """Return what becomes of one file if some entries are switched."""
        active = self._timeline.active
        now = SwitchedEntries(active=active, switched=switched)
        switches, obstacles = self._switch_files([file], active, now)
        if obstacles and not self._replay.state_of(file, now)[1] and switches and not switches[0].has_effect:
            return FileOutcome(file=file)
        return FileOutcome(file=file, switch=switches[0] if switches else None, obstacles=tuple(obstacles))

    def can_switch(self, file: FileTrail, switched: frozenset[str]) -> bool:
        """Tell whether nothing is in the way of one file, of which it is known what other programs did to it."""
        now = SwitchedEntries(active=self._timeline.active, switched=switched)
        return not self._replay.leaves_out(file, now) and not self.switch_file(file, switched).obstacles

    def propose(self, switches: Sequence[FileSwitch]) -> list[Proposal]:
        return [*self._propose_files(switches)]

    def describe(self, obstacles: Sequence[Obstacle]) -> tuple[str, list[int]]:
        """Say what is in the way of the first of some obstacles, and the lines where."""
        main = obstacles[0]
        lines = sorted({line for one in obstacles if one.key == main.key for line in one.lines})
        return self._describe_obstacle(main, lines), lines

    def load(self, state: FileState) -> Snapshot:
        """Return a file or a link in one of its states; what has no bytes is absent."""
        return Snapshot(self._replay.load(state.sha256)) if state.has_bytes else ABSENT

    # What the files are, and what they would be.

    def _switch_changes(self, was: frozenset[str], now: frozenset[str]) -> tuple[list[FileSwitch], list[Obstacle]]:
        return self._switch_files(self._timeline.files_of(was ^ now), was, now)

    def _switch_files(
        self, files: Iterable[FileTrail], was: ActiveEntries, now: ActiveEntries
    ) -> tuple[list[FileSwitch], list[Obstacle]]:
        switches, obstacles = list[FileSwitch](), list[Obstacle]()
        for file in files:
            self._notice_outside_edit(file)
            old, _ = self._replay.state_of(file, was)
            new, left_out = self._replay.state_of(file, now)
            if not left_out and (old.key, old.sha256, old.mode) == (new.key, new.sha256, new.mode):
                if self._whole and old.version != new.version:
                    switches.append(FileSwitch(file=file, old=old, new=new))
                    continue
                if self._whole and old.is_directory:
                    continue
                if not old.key and not _last_real_step(file, now):
                    continue  # it is not there either way, and nothing keeps it away
                left_out = [_hiding_step(file, now)]
            obstacles += left_out or self._find_taken_name(file, old, new, now)
            switches.append(FileSwitch(file=file, old=old, new=new))
        return switches, obstacles

    def _notice_outside_edit(self, file: FileTrail) -> None:
        """Add what another program did to a file since the ledger last knew it."""
        key = file.find_key(self._timeline.active)
        if id(file) in self._seen or not key:
            return
        self._seen.add(id(file))
        known = self._timeline.heads.get(key)
        if self._whole and known:
            self._notice_entry(file, key, known)
            return
        current = self._read_current(key)
        self._replay.note_current(current)
        if known and current.sha256 != known.sha256:
            self._refuse_newer_head(key, current)
            if current.exists:
                self._replay.keep(current.data)
            to_key = key if current.exists else ""
            file.steps.append(outside_step(key, to_key, known, current.version))

    def _notice_entry(self, file: FileTrail, key: str, known: Version) -> None:
        """Add what another program did to an entry of any kind; no link is followed."""
        entry = self._workspace.read_entry(key)
        found = entry.version if entry else None
        if found is not None and (found.kind, found.sha256 or known.sha256) == (known.kind, known.sha256):
            return
        self._refuse_newer_head(key, Snapshot(entry.data) if entry and found and found.kind == "file" else ABSENT)
        if entry:
            self._replay.keep(entry.data)
        file.steps.append(outside_step(key, key if entry else "", known, found))

    def _refuse_newer_head(self, key: str, current: Snapshot) -> None:
        """Refuse if the ledger already has these bytes: they are not an outside edit, and the history must be read again."""
        head = self._workspace.store.head_of(key)
        if head and (head.version.sha256 if head.version else "") == current.sha256:
            raise StaleFile(f"`{key}` was changed while its history was read.", path=key)

    def _read_current(self, key: str) -> Snapshot:
        try:
            return self._workspace.read(key)
        except NotFound:
            return ABSENT

    def _find_taken_name(self, file: FileTrail, old: FileState, new: FileState, now: ActiveEntries) -> list[Obstacle]:
        """Find what has the name that a file would get: another file of the history, or something that it does not know."""
        timeline, key = self._timeline, new.key
        if not key or key == old.key:
            return []
        if key in timeline.found:
            self._notice_outside_edit(timeline.found[key])
        if timeline.has_other_at(key, file, now):
            if self._whole and new.is_directory and self._is_directory(key):
                return []
            return [Obstacle(change_id=timeline.placed_by.get(key, OUTSIDE), key=key, kind="taken")]
        if key in timeline.found and timeline.found[key].find_key(timeline.active) == key:
            return []  # that file gets another name as well
        if self._whole:
            entry = self._workspace.read_entry(key)
            is_free = entry is None or (new.is_directory and entry.version.kind == "directory")
            return [] if is_free else [Obstacle(change_id=OUTSIDE, key=key, kind="taken")]
        try:
            self._refuse_newer_head(key, self._workspace.read(key))
        except NotAFile:
            return [Obstacle(change_id=OUTSIDE, key=key, kind="directory")]
        except NotFound:
            return []
        return [Obstacle(change_id=OUTSIDE, key=key, kind="taken")]

    def _is_directory(self, key: str) -> bool:
        entry = self._workspace.read_entry(key)
        return entry is not None and entry.version.kind == "directory"

    # What must come first.

    def _explain_obstacles(
        self, change_id: str, obstacles: Sequence[Obstacle], operation: UndoOperation
    ) -> UndoConflict:
        first, outside = self._find_prerequisites(change_id, obstacles)
        main = outside or obstacles[0]
        verb = "taken back" if operation == "undo" else "made again"
        lines = sorted({line for one in (main, *obstacles) if one.key == main.key for line in one.lines})
        message = f"`{main.key}` cannot be {verb}: {self._describe_obstacle(main, lines)}."
        details: dict[str, Any] = {"lines": lines} if lines else {}
        if outside:
            return UndoConflict(message, path=main.key, action=outside_advice(outside), **details)
        if first:
            details["later"] = [root for _, root in first]
            action = _advise_commands(first, instead=self._reaches(change_id, first))
            return UndoConflict(message, path=main.key, action=action, **details)
        since = self._timeline.began(change_id)
        return UndoConflict(message, path=main.key, action=since_advice(since), since=since, **details)

    def _find_prerequisites(
        self, change_id: str, obstacles: Sequence[Obstacle]
    ) -> tuple[list[UndoCommand], Obstacle | None]:
        """Return the commands to give first, in this order; or the outside edit that none of them gets around."""
        timeline = self._timeline
        root = timeline.root_of(change_id)
        switched, outside = {root}, None
        while obstacles:
            outside = next((one for one in obstacles if one.change_id == OUTSIDE), None)
            blamed = {timeline.root_of(one.change_id) for one in obstacles}
            if outside or blamed <= switched:
                break
            switched |= blamed
            _, obstacles = self._switch_changes(timeline.active, timeline.active ^ timeline.entries_of(*switched))
        newest = {timeline.root_of(change.id): number for number, change in enumerate(timeline.changes)}
        order = sorted(switched - {root, OUTSIDE}, key=lambda one: newest[one], reverse=True)
        for candidate in (order, timeline.switched_since(change_id)):
            if len(candidate) <= _TRIED_SWITCHES and (commands := self._try_commands(candidate, root)):
                return commands, None
        _, obstacles = self._switch_changes(timeline.active, timeline.active_before(change_id))
        return [], next((one for one in obstacles if timeline.is_outside(one.change_id)), None)

    def _try_commands(self, roots: Sequence[str], last: str) -> list[UndoCommand]:
        """Switch changes one after the other in memory, and one at last; return the commands, none if one is refused."""
        timeline, commands = self._timeline, list[UndoCommand]()
        active = timeline.active
        for root in roots:
            verb, now = timeline.switch_change(active, root)
            if not verb or self._switch_changes(active, now)[1]:
                return []
            commands.append((verb, root))
            active = now
        if self._reaches(last, commands):
            return commands
        return commands if not self._switch_changes(active, active ^ timeline.entries_of(last))[1] else []

    def _reaches(self, change_id: str, commands: Sequence[UndoCommand]) -> bool:
        """Tell whether some commands already switch a change, since one of them takes back what had switched it."""
        timeline, active = self._timeline, self._timeline.active
        for _, root in commands:
            _, active = timeline.switch_change(active, root)
        entries = timeline.entries_of(timeline.root_of(change_id))
        return entries & active == entries - timeline.active

    def _describe_obstacle(self, obstacle: Obstacle, lines: Sequence[int]) -> str:
        numbers = ", ".join(map(str, lines))
        if self._timeline.is_outside(obstacle.change_id):
            return {
                "lines": f"an outside edit touches the same lines ({numbers})",
                "changed": "it was changed outside of Surehold",
                "moved": "it was moved outside of Surehold",
                "removed": "it was removed outside of Surehold",
                "taken": "a file that was made outside of Surehold has that name now",
                "directory": "a directory has that name now",
            }[obstacle.kind]
        return {
            "lines": f"later changes touch the same lines ({numbers})",
            "changed": "it was changed later",
            "moved": "it was moved later",
            "removed": "it was deleted later",
            "taken": "another file has that name now",
            "directory": "a directory has that name now",
        }[obstacle.kind]

    # What to write.

    def _propose_files(self, switches: Sequence[FileSwitch]) -> Iterable[Proposal]:
        if self._whole:
            yield from map(self._propose_entry, switches)
            return
        uses = Counter(key for one in switches for key in one.keys)
        shared = [one for one in switches if any(uses[key] > 1 for key in one.keys)]
        for one in switches:
            if one not in shared:
                yield self._propose_file(one)
        # A name that one file leaves and another gets: each name for itself, since a call names each only once.
        for key in sorted({key for one in shared for key in one.keys}):
            old = next((one.old for one in shared if one.old.key == key), FileState())
            new = next((one.new for one in shared if one.new.key == key), FileState())
            lives_on = any(one.old == old and one.new.key for one in shared)
            yield self._propose_name(key, old, new, permanent=lives_on)

    def _propose_entry(self, switch: FileSwitch) -> Proposal:
        old, new = switch.old, switch.new
        data = self._replay.load(new.sha256) if new.has_bytes and old.sha256 != new.sha256 else b""
        whole = EntrySwitch(old_key=old.key, old=old.version, new_key=new.key, new=new.version, data=data)
        return Proposal(path=old.key or new.key, edit=Keep(), proof=Unproven(), whole=whole)

    def _propose_file(self, switch: FileSwitch) -> Proposal:
        old, new = switch.old, switch.new
        if not old.key or not new.key:
            return self._propose_name(old.key or new.key, old, new)
        edit = Keep() if old.sha256 == new.sha256 else WriteBytes(self._replay.load(new.sha256))
        to_path, mode = new.key if new.key != old.key else "", new.mode if new.mode != old.mode else None
        return Proposal(path=old.key, to_path=to_path, edit=edit, proof=Sha256(old.sha256), mode=mode)

    def _propose_name(self, key: str, old: FileState, new: FileState, *, permanent: bool = False) -> Proposal:
        if not new.key:
            return Proposal(path=key, edit=Delete(), proof=Sha256(old.sha256), permanent=permanent)
        data = self._replay.load(new.sha256)
        if old.key:
            mode = new.mode if new.mode != old.mode else None
            return Proposal(path=key, edit=WriteBytes(data), proof=Sha256(old.sha256), mode=mode)
        meta = new.version.meta if new.version else None
        return Proposal(path=key, edit=WriteBytes(data), proof=Absent(), restore=Snapshot(data, meta=meta))


def _advise_commands(commands: Sequence[UndoCommand], *, instead: bool) -> str:
    shown, rest = commands[:_LISTED_COMMANDS], len(commands) - _LISTED_COMMANDS
    words = [undo_command(root) if verb == "undo" else redo_command(root) for verb, root in shown]
    more = f", and {rest} more" if rest > 0 else ""
    listed = spell("{}{}", spell(", ".join(["{}"] * len(words)), *words), more)
    return spell("Instead, in this order: {}.", listed) if instead else spell("First, in this order: {}.", listed)


def since_advice(since: str) -> str:
    command = SpelledText(f"surehold undo --since {since}", f'workspace.undo(since="{since}")')
    return spell("Together with everything after it: {}", command)


def _hiding_step(file: FileTrail, active: ActiveEntries) -> Obstacle:
    """Return the last step of a file that turns out the same with and without an earlier one."""
    step = _last_real_step(file, active) or file.steps[-1]
    kind = "removed" if step.after is None else "moved" if step.key != step.to_key else "changed"
    return Obstacle(change_id=step.change_id, key=step.key, kind=kind)


def _last_real_step(file: FileTrail, active: ActiveEntries) -> FileStep | None:
    """Return the last step in effect that did more than to change a mode outside."""
    real = (step for step in reversed(file.steps) if step.entry_name in active and not step.is_outside_mode)
    return next(real, None)


def outside_advice(obstacle: Obstacle) -> str:
    key = obstacle.key
    match obstacle.kind:
        case "taken" | "directory":
            return f"Move `{key}` away first."
        case "removed":
            return f"`surehold diff {key}` shows what it held; bring the file back first."
        case "changed":
            return f"`surehold revert {key}` removes the outside edit; `surehold read {key} --before CHANGE` has the earlier bytes."
        case _:
            return f"`surehold diff {key}` shows the outside edit; bring those lines back by hand first."

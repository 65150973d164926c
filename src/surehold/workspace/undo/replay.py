"""What a file would be with other changes in effect than now: its steps are made again, one after the other.

While a text differs from the one that a step was made to, it is carried along by the lines that differ; its bytes are put
together when the last step is made.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from surehold.errors import NotFound
from surehold.text.carry import CarriedText, LineHunk, find_line_hunks
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.snapshot import Snapshot, Version, sha256_hex
from surehold.workspace.undo.timeline import OUTSIDE, ActiveEntries, FileStep, FileTrail

_CARRIED = "carried"
"""The name of a text that is carried along, until its bytes are needed."""
_NOTED_BYTES = 8 << 20

_ReplayKey = tuple[int, int, frozenset[str]]
"""What a replay depends on: the file, how many steps it has, and which entries about it are in effect."""

ObstacleKind = Literal["lines", "changed", "moved", "removed", "taken", "directory"]


class FileState(NamedTuple):
    """Which name and which bytes a file has; neither when there is none."""

    key: str = ""
    version: Version | None = None

    @property
    def sha256(self) -> str:
        return self.version.sha256 if self.version else ""

    @property
    def mode(self) -> int | None:
        return self.version.mode if self.version else None

    @property
    def is_directory(self) -> bool:
        return self.version is not None and self.version.kind == "directory"

    @property
    def has_bytes(self) -> bool:
        return self.version is not None and self.version.kind in {"file", "link"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A later change that cannot be made without an earlier one, or a file that has a name which another needs."""

    change_id: str
    key: str
    kind: ObstacleKind
    lines: tuple[int, ...] = ()


class _WrongDiff(Exception):
    """A diff in the ledger does not lead from the bytes before a change to those after it."""


class FileReplay:
    """Makes the steps of files again; the bytes that come out are kept for as long as this object lives."""

    def __init__(self, read_blob: Callable[[str], bytes]) -> None:
        self._read_blob = read_blob
        self._made: dict[str, bytes] = {}
        self._noted_bytes = 0
        self._states: dict[_ReplayKey, tuple[FileState, list[Obstacle]]] = {}
        self._merged: dict[tuple[str, str, str], str | MergeConflict] = {}
        self._hunks: dict[tuple[str, str], tuple[LineHunk, ...]] = {}
        self._carried: CarriedText | None = None
        self._base = ""
        """What the text that is carried along differs from."""
        self._trusts_diffs = True

    def note_current(self, current: Snapshot) -> None:
        """Keep what a file holds now, as long as that is little: it need not be read again."""
        if current.exists and self._noted_bytes + current.size <= _NOTED_BYTES:
            self._noted_bytes += current.size
            self._made[current.sha256] = current.data

    def keep(self, data: bytes) -> str:
        """Keep bytes that the history does not have, and return their name."""
        name = sha256_hex(data)
        self._made[name] = data
        return name

    def load(self, sha256: str) -> bytes:
        return self._made[sha256] if sha256 in self._made else self._read_blob(sha256)

    def state_of(self, file: FileTrail, active: ActiveEntries) -> tuple[FileState, list[Obstacle]]:
        """Return what a file is with these changes in effect, and the steps that had to be left out."""
        key = id(file), len(file.steps), file.own_of(active)
        if key not in self._states:
            self._states[key] = self._replay_steps(file, key[-1], stop_at=None)
        return self._states[key]

    def leaves_out(self, file: FileTrail, active: ActiveEntries) -> bool:
        """Tell whether a step would have to be left out; those that come after the first such one are not looked at."""
        key = id(file), len(file.steps), file.own_of(active)
        found = self._states.get(key) or self._replay_steps(file, key[-1], stop_at=1)
        if not found[1]:
            self._states[key] = found
        return bool(found[1])

    def _replay_steps(
        self, file: FileTrail, active: frozenset[str], *, stop_at: int | None
    ) -> tuple[FileState, list[Obstacle]]:
        try:
            return self._make_steps(file, active, stop_at)
        except _WrongDiff:  # the bytes that are recorded count, not the words about them
            self._trusts_diffs = False
            self._hunks.clear()
            return self._make_steps(file, active, stop_at)

    def _make_steps(
        self, file: FileTrail, active: frozenset[str], stop_at: int | None
    ) -> tuple[FileState, list[Obstacle]]:
        """Make the steps in effect, up to the one with which so many had to be left out."""
        state, left_out = FileState(key=file.key, version=file.version), list[Obstacle]()
        steps, places = file.steps, {id(step): place for place, step in enumerate(file.steps)}
        self._carried, at = None, 0
        for step in file.list_steps(active):
            place = places.get(id(step), at)
            if state.version and state.version.sha256 == _CARRIED:
                self._skip_steps(one for one in steps[at:place] if one.entry_name not in active)
            at = place
            match self._make_step(state, step):
                case FileState() as state:
                    pass
                case obstacle:
                    left_out.append(obstacle)
                    if len(left_out) == stop_at:
                        return state, left_out
        version = self._put_together(state.version) if state.version else None
        return state._replace(version=version), left_out

    def _make_step(self, state: FileState, step: FileStep) -> FileState | Obstacle:
        if step.before is None:
            version = state.version if step.returns and state.version else step.after  # what is there need not return
            return FileState(key=step.to_key, version=version)
        if state.version is None and step.is_outside_mode:
            return state  # its mode alone
        if state.version is None and step.outside and step.after is None:
            return state  # another program removed what is not there now
        if state.version is None and step.after and step.before.kind == step.after.kind == "directory":
            return FileState(key=step.to_key, version=step.after)  # others have put something into it since
        if state.version is None:
            return Obstacle(change_id=step.change_id, key=step.key, kind="changed" if step.after else "removed")
        if step.after is None:
            return FileState()
        moves = step.key != step.to_key
        if moves and state.key != step.key:
            return Obstacle(change_id=step.change_id, key=step.key, kind="moved")
        version = self._merge_versions(step.before, state.version, step.after, step.diff)
        if isinstance(version, MergeConflict):
            kind: ObstacleKind = "lines" if version.lines else "changed"
            return Obstacle(change_id=step.change_id, key=step.to_key, kind=kind, lines=version.lines)
        version = _merge_modes(step.before, state.version, version)
        if version is None and step.change_id != OUTSIDE:
            return Obstacle(change_id=step.change_id, key=step.to_key, kind="changed")
        return FileState(key=step.to_key if moves else state.key, version=version or step.after)

    def _merge_versions(self, base: Version, ours: Version, theirs: Version, diff: str) -> Version | MergeConflict:
        if not base.kind == ours.kind == theirs.kind == "file":
            return _merge_kinds(base, ours, theirs)
        if base.sha256 == ours.sha256:
            return theirs
        if base.sha256 == theirs.sha256:
            return replace(theirs, sha256=ours.sha256, size=ours.size)
        change = self._find_change(base, ours, theirs, diff) if _merge_modes(base, ours, theirs) else None
        if self._carried and change and self._carried.make_change(change):
            self._base = theirs.sha256
            return theirs if self._carried.is_base else Version(sha256=_CARRIED, size=0, meta=theirs.meta)
        names = base.sha256, self._put_together(ours).sha256, theirs.sha256
        if names not in self._merged:
            merged = self._merge_texts(names)
            self._merged[names] = merged if isinstance(merged, MergeConflict) else self.keep(merged)
        match self._merged[names]:
            case str(sha256):
                return Version(sha256=sha256, size=len(self.load(sha256)), meta=theirs.meta)
            case conflict:
                self._skip_change(change, theirs)  # the next step was made to what this one left
                return conflict

    def _merge_texts(self, names: tuple[str, str, str]) -> bytes | MergeConflict:
        try:
            return merge_changes(*(Snapshot(self.load(name)) for name in names))
        except NotFound:  # a command left it, and it was too large to be stored as well
            return MergeConflict()

    # Texts that are carried along.

    def _find_change(self, base: Version, ours: Version, theirs: Version, diff: str) -> tuple[LineHunk, ...]:
        """Return which lines a step changed, with the text carried up to there; none if only a merge can tell."""
        if self._carried is None or ours.sha256 != _CARRIED or self._base != base.sha256:
            hunks = self._hunks_between(base.sha256, self._put_together(ours).sha256)
            if not hunks:
                return ()
            self._carried, self._base = CarriedText.from_base(self.load(base.sha256), hunks), base.sha256
        return self._hunks_between(base.sha256, theirs.sha256, diff)

    def _skip_steps(self, steps: Iterable[FileStep]) -> None:
        """Follow what the next step was made to over steps that are not made."""
        for step in steps:
            before, after = step.before, step.after
            if before and after and before.sha256 == self._base and before.kind == after.kind == "file":
                self._skip_change(self._hunks_between(before.sha256, after.sha256, step.diff), after)

    def _skip_change(self, change: Sequence[LineHunk] | None, after: Version) -> None:
        if self._carried and change:
            self._carried.skip_change(change)
            self._base = after.sha256

    def _hunks_between(self, before: str, after: str, diff: str = "") -> tuple[LineHunk, ...]:
        names = before, after
        if names not in self._hunks:
            told = self._carried.read_change(diff) if diff and self._carried and self._trusts_diffs else ()
            self._hunks[names] = told or self._compare_texts(names)
        return self._hunks[names]

    def _compare_texts(self, names: tuple[str, str]) -> tuple[LineHunk, ...]:
        try:
            return find_line_hunks(*map(self.load, names))
        except NotFound:
            return ()

    def _put_together(self, version: Version) -> Version:
        """Return a version with the name of its bytes."""
        if version.sha256 != _CARRIED or self._carried is None:
            return version
        if sha256_hex(self._carried.base_to_bytes()) != self._base:
            raise _WrongDiff
        data = self._carried.to_bytes()
        return replace(version, sha256=self.keep(data), size=len(data))


def _merge_kinds(base: Version, ours: Version, theirs: Version) -> Version | MergeConflict:
    """Return what two changes of a link, a directory or a FIFO come to, if one of them changed nothing of it."""
    if (base.kind, base.sha256) == (ours.kind, ours.sha256):
        return theirs
    if (base.kind, base.sha256) == (theirs.kind, theirs.sha256):
        return ours
    return MergeConflict()


def _merge_modes(base: Version, ours: Version, theirs: Version) -> Version | None:
    """Return the later version with the mode that both changes come to; None if they disagree."""
    if theirs.meta is None or ours.mode is None or base.mode == ours.mode:
        return theirs
    return replace(theirs, meta=replace(theirs.meta, mode=ours.mode)) if base.mode == theirs.mode else None

"""Which lines of the file an operation means.

1. What a caller sends was copied from a version that it was shown: the newest one in which all of it fits.
2. From that version the lines are carried to the file as it is now, by two proofs that agree (see relocate).
3. Where another version that was shown would lead to other lines, nothing is decided.
4. What was never shown is looked up in the file as it is now. A session that was shown other versions of it gets
   only lines that are unique there: a number or an occurrence may be one of a version that is not known any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from surehold.text.anchor_index import IndexedVersion, Shown
from surehold.text.anchor_reading import LEVELS, Level, Pointer, Reading, read, tail_of
from surehold.text.plan import Carried
from surehold.text.relocate import LineRange, Lost, Moved, relocate
from surehold.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The version that an operation was written for, and what its pointers mean there."""

    version: IndexedVersion
    readings: tuple[Reading, ...]

    @property
    def block(self) -> LineRange:
        """The lines that must be intact: from the first to the last that is named or meant."""
        named = [line for reading in self.readings for line in (reading.line, reading.target)]
        return LineRange(start=min(named), end=max(named) + 1)

    def placed_as(self, other: "Home") -> "Home":
        """Return the same lines, whose position was said right in another version."""
        pairs = zip(self.readings, other.readings, strict=True)
        return replace(self, readings=tuple(replace(mine, placed=mine.placed or its.placed) for mine, its in pairs))

    @property
    def targets(self) -> tuple[int, ...]:
        """The lines that are meant, in this version."""
        return tuple(reading.target for reading in self.readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The lines are these, in the file as it is now: 0-based."""

    targets: tuple[int, ...]
    level: Level
    home: Home
    carried: Carried | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """No line can be proven to be the one that is meant."""

    pointer: Pointer
    was: tuple[IndexedVersion, int] | None
    """Where it stood when it was shown."""
    reason: Literal["gone", "changed", "ambiguous", "disagree", "offset", "text", "versions"]
    home: Home | None = None
    """The version it was found in, and from which it could not be carried over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """Several lines could be meant."""

    pointer: Pointer
    lines: tuple[int, ...]
    reason: Literal["several_lines", "occurrence_out_of_range", "contradiction", "versions_disagree"]


Resolution = Found | tuple[Missing | Ambiguous, ...]


class Resolver:
    """Resolves all operations of a call on one file."""

    def __init__(
        self, live: Snapshot, shown: Sequence[Shown], buckets: frozenset[int], *, forgotten: bool = False
    ) -> None:
        self._forgotten = forgotten
        texts = [each for each in shown if each.snapshot.exists and each.snapshot.is_text]
        same = [each.snapshot == live for each in texts]
        self.live = IndexedVersion(live, [each for each, is_live in zip(texts, same, strict=True) if is_live], buckets)
        self.shown = [
            self.live if is_live else IndexedVersion(each.snapshot, (each,), buckets)
            for each, is_live in zip(texts, same, strict=True)
        ]

    def resolve(self, wanted: Sequence[tuple[Pointer, ...]]) -> list[Resolution]:
        """Find the lines of every operation; pointers of one operation belong to one version."""
        homes = [self._home(pointers) for pointers in wanted]
        rivals = [self._rivals(pointers, home) for pointers, home in zip(wanted, homes, strict=True)]
        places = self._carry([home for group in zip(homes, rivals, strict=True) for home in (group[0], *group[1])])
        return [
            self._resolution(pointers, home, others, places)
            for pointers, home, others in zip(wanted, homes, rivals, strict=True)
        ]

    def _home(self, pointers: tuple[Pointer, ...]) -> Home | None:
        weak: Home | None = None
        for version in self.shown:
            readings = [read(version, pointer, shown_only=True) for pointer in pointers]
            found = tuple(reading for reading in readings if isinstance(reading, Reading))
            if len(found) < len(pointers):
                if "unclear" in readings and weak is None:
                    return None
                continue
            home = Home(version=version, readings=found)
            if all(reading.exact for reading in found):
                if weak is None or self._was_one_of_several(pointers, weak, version):
                    return home
                return weak.placed_as(home)
            if weak is None:
                weak = home
        if weak is not None:
            return weak
        moved_on = self._forgotten or any(version is not self.live for version in self.shown)
        if moved_on and any(len(self.live.candidates(p.anchor.hash, tail_of(p))) > 1 for p in pointers):
            return None
        final = [read(self.live, pointer, shown_only=False) for pointer in pointers]
        found = tuple(reading for reading in final if isinstance(reading, Reading))
        return Home(version=self.live, readings=found) if len(found) == len(pointers) else None

    def _was_one_of_several(self, pointers: tuple[Pointer, ...], weak: Home, older: IndexedVersion) -> bool:
        """Tell whether the copied number once told equal lines apart, of which only one is left."""
        return any(
            not reading.exact and len(older.candidates(pointer.anchor.hash, tail_of(pointer))) > 1
            for pointer, reading in zip(pointers, weak.readings, strict=True)
        )

    def _rivals(self, pointers: tuple[Pointer, ...], home: Home | None) -> tuple[Home, ...]:
        """Return what the same words mean in other versions that were shown, where the file has several such lines."""
        if home is None:
            return ()
        if not any(map(_is_counted, pointers)):  # what was counted may have been counted in any version
            if all(len(self.live.candidates(p.anchor.hash, tail_of(p))) < 2 for p in pointers):  # noqa: PLR2004
                return ()
            if home.version.knows_anchors and all(reading.placed for reading in home.readings):
                return ()  # these very anchors were shown last in this version
        others = list[Home]()
        for version in self.shown:
            readings = [read(version, pointer, shown_only=True) for pointer in pointers]
            exact = tuple(r for r in readings if isinstance(r, Reading) and r.exact)
            if version is home.version or len(exact) < len(pointers):
                continue
            rival = Home(version=version, readings=exact)
            is_same = rival.targets == home.targets and all(version.unmoved(t, home.version) for t in rival.targets)
            if not is_same:
                others.append(rival)
        return tuple(others)

    def _carry(self, homes: Sequence[Home | None]) -> dict[tuple[int, LineRange], Moved | Lost]:
        """Carry the blocks of all homes to the file as it is now; every version is aligned once."""
        by_version = dict[int, tuple[IndexedVersion, dict[LineRange, None]]]()
        for home in homes:
            if home is not None and home.version is not self.live:
                by_version.setdefault(id(home.version), (home.version, {}))[1][home.block] = None
        places = dict[tuple[int, LineRange], Moved | Lost]()
        for key, (version, blocks) in by_version.items():
            found = relocate(version.snapshot.lines.raw, self.live.snapshot.lines.raw, list(blocks))
            places.update(((key, block), place) for block, place in zip(blocks, found, strict=True))
        return places

    def _resolution(
        self,
        pointers: tuple[Pointer, ...],
        home: Home | None,
        rivals: tuple[Home, ...],
        places: dict[tuple[int, LineRange], Moved | Lost],
    ) -> Resolution:
        if home is None:
            return self._failures(pointers)
        here = self._place(home, places)
        if isinstance(here, Lost):
            first = home.readings[0].target
            return (Missing(pointer=pointers[0], was=(home.version, first), reason=here.reason, home=home),)
        for rival in rivals:
            there = self._place(rival, places)
            if isinstance(there, Lost) and any(map(_is_counted, pointers)):
                was = (rival.version, rival.readings[0].target)  # it may have been counted there, where lines changed
                return (Missing(pointer=pointers[0], was=was, reason=there.reason, home=rival),)
            if not isinstance(there, Lost) and _targets(rival, there) != _targets(home, here):
                lines = sorted({*_targets(rival, there), *_targets(home, here)})
                return (Ambiguous(pointer=pointers[0], lines=tuple(lines), reason="versions_disagree"),)
        carried = None
        if here is not None:
            start, shift = home.block.start, here.shift
            carried = Carried(
                from_line=start + 1, to_line=start + shift + 1, evidence=here.evidence, context=here.context
            )
        return Found(
            targets=_targets(home, here),
            level=self._level(pointers, home),
            home=home,
            carried=carried,
        )

    def _place(self, home: Home, places: dict[tuple[int, LineRange], Moved | Lost]) -> Moved | Lost | None:
        return None if home.version is self.live else places[id(home.version), home.block]

    def _level(self, pointers: tuple[Pointer, ...], home: Home) -> Level:
        """Return the last rung that was needed; between several lines of today, the shown context decided."""
        levels = list[Level]()
        for pointer, reading in zip(pointers, home.readings, strict=True):
            several = len(self.live.candidates(pointer.anchor.hash, tail_of(pointer))) > 1
            by_context = home.version is not self.live and several and not reading.placed
            levels.append("context" if by_context else reading.level)
        return max(levels, key=LEVELS.index)

    def _failures(self, pointers: tuple[Pointer, ...]) -> tuple[Missing | Ambiguous, ...]:
        to_blame = [each for each in pointers if len(pointers) == 1 or self._home((each,)) is None]
        if to_blame:
            return tuple(self._failure(pointer) for pointer in to_blame)
        start, *_ = pointers
        return (Missing(pointer=start, was=self._was(start), reason="versions"),)

    def _failure(self, pointer: Pointer) -> Missing | Ambiguous:
        lines = tuple(self.live.candidates(pointer.anchor.hash, tail_of(pointer)))
        if not lines:
            text = bool(self.live.candidates(pointer.anchor.hash))
            return Missing(pointer=pointer, was=self._was(pointer), reason="text" if text else "gone")
        nth = pointer.occurrence
        if nth is not None:
            if not 1 <= nth <= len(lines):
                return Ambiguous(pointer=pointer, lines=lines, reason="occurrence_out_of_range")
            fits = pointer.number is None or lines[nth - 1] == pointer.number - 1
            return Ambiguous(pointer=pointer, lines=lines, reason="several_lines" if fits else "contradiction")
        if pointer.anchor.offset and len(lines) == 1:
            return Missing(pointer=pointer, was=self._was(pointer), reason="offset")
        return Ambiguous(pointer=pointer, lines=lines, reason="several_lines")

    def _was(self, pointer: Pointer) -> tuple[IndexedVersion, int] | None:
        """Return where the line stood in the newest version that showed it."""
        for version in self.shown:
            if version is not self.live and (lines := version.displayed(pointer.anchor.hash)):
                return version, lines[0]
        return None


def _is_counted(pointer: Pointer) -> bool:
    """Tell whether a line is named by counting, without a number that was copied with its hash."""
    return bool(pointer.anchor.offset) or (pointer.occurrence is not None and pointer.number is None)


def _targets(home: Home, place: Moved | None) -> tuple[int, ...]:
    shift = place.shift if place is not None else 0
    return tuple(target + shift for target in home.targets)

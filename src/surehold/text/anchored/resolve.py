"""Which lines of the file an operation means.

1. What a caller sends was copied from a version that it was shown: the newest one in which all of it fits.
2. From that version the lines are carried to the current file, by two proofs that agree (see `relocate`).
3. If another version that was shown leads to other lines, nothing is decided.
4. Anchors that were never shown are looked up in the current file, and only a hash that is unique there is taken: a
   number, an occurrence or an offset may come from a version that is not known, such as one before a restart. A caller
   who names the version by its sha256 was shown the current file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import get_args

from surehold.text.anchored.anchor import AnchorMeaning, Doubt, LinePointer, ResolutionLevel, named_lines, read_pointer
from surehold.text.anchored.lines import CONTEXT_DIGITS, SHORT_HASH_DIGITS, IndexedVersion, ShownVersion
from surehold.text.plan import RebaseEvidence
from surehold.text.relocate import LineBlock, LostLines, MovedLines, relocate_lines
from surehold.text.snapshot import Snapshot, digest_text


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeVersion:
    """The version that an operation was written for, and what its pointers mean there."""

    version: IndexedVersion
    readings: tuple[AnchorMeaning, ...]

    @property
    def block(self) -> LineBlock:
        """The lines that must be intact: from the first to the last that is named or meant."""
        named = [line for reading in self.readings for line in (reading.line, reading.target)]
        return LineBlock(start=min(named), end=max(named) + 1)

    def with_placement_of(self, other: "HomeVersion") -> "HomeVersion":
        """Return the same lines, whose position was said right in another version."""
        pairs = zip(self.readings, other.readings, strict=True)
        return replace(self, readings=tuple(replace(mine, placed=mine.placed or its.placed) for mine, its in pairs))

    @property
    def targets(self) -> tuple[int, ...]:
        """The lines that are meant, in this version."""
        return tuple(reading.target for reading in self.readings)

    @property
    def is_exact(self) -> bool:
        return all(reading.exact for reading in self.readings)


def _read_pointers(
    version: IndexedVersion, pointers: Sequence[LinePointer], *, shown_only: bool
) -> HomeVersion | Doubt | None:
    """Return what all pointers mean in a version; unclear, vague or None if one of them does not say it."""
    readings = [read_pointer(version, pointer, shown_only=shown_only) for pointer in pointers]
    found = tuple(reading for reading in readings if isinstance(reading, AnchorMeaning))
    if len(found) == len(pointers):
        return HomeVersion(version=version, readings=found)
    doubts = set(readings)
    return "unclear" if "unclear" in doubts else "vague" if "vague" in doubts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLines:
    """The lines are these, in the file as it is now: 0-based."""

    targets: tuple[int, ...]
    level: ResolutionLevel
    home: HomeVersion
    carried: RebaseEvidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnclearLine:
    """No line can be proven to be the one that is meant."""

    pointer: LinePointer
    reason: str
    """Of a line that is not there: gone, changed, ambiguous, disagree, offset, uncounted, text or versions; of several
    that could be meant: several_lines, not_shown, occurrence_out_of_range, contradiction or versions_disagree."""
    lines: tuple[int, ...] = ()
    """Those that could be meant; none if it is not there."""
    was: tuple[IndexedVersion, int] | None = None
    """Where it was when it was shown."""
    home: HomeVersion | None = None
    """The version it was found in, and from which it could not be carried over."""


Resolution = FoundLines | tuple[UnclearLine, ...]


class AnchorResolver:
    """Resolves all operations of a call on one file."""

    def __init__(
        self, live: Snapshot, shown: Sequence[ShownVersion], buckets: frozenset[int], *, is_named: bool = False
    ) -> None:
        """`is_named`: the caller said by its sha256 that it means the version that is there."""
        self.live = IndexedVersion(live, [each for each in shown if each.sha256 == live.sha256], buckets)
        self._shown, self._buckets, self._is_named = shown, buckets, is_named
        self._loaded = list[IndexedVersion | None]()
        self._places = dict[tuple[IndexedVersion, LineBlock], MovedLines | LostLines]()
        """Where blocks of earlier versions are in the file as it is now."""

    def shown_versions(self) -> Iterator[IndexedVersion]:
        """Yield the versions that were shown, newest first; an earlier one is loaded when it is first needed."""
        for number, each in enumerate(self._shown):
            if number == len(self._loaded):
                is_live = each.sha256 == self.live.snapshot.sha256
                self._loaded.append(self.live if is_live else self._load_version(each))
            if (version := self._loaded[number]) is not None:
                yield version

    def knows_hash(self, hash_: str) -> bool:
        """Tell whether a line of the file, or of a version that was shown, has this hash."""
        return any(version.lines_with_hash(hash_) for version in chain((self.live,), self.shown_versions()))

    def read_context(self, pointer: LinePointer) -> LinePointer:
        """Return a pointer that holds a context id in place of a hash as `hash@context`; any other as it is."""
        anchor = pointer.anchor
        is_offered = SHORT_HASH_DIGITS <= len(anchor.hash) <= CONTEXT_DIGITS and anchor.context is None
        if not is_offered or self.knows_hash(anchor.hash):
            return pointer
        for version in self.shown_versions():
            if len(found := version.lines_with_context(anchor.hash)) == 1:
                ((digest, context),) = found
                return replace(pointer, anchor=replace(anchor, hash=digest_text(digest), context=context))
        return pointer

    def _load_version(self, shown: ShownVersion) -> IndexedVersion | None:
        data = shown.load()
        if data is None or not (snapshot := Snapshot(data)).is_text:
            return None
        return IndexedVersion(snapshot, (shown,), self._buckets)

    def resolve_pointers(self, wanted: Sequence[tuple[LinePointer, ...]]) -> list[Resolution]:
        """Find the lines of every operation; pointers of one operation belong to one version."""
        homes = [self._find_home(pointers) for pointers in wanted]
        rivals = [self._find_rivals(pointers, home) for pointers, home in zip(wanted, homes, strict=True)]
        self._carry_blocks(home for home in chain(homes, *rivals) if home is not None)
        return [self._decide_resolution(*each) for each in zip(wanted, homes, rivals, strict=True)]

    def _find_home(self, pointers: tuple[LinePointer, ...]) -> HomeVersion | None:
        weak: HomeVersion | None = None
        is_vague = False
        for version in self.shown_versions():
            home = _read_pointers(version, pointers, shown_only=True)
            if not isinstance(home, HomeVersion):
                if home == "unclear" and weak is None:
                    return None
                is_vague = is_vague or (home == "vague" and weak is None)
                continue
            if home.is_exact:
                if weak is None or self._was_one_of_several(pointers, weak, version):
                    return home
                return weak.with_placement_of(home)
            if weak is None and not is_vague:  # a newer version had several such lines, and the number fits none
                weak = home
        if weak is not None or is_vague:
            return weak
        if not self._is_named and any(
            pointer.anchor.offset or len(named_lines(self.live, pointer)) > 1 for pointer in pointers
        ):
            return None
        home = _read_pointers(self.live, pointers, shown_only=False)
        return home if isinstance(home, HomeVersion) else None

    def _was_one_of_several(self, pointers: tuple[LinePointer, ...], weak: HomeVersion, older: IndexedVersion) -> bool:
        """Tell whether the copied number once told equal lines apart, of which only one is left."""
        return any(
            not reading.exact and len(named_lines(older, pointer)) > 1
            for pointer, reading in zip(pointers, weak.readings, strict=True)
        )

    def _find_rivals(self, pointers: tuple[LinePointer, ...], home: HomeVersion | None) -> tuple[HomeVersion, ...]:
        """Return what the same words mean in other versions that were shown, where the file has several such lines."""
        if home is None:
            return ()
        if not any(map(_is_counted, pointers)):  # what was counted may have been counted in any version
            if not any(len(named_lines(self.live, pointer)) > 1 for pointer in pointers):
                return ()
            if home.version.knows_anchors and all(reading.placed for reading in home.readings):
                return ()  # these very anchors were shown last in this version
        others = list[HomeVersion]()
        for version in self.shown_versions():
            rival = _read_pointers(version, pointers, shown_only=True)
            if version is home.version or not isinstance(rival, HomeVersion) or not rival.is_exact:
                continue
            is_same = rival.targets == home.targets and all(version.is_unmoved(t, home.version) for t in rival.targets)
            if not is_same:
                others.append(rival)
        return tuple(others)

    def _carry_blocks(self, homes: Iterable[HomeVersion]) -> None:
        """Carry the blocks of all homes to the file as it is now; every version is aligned once."""
        blocks = dict[IndexedVersion, dict[LineBlock, None]]()
        for home in homes:
            if home.version is not self.live:
                blocks.setdefault(home.version, {})[home.block] = None
        for version, wanted in blocks.items():
            found = relocate_lines(version.snapshot.lines.raw, self.live.snapshot.lines.raw, list(wanted))
            self._places.update(((version, block), place) for block, place in zip(wanted, found, strict=True))

    def _place_of(self, home: HomeVersion) -> MovedLines | LostLines | None:
        """Return where the lines are now; None if they were found in the file as it is now."""
        return None if home.version is self.live else self._places[home.version, home.block]

    def _decide_resolution(
        self, pointers: tuple[LinePointer, ...], home: HomeVersion | None, rivals: tuple[HomeVersion, ...]
    ) -> Resolution:
        if home is None:
            return self._explain_failures(pointers)
        here = self._place_of(home)
        if isinstance(here, LostLines):
            return (_lost_line(pointers[0], home, here),)
        targets = _shifted_targets(home, here)
        for rival in rivals:
            there = self._place_of(rival)
            if isinstance(there, LostLines):
                if any(map(_is_counted, pointers)):  # it may have been counted there, where lines changed
                    return (_lost_line(pointers[0], rival, there),)
            elif (others := _shifted_targets(rival, there)) != targets:
                lines = tuple(sorted({*others, *targets}))
                return (UnclearLine(pointer=pointers[0], lines=lines, reason="versions_disagree"),)
        carried = None
        if here is not None:
            start, shift = home.block.start, here.shift
            carried = RebaseEvidence(
                from_line=start + 1, to_line=start + shift + 1, evidence=here.evidence, context=here.context
            )
        return FoundLines(targets=targets, level=self._deciding_level(pointers, home), home=home, carried=carried)

    def _deciding_level(self, pointers: tuple[LinePointer, ...], home: HomeVersion) -> ResolutionLevel:
        """Return the last rung that was needed; between several lines of today, the shown context decided."""
        levels = list[ResolutionLevel]()
        for pointer, reading in zip(pointers, home.readings, strict=True):
            several = len(named_lines(self.live, pointer)) > 1
            by_context = home.version is not self.live and several and not reading.placed
            levels.append("context" if by_context else reading.level)
        return max(levels, key=get_args(ResolutionLevel).index)

    def _explain_failures(self, pointers: tuple[LinePointer, ...]) -> tuple[UnclearLine, ...]:
        to_blame = [each for each in pointers if len(pointers) == 1 or self._find_home((each,)) is None]
        if to_blame:
            return tuple(self._explain_failure(pointer) for pointer in to_blame)
        start, *_ = pointers
        return (UnclearLine(pointer=start, was=self._last_shown_at(start), reason="versions"),)

    def _explain_failure(self, pointer: LinePointer) -> UnclearLine:
        lines, nth = tuple(named_lines(self.live, pointer)), pointer.occurrence
        if not lines:
            reason = "text" if self.live.lines_with_hash(pointer.anchor.hash) else "gone"
            return UnclearLine(pointer=pointer, was=self._last_shown_at(pointer), reason=reason)
        if nth is None and pointer.anchor.offset and len(lines) == 1:
            if pointer.number in (None, lines[0] + 1) and not self.live.names_line(lines[0]):
                return UnclearLine(pointer=replace(pointer, number=lines[0] + 1), reason="uncounted")
            return UnclearLine(pointer=pointer, was=self._last_shown_at(pointer), reason="offset")
        unseen = not pointer.is_bare and not any(map(self.live.names_line, lines))
        reason = "not_shown" if unseen else "several_lines"
        if nth is not None and not 1 <= nth <= len(lines):
            reason = "occurrence_out_of_range"
        elif nth is not None and pointer.number not in (None, lines[nth - 1] + 1):
            reason = "contradiction"
        return UnclearLine(pointer=pointer, lines=lines, reason=reason)

    def _last_shown_at(self, pointer: LinePointer) -> tuple[IndexedVersion, int] | None:
        """Return where the line was in the newest version that showed it."""
        for version in self.shown_versions():
            if version is not self.live and (lines := version.shown_lines_with_hash(pointer.anchor.hash)):
                return version, lines[0]
        return None


def _lost_line(pointer: LinePointer, home: HomeVersion, lost: LostLines) -> UnclearLine:
    return UnclearLine(pointer=pointer, was=(home.version, home.targets[0]), reason=lost.reason, home=home)


def _is_counted(pointer: LinePointer) -> bool:
    """Tell whether a line is named by counting, without a number that was copied with its hash."""
    return bool(pointer.anchor.offset) or (pointer.occurrence is not None and pointer.number is None)


def _shifted_targets(home: HomeVersion, place: MovedLines | None) -> tuple[int, ...]:
    shift = place.shift if place is not None else 0
    return tuple(target + shift for target in home.targets)

"""What the words of a caller mean in one version of the file.

The rungs, in order: occurrence, a hash that only one line has, the very line number that was sent, the only line with
this hash that was shown. A number never decides by being near. An explicit context id stands for all of them.
"""

from dataclasses import dataclass, replace
from typing import Literal

from surehold.text.anchor import Anchor
from surehold.text.anchor_index import IndexedVersion
from surehold.text.rows import SHORT

Level = Literal["edge", "occurrence", "hash", "longer_hash", "line", "sighting", "context"]
LEVELS: tuple[Level, ...] = ("edge", "occurrence", "hash", "longer_hash", "line", "sighting", "context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Everything that an operation says about one line."""

    field: str
    anchor: Anchor
    occurrence: int | None = None
    number: int | None = None
    """1-based; copied with the hash, or given beside it."""

    @property
    def is_bare(self) -> bool:
        """Whether the hash is all there is."""
        return self.number is None and self.occurrence is None and self.anchor.context is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a pointer means in one version: 0-based."""

    line: int
    """The line that has the hash."""
    target: int
    """The line that is meant, which an offset may put elsewhere."""
    level: Level
    exact: bool
    """All that was sent fits; else the hash fits and the copied number does not."""
    placed: bool
    """The position was said too, not only the hash."""


def tail_of(pointer: Pointer) -> str | None:
    """Return the copied text of the line that has the hash; behind an offset it is that of another line."""
    return None if pointer.anchor.offset else pointer.anchor.tail


def read(version: IndexedVersion, pointer: Pointer, *, shown_only: bool) -> Reading | Literal["unclear"] | None:
    """Return what a pointer means in a version; None if it does not fit, unclear if it fits several shown lines."""
    found = _pick(version, pointer, shown_only=shown_only)
    if not isinstance(found, Reading):
        return found
    offset, tail = pointer.anchor.offset, pointer.anchor.tail
    if not offset:
        return found
    target = found.line + offset
    fits = 0 <= target < len(version) and (tail is None or version.says(target, tail))
    # An offset counts lines, so a number that does not fit means that it was counted elsewhere.
    return replace(found, target=target) if fits and found.exact else None


def _pick(version: IndexedVersion, pointer: Pointer, *, shown_only: bool) -> Reading | Literal["unclear"] | None:
    hash_, tail = pointer.anchor.hash, tail_of(pointer)
    lines = version.candidates(hash_, tail)
    if pointer.anchor.context is not None:
        return _by_context(version, pointer, lines)
    displayed = version.displayed(hash_, tail) if shown_only else lines
    if not lines or not displayed:
        return None
    if pointer.occurrence is not None:
        found = _by_occurrence(version, pointer, lines)
        if found is None or not shown_only or version.shows_anchor(found.line):
            return found
        # Somebody who counted may mean a line that was not shown among others that were.
        counted = pointer.number is None and any(version.shows_anchor(line) for line in displayed)
        return found if counted else None
    number = None if pointer.number is None else pointer.number - 1
    if number is not None and version.has(number, hash_, tail) and (not shown_only or version.shows_anchor(number)):
        return _reading(number, _hash_level(version, hash_) if len(lines) == 1 else "line", placed=True)
    if len(lines) == 1:
        return _reading(lines[0], _hash_level(version, hash_), exact=number is None)
    if pointer.anchor.line is not None:
        return None
    if shown_only and len(displayed) == 1:
        return _reading(displayed[0], "sighting", exact=number is None)
    return "unclear" if shown_only and pointer.is_bare else None


def _by_context(version: IndexedVersion, pointer: Pointer, lines: list[int]) -> Reading | None:
    same = [line for line in lines if version.context_id(line) == pointer.anchor.context]
    nth = pointer.occurrence
    if nth is not None:
        same = [line for line in same if 1 <= nth <= len(lines) and lines[nth - 1] == line]
    if pointer.number is not None and len(same) > 1:
        same = [line for line in same if line == pointer.number - 1]
    return _reading(same[0], "context", placed=True) if len(same) == 1 else None


def _by_occurrence(version: IndexedVersion, pointer: Pointer, lines: list[int]) -> Reading | None:
    nth = pointer.occurrence or 0
    if not 1 <= nth <= len(lines):
        return None
    line, number = lines[nth - 1], pointer.number
    if number is not None and number - 1 != line:
        # Both were copied together, or the number names another of these lines: they contradict each other.
        copied = pointer.anchor.line is not None and pointer.anchor.occurrence is not None
        if copied or version.has(number - 1, pointer.anchor.hash, tail_of(pointer)):
            return None
    return _reading(line, "occurrence", placed=True)


def _hash_level(version: IndexedVersion, hash_: str) -> Level:
    return "longer_hash" if len(hash_) > SHORT and len(version.candidates(hash_[:SHORT])) > 1 else "hash"


def _reading(line: int, level: Level, *, exact: bool = True, placed: bool = False) -> Reading:
    return Reading(line=line, target=line, level=level, exact=exact, placed=placed)

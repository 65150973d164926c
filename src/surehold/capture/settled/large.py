"""Files that are larger than what the history takes: they are named, and their earlier bytes are set aside.

Rules:
1. Nothing of them is read, since that would take long.
2. The change leaves them out, so that the rest of it can be undone.
3. Earlier bytes are where the note says, until a person removes them.
"""

import os

from surehold.capture.kept.keeper import Keeper
from surehold.capture.kept.occupants import FileBytes, Occupant
from surehold.capture.settled.present import PresentEntry

_ASIDE_FOLDER = "large-files"
_DIRECTORY_MODE = 0o700


class LargeFiles:
    """Names what became of large files."""

    def __init__(self, keeper: Keeper, limit: int) -> None:
        self._keeper, self._limit = keeper, limit
        self._aside: dict[tuple[int, int], str] = {}
        """Where the earlier bytes of a file are now."""

    def has(self, occupant: Occupant | None, entry: PresentEntry | None) -> bool:
        """Tell whether a path led to a large file, or leads to one now."""
        was = occupant is not None and occupant.facts.size > self._limit and occupant.facts.is_file
        return was or (entry is not None and entry.facts.size > self._limit and entry.facts.is_file)

    def name_change(self, path: bytes, occupant: Occupant | None, entry: PresentEntry | None) -> str:
        """Say that a change is not in the history, and where the earlier bytes are; return what kind of change it was."""
        if occupant is None and entry is not None:
            self._note(path, entry.facts.size, "it is new, and an undo leaves it there")
            return "created"
        assert occupant is not None
        size = max(occupant.facts.size, entry.facts.size if entry else 0)
        self._note(path, size, self._place_of(occupant))
        return "changed" if entry else "deleted"

    def name_move(self, source: bytes, occupant: Occupant, to: bytes, entry: PresentEntry) -> None:
        """Say that a large file has another name now."""
        size = max(occupant.facts.size, entry.facts.size)
        where = f"it is at {to!r} now, and an undo leaves it there"
        file = occupant.bytes_kept
        if file is not None and file.content is not None:
            where = f"{where}; {self._place_of(occupant)}"
        self._note(source, size, where)

    def _place_of(self, occupant: Occupant) -> str:
        file = occupant.bytes_kept
        if file is None or file.content is None:
            return "its content was not changed, and an undo leaves it as it is"
        try:
            return f"what it was before is in {self._set_aside(file)}"
        except OSError as error:
            return f"what it was before could not be set aside ({error.strerror})"

    def _set_aside(self, file: FileBytes) -> str:
        """Take a content out of the stash, to where it stays; return that path."""
        if known := self._aside.get(file.facts.identity):
            return known
        stash, content = self._keeper.stash, file.content
        assert content is not None
        place = f"{os.path.dirname(os.path.dirname(stash.folder))}/{_ASIDE_FOLDER}"
        if stash.files != stash.folder:  # on another file system
            place = f"{os.path.dirname(stash.files)}/.surehold-{_ASIDE_FOLDER}"
        os.makedirs(place, _DIRECTORY_MODE, exist_ok=True)
        path = f"{place}/{os.path.basename(stash.folder)}-{len(self._aside) + 1}"
        stash.take_out(content, file.facts, path)
        self._aside[file.facts.identity] = path
        return path

    def _note(self, path: bytes, size: int, where: str) -> None:
        self._keeper.add_note(path, f"it has {size} bytes, more than the history takes ({self._limit}): {where}")

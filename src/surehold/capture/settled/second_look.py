"""Looks again at everything that a command touched, as it is when the command has ended."""

import os
import stat
from contextlib import suppress

from surehold.capture.kept.keeper import UNLISTED, Keeper
from surehold.capture.kept.walk import DirectoryWalk
from surehold.capture.settled.present import PresentEntry, look_at_entry


def look_again(keeper: Keeper, walk: DirectoryWalk) -> dict[bytes, PresentEntry | None]:
    """Return what is at each path that was kept, and below directories that are new there; the keeper notes what is hidden."""
    return _SecondLook(keeper, walk).look()


class _SecondLook:
    def __init__(self, keeper: Keeper, walk: DirectoryWalk) -> None:
        self._keeper, self._walk = keeper, walk
        self._now: dict[bytes, PresentEntry | None] = {}
        self._real_directories: dict[bytes, bool] = {}

    def look(self) -> dict[bytes, PresentEntry | None]:
        self._open_directories()
        for path in list(self._keeper.occupants):
            if path not in self._now:
                self._look_at(path)
        for path, why in self._walk.missed.items():
            self._keeper.add_note(path, UNLISTED.format(why))
        return self._now

    def _open_directories(self) -> None:
        """Let ourselves into the directories of the paths, from the top, after a look at each that needs it."""
        above = set[bytes]()
        for path in self._keeper.occupants:
            directory = path
            while directory not in self._keeper.roots:
                directory = directory.rpartition(b"/")[0] or b"/"
                if directory in above or not self._keeper.covers(directory):
                    break
                above.add(directory)
        for directory in sorted(above):
            if os.access(directory, os.R_OK | os.X_OK) or not (entry := look_at_entry(directory)):
                continue
            with suppress(OSError):
                self._walk.open_directory(directory)
            if directory in self._keeper.occupants:
                self._now[directory] = entry
                self._look_below(directory, entry)

    def _look_at(self, path: bytes) -> PresentEntry | None:
        entry = self._now[path] = look_at_entry(path) if self._leads_there(path) else None
        if entry:
            self._look_below(path, entry)
        return entry

    def _look_below(self, path: bytes, entry: PresentEntry) -> None:
        """Look at everything in a directory that was not there, or was elsewhere, if only in between."""
        before = self._keeper.occupants.get(path)
        is_elsewhere = before is None or before.facts.identity != entry.facts.identity or path in self._keeper.renamed
        if entry.facts.is_directory and is_elsewhere:
            for below in self._walk.list_below(path):
                if below not in self._now:
                    self._now[below] = look_at_entry(below)

    def _leads_there(self, path: bytes) -> bool:
        """Tell whether every directory above a path is one, and no link has taken its place."""
        directory = path.rpartition(b"/")[0]
        if path in self._keeper.roots or not self._keeper.covers(directory):
            return True
        if directory not in self._real_directories:
            try:
                is_real = stat.S_ISDIR(os.lstat(directory).st_mode)
            except OSError:
                is_real = False
            self._real_directories[directory] = is_real and self._leads_there(directory)
        return self._real_directories[directory]

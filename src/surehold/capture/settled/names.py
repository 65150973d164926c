"""The names of hard-linked files, before the command and after it."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from surehold.capture.kept.keeper import Keeper
from surehold.capture.kept.occupants import Occupant
from surehold.capture.settled.present import PresentEntry, look_at_entry


class FileNames:
    """Which paths are names of one file. The roots are searched only if a file has more names than are known."""

    def __init__(self, keeper: Keeper, now: dict[bytes, PresentEntry | None], key_of: Callable[[bytes], str]) -> None:
        self._keeper, self._now, self._key_of = keeper, now, key_of
        self._before_groups: dict[int, list[bytes]] = {}
        self._now_groups: dict[tuple[int, int], list[bytes]] = {}
        self.outside: list[bytes] = []
        """Files that have names outside of the roots."""
        self._untouched: dict[bytes, PresentEntry | None] = {}
        """Names that the command did not change, of files to which it gave another one."""

    def find_all(self) -> None:
        """Find the names that no call of the command used, of files that it changed."""
        self._group_names()
        wanted = self._missing_names()
        if wanted:
            for path in self._scan_for(wanted):
                self._add_name(path)
            self._group_names()
            self.outside = [path for _, path in sorted(self._missing_names().items())]

    def _group_names(self) -> None:
        self._before_groups.clear()
        self._now_groups.clear()
        for path, occupant in self._keeper.occupants.items():
            if occupant and occupant.bytes_kept and occupant.bytes_kept.facts.links > 1:
                self._before_groups.setdefault(id(occupant.bytes_kept), []).append(path)
        for path, entry in (*self._now.items(), *self._untouched.items()):
            if entry and entry.facts.is_file and entry.facts.links > 1:
                self._now_groups.setdefault(entry.facts.identity, []).append(path)

    def _missing_names(self) -> dict[tuple[int, int], bytes]:
        """Return the files that have more names than are known, each with one of them."""
        missing: dict[tuple[int, int], bytes] = {}
        for occupant in self._keeper.occupants.values():
            file = occupant.bytes_kept if occupant else None
            if occupant and file and 1 < file.facts.links > len(self._before_groups[id(file)]):
                missing[occupant.facts.identity] = occupant.path
        for identity, paths in self._now_groups.items():
            entry, file = self._now.get(paths[0]), self._keeper.files.get(identity)
            stashed = 1 if file and file.content and file.content.is_link else 0
            if entry and entry.facts.links - stashed > len(paths):
                missing.setdefault(identity, paths[0])
        return missing

    def _scan_for(self, wanted: dict[tuple[int, int], bytes]) -> Iterator[bytes]:
        inodes = {inode for _, inode in wanted}
        for root in self._keeper.roots:
            pending = [root]
            while pending:
                with suppress(OSError), os.scandir(pending.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if self._keeper.covers(entry.path + b"/"):
                                pending.append(entry.path)
                        elif entry.inode() in inodes and entry.path not in self._now:
                            yield entry.path

    def _add_name(self, path: bytes) -> None:
        """Take up a name that no call of the command used, of a file that one of them changed."""
        entry = look_at_entry(path)
        file = self._keeper.files.get(entry.facts.identity) if entry else None
        if entry is None or file is None or path in self._keeper.occupants:
            self._untouched[path] = entry
            return
        self._now[path] = entry
        sibling = next((one for one in self._keeper.occupants.values() if one and one.bytes_kept is file), None)
        attributes = sibling.attributes if sibling else ()
        self._keeper.occupants[path] = Occupant(path, file.facts, file, b"", attributes)

    def others_before(self, occupant: Occupant) -> tuple[str, ...]:
        """Return the other names that a file had."""
        if occupant.bytes_kept is None or occupant.bytes_kept.facts.links == 1:
            return ()
        return self._keys_of(self._before_groups.get(id(occupant.bytes_kept), []), occupant.path)

    def others_now(self, path: bytes, entry: PresentEntry) -> tuple[str, ...]:
        """Return the other names that a file has."""
        if entry.facts.links == 1:
            return ()
        return self._keys_of(self._now_groups.get(entry.facts.identity, []), path)

    def _keys_of(self, names: list[bytes], path: bytes) -> tuple[str, ...]:
        return tuple(self._key_of(one) for one in sorted(names) if one != path)

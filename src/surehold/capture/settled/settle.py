"""Compares what was kept with what is there when the command has ended, and says what it changed.

Rules:
1. What came and went in between does not count, and neither do the times of a directory alone.
2. Earlier bytes go to the history before the change that needs them is recorded.
3. A file that only got another name is one change with both names; its bytes need not be kept.
4. New git objects are left out: nothing refers to them once the rest is taken back.
5. What is not known for certain is named.
"""

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from surehold.capture.kept.keeper import Keeper
from surehold.capture.kept.occupants import FileBytes, Occupant
from surehold.capture.kept.stash import KeptContent, read_whole
from surehold.capture.kept.walk import DirectoryWalk
from surehold.capture.settled.large import LargeFiles
from surehold.capture.settled.names import FileNames
from surehold.capture.settled.present import DiffBudget, PresentEntry, is_same_entry, kind_of, meta_from, read_bytes_at
from surehold.capture.settled.second_look import look_again
from surehold.capture.settled.settlement import Settlement, UnkeptPath
from surehold.disk.entries import Holes, find_holes, name_content
from surehold.disk.tree import open_own
from surehold.stores.base import Blob, Change
from surehold.stores.run_records import (
    CREATED_BUDGET_BYTES,
    DIFFERING_BUDGET_BYTES,
    MAX_KEPT_AFTER_BYTES,
    SMALL_AFTER_BYTES,
)
from surehold.text.align import shared_ends
from surehold.text.snapshot import Version

_GIT_OBJECT = re.compile(rb"(.*/\.git(?:/modules/.+?)?/objects)/(?:[0-9a-f]{2}|pack|info)(?:/|$)", re.DOTALL)
_HASH_BYTES = 1 << 20
_TIME_STEP_SECONDS = 3.0
"""More than the steps in which the clock of any file system goes (FAT: two seconds)."""


def settle_run(
    keeper: Keeper, *, began: datetime, key_of: Callable[[bytes], str], keep_blob: Callable[[Blob], None], limit: int
) -> Settlement:
    """Work out what changed below the roots since the keeper began; earlier bytes go to `keep_blob`."""
    with DirectoryWalk() as walk:
        settler = _Settler(keeper, key_of, keep_blob, limit, look_again(keeper, walk))
        settler.sure_before_ns = int((began.timestamp() - _TIME_STEP_SECONDS) * 1e9)
        return settler.settle()


class _Settler:
    def __init__(
        self,
        keeper: Keeper,
        key_of: Callable[[bytes], str],
        keep_blob: Callable[[Blob], None],
        limit: int,
        now: dict[bytes, PresentEntry | None],
    ) -> None:
        self._keeper, self._key_of, self._keep_blob, self._now = keeper, key_of, keep_blob, now
        self._names = FileNames(keeper, self._now, key_of)
        """The names of kept contents, by the object that holds them."""
        self._result = Settlement()
        self._found_at: dict[tuple[int, int], bytes] = {}
        self._created_bytes = 0
        self._differing_bytes = 0
        self._diffs = DiffBudget()
        self._large = LargeFiles(keeper, limit)
        self.sure_before_ns = 0
        """A file that had changed last before this moment has another `ctime` when it changes again."""

    def settle(self) -> Settlement:
        self._names.find_all()
        moved = self._find_moves()
        directories = list[Change]()
        paths = sorted({*self._keeper.occupants, *self._now})
        sources = {source for source, _ in moved.values()}
        for path in paths:
            if path in moved:
                self._record_move(*moved[path], path)
            elif path not in sources:
                self._record_path(path, directories)
        self._name_unkept()
        self._pair_renamed()
        if self._result.changes:
            self._result.changes += directories
        return self._result

    # Files that got another name.

    def _find_moves(self) -> dict[bytes, tuple[bytes, Occupant]]:
        """Return the new paths of renamed files, with the old one, where that one is free now."""
        new_paths: dict[tuple[int, int], bytes] = {}
        for path, entry in self._now.items():
            before = self._keeper.occupants.get(path)
            if entry and entry.facts.is_file and entry.facts.links == 1 and before is None:
                new_paths[entry.facts.identity] = path
        if not new_paths:
            return {}
        found: dict[bytes, tuple[bytes, Occupant]] = {}
        for path, occupant in self._keeper.occupants.items():
            if occupant is None or self._now.get(path) is not None or not occupant.bytes_kept:
                continue
            to = new_paths.get(occupant.facts.identity)
            if to is not None and to not in found and occupant.bytes_kept.was_renamed and occupant.facts.links == 1:
                found[to] = (path, occupant)
        return found

    def _pair_renamed(self) -> None:
        """Find where renamed entries are, those too whose move is recorded as a removal and a creation."""
        new_paths: dict[tuple[int, int], list[bytes]] = {}
        for path in sorted(self._now, reverse=True) if self._keeper.renamed else ():
            if (entry := self._now[path]) and self._keeper.occupants.get(path) is None:
                new_paths.setdefault(entry.facts.identity, []).append(path)
        for path in sorted(self._keeper.renamed):
            occupant = self._keeper.occupants.get(path)
            if occupant and self._now.get(path) is None and (found := new_paths.get(occupant.facts.identity)):
                self._result.renamed[self._key_of(path)] = self._key_of(found.pop())

    def _record_move(self, source: bytes, occupant: Occupant, to: bytes) -> None:
        entry = self._now[to]
        assert entry is not None
        if self._large.has(occupant, entry):
            self._large.name_move(source, occupant, to, entry)
            self._result.unrecorded.append("moved")
            return
        before, data = self._version_before(occupant, entry)
        if before is None:
            self._record_path(to, [])
            return
        after = self._version_now(to, entry)
        if after.sha256 != before.sha256 and data is not None:
            self._store(data, before.sha256)
            self._store_now(to, entry, after, before=data, base=before.sha256)
        change = Change(path=self._key_of(source), to_path=self._key_of(to), before=before, after=after)
        self._add_change(change, data, entry)

    # One path.

    def _record_path(self, path: bytes, directories: list[Change]) -> None:
        occupant, entry = self._keeper.occupants.get(path), self._now.get(path)
        if occupant is None and entry is None:
            return
        if self._large.has(occupant, entry):
            if not (occupant and entry and self._is_untouched(occupant, entry)):
                self._result.unrecorded.append(self._large.name_change(path, occupant, entry))
        elif occupant is None:
            self._record_created(path, entry)
        elif entry is None:
            self._record_deleted(path, occupant)
        elif not self._is_untouched(occupant, entry):
            self._record_changed(path, occupant, entry, directories)

    def _record_created(self, path: bytes, entry: PresentEntry | None) -> None:
        if entry is None or self._is_new_object(path):
            return
        if kind_of(entry.facts) is None:
            self._unkept(path, "a socket or a device was made; it is not recorded")
            return
        after = self._version_now(path, entry)
        if entry.facts.is_file and self._created_bytes + entry.facts.size <= CREATED_BUDGET_BYTES:
            self._created_bytes += entry.facts.size
            self._store_now(path, entry, after)
        elif entry.facts.is_link:
            self._keep_blob(Blob(data=entry.target, sha256=after.sha256))
        self._add_change(Change(path=self._key_of(path), before=None, after=after), None, entry)

    def _record_deleted(self, path: bytes, occupant: Occupant) -> None:
        if kind_of(occupant.facts) is None:
            self._unkept(path, "a socket or a device was removed; it does not come back")
            return
        before, data = self._version_before(occupant, None)
        if before is None:
            return
        if data is not None:
            self._store(data, before.sha256)
        change = Change(path=self._key_of(path), before=before, after=None)
        self._result.changes.append(self._diffs.add_diff(change, data, None))

    def _record_changed(self, path: bytes, occupant: Occupant, entry: PresentEntry, directories: list[Change]) -> None:
        if kind_of(occupant.facts) is None or kind_of(entry.facts) is None:
            self._unkept(path, "it was or became a socket or a device")
            return
        before, data = self._version_before(occupant, entry)
        if before is None:
            return
        after = self._version_now(path, entry)
        if is_same_entry(before, after, same_file=occupant.facts.identity == entry.facts.identity):
            return
        change = Change(path=self._key_of(path), before=before, after=after)
        if change.sets_times_only:
            directories.append(change)
            return
        if before.sha256 != after.sha256 or before.kind != after.kind:
            if data is not None:
                self._store(data, before.sha256)
            base = before.sha256 if before.kind == "file" else ""
            self._store_now(path, entry, after, before=data or b"", base=base)
        self._add_change(change, data, entry)

    def _add_change(self, change: Change, data: bytes | None, entry: PresentEntry) -> None:
        self._result.changes.append(self._diffs.add_diff(change, data, entry))
        if entry.facts.size > SMALL_AFTER_BYTES:
            entry.data = None

    def _is_untouched(self, occupant: Occupant, entry: PresentEntry) -> bool:
        """Tell by the facts alone that nothing happened: the kernel sets `ctime`, no program can."""
        before, now = occupant.facts, entry.facts
        if before.ctime_ns != now.ctime_ns or before.identity != now.identity:
            return False
        if before.ctime_ns < self.sure_before_ns:
            return True
        # The clocks of file systems go in steps: it may have changed within the one in which it had changed before.
        if (before, occupant.attributes, occupant.target) != (now, entry.attributes, entry.target):
            return False
        file = occupant.bytes_kept
        return file is None or file.content is None or self._large.has(occupant, entry)

    def _is_new_object(self, path: bytes) -> bool:
        found = _GIT_OBJECT.match(path)
        return found is not None and self._keeper.occupants.get(found[1], found) is not None and os.path.isdir(found[1])

    # Versions.

    def _version_before(self, occupant: Occupant, entry: PresentEntry | None) -> tuple[Version | None, bytes | None]:
        """Return what a path was, and its bytes where they had to be kept; no version if that is not known."""
        kind, facts = kind_of(occupant.facts), occupant.facts
        assert kind is not None
        data, sha256, holes = b"", "", ()
        if kind == "file":
            file = occupant.bytes_kept
            assert file is not None
            found = self._content_before(occupant, file, entry)
            if found is None:
                return None, None
            data, sha256, holes = found
        elif kind == "link":
            data = occupant.target
            sha256 = hashlib.sha256(data).hexdigest()
        else:
            sha256 = name_content(kind, b"")
        links = self._names.others_before(occupant)
        version = Version(
            sha256=sha256,
            size=facts.size if kind == "file" else len(data or b""),
            meta=meta_from(facts, occupant.attributes),
            kind=kind,
            links=links,
            holes=holes,
        )
        return version, data if kind in {"file", "link"} else None

    def _content_before(
        self, occupant: Occupant, file: FileBytes, entry: PresentEntry | None
    ) -> tuple[bytes | None, str, Holes] | None:
        if file.content is not None:
            try:
                data = self._keeper.stash.read_content(file.content)
            except (OSError, MemoryError):
                self._unkept(occupant.path, "what was kept of it could not be read again")
                return None
            sha256 = hashlib.sha256(data).hexdigest()
            return data, sha256, self._holes_before(file, file.content)
        if file.lost:
            return None  # it was named when that happened
        # Never opened for writing and never removed: whatever its name is now, its content is the same.
        path = self._path_now(occupant)
        if path is None or (now := self._now[path]) is None:
            self._unkept(occupant.path, "another program removed it before its content was kept")
            return None
        if file.was_surely_written(now.facts.size, now.facts.mtime_ns):
            why = "it was written while its name changed, or by another program; what it held before is not known"
            self._unkept(occupant.path, why)
        self._read_now(path, now)
        if entry and entry.facts.identity == now.facts.identity:
            return None, now.sha256, now.holes
        data = now.data if now.data is not None else read_bytes_at(path)
        return data, now.sha256, now.holes

    def _holes_before(self, file: FileBytes, content: KeptContent) -> Holes:
        if content.holes or not content.file or not file.facts.is_sparse:
            return content.holes
        fd = self._keeper.stash.open_content(content)
        try:
            return find_holes(fd, content.size)
        finally:
            os.close(fd)

    def _path_now(self, occupant: Occupant) -> bytes | None:
        entry = self._now.get(occupant.path)
        if entry and entry.facts.identity == occupant.facts.identity:
            return occupant.path
        if not self._found_at:
            self._found_at = {entry.facts.identity: path for path, entry in self._now.items() if entry}
        return self._found_at.get(occupant.facts.identity)

    def _version_now(self, path: bytes, entry: PresentEntry) -> Version:
        kind = kind_of(entry.facts)
        assert kind is not None
        if kind == "file":
            self._read_now(path, entry)
            sha256, size = entry.sha256, entry.facts.size
        elif kind == "link":
            sha256, size = hashlib.sha256(entry.target).hexdigest(), len(entry.target)
        else:
            sha256, size = name_content(kind, entry.target), 0
        links = self._names.others_now(path, entry) if kind == "file" else ()
        meta = meta_from(entry.facts, entry.attributes)
        return Version(sha256=sha256, size=size, meta=meta, kind=kind, links=links, holes=entry.holes)

    def _read_now(self, path: bytes, entry: PresentEntry) -> None:
        """Hash a file as it is now; keep its bytes in memory only if they are few."""
        if entry.sha256:
            return
        try:
            fd = open_own(None, path)
        except OSError as error:
            self._unkept(path, f"it could not be read ({error.strerror})")
            entry.sha256 = "0" * 64
            return
        try:
            if entry.facts.is_sparse:
                entry.holes = find_holes(fd, entry.facts.size)
            if entry.facts.size <= SMALL_AFTER_BYTES:
                entry.data = read_whole(fd, entry.facts.size)
                entry.sha256 = hashlib.sha256(entry.data).hexdigest()
                return
            digest = hashlib.sha256()
            while piece := os.read(fd, _HASH_BYTES):
                digest.update(piece)
            entry.sha256 = digest.hexdigest()
        finally:
            os.close(fd)

    # Bytes.

    def _store(self, data: bytes, sha256: str) -> None:
        self._keep_blob(Blob(data=data, sha256=sha256))

    def _store_now(
        self, path: bytes, entry: PresentEntry, after: Version, *, before: bytes = b"", base: str = ""
    ) -> None:
        """Store what the command left, so that later changes can be told from its own."""
        if after.kind == "link":
            self._keep_blob(Blob(data=entry.target, sha256=after.sha256))
        elif after.kind == "file":
            is_large, shared = entry.data is None, (0, 0)
            if is_large:
                self._read_large(path, entry)
            if entry.data is None:
                return
            if is_large:
                shared = shared_ends(before, entry.data)
                self._differing_bytes += after.size - sum(shared)
            if not is_large or self._differing_bytes <= DIFFERING_BUDGET_BYTES:
                self._keep_blob(Blob(data=entry.data, sha256=after.sha256, base=base, shared=shared))

    def _read_large(self, path: bytes, entry: PresentEntry) -> None:
        """Read a large file that was hashed already; not if it is very large, or changed since."""
        if entry.facts.size > MAX_KEPT_AFTER_BYTES:
            return
        with suppress(OSError, MemoryError):
            data = read_bytes_at(path)
            if hashlib.sha256(data).hexdigest() == entry.sha256:
                entry.data = data

    def _unkept(self, path: bytes, why: str) -> None:
        self._keeper.add_note(path, why)

    def _name_unkept(self) -> None:
        for path, why in self._keeper.notes:
            self._result.not_kept.append(UnkeptPath(key=self._key_of(path) if path else "", why=why))
        for path in self._names.outside:
            why = (
                "it has hard links outside of the workspace, or to names that are gone; they are not restored as links"
            )
            self._result.not_kept.append(UnkeptPath(key=self._key_of(path), why=why))

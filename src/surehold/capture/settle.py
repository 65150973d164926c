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
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from surehold.capture.keeper import FileBytes, Keeper, Occupant, walk_below
from surehold.capture.names import FileNames
from surehold.capture.present import (
    DiffBudget,
    PresentEntry,
    is_same_entry,
    kind_of,
    look_at_entry,
    meta_from,
    open_readable,
    read_bytes_at,
)
from surehold.capture.stash import KeptContent, read_whole
from surehold.disk.entries import Holes, find_holes, name_content
from surehold.stores.base import Blob, Change
from surehold.text.snapshot import Version

_GIT_OBJECT = re.compile(rb"(.*/\.git(?:/modules/.+?)?/objects)/(?:[0-9a-f]{2}|pack|info)(?:/|$)", re.DOTALL)
_STORED_AFTER_BYTES = 1 << 20
"""Files up to this size are stored as the command left them, so that later changes can be told from its own."""
_CREATED_BUDGET_BYTES = 16 << 20
_HASH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UnkeptPath:
    """Something that cannot be undone exactly, and why."""

    key: str
    """Empty for what concerns the whole run."""
    why: str


@dataclass(slots=True, kw_only=True)
class Settlement:
    """What a command changed."""

    changes: list[Change] = field(default_factory=list[Change])
    not_kept: list[UnkeptPath] = field(default_factory=list[UnkeptPath])
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    """Where entries are now that got another path."""

    def count_paths(self) -> dict[str, int]:
        """Return how many paths were created, changed, deleted and moved; times of a directory alone do not count."""
        counts: dict[str, int] = dict.fromkeys(("created", "changed", "deleted", "moved"), 0)
        for change in self.changes:
            if name := _name_effect(change):
                counts[name] += 1
        gone = {change.path for change in self.changes if _name_effect(change) == "deleted"}
        new = {change.path for change in self.changes if _name_effect(change) == "created"}
        pairs = sum(path in gone and to in new for path, to in self.renamed.items())
        for name, more in (("created", -pairs), ("deleted", -pairs), ("moved", pairs)):
            counts[name] += more
        return counts

    @property
    def complete(self) -> bool:
        """Whether taking the changes back gives exactly what was there before."""
        return not self.not_kept


def _name_effect(change: Change) -> str:
    if change.to_path:
        return "moved"
    if change.before is None or change.after is None:
        return "created" if change.before is None else "deleted"
    return "" if change.sets_times_only else "changed"


def settle_run(
    keeper: Keeper, *, key_of: Callable[[bytes], str], keep_blob: Callable[[Blob], None], limit: int
) -> Settlement:
    """Work out what changed below the roots since the keeper began; earlier bytes go to `keep_blob`."""
    return _Settler(keeper, key_of, keep_blob, limit).settle()


class _Settler:
    def __init__(
        self, keeper: Keeper, key_of: Callable[[bytes], str], keep_blob: Callable[[Blob], None], limit: int
    ) -> None:
        self._keeper, self._key_of, self._keep_blob, self._limit = keeper, key_of, keep_blob, limit
        self._now: dict[bytes, PresentEntry | None] = {}
        self._names = FileNames(keeper, self._now, key_of)
        self._hashes: dict[int, str] = {}
        """The names of kept contents, by the object that holds them."""
        self._result = Settlement()
        self._real_directories: dict[bytes, bool] = {}
        self._found_at: dict[tuple[int, int], bytes] = {}
        self._created_bytes = 0
        self._diffs = DiffBudget()

    def settle(self) -> Settlement:
        self._look_again()
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

    # What is there now.

    def _look_again(self) -> None:
        for path in list(self._keeper.occupants):
            if path not in self._now:
                self._look_at(path)

    def _look_at(self, path: bytes) -> PresentEntry | None:
        entry = self._now[path] = look_at_entry(path) if self._leads_there(path) else None
        before = self._keeper.occupants.get(path)
        if entry and entry.facts.is_directory and (before is None or before.facts.identity != entry.facts.identity):
            for below in walk_below(path):
                if below not in self._now:
                    self._now[below] = look_at_entry(below)
        return entry

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

    # Files that got another name.

    def _find_moves(self) -> dict[bytes, tuple[bytes, Occupant]]:
        """Return the new paths of renamed files, with the old one, where that one is free now."""
        new_paths: dict[tuple[int, int], bytes] = {}
        for path, entry in self._now.items():
            before = self._keeper.occupants.get(path)
            if entry and entry.facts.is_file and entry.facts.links == 1 and before is None:
                new_paths[entry.facts.identity] = path
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
        for path in sorted(self._now, reverse=True):
            if (entry := self._now[path]) and self._keeper.occupants.get(path) is None:
                new_paths.setdefault(entry.facts.identity, []).append(path)
        for path in sorted(self._keeper.renamed):
            occupant = self._keeper.occupants.get(path)
            if occupant and self._now.get(path) is None and (found := new_paths.get(occupant.facts.identity)):
                self._result.renamed[self._key_of(path)] = self._key_of(found.pop())

    def _record_move(self, source: bytes, occupant: Occupant, to: bytes) -> None:
        entry = self._now[to]
        assert entry is not None
        before, data = self._version_before(occupant, entry)
        if before is None:
            self._record_path(to, [])
            return
        after = self._version_now(to, entry)
        if after.sha256 == before.sha256:
            after = replace(after, holes=before.holes)
        elif data is not None:
            self._store(data, before.sha256)
            self._store_now(entry, after, base=before.sha256)
        change = Change(path=self._key_of(source), to_path=self._key_of(to), before=before, after=after)
        self._result.changes.append(self._diffs.add_diff(change, data, entry))

    # One path.

    def _record_path(self, path: bytes, directories: list[Change]) -> None:
        occupant, entry = self._keeper.occupants.get(path), self._now.get(path)
        if occupant is None and entry is None:
            return
        if occupant is None:
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
        if entry.facts.is_file and self._created_bytes + entry.facts.size <= _CREATED_BUDGET_BYTES:
            self._created_bytes += entry.facts.size
            self._store_now(entry, after)
        elif entry.facts.is_link:
            self._keep_blob(Blob(data=entry.target, sha256=after.sha256))
        change = Change(path=self._key_of(path), before=None, after=after)
        self._result.changes.append(self._diffs.add_diff(change, None, entry))

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
        if before.kind == after.kind == "file" and before.sha256 == after.sha256:
            after = replace(after, holes=before.holes) if occupant.facts.identity == entry.facts.identity else after
        if is_same_entry(before, after, same_file=occupant.facts.identity == entry.facts.identity):
            return
        change = Change(path=self._key_of(path), before=before, after=after)
        if change.sets_times_only:
            directories.append(change)
            return
        if before.sha256 != after.sha256 or before.kind != after.kind:
            if data is not None:
                self._store(data, before.sha256)
            self._store_now(entry, after, base=before.sha256 if before.kind == "file" else "")
        self._result.changes.append(self._diffs.add_diff(change, data, entry))

    def _is_untouched(self, occupant: Occupant, entry: PresentEntry) -> bool:
        """Tell by the facts alone that nothing happened: the kernel sets `ctime`, no program can."""
        return occupant.facts.ctime_ns == entry.facts.ctime_ns and occupant.facts.identity == entry.facts.identity

    def _is_new_object(self, path: bytes) -> bool:
        found = _GIT_OBJECT.match(path)
        return found is not None and self._keeper.occupants.get(found[1], found) is not None and os.path.isdir(found[1])

    # Versions.

    def _version_before(self, occupant: Occupant, entry: PresentEntry | None) -> tuple[Version | None, bytes | None]:
        """Return what a path was, and its bytes where they had to be kept; no version if that is not known."""
        kind, facts = kind_of(occupant.facts), occupant.facts
        assert kind is not None
        data, sha256, holes = b"", name_content(kind, b""), ()
        if kind == "link":
            data = occupant.target
            sha256 = hashlib.sha256(data).hexdigest()
        elif kind == "file":
            file = occupant.bytes_kept
            assert file is not None
            found = self._content_before(occupant, file, entry)
            if found is None:
                return None, None
            data, sha256, holes = found
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
        sha256, size = name_content(kind, entry.target), 0
        if kind == "file":
            self._read_now(path, entry)
            sha256, size = entry.sha256, entry.facts.size
        elif kind == "link":
            sha256, size = hashlib.sha256(entry.target).hexdigest(), len(entry.target)
        links = self._names.others_now(path, entry) if kind == "file" else ()
        meta = meta_from(entry.facts, entry.attributes)
        return Version(sha256=sha256, size=size, meta=meta, kind=kind, links=links, holes=entry.holes)

    def _read_now(self, path: bytes, entry: PresentEntry) -> None:
        """Hash a file as it is now; keep its bytes in memory only if they are few."""
        if entry.sha256:
            return
        try:
            fd = open_readable(path)
        except OSError as error:
            self._unkept(path, f"it could not be read ({error.strerror})")
            entry.sha256 = "0" * 64
            return
        try:
            if entry.facts.is_sparse:
                entry.holes = find_holes(fd, entry.facts.size)
            if entry.facts.size <= _STORED_AFTER_BYTES:
                entry.data = read_whole(fd)
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

    def _store_now(self, entry: PresentEntry, after: Version, *, base: str = "") -> None:
        if after.kind == "link":
            self._keep_blob(Blob(data=entry.target, sha256=after.sha256))
        elif after.kind == "file" and entry.data is not None:
            self._keep_blob(Blob(data=entry.data, sha256=after.sha256, base=base))

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

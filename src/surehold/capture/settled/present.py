"""What a path leads to when the command has ended, and how that differs from what it was."""

import os
import stat
from dataclasses import dataclass, replace

from surehold.capture.kept.stash import Attributes, EntryFacts, facts_of, read_whole
from surehold.disk.entries import Holes, read_attributes
from surehold.disk.tree import open_own
from surehold.stores.base import Change
from surehold.text.plan import DIFF_LIMIT_BYTES, diff_between, plan_between
from surehold.text.snapshot import ABSENT, Kind, Meta, Snapshot, Version

_DIFFED_FILES = 200
_ONE_SIDED_DIFF_BYTES = 1024
"""How much of a file that came or went is in the entry itself: all of it is kept beside it."""
_DIFFED_BYTES = 256 * 1024
_COMPARED_PART_BYTES = 2 << 20
"""How much of a larger file may differ for its lines to be counted while the command's end is recorded."""
_COMPARED_BUDGET_BYTES = 16 << 20
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "directory", stat.S_IFIFO: "fifo"}


@dataclass(slots=True)
class PresentEntry:
    """What a path leads to now."""

    facts: EntryFacts
    target: bytes = b""
    attributes: Attributes = ()
    sha256: str = ""
    data: bytes | None = None
    holes: Holes = ()


def look_at_entry(path: bytes) -> PresentEntry | None:
    try:
        facts = facts_of(os.lstat(path))
        target = os.readlink(path) if facts.is_link else b""
    except OSError:
        return None
    return PresentEntry(facts, target, () if facts.is_link else read_attributes(path))


def read_bytes_at(path: bytes) -> bytes:
    fd = open_own(None, path)
    try:
        return read_whole(fd)
    finally:
        os.close(fd)


def kind_of(facts: EntryFacts) -> Kind | None:
    return _KINDS.get(stat.S_IFMT(facts.mode))


def meta_from(facts: EntryFacts, attributes: Attributes) -> Meta:
    mode = stat.S_IMODE(facts.mode)
    return Meta(mode=mode, uid=facts.uid, gid=facts.gid, mtime_ns=facts.mtime_ns, xattrs=attributes)


def is_same_entry(before: Version, after: Version, *, same_file: bool) -> bool:
    """Tell whether nothing is different; the other names of the very same file follow from their own changes."""
    if same_file and before.links != after.links:
        after = replace(after, links=before.links)
    return before == after


class DiffBudget:
    """Adds differences to changes, unless there are very many or very large ones: those are worked out when asked for."""

    def __init__(self) -> None:
        self._count = 0
        self._compared_bytes = 0

    def add_diff(self, change: Change, data: bytes | None, entry: PresentEntry | None) -> Change:
        """Return a change with the difference between the bytes before and those that are there now."""
        before, after = change.before, change.after
        if (before and before.kind != "file") or (after and after.kind != "file"):
            return change
        if before and after and before.sha256 == after.sha256:
            return change
        if self._count >= _DIFFED_FILES:
            return Change(path=change.path, to_path=change.to_path, before=before, after=after, diff_truncated=True)
        old = Snapshot(data) if before and data is not None else ABSENT
        new = Snapshot(entry.data) if after and entry and entry.data is not None else ABSENT
        is_large = max(version.size for version in (before, after) if version) > _DIFFED_BYTES
        if is_large and not self._can_compare(old, new):
            return Change(path=change.path, to_path=change.to_path, before=before, after=after, diff_truncated=True)
        self._count += 1
        limit = DIFF_LIMIT_BYTES if before and after else _ONE_SIDED_DIFF_BYTES
        diff = diff_between(old, new, from_name=change.path, to_name=change.to_path or change.path, limit=limit)
        counts = {"added": diff.added, "removed": diff.removed} if diff.truncated else {}
        return replace(change, diff=diff.text, diff_truncated=diff.truncated, **counts)

    def _can_compare(self, old: Snapshot, new: Snapshot) -> bool:
        """Tell whether little enough of a large file differs; the cost follows that, not its size."""
        if not (old.exists and new.exists):
            return False
        size = plan_between(old, new).differing_bytes
        if size > _COMPARED_PART_BYTES or self._compared_bytes + size > _COMPARED_BUDGET_BYTES:
            return False
        self._compared_bytes += size
        return True

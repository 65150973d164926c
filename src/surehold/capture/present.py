"""What a path leads to when the command has ended, and how that differs from what it was."""

import os
import stat
from dataclasses import dataclass, replace

from surehold.capture.stash import Attributes, EntryFacts, facts_of, read_whole
from surehold.disk.entries import Holes, read_attributes
from surehold.stores.base import Change
from surehold.text.plan import diff_between
from surehold.text.snapshot import ABSENT, Kind, Meta, Snapshot, Version

_DIFFED_FILES = 200
_ONE_SIDED_DIFF_BYTES = 1024
"""How much of a file that came or went is in the entry itself: all of it is kept beside it."""
_DIFFED_BYTES = 256 * 1024


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


def open_readable(path: bytes) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def read_bytes_at(path: bytes) -> bytes:
    fd = open_readable(path)
    try:
        return read_whole(fd)
    finally:
        os.close(fd)


def kind_of(facts: EntryFacts) -> Kind | None:
    kinds: dict[int, Kind] = {
        stat.S_IFREG: "file",
        stat.S_IFLNK: "link",
        stat.S_IFDIR: "directory",
        stat.S_IFIFO: "fifo",
    }
    return kinds.get(stat.S_IFMT(facts.mode))


def meta_from(facts: EntryFacts, attributes: Attributes) -> Meta:
    mode = stat.S_IMODE(facts.mode)
    return Meta(mode=mode, uid=facts.uid, gid=facts.gid, mtime_ns=facts.mtime_ns, xattrs=attributes)


def is_same_entry(before: Version, after: Version, *, same_file: bool) -> bool:
    """Tell whether nothing is different; the other names of the very same file follow from their own changes."""
    return before == (replace(after, links=before.links) if same_file else after)


class DiffBudget:
    """Adds differences to changes, unless there are very many or very large ones: those are worked out when asked for."""

    def __init__(self) -> None:
        self._count = 0

    def add_diff(self, change: Change, data: bytes | None, entry: PresentEntry | None) -> Change:
        """Return a change with the difference between the bytes before and those that are there now."""
        before, after = change.before, change.after
        versions = [version for version in (before, after) if version]
        if {version.kind for version in versions} != {"file"} or (before and after and before.sha256 == after.sha256):
            return change
        if self._count >= _DIFFED_FILES or max(version.size for version in versions) > _DIFFED_BYTES:
            return replace(change, diff_truncated=True)
        self._count += 1
        old = Snapshot(data) if before and data is not None else ABSENT
        new = Snapshot(entry.data) if after and entry and entry.data is not None else ABSENT
        limit = None if before and after else _ONE_SIDED_DIFF_BYTES
        diff = diff_between(old, new, from_name=change.path, to_name=change.to_path or change.path, limit=limit)
        counts = {"added": diff.added, "removed": diff.removed} if diff.truncated else {}
        return replace(change, diff=diff.text, diff_truncated=diff.truncated, **counts)

"""Everything about a tree that an undo must bring back: bytes, kinds, modes, owners, times, attributes, holes, hard links."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

Fingerprint = dict[str, list[Any]]


def take_fingerprint(root: Path) -> Fingerprint:
    """Look at every entry below a directory, and at the directory itself; new git objects do not count."""
    found: Fingerprint = {}
    groups: dict[int, list[str]] = {}
    top = os.fsencode(root)
    for directory, folders, files in os.walk(top):
        for name in (b"", *folders, *files):
            path = b"%b/%b" % (directory, name) if name else directory
            key = os.fsdecode(os.path.relpath(path, top))
            if not key.startswith(".git/objects"):
                found[key] = _look_at(path, key, groups)
    for keys in groups.values():
        for key in keys:
            found[key].append(sorted(keys))
    return found


def _look_at(path: bytes, key: str, groups: dict[int, list[str]]) -> list[Any]:
    status = os.lstat(path)
    facts: list[Any] = [oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns]
    if stat.S_ISLNK(status.st_mode):
        return [*facts, os.fsdecode(os.readlink(path))]  # noqa: PTH115 - bytes
    if stat.S_ISREG(status.st_mode):
        facts += [_hash_of(path), status.st_size, status.st_blocks * 512 < status.st_size]
        if status.st_nlink > 1:
            groups.setdefault(status.st_ino, []).append(key)
    names = [name for name in sorted(os.listxattr(path)) if not name.startswith("security.selinux")]
    return [*facts, [[name, os.getxattr(path, name).hex()] for name in names]]


def _hash_of(path: bytes) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - bytes
            return hashlib.sha256(file.read()).hexdigest()
    except PermissionError:
        return "unreadable"


def differences(one: Fingerprint, other: Fingerprint) -> list[str]:
    return [
        f"{key!r}: {one.get(key)} -> {other.get(key)}"
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key)
    ]


def without_folder_times(found: Fingerprint) -> Fingerprint:
    """Leave out the times of directories, which alone are no change."""
    return {key: [*facts[:3], *facts[4:]] if facts[0].startswith("0o4") else facts for key, facts in found.items()}

"""Everything about a tree that an undo must bring back: bytes, kinds, modes, owners, times, attributes, holes, hard links."""

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Fingerprint = dict[str, list[Any]]


def take_fingerprint(root: Path) -> Fingerprint:
    """Look at every entry below a directory, and at the directory itself; new git objects do not count."""
    found: Fingerprint = {}
    groups: dict[int, list[str]] = {}
    top = os.fsencode(root)
    _look_below(top, top, found, groups)
    for keys in groups.values():
        for key in keys:
            found[key].append(sorted(keys))
    return found


def _look_below(top: bytes, path: bytes, found: Fingerprint, groups: dict[int, list[str]]) -> None:
    key = os.fsdecode(os.path.relpath(path, top))
    if key.startswith(".git/objects"):
        return
    found[key] = _look_at(path, key, groups)
    if stat.S_ISDIR(os.lstat(path).st_mode):
        with _readable(path):
            for name in os.listdir(path):  # noqa: PTH208 - bytes
                _look_below(top, b"%b/%b" % (path, name), found, groups)


@contextmanager
def _readable(path: bytes) -> Generator[None]:
    """Let the test look where modes forbid it: what is there must not be lost either."""
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    needed = 0o500 if os.path.isdir(path) else 0o400  # noqa: PTH112 - bytes
    if os.geteuid() != os.lstat(path).st_uid or mode & needed == needed:
        yield
        return
    os.chmod(path, mode | needed)  # noqa: PTH101 - bytes
    try:
        yield
    finally:
        os.chmod(path, mode)  # noqa: PTH101 - bytes


def _look_at(path: bytes, key: str, groups: dict[int, list[str]]) -> list[Any]:
    status = os.lstat(path)
    facts: list[Any] = [oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns]
    if stat.S_ISLNK(status.st_mode):
        return [*facts, os.fsdecode(os.readlink(path))]  # noqa: PTH115 - bytes
    if stat.S_ISREG(status.st_mode):
        facts += [_hash_of(path), status.st_size, status.st_blocks * 512 < status.st_size]
        if status.st_nlink > 1:
            groups.setdefault(status.st_ino, []).append(key)
    with _readable(path):
        names = [name for name in sorted(os.listxattr(path)) if not name.startswith("security.selinux")]
        return [*facts, [[name, os.getxattr(path, name).hex()] for name in names]]


def _hash_of(path: bytes) -> str:
    try:
        with _readable(path), open(path, "rb") as file:  # noqa: PTH123 - bytes
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

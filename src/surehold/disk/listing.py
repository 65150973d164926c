"""Lists directories and reads the metadata and first bytes of their entries.

No link is followed, and every entry is opened through the descriptor of its directory, never by a path that could change.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial

from surehold.disk.base import DirectoryEntry, EntryStat, EntryType, Target
from surehold.disk.errno_errors import as_surehold_error
from surehold.disk.kernel import O_CLOEXEC
from surehold.disk.tree import DIRECTORY_FLAGS, LISTED_DIRECTORY_FLAGS, READ_FLAGS, Tree, is_regular
from surehold.errors import NotFound, SureholdError

_TYPE_BITS = 0o170000
_make_entry: Callable[[tuple[str, EntryType]], DirectoryEntry] = partial(tuple.__new__, DirectoryEntry)  # pyright: ignore[reportUnknownMemberType]
"""Makes an entry of a pair, without a call of ours: a directory may be large."""
_TYPES: dict[int, EntryType] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


def list_entries(tree: Tree, target: Target) -> list[DirectoryEntry]:
    fd = _open_descriptor(tree, target, LISTED_DIRECTORY_FLAGS)
    try:
        with os.scandir(fd) as found:
            facts: list[tuple[str, EntryType]] = [
                (each.name, "file" if each.is_file(follow_symlinks=False) else _other_type(each)) for each in found
            ]
            return list(map(_make_entry, facts))
    except OSError as error:
        raise as_surehold_error(error, target.key) from error
    finally:
        os.close(fd)


def stat_entries(tree: Tree, directory: Target, names: Sequence[str]) -> list[EntryStat | None]:
    fd = _open_descriptor(tree, directory, DIRECTORY_FLAGS)
    found = list[EntryStat | None]()
    look_at, types, add = os.stat, _TYPES, found.append  # one loop without calls of ours: a directory may be large
    try:
        for name in names:
            try:
                status = look_at(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                add(None)
                continue
            kind = types.get(status.st_mode & _TYPE_BITS, "other")
            add(EntryStat(kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    finally:
        os.close(fd)
    return found


def read_heads(tree: Tree, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
    fd = _open_descriptor(tree, directory, DIRECTORY_FLAGS)
    try:
        return [_read_head(fd, name, count) for name in names]
    finally:
        os.close(fd)


def _read_head(dir_fd: int, name: str, count: int) -> bytes | None:
    try:
        fd = os.open(name, READ_FLAGS | O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        return os.read(fd, count) if is_regular(os.fstat(fd)) else None
    except OSError:
        return None
    finally:
        os.close(fd)


@contextmanager
def open_directory(tree: Tree, directory: Target) -> Generator[int]:
    """Keep a directory open; the number is good until the block is left."""
    fd = _open_descriptor(tree, directory, LISTED_DIRECTORY_FLAGS)
    try:
        yield fd
    finally:
        os.close(fd)


def target_below(tree: Tree, directory: Target, names: Sequence[str]) -> Target:
    """Return the target that these names lead to; it may not exist."""
    return tree.target_of((*tree.root_of(directory).names, *directory.parts, *names))


def not_listable_error(path: str) -> SureholdError:
    return NotFound(
        f"`{path}` is not a directory.",
        path=path,
        reason="not_a_directory",
        action="Name a directory, or read the file.",
    )


def _open_descriptor(tree: Tree, target: Target, flags: int) -> int:
    try:
        return tree.open_target(target, flags)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            raise not_listable_error(target.key) from error
        if error.errno == errno.ENOENT:
            raise NotFound(f"There is no directory `{target}`.", path=target.key, reason="no_such_directory") from error
        raise as_surehold_error(error, target.key) from error


def _other_type(entry: "os.DirEntry[str]") -> EntryType:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "symlink" if entry.is_symlink() else "other"

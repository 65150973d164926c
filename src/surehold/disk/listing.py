"""What is in a directory. Nothing is followed, and nothing is opened by a path that somebody could bend meanwhile."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial

from surehold.disk.base import EntryType, Listed, Look, Target
from surehold.disk.content import READING, is_regular
from surehold.disk.failures import translate
from surehold.disk.kernel import O_CLOEXEC
from surehold.disk.tree import DIRECTORY, LISTED_DIRECTORY, Tree
from surehold.errors import NotFound, SureholdError

_KIND = 0o170000
_listed: Callable[[tuple[str, EntryType]], Listed] = partial(tuple.__new__, Listed)  # pyright: ignore[reportUnknownMemberType]
"""Makes an entry of a pair, without a call of ours: a directory may be large."""
_TYPES: dict[int, EntryType] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


def entries(tree: Tree, target: Target) -> list[Listed]:
    """Return all names in a directory with their types, in no order."""
    fd = _open(tree, target, LISTED_DIRECTORY)
    try:
        with os.scandir(fd) as found:
            facts: list[tuple[str, EntryType]] = [
                (each.name, "file" if each.is_file(follow_symlinks=False) else _other_type(each)) for each in found
            ]
            return list(map(_listed, facts))
    except OSError as error:
        raise translate(error, target.key) from error
    finally:
        os.close(fd)


def looks(tree: Tree, directory: Target, names: Sequence[str]) -> list[Look | None]:
    """Return the facts about some entries of a directory; None for those that are gone."""
    fd = _open(tree, directory, DIRECTORY)
    found = list[Look | None]()
    look_at, types, add = os.stat, _TYPES, found.append  # one loop without calls of ours: a directory may be large
    try:
        for name in names:
            try:
                status = look_at(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                add(None)
                continue
            kind = types.get(status.st_mode & _KIND, "other")
            add(Look(kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    finally:
        os.close(fd)
    return found


def heads(tree: Tree, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
    """Return the first bytes of some regular files of a directory; None for what is none, or cannot be read."""
    fd = _open(tree, directory, DIRECTORY)
    try:
        return [_head(fd, name, count) for name in names]
    finally:
        os.close(fd)


def _head(dir_fd: int, name: str, count: int) -> bytes | None:
    try:
        fd = os.open(name, READING | O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        return os.read(fd, count) if is_regular(os.fstat(fd)) else None
    except OSError:
        return None
    finally:
        os.close(fd)


@contextmanager
def held(tree: Tree, directory: Target) -> Generator[int]:
    """Keep a directory open; the number is good until the block is left."""
    fd = _open(tree, directory, LISTED_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def below(tree: Tree, directory: Target, names: Sequence[str]) -> Target:
    """Return the target that these names lead to; it may not exist."""
    return tree.target((*tree.root_of(directory).names, *directory.parts, *names))


def not_listable(path: str) -> SureholdError:
    """Return the error for something that has no entries."""
    return NotFound(
        f"`{path}` is not a directory.",
        path=path,
        reason="not_a_directory",
        action="Name a directory, or read the file.",
    )


def _open(tree: Tree, target: Target, flags: int) -> int:
    try:
        return tree.open(target, flags)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            raise not_listable(target.key) from error
        if error.errno == errno.ENOENT:
            raise NotFound(f"There is no directory `{target}`.", path=target.key, reason="no_such_directory") from error
        raise translate(error, target.key) from error


def _other_type(entry: "os.DirEntry[str]") -> EntryType:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "symlink" if entry.is_symlink() else "other"

"""The open root directories, and the only way to open anything below them.

Rules:
1. Everything is opened relative to a root's descriptor. A path string never reaches the kernel from `/`.
2. No link is followed. A link that is swapped in makes the call fail with ELOOP; it cannot lead out.
3. A file below several roots has one name: its name below the first of them.
"""

import contextlib
import errno
import os
import stat
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from surehold.disk.base import Target
from surehold.disk.errno_errors import as_surehold_error, symlink_escape_error
from surehold.disk.kernel import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH, Kernel, Unsupported
from surehold.errors import DiskFailed, InvalidArgument

DIRECTORY_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC
"""Flags for a directory that is only a place to start from."""
LISTED_DIRECTORY_FLAGS = os.O_RDONLY | O_DIRECTORY | O_CLOEXEC
"""Flags for a directory that is listed, locked or synced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRoot:
    """One directory below which everything happens."""

    path: str
    """Absolute, without links."""
    names: tuple[str, ...]
    """The components of `path`."""
    spellings: tuple[tuple[str, ...], ...]
    """How people may spell it: as it was given, and without links."""
    fd: int


class Tree:
    """All roots of a disk."""

    def __init__(self, roots: Sequence[str], *, kernel: Kernel) -> None:
        if not roots:
            raise InvalidArgument("A workspace needs at least one root.", reason="no_root")
        self.kernel = kernel
        with contextlib.ExitStack() as stack:
            self.roots = tuple(_open_root(os.fspath(root), stack) for root in roots)
            self._by_path = {root.path: root for root in reversed(self.roots)}
            self._finalizer = weakref.finalize(self, stack.pop_all().close)

    def close(self) -> None:
        """Let go of the roots; nothing can be opened afterwards."""
        self._finalizer()

    def root_fd(self, root: DiskRoot) -> int:
        """Return a root's descriptor; once closed, its number may belong to anything."""
        if not self._finalizer.alive:
            raise DiskFailed("This workspace is closed.", reason="closed", action="Open it again.")
        return root.fd

    def root_of(self, target: Target) -> DiskRoot:
        root = self._by_path.get(target.root)
        if root is None:
            raise InvalidArgument(
                f"`{target}` was resolved by another disk.", path=str(target), reason="foreign_target"
            )
        return root

    def target_of(self, names: tuple[str, ...]) -> Target:
        """Return the one target for the components of an absolute path without links."""
        for root in self.roots:
            if names[: len(root.names)] == root.names:
                parts = names[len(root.names) :]
                first = root is self.roots[0]
                key = "/".join(parts) or "." if first else "/" + "/".join(names)
                return Target(root=root.path, parts=parts, key=key)
        raise symlink_escape_error("/" + "/".join(names))

    def open_target(self, target: Target, flags: int) -> int:
        """Open what a target names; ELOOP when a link is met on the way or at the end."""
        return self.open_parts(self.root_of(target), target.parts, flags)

    def open_parts(self, root: DiskRoot, parts: tuple[str, ...], flags: int) -> int:
        """Open the entry that `parts` lead to, from a root, without following a link."""
        try:
            return self.kernel.open_beneath(self.root_fd(root), "/".join(parts) or ".", flags)
        except Unsupported:
            return _open_by_walk(self.root_fd(root), parts, flags)


def open_entry(dir_fd: int, name: str, flags: int) -> int:
    """Open one entry of a directory; ELOOP when it is a link."""
    try:
        return os.open(name, flags | O_NOFOLLOW | O_CLOEXEC, dir_fd=dir_fd)
    except OSError as error:
        # With O_DIRECTORY the kernel says ENOTDIR for a link, which would read as "a file".
        if error.errno == errno.ENOTDIR and _is_link(dir_fd, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
        raise


def _is_link(dir_fd: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_by_walk(start: int, parts: tuple[str, ...], flags: int) -> int:
    here = start
    try:
        for name in parts[:-1]:
            below = open_entry(here, name, DIRECTORY_FLAGS)
            if here != start:
                os.close(here)
            here = below
        return open_entry(here, parts[-1] if parts else ".", flags)
    finally:
        if here != start:
            os.close(here)


def _open_root(given: str, stack: contextlib.ExitStack) -> DiskRoot:
    real = os.path.realpath(given)
    try:
        fd = os.open(real, DIRECTORY_FLAGS)
    except OSError as error:
        raise as_surehold_error(error, given) from error
    stack.callback(os.close, fd)
    spelled = os.path.abspath(given)  # noqa: PTH100  # lexical on purpose: checked against the real one below
    names = split_path(real)
    same = os.path.realpath(spelled) == real
    return DiskRoot(path=real, names=names, spellings=(names, split_path(spelled)) if same else (names,), fd=fd)


def split_path(path: str) -> tuple[str, ...]:
    """Return the names in a path; empty ones and `.` mean nothing."""
    return tuple(name for name in path.split("/") if name not in {"", "."})

"""The directories of one call: opened once each, made when missing, synced once at the end.

Rules:
1. A directory is opened without following a link, and everything in it is reached through its descriptor.
2. Directories that were made for a call that fails are taken away again, unless somebody uses them by now.
"""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, field

from surehold.disk.base import Target
from surehold.disk.failures import not_a_file
from surehold.disk.kernel import sync
from surehold.disk.tree import DIRECTORY, LISTED_DIRECTORY, Root, Tree, open_entry


@dataclass(slots=True, kw_only=True)
class Directory:
    """An open directory."""

    fd: int
    can_sync: bool = True
    dirty: bool = False
    """Whether names in it changed during this call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name in an open directory."""

    directory: Directory
    name: str
    key: str

    @property
    def fd(self) -> int:
        """The descriptor of the directory."""
        return self.directory.fd

    def status(self, name: str | None = None) -> os.stat_result | None:
        """Look at the entry (or at another one beside it) without following it; None when nothing is there."""
        try:
            return os.stat(name or self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


@dataclass(slots=True, kw_only=True)
class Directories:
    """The directories of one call."""

    tree: Tree
    _open: dict[tuple[str, tuple[str, ...]], Directory] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], Directory]
    )
    _made: list[tuple[Directory, str]] = field(default_factory=list[tuple[Directory, str]])

    def place(self, target: Target) -> Place:
        """Return where a target is; ENOENT when its directory is missing."""
        return self._place(target, make=False)

    def new_place(self, target: Target) -> Place:
        """Return where a target will be, making missing directories."""
        return self._place(target, make=True)

    def _place(self, target: Target, *, make: bool) -> Place:
        if not target.parts:
            raise not_a_file(0o040000, target.key)
        directory = self._directory(self.tree.root_of(target), target.parts[:-1], make=make)
        return Place(directory=directory, name=target.parts[-1], key=target.key)

    def _directory(self, root: Root, parts: tuple[str, ...], *, make: bool) -> Directory:
        known = self._open.get((root.path, parts))
        if known is not None:
            return known
        try:
            directory = self._opened(root, parts)
        except FileNotFoundError:
            if not make or not parts:
                raise
            directory = self._make(root, parts)
        self._open[root.path, parts] = directory
        return directory

    def _opened(self, root: Root, parts: tuple[str, ...]) -> Directory:
        try:
            return Directory(fd=self.tree.open_parts(root, parts, LISTED_DIRECTORY))
        except PermissionError:
            # Writable but not readable: usable, only not to be synced.
            return Directory(fd=self.tree.open_parts(root, parts, DIRECTORY), can_sync=False)

    def _make(self, root: Root, parts: tuple[str, ...]) -> Directory:
        above = self._directory(root, parts[:-1], make=True)
        try:
            os.mkdir(parts[-1], dir_fd=above.fd)  # pathlib knows no dir_fd
        except FileExistsError:
            pass
        else:
            above.dirty = True
            self._made.append((above, parts[-1]))
        try:
            return Directory(fd=open_entry(above.fd, parts[-1], LISTED_DIRECTORY))
        except PermissionError:
            return Directory(fd=open_entry(above.fd, parts[-1], DIRECTORY), can_sync=False)

    def sync(self) -> None:
        """Make the changed names durable, each directory once."""
        for directory in self._open.values():
            if directory.dirty and directory.can_sync:
                try:
                    sync(directory.fd)
                except OSError as error:
                    # Some file systems cannot sync a directory and have nothing to sync in it.
                    if error.errno not in {errno.EINVAL, errno.EBADF}:
                        raise

    def remove_made(self) -> None:
        """Take away the directories that this call made, as far as they are empty."""
        for above, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=above.fd)  # pathlib knows no dir_fd

    def close(self) -> None:
        """Let go of every directory."""
        for directory in self._open.values():
            os.close(directory.fd)
        self._open.clear()

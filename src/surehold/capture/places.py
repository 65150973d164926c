"""Finds the places that the calls of other processes name, as those processes would.

Rules:
1. A path is looked up from the working directory, the descriptors and the root of the process that names it.
2. The kernel looks it up for us in one call. Where `/proc/self` is on the way it would be our own, and absolute links and
   `..` would lead out of another root: there we go from name to name ourselves.
3. Our own working directory is therefore in /proc, where no path of a command leads.
"""

import ctypes
import errno
import os
import stat
from typing import NamedTuple

from surehold.capture.calls import REMOVE_DIRECTORY
from surehold.capture.mounts import OtherPlaces
from surehold.capture.notices import OPEN_HOW, RESOLVE_IN_ROOT, Unreadable

AT_FDCWD = -100
_MAX_LINKS = 40
_OPENAT2 = 437
_ANY = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _ANY | os.O_DIRECTORY
_DELETED = b" (deleted)"
_NOWHERE_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""There is no such directory for the process either, so that its call fails."""
_PROC_ROOT_INODE = 1


class Place(NamedTuple):
    """Where a name is: its directory, without links, and the name in it; the path of both."""

    directory: bytes
    name: bytes

    @property
    def path(self) -> bytes:
        return self.directory + self.name if self.directory == b"/" else b"%b/%b" % (self.directory, self.name)


class PathFinder:
    """Finds the places that the calls of other processes name."""

    def __init__(self, others: OtherPlaces | None = None) -> None:
        self._others = others
        """Where what is below the roots can be reached too."""
        self.sees_other_names = False
        """Some process may have another root, or other mounts."""

    def descriptor_path(self, pid: int, fd: int) -> bytes | None:
        """Return the path of an open file; None when it has none any more."""
        path = _named_path(b"/proc/%d/fd/%d" % (pid, fd))
        return self._others.path_in_roots(path) if self._others and path else path

    def program_path(self, pid: int, at: int, raw: bytes) -> bytes:
        """Return a path that leads to the program that a call names, or to the open file that it means if it names none."""
        if raw[:1] != b"/":
            return _base_of(pid, at) + (b"/" + raw if raw else b"")
        return b"/proc/%d/root" % pid + raw if self.sees_other_names else raw

    def find(self, pid: int, at: int, raw: bytes, *, follow: bool) -> Place | None:
        """Return the place that a path names; None if there is no such directory, or none that has a name."""
        if b"/" not in raw and raw not in {b"", b".", b".."}:
            directory = self._start(pid, at)
            if directory is None:
                return None
            place = Place(directory, raw)
        else:
            found = self._split(pid, at, raw)
            if found is None:
                return None
            place = found
        return self._in_roots(self._follow(pid, place) if follow else place)

    def find_below(self, pid: int, at: int, raw: bytes, *, follow: bool) -> Place | None:
        """Return the place that a path names for a call whose paths begin at a directory, as if that were the root."""
        try:
            top = os.open(b"/proc/%d/cwd" % pid if at == AT_FDCWD else b"/proc/%d/fd/%d" % (pid, at), _DIRECTORY)
        except OSError:
            return None
        try:
            return self._in_roots(_find_below(top, raw, follow=follow))
        finally:
            os.close(top)

    def _in_roots(self, place: Place | None) -> Place | None:
        if self._others and place:
            return Place(self._others.path_in_roots(place.directory), place.name)
        return place

    def _start(self, pid: int, at: int) -> bytes | None:
        if at != AT_FDCWD:
            return self.descriptor_path(pid, at)
        return _named_path(b"/proc/%d/cwd" % pid)

    def _split(self, pid: int, at: int, raw: bytes) -> Place | None:
        path = raw.rstrip(b"/") if raw.strip(b"/") else raw
        head, _, name = path.rpartition(b"/")
        if name in {b"", b".", b".."}:
            whole = self._real_directory(pid, at, path or b".")
            return None if whole is None else _place_of(whole)
        directory = self._real_directory(pid, at, head or b"/") if b"/" in path else self._start(pid, at)
        return None if directory is None else Place(directory, name)

    def _real_directory(self, pid: int, at: int, path: bytes) -> bytes | None:
        """Return the path of a directory without links, as the process would get there."""
        if self.sees_other_names or path.startswith(b"/proc"):
            return self._walk(pid, at, path)
        try:
            fd = os.open(path if path[:1] == b"/" else _base_of(pid, at) + b"/" + path, _DIRECTORY)
        except OSError as error:
            if error.errno in _NOWHERE_ERRNOS:
                return self._walk(pid, at, path)
            return _explain_failure(pid, error)
        try:
            found = _named_path(b"/proc/self/fd/%d" % fd)
        finally:
            os.close(fd)
        return self._walk(pid, at, path) if found and _is_our_own(found) else found

    def _walk(self, pid: int, at: int, path: bytes) -> bytes | None:
        """Return the path of a directory without links, going from name to name as the process does."""
        walk = _DirectoryWalker(pid)
        try:
            return walk.go(_base_of(pid, at), path)
        except OSError as error:
            return None if error.errno in _NOWHERE_ERRNOS else _explain_failure(pid, error)
        finally:
            walk.close()

    def _follow(self, pid: int, place: Place) -> Place | None:
        """Go where a link at the end leads to, also if nothing is there yet."""
        for _ in range(_MAX_LINKS):
            try:
                if not stat.S_ISLNK(os.lstat(place.path).st_mode):
                    return place
                target = os.readlink(place.path)
            except OSError:
                return place
            if place.directory.startswith(b"/proc/"):  # not a name, but the very file that a process has open
                opened = _named_path(place.path)
                return place if opened is None else _place_of(opened)
            if target[:1] != b"/":
                target = b"%b/%b" % (place.directory, target)
            found = self._split(pid, AT_FDCWD, target)
            if found is None:
                return None
            place = found
        return None


def _find_below(top: int, path: bytes, *, follow: bool) -> Place | None:
    root = _named_path(b"/proc/self/fd/%d" % top)
    for _ in range(_MAX_LINKS if root else 0):
        head, _, name = path.rstrip(b"/").rpartition(b"/")
        if name in {b"", b".", b".."}:
            return None  # a directory, which cannot be opened for writing
        directory = _directory_below(top, head or b"/")
        if directory is None:
            return None
        place = Place(directory, name)
        try:
            if not follow or not stat.S_ISLNK(os.lstat(place.path).st_mode):
                return place
            target = os.readlink(place.path)
        except OSError:
            return place
        path = target if target[:1] == b"/" else b"%b/%b" % (directory[len(root or b"") :], target)
    return None


def _directory_below(top: int, path: bytes) -> bytes | None:
    """Return the path of a directory without links, for a process whose root were `top`."""
    how = OPEN_HOW.pack(_DIRECTORY, 0, RESOLVE_IN_ROOT)
    fd = ctypes.CDLL(None, use_errno=True).syscall(_OPENAT2, top, path, how, len(how))
    if fd < 0:
        if ctypes.get_errno() not in _NOWHERE_ERRNOS:
            raise Unreadable
        return None
    try:
        return _named_path(b"/proc/self/fd/%d" % fd)
    finally:
        os.close(fd)


def _named_path(link: bytes) -> bytes | None:
    """Return where a link of /proc leads to; None for what has no name, or none any more."""
    try:
        path = os.readlink(link)
        if path[:1] != b"/" or (path.endswith(_DELETED) and not _is_same_file(link, path)):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:  # too long to be told, or of a process that we may not look into
        raise Unreadable from error
    return path


def _is_same_file(link: bytes, path: bytes) -> bool:
    """Tell whether a name that ends as those of deleted files do is simply a name."""
    try:
        return os.path.samestat(os.stat(link), os.lstat(path))
    except OSError:
        return False


def _place_of(path: bytes) -> Place:
    directory, _, name = path.rpartition(b"/")
    return Place(directory or b"/", name)


def read_link(path: bytes) -> bytes:
    """Return where a link leads to; nothing if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return b""


def goes_away(path: bytes, flags: int) -> bool:
    """Tell whether a call that removes a name can succeed."""
    try:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
    return is_directory == bool(flags & REMOVE_DIRECTORY) and not (is_directory and _has_entries(path))


def _has_entries(path: bytes) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(iter(entries), None) is not None
    except OSError:
        return False


def is_same_entry(one: bytes, other: bytes) -> bool:
    """Tell whether two names are one file: renaming one to the other then does nothing."""
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def gives_rights(program: os.stat_result, pid: int) -> bool:
    """Tell whether a program would run as another user or group than the process that starts it."""
    if not stat.S_ISREG(program.st_mode) or not program.st_mode & (stat.S_ISUID | stat.S_ISGID):
        return False
    with open(f"/proc/{pid}/status", "rb") as rows:
        ids = {row.split()[0]: int(row.split()[2]) for row in rows if row[:4] in {b"Uid:", b"Gid:"}}
    sets_group = program.st_mode & stat.S_ISGID and program.st_mode & stat.S_IXGRP
    return bool(
        (program.st_mode & stat.S_ISUID and program.st_uid != ids[b"Uid:"])
        or (sets_group and program.st_gid != ids[b"Gid:"])
    )


def _base_of(pid: int, at: int) -> bytes:
    return b"/proc/%d/cwd" % pid if at == AT_FDCWD else b"/proc/%d/fd/%d" % (pid, at)


def _is_our_own(path: bytes) -> bool:
    """Tell whether a path is that of this process in /proc: the one who asked meant its own."""
    ours = b"/proc/%d" % os.getpid()
    return path == ours or path.startswith(ours + b"/")


def _explain_failure(pid: int, error: OSError) -> None:
    if error.errno != errno.EACCES:
        raise Unreadable from error
    _named_path(b"/proc/%d/cwd" % pid)  # is it the path, or the process?


class _DirectoryWalker:
    """Goes through a path from name to name."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._opened = list[int]()
        self._links = 0

    def close(self) -> None:
        for fd in self._opened:
            os.close(fd)

    def go(self, base: bytes, path: bytes) -> bytes | None:
        """Return the path of the directory that a path leads to; the last name is followed too."""
        root = self._open(b"/proc/%d/root" % self._pid)
        here = root if path[:1] == b"/" else self._open(base)
        names = path.split(b"/")[::-1]
        while names:
            name = names.pop()
            if name in {b"", b"."} or (name == b".." and os.path.samestat(os.fstat(here), os.fstat(root))):
                continue
            there = self._open(name, here, _ANY | os.O_NOFOLLOW)
            if not stat.S_ISLNK(os.fstat(there).st_mode):
                here = there
                continue
            target = self._read_link(name, here, there)
            if target is None:  # not a name, but the very directory that a process has open
                here = self._open(name, here)
                continue
            here = root if target[:1] == b"/" else here
            names += target.split(b"/")[::-1]
        return _named_path(b"/proc/self/fd/%d" % self._open(b".", here))

    def _read_link(self, name: bytes, directory: int, link: int) -> bytes | None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        status = os.fstat(directory)
        if status.st_dev == os.stat("/proc").st_dev:
            if status.st_ino != _PROC_ROOT_INODE:
                return None
            if name in {b"self", b"thread-self"}:
                return b"%d" % self._pid
        return os.readlink(b"", dir_fd=link)

    def _open(self, name: bytes, directory: int | None = None, flags: int = _DIRECTORY) -> int:
        self._opened.append(os.open(name, flags, dir_fd=directory))
        return self._opened[-1]

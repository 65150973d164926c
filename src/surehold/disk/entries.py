"""Entries of any kind, as the history names them: where they are, what they are, and all of their facts. No link is followed."""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress

from surehold.disk.base import StoredEntry, Target
from surehold.disk.errno_errors import as_surehold_error, not_a_file_error, too_large_error
from surehold.disk.kernel import O_CLOEXEC, O_NOFOLLOW, O_PATH, close_after
from surehold.disk.tree import (
    DIRECTORY_FLAGS,
    LISTED_DIRECTORY_FLAGS,
    Tree,
    file_identity,
    open_entry,
    open_own,
    read_all,
    readable_for_us,
    split_path,
)
from surehold.text.snapshot import Kind, Meta, Version, sha256_hex

Holes = tuple[tuple[int, int], ...]
_KEPT_ATTRIBUTES = frozenset({"system.posix_acl_access", "system.posix_acl_default", "security.capability"})
ENTRY_TYPES: dict[Kind, int] = {
    "file": stat.S_IFREG,
    "link": stat.S_IFLNK,
    "directory": stat.S_IFDIR,
    "fifo": stat.S_IFIFO,
}
_KINDS: dict[int, Kind] = {type_bits: kind for kind, type_bits in ENTRY_TYPES.items()}
_NOTHING_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_BARE_SHA256: dict[Kind, str] = {kind: sha256_hex(kind.encode()) for kind in ("directory", "fifo")}


def locate_key(tree: Tree, key: str) -> Target:
    """Return the target of a recorded name."""
    names = split_path(key) if key.startswith("/") else (*tree.roots[0].names, *split_path(key))
    return tree.target_of(names)


def nearest_targets(tree: Tree, targets: Sequence[Target]) -> list[Target]:
    """Return one target in each directory that some of these are in, or would be in, as far as it exists now."""
    found: dict[tuple[str, tuple[str, ...]], Target] = {}
    known: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for target in targets:
        parts = target.parts[:-1]
        if (target.root, parts) not in known:
            known[target.root, parts] = _existing_part(tree, target, parts)
        above = known[target.root, parts]
        root = tree.root_of(target)
        found.setdefault((target.root, above), tree.target_of((*root.names, *above, "-")))
    return list(found.values())


def _existing_part(tree: Tree, target: Target, parts: tuple[str, ...]) -> tuple[str, ...]:
    while parts:
        try:
            os.close(tree.open_parts(tree.root_of(target), parts, DIRECTORY_FLAGS))
        except OSError:
            parts = parts[:-1]
        else:
            break
    return parts


def missing_above(tree: Tree, target: Target) -> tuple[str, ...]:
    """Return the keys of the directories above a target that do not exist, the outermost first."""
    above = target.parts[:-1]
    depths = range(len(_existing_part(tree, target, above)) + 1, len(above) + 1)
    return tuple(tree.target_of((*tree.root_of(target).names, *above[:depth])).key for depth in depths)


def is_empty_directory(tree: Tree, directory: Target) -> bool:
    """Look whether a directory is there and has no entry; one that cannot be read counts as in use."""
    try:
        with close_after(tree.open_target(directory, LISTED_DIRECTORY_FLAGS)) as fd, os.scandir(fd) as found:
            return next(found, None) is None
    except OSError:
        return False


def remove_directory(tree: Tree, directory: Target) -> bool:
    """Remove a directory if it is empty, which the operating system decides; tell whether it was."""
    try:
        with close_after(tree.open_parts(tree.root_of(directory), directory.parts[:-1], DIRECTORY_FLAGS)) as above:
            os.rmdir(directory.parts[-1], dir_fd=above)  # pathlib knows no dir_fd
    except OSError:
        return False
    return True


def read_located(tree: Tree, target: Target, *, limit: int) -> StoredEntry | None:
    """Look at an entry; None where nothing is, also if something else than a directory is above."""
    root, above = tree.root_of(target), target.parts[:-1]
    try:
        try:
            directory = tree.open_parts(root, above, DIRECTORY_FLAGS)
        except PermissionError:
            directory = _open_locked(tree.root_fd(root), above)
        with close_after(directory):
            if os.access(".", os.X_OK, dir_fd=directory):
                return _read_in(directory, target.parts[-1] if target.parts else ".", target, limit)
            with readable_for_us(f"/proc/self/fd/{directory}", os.fstat(directory)):
                return _read_in(directory, target.parts[-1] if target.parts else ".", target, limit)
    except OSError as error:
        if error.errno in _NOTHING_ERRNOS:
            return None
        raise as_surehold_error(error, target.key) from error


def _open_locked(root: int, parts: Sequence[str]) -> int:
    """Open a directory below some of ours whose modes keep us out: each lets us through for that moment."""
    here = os.dup(root)
    for name in parts:
        with close_after(here), readable_for_us(f"/proc/self/fd/{here}", os.fstat(here)):
            below = open_entry(here, name, DIRECTORY_FLAGS)
        here = below
    return here


def _read_in(directory: int, name: str, target: Target, limit: int) -> StoredEntry:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        raise not_a_file_error(status.st_mode, target.key)
    data: bytes | None = b""
    names, holes = (), ()
    if kind == "link":
        data = os.fsencode(os.readlink(name, dir_fd=directory))
    elif kind == "directory":
        with suppress(PermissionError), close_after(_open_listed(directory, name)) as fd:
            names = tuple(os.listdir(fd))  # noqa: PTH208  # pathlib lists no descriptor
    elif kind == "file":
        if status.st_size > limit:
            raise too_large_error(target.key, status.st_size, limit)
        data, holes = _read_file(directory, name, status, limit)
    attributes = () if kind == "link" else read_attributes(entry_path(directory, name))
    meta = Meta(
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        xattrs=attributes,
    )
    sha256 = "" if data is None else name_content(kind, data)
    size = status.st_size if kind == "file" else len(data or b"")
    version = Version(sha256=sha256, size=size, meta=meta, kind=kind, holes=holes)
    return StoredEntry(
        version=version, data=data or b"", links=status.st_nlink, identity=file_identity(status), names=names
    )


def _open_listed(directory: int, name: str) -> int:
    try:
        return open_entry(directory, name, LISTED_DIRECTORY_FLAGS)
    except PermissionError:
        with (
            close_after(open_entry(directory, name, DIRECTORY_FLAGS)) as fd,
            readable_for_us(f"/proc/self/fd/{fd}", os.fstat(fd)) as path,
        ):
            return os.open(path, LISTED_DIRECTORY_FLAGS)


def name_content(kind: Kind, data: bytes) -> str:
    """Return the name of what an entry holds; all that hold nothing have one name for each kind."""
    return _BARE_SHA256[kind] if kind in _BARE_SHA256 else sha256_hex(data)


def _read_file(directory: int, name: str, status: os.stat_result, limit: int) -> tuple[bytes | None, Holes]:
    """Return the bytes of a file, and its holes; no bytes if we may not read it."""
    try:
        fd = open_own(directory, name)
    except PermissionError:
        return None, ()
    with close_after(fd):
        holes = find_holes(fd, status.st_size) if status.st_blocks * 512 < status.st_size else ()
        return read_all(fd, size=status.st_size, limit=limit), holes


def entry_path(directory: int, name: str) -> str:
    """Return a path for calls that take no descriptor of a directory."""
    return f"/proc/self/fd/{directory}/{name}"


def read_attributes(path: "str | bytes", *, follow: bool = False) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes that a person or a program may have set, in the order of their names."""
    try:
        names = os.listxattr(path, follow_symlinks=follow)
    except OSError:
        return ()
    if not names:
        return ()
    found = list[tuple[str, bytes]]()
    for name in sorted(names):
        if _is_kept(name):
            with suppress(OSError):
                found.append((name, _read_attribute(path, name, follow=follow)))
    return tuple(found)


def _read_attribute(path: "str | bytes", name: str, *, follow: bool) -> bytes:
    try:
        return os.getxattr(path, name, follow_symlinks=follow)
    except PermissionError:  # attributes are as protected as the content
        with readable_for_us(path, os.stat(path, follow_symlinks=follow)):  # noqa: PTH116
            return os.getxattr(path, name, follow_symlinks=follow)


def _is_kept(name: str) -> bool:
    return name.startswith(("user.", "trusted.")) or name in _KEPT_ATTRIBUTES


def find_holes(fd: int, size: int) -> Holes:
    """Return where a file has no blocks, as pairs of begin and end."""
    holes, at = list[tuple[int, int]](), 0
    while True:
        try:
            begin = os.lseek(fd, at, os.SEEK_HOLE)
        except OSError:  # ENXIO: `at` is the end
            break
        if begin >= size:
            break
        try:
            end = os.lseek(fd, begin, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole up to the end
            end = size
        holes.append((begin, end))
        at = end
    os.lseek(fd, 0, os.SEEK_SET)
    return tuple(holes)


class NotTheKind(Exception):
    """An entry of another kind is there."""


def set_facts(path: str, kind: Kind, meta: Meta) -> None:
    """Give an entry a mode, an owner, attributes and a time; an owner that we may not give is left as it is.

    The entry is held open, so that all of it happens to one entry, and a link that takes its place is not followed.
    """
    with close_after(os.open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC)) as fd:
        status = os.fstat(fd)
        if stat.S_IFMT(status.st_mode) != ENTRY_TYPES[kind]:
            raise NotTheKind
        entry = path if kind == "link" else f"/proc/self/fd/{fd}"
        follow = kind != "link"  # from the descriptor to the entry
        if (status.st_uid, status.st_gid) != (meta.uid, meta.gid):
            _set_owner(entry, meta, follow=follow)
        if kind != "link":
            _set_attributes(fd, entry, meta.xattrs)
            if stat.S_IMODE(os.fstat(fd).st_mode) != meta.mode:
                os.chmod(entry, meta.mode)  # noqa: PTH101  # a path below a descriptor
        if meta.mtime_ns:
            os.utime(entry, ns=(status.st_atime_ns, meta.mtime_ns), follow_symlinks=follow)


def _set_owner(path: str, meta: Meta, *, follow: bool) -> None:
    try:
        os.chown(path, meta.uid, meta.gid, follow_symlinks=follow)
    except PermissionError:
        with suppress(PermissionError):  # the group alone may be one of ours
            os.chown(path, -1, meta.gid, follow_symlinks=follow)


def _set_attributes(fd: int, path: str, wanted: Iterable[tuple[str, bytes]]) -> None:
    now, then = dict(read_attributes(path, follow=True)), dict(wanted)
    if now == then:
        return
    if not os.access(path, os.W_OK):  # attributes are as protected as the content; the mode is set after them
        os.chmod(path, stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IWUSR)  # noqa: PTH101
    for name in now.keys() - then.keys():
        os.removexattr(path, name)
    for name, value in then.items():
        if now.get(name) != value:
            os.setxattr(path, name, value)

"""What the operating system's errors are called here: the only place that translates them."""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager

from surehold.errors import (
    AlreadyExists,
    DiskFailed,
    DiskFull,
    InvalidArgument,
    NotAFile,
    NotFound,
    OutsideWorkspace,
    PermissionDenied,
    StaleFile,
    SureholdError,
)

_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "symbolic link"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)


def translate(error: OSError, path: str) -> SureholdError:
    """Return our error for the system's."""
    known = _KNOWN.get(error.errno or 0)
    return known(path) if known else _failed(error, path)


def _failed(error: OSError, path: str) -> DiskFailed:
    reasons = {
        errno.EMFILE: "too_many_open_files",
        errno.ENFILE: "too_many_open_files",
        errno.ETXTBSY: "file_busy",
        errno.EBUSY: "file_busy",
        errno.EFBIG: "file_size_limit",
    }
    text = os.strerror(error.errno) if error.errno else str(error)
    return DiskFailed(f"`{path}`: {text}.", path=path, reason=reasons.get(error.errno or 0), errno=error.errno)


@contextmanager
def translated(path: str) -> Generator[None]:
    """Turn any `OSError` of the block into our error about `path`."""
    try:
        yield
    except OSError as error:
        raise translate(error, path) from error


def not_a_directory(path: str) -> NotFound:
    """Return the error for a path that goes on below a file."""
    return NotFound(f"A part of `{path}` is a file, not a directory.", path=path, reason="not_a_directory")


def not_a_file(mode: int, path: str) -> NotAFile:
    """Return the error for anything that is there but is no regular file."""
    kind = next((name for test, name in _KINDS if test(mode)), "special file")
    reason = "is_a_directory" if kind == "directory" else "not_a_file"
    return NotAFile(f"`{path}` is a {kind}, not a regular file.", path=path, reason=reason, file_type=kind)


def escape(path: str) -> OutsideWorkspace:
    """Return the error for a link that leads, or could lead, out of the roots."""
    return OutsideWorkspace(
        f"`{path}` passes through a symbolic link that leads out of the workspace.",
        path=path,
        reason="symlink_escape",
    )


def no_parent(path: str) -> NotFound:
    """Return the error for a new file whose directory is missing and must not be made."""
    return NotFound(
        f"The directory of `{path}` does not exist.",
        path=path,
        reason="no_such_parent",
        action="Allow parent directories to be created, or choose an existing directory.",
    )


def vanished(path: str, expected: str) -> StaleFile:
    """Return the error for a file that was there a moment ago."""
    return StaleFile(
        f"`{path}` is gone.",
        path=path,
        reason="vanished",
        action="Create the file again, or leave it deleted.",
        expected=expected,
        actual=None,
    )


def displaced(path: str, expected: str, actual: str | None) -> StaleFile:
    """Return the error for bytes that another program wrote in the last moment."""
    return StaleFile(
        f"Another program changed `{path}` while it was being written.",
        path=path,
        reason="displaced_mismatch",
        expected=expected,
        actual=actual,
    )


def taken(mode: int, path: str) -> AlreadyExists:
    """Return the error for a name that something has already."""
    if stat.S_ISDIR(mode):
        return AlreadyExists(f"`{path}` already exists and is a directory.", path=path, reason="directory")
    return AlreadyExists(f"`{path}` already exists.", path=path)


def _missing(path: str) -> NotFound:
    return NotFound(f"There is no file `{path}`.", path=path)


def _denied(path: str) -> PermissionDenied:
    return PermissionDenied(f"The operating system denies access to `{path}`.", path=path)


_KNOWN: dict[int, Callable[[str], SureholdError]] = {
    errno.ENOENT: _missing,
    errno.ESTALE: _missing,
    errno.ENOTDIR: not_a_directory,
    errno.EISDIR: lambda path: not_a_file(stat.S_IFDIR, path),
    errno.ENXIO: lambda path: not_a_file(stat.S_IFSOCK, path),
    errno.EEXIST: lambda path: taken(stat.S_IFREG, path),
    errno.EACCES: _denied,
    errno.EPERM: _denied,
    errno.EROFS: lambda path: PermissionDenied(
        f"`{path}` is on a read-only file system.", path=path, reason="read_only_fs"
    ),
    errno.ELOOP: escape,
    errno.ENAMETOOLONG: lambda path: InvalidArgument(
        f"The path `{path[:80]}…` is too long.", path=path, reason="path_too_long"
    ),
    errno.ENOSPC: lambda path: DiskFull(f"There is no space left for `{path}`.", path=path),
    errno.EDQUOT: lambda path: DiskFull(f"The disk quota leaves no space for `{path}`.", path=path, reason="quota"),
}

"""Translates errors of the operating system into Surehold errors; no other module does."""

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

_FILE_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "symbolic link"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)


def as_surehold_error(error: OSError, path: str) -> SureholdError:
    known = _ERRORS_BY_ERRNO.get(error.errno or 0)
    return known(path) if known else _disk_failed_error(error, path)


def _disk_failed_error(error: OSError, path: str) -> DiskFailed:
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
def translate_os_errors(path: str) -> Generator[None]:
    """Turn any `OSError` of the block into our error about `path`."""
    try:
        yield
    except OSError as error:
        raise as_surehold_error(error, path) from error


def not_a_directory_error(path: str) -> NotFound:
    """Return the error for a path that goes on below a file."""
    return NotFound(f"A part of `{path}` is a file, not a directory.", path=path, reason="not_a_directory")


def not_a_file_error(mode: int, path: str) -> NotAFile:
    """Return the error for anything that is there but is not a regular file."""
    kind = next((name for test, name in _FILE_KINDS if test(mode)), "special file")
    reason = "is_a_directory" if kind == "directory" else "not_a_file"
    return NotAFile(f"`{path}` is a {kind}, not a regular file.", path=path, reason=reason, file_type=kind)


def symlink_escape_error(path: str) -> OutsideWorkspace:
    """Return the error for a link that leads, or could lead, out of the roots."""
    return OutsideWorkspace(
        f"`{path}` passes through a symbolic link that leads out of the workspace.",
        path=path,
        reason="symlink_escape",
    )


def no_parent_error(path: str) -> NotFound:
    """Return the error for a new file whose directory is missing and must not be made."""
    return NotFound(
        f"The directory of `{path}` does not exist.",
        path=path,
        reason="no_such_parent",
        action="Allow parent directories to be created, or choose an existing directory.",
    )


def vanished_error(path: str, expected: str) -> StaleFile:
    return StaleFile(
        f"`{path}` is gone.",
        path=path,
        reason="vanished",
        action="Create the file again, or leave it deleted.",
        expected=expected,
        actual=None,
    )


def displaced_error(path: str, expected: str, actual: str | None) -> StaleFile:
    """Return the error for bytes that another program wrote in the last moment."""
    return StaleFile(
        f"Another program changed `{path}` while it was being written.",
        path=path,
        reason="displaced_mismatch",
        expected=expected,
        actual=actual,
    )


def name_taken_error(mode: int, path: str) -> AlreadyExists:
    if stat.S_ISDIR(mode):
        return AlreadyExists(f"`{path}` already exists and is a directory.", path=path, reason="directory")
    return AlreadyExists(f"`{path}` already exists.", path=path)


def _missing_error(path: str) -> NotFound:
    return NotFound(f"There is no file `{path}`.", path=path)


def _denied_error(path: str) -> PermissionDenied:
    return PermissionDenied(f"The operating system denies access to `{path}`.", path=path)


_ERRORS_BY_ERRNO: dict[int, Callable[[str], SureholdError]] = {
    errno.ENOENT: _missing_error,
    errno.ESTALE: _missing_error,
    errno.ENOTDIR: not_a_directory_error,
    errno.EISDIR: lambda path: not_a_file_error(stat.S_IFDIR, path),
    errno.ENXIO: lambda path: not_a_file_error(stat.S_IFSOCK, path),
    errno.EEXIST: lambda path: name_taken_error(stat.S_IFREG, path),
    errno.EACCES: _denied_error,
    errno.EPERM: _denied_error,
    errno.EROFS: lambda path: PermissionDenied(
        f"`{path}` is on a read-only file system.", path=path, reason="read_only_fs"
    ),
    errno.ELOOP: symlink_escape_error,
    errno.ENAMETOOLONG: lambda path: InvalidArgument(
        f"The path `{path[:80]}…` is too long.", path=path, reason="path_too_long"
    ),
    errno.ENOSPC: lambda path: DiskFull(f"There is no space left for `{path}`.", path=path),
    errno.EDQUOT: lambda path: DiskFull(f"The disk quota leaves no space for `{path}`.", path=path, reason="quota"),
}

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
    FileTooLarge,
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


_FAILURE_REASONS = {
    errno.EMFILE: "too_many_open_files",
    errno.ENFILE: "too_many_open_files",
    errno.ETXTBSY: "file_busy",
    errno.EBUSY: "file_busy",
    errno.EFBIG: "file_size_limit",
}


def as_surehold_error(error: OSError, path: str) -> SureholdError:
    code = error.errno or 0
    if known := _ERRORS_BY_ERRNO.get(code):
        return known(path)
    text = os.strerror(code) if code else str(error)
    return DiskFailed(f"`{path}`: {text}.", path=path, reason=_FAILURE_REASONS.get(code), errno=error.errno)


class OsErrorTranslation:
    """Raises what the operating system reports inside a block as an error about a path."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise as_surehold_error(error, self._path) from error


translate_os_errors = OsErrorTranslation


def not_a_directory_error(path: str) -> NotFound:
    return NotFound(f"A part of `{path}` is a file, not a directory.", path=path, reason="not_a_directory")


def not_a_file_error(mode: int, path: str) -> NotAFile:
    kind = next((name for test, name in _FILE_KINDS if test(mode)), "special file")
    reason = "is_a_directory" if kind == "directory" else "not_a_file"
    return NotAFile(f"`{path}` is a {kind}, not a regular file.", path=path, reason=reason, file_type=kind)


def symlink_escape_error(path: str) -> OutsideWorkspace:
    """Return the error for a link that leads, or could lead, out of the roots."""
    return OutsideWorkspace(
        f"`{path}` passes through a symbolic link that leads out of the workspace.", path=path, reason="symlink_escape"
    )


def root_replaced_error(root: str) -> OutsideWorkspace:
    message = (
        f"`{root}` is no longer the directory that was opened as the workspace: it was moved, removed or replaced."
    )
    return OutsideWorkspace(
        message, path=root, reason="root_replaced", action="Open the workspace again (restart the server)."
    )


def open_for_writing_error(path: str, *, removes: bool = False) -> StaleFile:
    message = f"Another program has `{path}` open for writing, and this change would make the file shorter."
    if removes:
        message = f"Another program has `{path}` open for writing; what it writes next would be lost with the file."
    action = "Try again when that program has closed the file."
    return StaleFile(message, path=path, reason="open_for_writing", action=action)


def no_parent_error(path: str) -> NotFound:
    return NotFound(
        f"The directory of `{path}` does not exist.",
        path=path,
        reason="no_such_parent",
        action="Allow parent directories to be created, or choose an existing directory.",
    )


@contextmanager
def translate_vanished(path: str, expected: str) -> Generator[None]:
    """Say of a file that is missing in the block that it is gone."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise vanished_error(path, expected) from error


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


def missing_error(path: str) -> NotFound:
    return NotFound(f"There is no file `{path}`.", path=path)


def not_listable_error(path: str) -> NotFound:
    action = "Name a directory, or read the file."
    return NotFound(f"`{path}` is not a directory.", path=path, reason="not_a_directory", action=action)


def too_large_error(path: str, size: int, limit: int) -> FileTooLarge:
    return FileTooLarge(f"`{path}` has {size} bytes, more than {limit}.", path=path, size=size, limit=limit)


def _denied_error(path: str) -> PermissionDenied:
    return PermissionDenied(f"The operating system denies access to `{path}`.", path=path)


_ERRORS_BY_ERRNO: dict[int, Callable[[str], SureholdError]] = {
    errno.ENOENT: missing_error,
    errno.ESTALE: missing_error,
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

"""Translates the errors of SQLite and of the state directory; no other module does."""

import errno
import resource
import sqlite3
from pathlib import Path

from surehold.errors import (
    VERIFY,
    DiskFailed,
    DiskFull,
    LockTimeout,
    StateCorrupt,
    StateUnavailable,
    SureholdError,
    spell,
)


def archive_damaged_error(first: int, last: int, cause: str) -> StateCorrupt:
    return StateCorrupt(
        f"The archive of the entries {first} to {last} is damaged.",
        action=spell("Run {} to see what else is affected, and take the history from a backup.", VERIFY),
        seq=first,
        cause=cause,
    )


_PRIMARY_CODE_MASK = 0xFF  # the low byte of SQLite's extended result codes
_NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
_UNUSABLE_ERRNOS = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP}
)
_CORRUPT_CODES = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,  # a table is missing
        sqlite3.SQLITE_CONSTRAINT,  # an entry is after the end of the chain
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
    }
)
_LOCKED_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def translate_sqlite_error(error: sqlite3.Error, database: Path) -> SureholdError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE_MASK
    if code == sqlite3.SQLITE_FULL:
        return DiskFull("There is no room for the history.", path=str(database))
    if code in _LOCKED_CODES:
        return history_locked_error(database)
    if code == sqlite3.SQLITE_IOERR and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        return _file_limit_error(database, cause=str(error))  # SQLite does not tell it from a disk that failed
    if code == sqlite3.SQLITE_IOERR:
        return DiskFailed("The disk failed under the history.", path=str(database), cause=str(error))
    if code in _CORRUPT_CODES:
        return history_corrupt_error(database, cause=str(error))
    return StateUnavailable("The history cannot be written.", path=str(database), cause=str(error))


def translate_os_error(error: OSError, path: Path) -> SureholdError:
    cause = error.strerror or str(error)
    if error.errno in _NO_SPACE_ERRNOS:
        return DiskFull("There is no room in the state directory.", path=str(path))
    if error.errno == errno.EFBIG:
        return _file_limit_error(path, cause=cause)
    if error.errno in _UNUSABLE_ERRNOS:
        return StateUnavailable("The state directory cannot be used.", path=str(path), cause=cause)
    return DiskFailed("The disk failed under the state directory.", path=str(path), cause=cause)


def _file_limit_error(path: Path, *, cause: str) -> StateUnavailable:
    return StateUnavailable(
        "The history cannot grow under this limit on the size of files.",
        reason="file_size_limit",
        action="Raise the limit (`ulimit -f`); if it is high enough, check the disk.",
        path=str(path),
        cause=cause,
    )


def history_locked_error(database: Path) -> LockTimeout:
    return LockTimeout("Another process holds the history.", path=str(database), reason="state_locked")


def history_replaced_error(database: Path) -> StateUnavailable:
    return StateUnavailable(
        "The history was removed or replaced while it was open.",
        path=str(database),
        reason="state_replaced",
        action="Open the workspace again (restart the server) to use what is there now, or put the old history back first.",
    )


def history_corrupt_error(database: Path, *, cause: str) -> StateCorrupt:
    return StateCorrupt(
        "The history is damaged.",
        path=str(database),
        action=f"Put `{database.name}` back from a backup, or move `{database.parent}` aside to start a new history.",
        cause=cause,
    )

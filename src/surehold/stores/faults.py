"""How the trouble of SQLite and of the state directory becomes an error of ours; the only place that decides it."""

import errno
import sqlite3
from pathlib import Path

from surehold.errors import (
    DiskFailed,
    DiskFull,
    LockTimeout,
    StateCorrupt,
    StateUnavailable,
    SureholdError,
)

_PRIMARY = 0xFF  # the low byte of SQLite's extended result codes
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP}
)
_DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,  # a table is missing
        sqlite3.SQLITE_CONSTRAINT,  # an entry stands behind the end of the chain
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
    }
)
_WAITED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def from_sqlite(error: sqlite3.Error, database: Path) -> SureholdError:
    """Say in our words what SQLite said."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    if code == sqlite3.SQLITE_FULL:
        return DiskFull("There is no room for the history.", path=str(database))
    if code in _WAITED:
        return locked(database)
    if code == sqlite3.SQLITE_IOERR:
        return DiskFailed("The disk failed under the history.", path=str(database), cause=str(error))
    if code in _DAMAGED:
        return corrupt(database, cause=str(error))
    return StateUnavailable("The history cannot be written.", path=str(database), cause=str(error))


def from_os(error: OSError, path: Path) -> SureholdError:
    """Say in our words what the operating system said of a file in the state directory."""
    cause = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        return DiskFull("There is no room in the state directory.", path=str(path))
    if error.errno in _NOT_ALLOWED:
        return StateUnavailable("The state directory cannot be used.", path=str(path), cause=cause)
    return DiskFailed("The disk failed under the state directory.", path=str(path), cause=cause)


def locked(database: Path) -> LockTimeout:
    """Say that somebody else writes to the history for longer than we wait."""
    return LockTimeout("Another process holds the history.", path=str(database), reason="state_locked")


def replaced(database: Path) -> StateUnavailable:
    """Say that the database we opened is not the one that stands there now."""
    return StateUnavailable(
        "The history was removed or replaced while it was open.",
        path=str(database),
        reason="state_replaced",
        action="Open the workspace again (restart the server) to use what is there now, or put the old history back first.",
    )


def corrupt(database: Path, *, cause: str) -> StateCorrupt:
    """Say that the database is not what we left there."""
    return StateCorrupt(
        "The history is damaged.",
        path=str(database),
        action=f"Put `{database.name}` back from a backup, or move `{database.parent}` aside to start a new history.",
        cause=cause,
    )

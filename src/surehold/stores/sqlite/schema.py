"""The schema of the database: numbered migration scripts that only go forward.

1. A script and its number are one transaction; two processes that open an old database at once migrate it once.
2. A database written by a newer Surehold is left alone.
3. The README is written after the first migration. A directory that has it and an empty database has lost its history.
"""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surehold.errors import STATE_DIR, StateTooNew, StateUnavailable, spell
from surehold.stores.ledger_entries import from_json, microseconds
from surehold.stores.sqlite import state_errors

MIGRATIONS = (
    "0001_init.sql",
    "0002_anchored_lines.sql",
    "0003_server_runs.sql",
    "0004_turns.sql",
    "0005_intent_owners.sql",
    "0006_ledger_indexes.sql",
    "0007_switches.sql",
    "0008_smaller_rows.sql",
    "0009_entry_writers.sql",
    "0010_archive.sql",
    "0011_path_writers.sql",
    "0012_large_versions.sql",
    "0013_questions.sql",
)
LATEST = len(MIGRATIONS)

_FOLDER = Path(__file__).parent / "migrations"
_README = """\
This directory belongs to Surehold, file tools for AI agents that never lose an edit.

It remembers what agents did to the files of one workspace, so that it can be shown and taken back:

  state.db     the history: who changed which file, when and why (SQLite; -wal and -shm belong to it)
  blobs/       earlier versions of large files, compressed, named by the sha256 of their content
  state.lock   an empty file that lets writers wait in line
  state.sync   a few numbers that let writers share one sync of the disk

Look at it with `surehold log`, take a change back with `surehold undo`, check it with `surehold verify`, and make it
smaller with `surehold gc --keep 30d`. Please do not edit it by hand. When the workspace is gone for good, or its
history is not needed any more, the whole directory may be deleted.
"""


def schema_version(connection: sqlite3.Connection) -> int:
    """Return how many scripts the database has seen; refuse one that has seen more than we know."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > LATEST:
        raise StateTooNew("A newer Surehold wrote this history.", database_version=version, supported_version=LATEST)
    return version


def is_current(connection: sqlite3.Connection, database: Path) -> bool:
    return schema_version(connection) == LATEST and database.with_name("README").exists()


def migrate(connection: sqlite3.Connection, database: Path) -> None:
    """Bring the database to our version. The caller holds the writers' turn."""
    version = schema_version(connection)
    readme = database.with_name("README")
    if version == 0 and readme.exists():
        raise state_errors.history_corrupt_error(
            database, cause="The database is empty, but this directory had a history."
        )
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only a new file can learn to become shorter
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StateUnavailable(
            "The file system of the state directory cannot hold the history.",
            path=str(database),
            action=spell("Name a directory on a local disk with {}.", STATE_DIR),
        )
    for number in range(version, LATEST):
        _run_script(connection, MIGRATIONS[number], number + 1)
    if not readme.exists():
        _write_text(readme, _README)


def _run_script(connection: sqlite3.Connection, script: str, number: int) -> None:
    connection.create_function("writer_of", 8, _writer_of, deterministic=True)
    connection.create_function("from_hex", 1, _from_hex, deterministic=True)
    connection.create_function("microseconds", 1, microseconds, deterministic=True)
    connection.create_function("without_base", 2, _without_base, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if schema_version(connection) < number:  # no other process changed it since we looked
            for statement in _split_statements((_FOLDER / script).read_text("utf-8")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _writer_of(*stored: Any) -> str:
    """Return who wrote an entry, which rows of earlier versions of Surehold say in their body alone."""
    from surehold.stores.sqlite.entry_rows import body_of_row

    *columns, timestamp, body = stored
    row = (*columns, "", b"", 1, timestamp, "", "", None, isinstance(body, str), body)
    return from_json(body_of_row(row))["call"]["writer"]


def _from_hex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _without_base(data: bytes | None, base: str | None) -> bytes | None:
    """Leave out the name of the base in packed bytes: after the first byte, 32 more."""
    return data[:1] + data[33:] if data and base else data


def _split_statements(script: str) -> Iterator[str]:
    # Connection.executescript would commit first; a migration must be one transaction.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _write_text(path: Path, text: str) -> None:
    place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(place, "w", encoding="utf-8") as file:
        file.write(text)

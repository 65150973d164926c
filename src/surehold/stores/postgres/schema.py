"""The schema of the database: numbered migration scripts that only go forward, and who may use it.

1. All scripts that are missing run in one transaction; two processes that migrate at once do it once.
2. A schema that a newer Surehold wrote is left alone. An older one is refused until `surehold state init` brings it up to date:
   replicas of the older version would be surprised by a change under their feet.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, StateTooNew, StateUnavailable
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.postgres.database_errors import not_set_up_error

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase

MIGRATIONS = ("0001_init.sql", "0002_functions.sql")
LATEST = len(MIGRATIONS)

_FOLDER = Path(__file__).parent / "migrations"
_ROLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('surehold migrations'), hashtext(current_schema()))"
_HAS_VERSION = "SELECT to_regclass('schema_version') IS NOT NULL"
_VERSION = "SELECT version FROM schema_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    """What the database says of one workspace."""

    name: str
    root: str
    host: str
    entries: int
    open_intents: int


def set_up(database: "PostgresDatabase") -> tuple[int, int]:
    """Bring the schema to our version; return which it had, and which it has."""

    def migrate(connection: "Connection") -> tuple[int, int]:
        fetch_rows(connection, f"CREATE SCHEMA IF NOT EXISTS {database.address.schema}")
        fetch_rows(connection, _LOCK)
        before = read_version(connection)
        if before > LATEST:
            raise _too_new_error(before)
        if before == 0:
            fetch_rows(connection, "CREATE TABLE schema_version (version integer NOT NULL)")
            fetch_rows(connection, "INSERT INTO schema_version VALUES (0)")
        for script in MIGRATIONS[before:]:
            fetch_rows(connection, (_FOLDER / script).read_text("utf-8"))
        fetch_rows(connection, f"UPDATE schema_version SET version = {LATEST}")  # noqa: S608 - a constant
        return before, LATEST

    return database.transact(migrate)


def read_version(connection: "Connection") -> int:
    """Return how many scripts the schema has seen; 0 when there is none."""
    ((is_there,),) = fetch_rows(connection, _HAS_VERSION)
    return fetch_rows(connection, _VERSION)[0][0] if is_there else 0


def check_version(version: int, shown: str) -> None:
    """Refuse a schema that is missing, older or newer than ours."""
    if version > LATEST:
        raise _too_new_error(version)
    if version == 0:
        raise not_set_up_error(shown)
    if version < LATEST:
        raise StateUnavailable(
            "An older Surehold set up this history.",
            reason="state_too_old",
            action=f"Nothing was written. Stop the older servers, then run `surehold state init {shown}`.",
            database_version=version,
            supported_version=LATEST,
        )


def grant_to(database: "PostgresDatabase", role: str) -> None:
    """Let a role use the history, and do nothing else: it cannot change or remove entries, nor the schema."""
    for statement in statements_for_role(database.address.schema, role):
        database.change(statement)


def statements_for_role(schema: str, role: str) -> tuple[str, ...]:
    """Return what lets a role use the history, as SQL."""
    if not _ROLE_NAME.fullmatch(role):
        raise InvalidArgument(f"`{role}` cannot be the name of a role.", reason="bad_role", action="Name a role.")
    grown = "entries, seals"
    changed = (
        "workspaces, paths, unsealed, intents, answers, blobs, trash, switches, sessions, turns, sightings, server_runs"
    )
    return (
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT INSERT ON {_qualified(schema, grown)} TO {role}",
        f"GRANT INSERT, UPDATE, DELETE ON {_qualified(schema, changed)} TO {role}",
        f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}",
    )


def claim_workspace(database: "PostgresDatabase", name: str, root: str, host: str) -> int:
    """Return the number of a workspace, which is made if there is none; refuse one of another directory of this host."""
    insert = "INSERT INTO workspaces (name, root, host) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    database.change(insert, (name, root, host))
    number, its_root, its_host = database.call("SELECT ws, root, host FROM workspaces WHERE name = %s", (name,))
    if its_host == host and its_root != root:
        raise StateUnavailable(
            f"The state `{name}` belongs to another workspace: {its_root}.",
            reason="state_of_another_workspace",
            action="Nothing was written. Name another workspace in the URL (?workspace=NAME), or none to go by the directory.",
            state=database.address.shown,
        )
    return number


def list_workspaces(database: "PostgresDatabase") -> tuple[WorkspaceRow, ...]:
    rows = database.rows(
        "SELECT name, root, host, (SELECT count(*) FROM entries WHERE entries.ws = workspaces.ws),"
        " (SELECT count(*) FROM intents WHERE intents.ws = workspaces.ws) FROM workspaces ORDER BY name"
    )
    return tuple(
        WorkspaceRow(name=name, root=root, host=host, entries=entries, open_intents=opened)
        for name, root, host, entries, opened in rows
    )


def _qualified(schema: str, names: str) -> str:
    return ", ".join(f"{schema}.{name}" for name in names.split(", "))


def _too_new_error(version: int) -> StateTooNew:
    return StateTooNew("A newer Surehold wrote this history.", database_version=version, supported_version=LATEST)

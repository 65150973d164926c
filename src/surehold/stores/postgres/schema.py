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
from surehold.stores.postgres.database_errors import denied_error, not_set_up_error
from surehold.stores.store_errors import import_unfinished_error

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase

MIGRATIONS = (
    "0001_init.sql",
    "0002_functions.sql",
    "0003_keys.sql",
    "0004_questions.sql",
    "0005_importing.sql",
    "0006_sightings.sql",
    "0007_quicker.sql",
    "0008_trash.sql",
    "0009_merkle.sql",
    "0010_many_sightings.sql",
    "0011_one_path.sql",
)
LATEST = len(MIGRATIONS)

_FOLDER = Path(__file__).parent / "migrations"
_OLDEST_SERVER = 150_000
_FACTS = (
    "SELECT current_setting('server_version_num')::integer, current_user::text, current_setting('fsync'),"
    " current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('transaction_read_only'),"
    " pg_is_in_recovery()"
)
_RIGHTS = "SELECT has_table_privilege('entries', 'INSERT'), has_table_privilege('entries', 'DELETE')"
_ROLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('surehold migrations'), hashtext(current_schema()))"
_HAS_VERSION = "SELECT to_regclass('schema_version') IS NOT NULL"
_VERSION = "SELECT version FROM schema_version"
_IS_HIDDEN = (
    "SELECT 1 FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid"
    " WHERE nspname = %s AND relname = 'schema_version' AND NOT has_schema_privilege(pg_namespace.oid, 'USAGE')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    """What the database says of one workspace."""

    name: str
    root: str
    host: str
    entries: int
    open_intents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFinding:
    """One thing that was looked at, and whether it is as it must be."""

    name: str
    ok: bool
    detail: str


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


def find_version(database: "PostgresDatabase") -> int:
    """Return the version for a role that may only use the schema; say so if it may not even do that."""
    try:
        return database.call(_VERSION)[0]
    except StateUnavailable as error:
        if error.reason == "state_not_set_up" and database.rows(_IS_HIDDEN, (database.address.schema,)):
            raise denied_error(database.address.shown, cause=str(error.details.get("cause", ""))) from None
        raise


def require_version(database: "PostgresDatabase") -> int:
    """Return how many scripts the schema has seen; say so if there is none, or if this role may not look."""
    shown = database.address.shown
    if version := database.transact(read_version):
        return version
    if database.rows(_IS_HIDDEN, (database.address.schema,)):
        raise denied_error(shown)
    raise not_set_up_error(shown)


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
        "workspaces, paths, unsealed, intents, answers, blobs, trash, switches, sessions, turns, sightings, server_runs,"
        " questions"
    )
    return (
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT INSERT ON {_qualified(schema, grown)} TO {role}",
        f"GRANT INSERT, UPDATE, DELETE ON {_qualified(schema, changed)} TO {role}",
        f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}",
    )


def claim_workspace(database: "PostgresDatabase", name: str, root: str, host: str, *, importing: bool = False) -> int:
    """Return the number of a workspace, which is made if there is none; refuse one of another directory of this host.

    One to which a history was moved in part is refused too, unless that is what goes on now.
    """
    select = "SELECT ws, root, host, importing FROM workspaces WHERE name = %s"
    if not (found := database.rows(select, (name,))):  # first: a database that is read-only can be looked at
        insert = "INSERT INTO workspaces (name, root, host) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        database.change(insert, (name, root, host))
        found = database.rows(select, (name,))
    number, its_root, its_host, is_half = found[0]
    if is_half and not importing:
        raise import_unfinished_error(database.address.shown)
    if its_host == host and its_root != root:
        raise StateUnavailable(
            f"The state `{name}` belongs to another workspace: {its_root}.",
            reason="state_of_another_workspace",
            action="Nothing was written. Name another workspace in the URL (?workspace=NAME), or none to go by the directory.",
            state=database.address.shown,
        )
    return number


def examine_database(database: "PostgresDatabase") -> tuple[DatabaseFinding, ...]:
    """Say what a database is, what this role may do there, and whether what it confirms is on its disk."""
    try:
        facts = database.call(_FACTS)
    except StateUnavailable as error:
        cause = str(error.details.get("cause", ""))
        return (DatabaseFinding(name="state_database", ok=False, detail=f"{error.message} {cause}".strip()),)
    number, role, fsync, waits, whole_pages, read_only, standby = facts
    server = f"PostgreSQL {number // 10_000}.{number % 10_000}"
    reached = DatabaseFinding(name="state_database", ok=number >= _OLDEST_SERVER, detail=f"{server}, reached")
    writable = read_only == "off" and not standby
    weak = [word for word, ok in (("fsync", fsync == "on"), ("full_page_writes", whole_pages == "on")) if not ok]
    weak += ["synchronous_commit"] if waits == "off" else []
    synced = DatabaseFinding(
        name="state_sync",
        ok=not weak,
        detail=f"off: {', '.join(weak)}; a crash of its machine can lose changes" if weak else f"on, commit {waits}",
    )
    return (reached, *_examine_schema(database, role, writable=writable), synced)


def _examine_schema(database: "PostgresDatabase", role: str, *, writable: bool) -> tuple[DatabaseFinding, ...]:
    try:
        version = find_version(database)
        check_version(version, database.address.shown)
    except StateUnavailable as error:
        return (DatabaseFinding(name="state_schema", ok=False, detail=f"{error.message} {error.action}"),)
    may_add, may_change = database.call(_RIGHTS)
    words = f"`{role}` may {'add entries' if may_add else 'not add entries'}"
    words += ", and change them; servers need less" if may_change else ", not change them"
    return (
        DatabaseFinding(name="state_schema", ok=True, detail=f"`{database.address.schema}`, version {version}"),
        DatabaseFinding(name="state_role", ok=may_add and writable, detail=words if writable else "read-only here"),
    )


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
    return StateTooNew(
        "A newer Surehold set up this history.",
        action="Nothing was written. Upgrade Surehold here, or name another database with --state.",
        database_version=version,
        supported_version=LATEST,
    )

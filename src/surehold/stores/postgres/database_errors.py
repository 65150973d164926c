"""Translates what PostgreSQL and its driver report; no other module does."""

from typing import TYPE_CHECKING

from surehold.errors import DiskFull, LockTimeout, StateCorrupt, StateUnavailable, SureholdError, argument, spell

if TYPE_CHECKING:
    import psycopg

_UNTOUCHED = "Nothing was written."
_MISSING_CODES = frozenset({"42P01", "3F000", "42883", "42703"})  # a table, a schema, a function, a column
_FULL_CODES = frozenset({"53100"})
_BUSY_CODES = frozenset({"53300", "57P03"})
_READ_ONLY_CODES = frozenset({"25006"})
_DENIED_CODES = frozenset({"42501"})
_SLOW_CODES = frozenset({"57014", "55P03", "25P03"})
_DAMAGED_CODES = frozenset({"XX000", "XX001", "XX002", "SH001"})
_AGAIN_CODES = frozenset({"40001", "40P01", "57P01", "57P02", "57P03", "25P03", "53300"})
"""The server says that nothing happened, and that another attempt may succeed."""


def server_said_no(error: "psycopg.Error") -> bool:
    """Tell whether the server itself refused: then it is known that nothing happened."""
    return error.sqlstate is not None and not error.sqlstate.startswith("08")


def may_succeed_later(error: "psycopg.Error") -> bool:
    import psycopg

    if error.sqlstate is not None:
        return error.sqlstate in _AGAIN_CODES or error.sqlstate.startswith("08")
    return isinstance(error, psycopg.OperationalError) and not _is_final(str(error))


def translate_error(error: "psycopg.Error", shown: str) -> SureholdError:
    """Say in our words what kept the database from answering, and what to do."""
    code, cause = error.sqlstate or "", _first_line(error)
    if code in _MISSING_CODES:
        return not_set_up_error(shown, cause=cause)
    if code in _FULL_CODES:
        action = f"{_UNTOUCHED} Make room on the disk of the database, then try again."
        return DiskFull("The database of the history is full.", action=action, state=shown, cause=cause)
    if code in _READ_ONLY_CODES:
        action = (
            "Name the primary server in the URL (target_session_attrs=read-write picks it), or end its read-only mode."
        )
        return _unavailable("The database of the history is read-only.", "state_read_only", shown, cause, action)
    if code in _DENIED_CODES:
        return denied_error(shown, cause=cause)
    if code in _SLOW_CODES:
        action = f"{_UNTOUCHED} Try again in a moment."
        message = "The database of the history took too long."
        return LockTimeout(message, reason="state_slow", action=action, state=shown, cause=cause)
    if code in _DAMAGED_CODES:
        action = "Take the database from a backup, and look at its own log first."
        return StateCorrupt("The history is damaged.", action=action, state=shown, cause=cause)
    if code in _BUSY_CODES:
        action = "Try again in a moment; if it persists, raise max_connections of the server."
        return _unavailable("The database of the history has no free connection.", "state_busy", shown, cause, action)
    return _connection_error(cause, shown)


def not_set_up_error(shown: str, *, cause: str = "") -> StateUnavailable:
    action = f"Run `surehold state init {shown}` first."
    return _unavailable("This database has no history of Surehold.", "state_not_set_up", shown, cause, action)


def denied_error(shown: str, *, cause: str = "") -> StateUnavailable:
    action = f"Let its owner run `surehold state init {shown} --role NAME` with the name of this role."
    return _unavailable("This role may not use the history.", "state_denied", shown, cause, action)


def outcome_unknown_error(change_id: str, key: str, cause: SureholdError) -> StateUnavailable:
    """Say that the database may or may not have recorded a change before the connection was lost."""
    settle = spell(
        "Make the same call again with the idempotency key `{}` (argument `{}`): it returns the first answer, or is made once.",
        key,
        argument("idempotencyKey"),
    )
    return StateUnavailable(
        "The connection to the history was lost; it is unknown whether the change was recorded.",
        reason="outcome_unknown",
        action=settle,
        change_id=change_id,
        idempotency_key=key,
        cause=cause.message,
    )


def _connection_error(cause: str, shown: str) -> StateUnavailable:
    low = cause.lower()
    for words, reason, message, action in _CONNECTION_CAUSES:
        if any(word in low for word in words):
            return _unavailable(message, reason, shown, cause, action)
    action = "Check that the database runs and can be reached from here, then try again."
    return _unavailable("The database of the history cannot be reached.", "state_unreachable", shown, cause, action)


_CONNECTION_CAUSES = (
    (
        ("said nothing for",),
        "state_unreachable",
        "The database of the history does not answer.",
        "It may be stopped, or its machine overloaded: look at it, then try again.",
    ),
    (
        ("invalid response to ssl", "invalid response to gss", "expected authentication request"),
        "state_not_postgres",
        "What answers at the address of the history is not PostgreSQL.",
        "Correct host and port in the URL.",
    ),
    (
        ("password authentication failed", "no password supplied"),
        "state_bad_password",
        "The database of the history refused this user or password.",
        "Correct the URL, or name a password file in PGPASSFILE.",
    ),
    (
        ("no pg_hba.conf entry", "authentication"),
        "state_denied",
        "The database of the history does not let this user in from here.",
        "Allow the user and this address in pg_hba.conf.",
    ),
    (
        ('database "',),
        "state_no_database",
        "There is no such database.",
        "Create it with `createdb NAME`, then run `surehold state init URL`.",
    ),
    (
        ('role "',),
        "state_bad_password",
        "The database of the history does not know this user.",
        "Correct the user in the URL, or create it with `createuser NAME`.",
    ),
    (
        ("ssl", "certificate", "tls"),
        "state_tls",
        "No connection of the required security to the database of the history.",
        "Check sslmode, sslrootcert, sslcert and sslkey in the URL.",
    ),
    (
        ("invalid uri", "invalid connection option", "invalid port", "invalid integer"),
        "bad_state_url",
        "This is not the URL of a PostgreSQL database.",
        "Use postgresql://USER@HOST/DATABASE.",
    ),
)


def _is_final(text: str) -> bool:
    """Tell whether a failed connection would fail again at once."""
    low = text.lower()
    return any(word in low for words, *_ in _CONNECTION_CAUSES for word in words)


def _unavailable(message: str, reason: str, shown: str, cause: str, action: str) -> StateUnavailable:
    return StateUnavailable(message, reason=reason, action=f"{_UNTOUCHED} {action}", state=shown, cause=cause)


def _first_line(error: "psycopg.Error") -> str:
    if error.diag.message_primary:
        return error.diag.message_primary
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

"""The address of a state in PostgreSQL: what the URL says to us, and what it says to the database."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from surehold.errors import InvalidArgument

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "surehold"
_MAX_PORT = 65_535
_OWN_WORDS = frozenset({"workspace", "schema"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_DEFAULTS = {"application_name": "surehold", "keepalives_idle": "30", "tcp_user_timeout": "8000"}
"""What libpq is told unless the URL says something else: a database that is gone is noticed in seconds."""
_SESSION = "-c statement_timeout=60s -c lock_timeout=30s -c idle_in_transaction_session_timeout=60s"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a state is: a database, a schema in it, and the workspace if the URL names one."""

    conninfo: str
    """What libpq gets, with TLS settings and everything else as it was given."""
    schema: str
    workspace: str
    shown: str
    """The URL without its password, for people."""
    has_connect_timeout: bool = False
    """Whether the URL itself says how long a connection may take."""


def is_postgres_url(state: str) -> bool:
    return state.partition("://")[0].lower() in SCHEMES and "://" in state


def parse_address(url: str) -> PostgresAddress:
    """Take a URL apart; settings of libpq pass through, `workspace` and `schema` are ours."""
    try:
        parts = urlsplit(url)
        query = parts.query.replace("+", "%2B")  # to libpq a plus is a plus
        words = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        _check_ports(parts.netloc)
    except ValueError as error:
        raise _address_error("This is not the URL of a PostgreSQL database.", cause=str(error)) from None
    ours = {name: value for name, value in words if name in _OWN_WORDS}
    schema, workspace = ours.get("schema", DEFAULT_SCHEMA), ours.get("workspace", "")
    if not _SCHEMA_NAME.fullmatch(schema):
        raise _address_error(f"`{schema}` cannot be the name of a schema.")
    if "workspace" in ours and not _NAME.fullmatch(workspace):
        raise _address_error(f"`{workspace}` cannot be the name of a workspace.")
    theirs = {name: value for name, value in words if name not in _OWN_WORDS}
    options = f"{_SESSION} -c search_path={schema} {theirs.pop('options', '')}".strip()
    query = urlencode({**_DEFAULTS, **theirs, "options": options}, quote_via=quote)
    return PostgresAddress(
        conninfo=f"postgresql://{parts.netloc}{parts.path}?{query}",
        schema=schema,
        workspace=workspace,
        shown=hide_password(url),
        has_connect_timeout="connect_timeout" in theirs,
    )


def hide_password(url: str) -> str:
    """Return a URL that can be shown: without its password, wherever it has one."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    query = "&".join(
        word for word in parts.query.split("&") if not word.lower().startswith(("password=", "sslpassword="))
    )
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{place}{parts.path}{'?' if query else ''}{query}"


def _check_ports(netloc: str) -> None:
    """Refuse what cannot be a port; there may be several hosts, for failover, and each may have one."""
    for place in netloc.rpartition("@")[2].split(","):
        host, colon, port = place.rpartition(":")
        if (
            colon
            and "]" not in port
            and port
            and not (port.isascii() and port.isdigit() and 0 < int(port) <= _MAX_PORT)
        ):
            raise ValueError(f"`{port}` is not a port.")
        if colon and ":" in host and not host.startswith("["):
            raise ValueError(f"`{place}` has more than one port.")


def _address_error(message: str, *, cause: str = "") -> InvalidArgument:
    action = "Use postgresql://USER@HOST/DATABASE, with ?workspace=NAME if several machines share one workspace."
    return InvalidArgument(message, reason="bad_state_url", action=action, cause=cause)

"""The options of a server: how it behaves, and where it serves HTTP.

Light to import, because the command line builds them.
"""

from dataclasses import dataclass

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Where HTTP is served, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    session_hours: float = 24.0
    """How long a session may be idle before it is forgotten."""
    max_sessions: int = 1000
    """How many are in memory; one more, and the one that was idle longest is forgotten."""
    gone_seconds: float = 60.0
    """How long a client may have no request open before its subscriptions end."""

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can connect."""
        return self.host in LOOPBACK_HOSTS

    @property
    def address(self) -> str:
        """Host and port as an URL spells them."""
        return f"{url_host(self.host)}:{self.port}"


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


ASK_SECONDS = 600.0
ALL_TOOLS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    lean: bool = False
    """Say things in as few words as possible."""
    read_only: bool = False
    """List only tools that change nothing."""
    unchecked: bool = False
    """Changes need no sha256."""
    contract_errors: frozenset[str] = frozenset()
    """Tools whose refusals are protocol errors, as their contract says."""
    deprecated_names: bool = True
    """Names of arguments that are on their way out still work, with a warning."""
    ask_seconds: float = ASK_SECONDS
    """How long a person has time to answer a question."""
    max_chars: int = 0
    max_tokens: int = 0
    meta: bool = False
    """Every result carries its data for programs in `_meta`, also for clients that do not ask."""
    always_load: frozenset[str] = frozenset()
    """Tools that a host which loads definitions late should load at once, beside those that are marked so; `all` means every one."""

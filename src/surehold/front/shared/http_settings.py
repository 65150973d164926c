"""Where HTTP is served, and for whom. Light to import, because the command line builds it."""

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

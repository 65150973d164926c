"""Where HTTP is served, and for whom. Light to import, because the command line builds it."""

from dataclasses import dataclass

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """A certificate for TLS, with the key that belongs to it; they may be one file."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanSettings:
    """Where the review page is served to other devices of the local network."""

    host: str = ""
    """An address of this machine; empty for the one that the network gave it."""
    port: int = 0
    """0 for the one of the last time, or any."""
    certificate: CertificateFiles | None = None
    """None for one that is made for the purpose."""


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
    scheme: str = "http"
    gone_seconds: float = 60.0
    """How long a client may have no request open before its subscriptions end."""
    drain_seconds: float = 20.0
    """How long running calls may take when the server is told to end."""

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can connect."""
        return self.host in LOOPBACK_HOSTS

    @property
    def address(self) -> str:
        """Host and port as an URL spells them."""
        return f"{url_host(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}"


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host

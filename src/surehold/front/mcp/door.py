"""Where HTTP is served, and for whom."""

from dataclasses import dataclass

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where HTTP is served, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can connect."""
        return self.host in LOOPBACK

    @property
    def address(self) -> str:
        """Host and port as an URL spells them."""
        return f"{spelled_host(self.host)}:{self.port}"


def spelled_host(host: str) -> str:
    """Return a host as an URL spells it."""
    return f"[{host}]" if ":" in host else host

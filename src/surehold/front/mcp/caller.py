"""Who calls, how, and what a protocol error is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from surehold.front.mcp.questions import Ask
from surehold.front.mcp.rounds import Round
from surehold.tools.context import Progress

Era = Literal["handshake", "stateless"]
"""`handshake` up to 2025-11-25, `stateless` from 2026-07-28 on."""

INVALID_PARAMS = -32602
NO_SUCH_RESOURCE = -32002
"""What the handshake era calls a missing resource; the stateless era calls it invalid parameters."""


class RpcError(Exception):
    """The request itself is wrong: a protocol error, not the answer of a tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def _silent(done: float, total: float | None = None, message: str = "") -> None:
    """Report to nobody."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One request's sender, as far as the transport knows it."""

    client: str = ""
    """What the host calls itself."""
    client_version: str = ""
    era: Era = "handshake"
    connection: str = ""
    """A secret that stands for the connection: the process over stdio, the MCP session id over HTTP."""
    principal: str = ""
    """Whom the bearer token stands for."""
    handle: str = ""
    """The session that the request names in its `_meta`."""
    mended: bool = False
    """The transport replaced halves of characters in the request."""
    progress: Progress = _silent
    cancelled: Callable[[], bool] = _never
    ask: Ask | None = None
    """Asks the person at the client, and waits; None when the client cannot, or when it asks between two calls."""
    round: Round | None = None
    """Where a question lies between two calls: what this one brings along. None when the client cannot ask so."""

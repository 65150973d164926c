"""Which session a call belongs to.

1. The handle that the call names, when the store knows it; the word `new` begins another session.
2. Else the connection: the process over stdio, the MCP session id over HTTP.
3. Else whoever the bearer token stands for.
4. Else the session in which a question was asked that the call brings the answer to.
5. Else a session of its own, whose handle is in the result.

The store keeps a hash of the handle, so that nobody can take over a session whose id stands in the log.
"""

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from surehold.errors import InvalidArgument
from surehold.front.mcp.caller import Caller
from surehold.workspace.session import Session
from surehold.workspace.workspace import Workspace

NEW = "new"
_REMEMBERED = 1024


def new_handle() -> str:
    """Return a name for a session that nobody can guess."""
    return secrets.token_urlsafe(24)


def session_id(handle: str) -> str:
    """Return the id under which the store knows the session of a handle."""
    return f"mcp-{hashlib.sha256(handle.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A session, and the handle by which its owner comes back to it."""

    session: Session
    handle: str
    """Empty when the bearer token is what brings the owner back."""


class Sessions:
    """Finds the session of a call, and begins those that are new."""

    def __init__(self, workspace: Workspace, *, new_handle: Callable[[], str] = new_handle) -> None:
        self._workspace = workspace
        self._new_handle = new_handle
        self._open = OrderedDict[str, Session]()
        self._lock = threading.Lock()

    def seat(self, caller: Caller, *, handle: str = "", otherwise: str = "") -> Seat:
        """Return where this call belongs; `otherwise` is a handle for a call that nothing else places."""
        named = handle or caller.handle
        if named == NEW:
            return self._take(self._new_handle(), caller)
        if named:
            self._must_exist(named)
            return self._take(named, caller)
        if caller.connection:
            return self._take(caller.connection, caller)
        if caller.principal:
            seat = self._take(f"principal {caller.principal}", caller)
            return Seat(session=seat.session, handle="")
        return self._take(otherwise or self._new_handle(), caller)

    def _must_exist(self, handle: str) -> None:
        known = session_id(handle)
        if known not in self._open and self._workspace.store.session(known) is None:
            raise InvalidArgument(
                "No session has this handle.",
                reason="unknown_session",
                action="Leave `session` out, or send `new`; the result's `_meta` then holds a handle to go on with.",
            )

    def _take(self, handle: str, caller: Caller) -> Seat:
        known = session_id(handle)
        with self._lock:
            session = self._open.get(known)
            if session is None:
                session = self._open[known] = self._workspace.session(agent=caller.client or "mcp", id=known)
            self._open.move_to_end(known)
            while len(self._open) > _REMEMBERED:
                self._open.popitem(last=False)
        return Seat(session=session, handle=handle)

"""Identifies the caller of a request, and the session that its call belongs to.

1. The handle that the call names, when the store knows it; the word `new` begins another session.
2. Else the connection: the MCP session id over HTTP; over stdio the process, which may go on with the session of an
   earlier one (see `stores/server_runs.py`).
3. Else the session in which a question was asked that this call answers.
4. Else the session of the principal that the bearer token identifies, one for each client name. Its handle is in the
   result: the client that sends it back has that session from then on, and calls without a handle get the next one.
5. Else a new session, whose handle is in the result.

The store keeps a hash of the handle, so that an id from the log cannot be used to take over a session.
"""

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from surehold.errors import InvalidArgument
from surehold.front.mcp.protocol import CALL_ID_KEY, IDEMPOTENCY_KEY, REPAIRED_KEY, SESSION_KEY, Era
from surehold.text.escape import escape_text
from surehold.tools.call import Json, ProgressListener, ignore_progress
from surehold.workspace.access.permission import Approval
from surehold.workspace.session import CurrentServer, Session
from surehold.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationReply:
    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


ShowForm = Callable[[Json, Callable[[ElicitationReply], Approval]], Future[Approval]]
"""Shows a form, as the protocol spells it, at the client, from any thread; the function turns the reply into the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInput:
    """What a call of the stateless era brings along, from a client that can ask a person."""

    state: str = ""
    """The id of the question that an earlier call ended with."""
    replies: Mapping[str, ElicitationReply] = field(default_factory=dict[str, ElicitationReply])


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One request's sender, as far as the transport knows it."""

    client: str = ""
    """What the host calls itself."""
    era: Era = "handshake"
    connection: str = ""
    """A secret that identifies the connection: the process over stdio, the MCP session id over HTTP."""
    principal: str = ""
    """Whom the bearer token identifies."""
    handle: str = ""
    """The session that the request names in its `_meta`."""
    call_id: str = ""
    """What the host calls the tool call, if it says so."""
    idempotency_key: str = ""
    """Under which the call is made once, however often it comes."""
    repaired: bool = False
    """The transport replaced lone surrogates in the request."""
    progress: ProgressListener = ignore_progress
    cancelled: Callable[[], bool] = lambda: False
    gone: Callable[[], bool] = lambda: False
    """Whether the connection over which the request came is closed, so that no answer can reach it."""
    who: str = ""
    """The person at the client, in the words of the ledger."""
    show_form: ShowForm | None = None
    """Asks the person at the client while the call waits; None when the client cannot, or asks between two calls."""
    shows_views: bool = False
    """It shows the view of a change."""
    wants_data: bool = False
    """It is a program that reads `_meta["surehold/result"]`."""
    round: RoundInput | None = None
    """What this call brings along when questions are answered between two calls; None when the client cannot do that."""


def facts_in_meta(meta: Mapping[str, Any]) -> Json:
    """Return what the `_meta` of a request says, as fields of its `Caller`."""
    return {
        "handle": str(meta.get(SESSION_KEY) or ""),
        "call_id": str(meta.get(CALL_ID_KEY) or ""),
        "idempotency_key": str(meta.get(IDEMPOTENCY_KEY) or ""),
        "repaired": bool(meta.get(REPAIRED_KEY)),
    }


NEW_SESSION = "new"
_MAX_OPEN_SESSIONS = 1000


def new_handle() -> str:
    return secrets.token_urlsafe(24)


def session_id(handle: str) -> str:
    return f"mcp-{hashlib.sha256(handle.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSession:
    """A session, and the handle by which its owner comes back to it."""

    session: Session
    handle: str
    """Empty when the process that started the server brings the owner back."""


class SessionRegistry:
    """Finds the session of a call, and begins those that are new."""

    def __init__(self, workspace: Workspace, process: CurrentServer | None = None) -> None:
        """`process`: this process, when it serves nothing but one connection."""
        self._workspace, self._process = workspace, process
        self._open = OrderedDict[str, Session]()
        self._shared = OrderedDict[tuple[str, str], int]()
        """How many sessions of a principal and client name belong to clients that sent their handle back."""
        self._lock = threading.RLock()

    def find_session(self, caller: Caller, *, handle: str = "", otherwise: str = "") -> CallerSession:
        """Return where this call belongs; `otherwise` is a handle for a call that nothing else places."""
        named = handle or caller.handle
        if named == NEW_SESSION:
            return self._open_session(new_handle(), caller)
        if named:
            self._check_handle(named)
            self._give_away(named, caller)
            return self._open_session(named, caller)
        if caller.connection and self._process is not None:
            fresh = session_id(caller.connection)
            known = self._process.choose_session(caller.client, fresh=fresh)
            handle = caller.connection if known == fresh else ""
            return CallerSession(session=self._session_of(known, caller), handle=handle)
        if caller.connection:
            return self._open_session(caller.connection, caller)
        if otherwise:
            return self._open_session(otherwise, caller)
        if caller.principal:
            with self._lock:
                return self._open_session(_shared_handle(caller, self._count_given_away(caller)), caller)
        return self._open_session(new_handle(), caller)

    def _check_handle(self, handle: str) -> None:
        known = session_id(handle)
        if known not in self._open and not self._workspace.has_session(known):
            action = "Leave `session` out, or send `new`; the result's `_meta` then holds a handle to go on with."
            raise InvalidArgument("No session has this handle.", reason="unknown_session", action=action)

    def _give_away(self, handle: str, caller: Caller) -> None:
        """Begin another session for calls without a handle, if this is the handle of the one that they had."""
        if not caller.principal:
            return
        with self._lock:
            given = self._count_given_away(caller)
            if handle == _shared_handle(caller, given):
                self._open_session(_shared_handle(caller, given + 1), caller)  # so that a restart finds it
                self._shared[caller.principal, caller.client] = given + 1

    def _count_given_away(self, caller: Caller) -> int:
        key = (caller.principal, caller.client)
        given = self._shared.get(key, 0)
        if key not in self._shared:
            while self._workspace.has_session(session_id(_shared_handle(caller, given + 1))):
                given += 1
        self._shared[key] = given
        self._shared.move_to_end(key)
        while len(self._shared) > _MAX_OPEN_SESSIONS:
            self._shared.popitem(last=False)
        return given

    def _open_session(self, handle: str, caller: Caller) -> CallerSession:
        return CallerSession(session=self._session_of(session_id(handle), caller), handle=handle)

    def _session_of(self, known: str, caller: Caller) -> Session:
        with self._lock:
            session = self._open.get(known)
            if session is None:
                session = self._open[known] = self._workspace.session(
                    agent=escape_text(caller.client) or "mcp", id=known
                )
            self._open.move_to_end(known)
            while len(self._open) > _MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
        return session


def _shared_handle(caller: Caller, number: int) -> str:
    secret = f"{number} principal {caller.principal} {caller.client}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(secret).hexdigest()

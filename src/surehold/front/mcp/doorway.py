"""Who may come in over HTTP: checks in front of everything that is served.

1. The Host header must name us, else 421: a web page cannot reach us through a name of its own (DNS rebinding).
2. An Origin must be ours or allowed, else 403: other web pages cannot call us from a browser.
3. With a token, every request to the protected path must carry it, else 401.
"""

import hashlib
import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from surehold.front.mcp.binding import PRINCIPAL
from surehold.front.mcp.door import LOOPBACK, Door, spelled_host


class SameSite:
    """Refuses requests that come through a foreign name or from a foreign page."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        names = {spelled_host(name) for name in (*LOOPBACK, door.host)}
        self._hosts = {f"{name}:{door.port}" for name in names} | ({*names} if door.port == 80 else set[str]())  # noqa: PLR2004 - the port that nobody writes
        self._any_port = frozenset(name.casefold() for name in door.allow_hosts)
        self._origins = {f"http://{host}" for host in self._hosts} | set(door.allow_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._is_ours(headers.getlist("host")):
                await PlainTextResponse("This Host is not served here.\n", 421)(scope, receive, send)
                return
            origin = headers.get("origin")
            if origin is not None and origin not in self._origins:
                await PlainTextResponse("This Origin may not call.\n", 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_ours(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        host = hosts[0].casefold()
        return host in self._hosts or host in self._any_port or _without_port(host) in self._any_port


class TokenCheck:
    """Refuses requests to the protected paths that do not carry the token."""

    def __init__(self, app: ASGIApp, token: str, protected: Iterable[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._principal = hashlib.sha256(self._token).hexdigest()
        self._protected = tuple(protected)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with the name that its token stands for, or answer it."""
        if scope["type"] == "http" and str(scope["path"]).rstrip("/") in self._protected:
            if not self._is_right(Headers(scope=scope).get("authorization", "")):
                challenge = {"WWW-Authenticate": 'Bearer realm="surehold"'}
                response = PlainTextResponse("Send the token: Authorization: Bearer …\n", 401, challenge)
                await response(scope, receive, send)
                return
            scope[PRINCIPAL] = self._principal
        await self._app(scope, receive, send)

    def _is_right(self, authorization: str) -> bool:
        scheme, _, sent = authorization.partition(" ")
        right = hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self._token)
        return right and scheme.casefold() == "bearer"


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host

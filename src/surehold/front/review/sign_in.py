"""Who is signed in to the review page. A token or a one-time code shows it once, a cookie from then on.

1. The cookie is made with a key that the workspace keeps, so it outlives the server. If the person chose the token,
   another token ends what was signed in with it.
2. A code is for one sign-in within minutes, so that a link with it may be seen by other programs.
3. Browsers send cookies to every port of a host, so the name of the cookie contains the port.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

_COOKIE_PREFIX = "surehold-review"
_COOKIE_SECONDS = 30 * 24 * 3600
_CODE_SECONDS = 120.0
_MAX_CODES = 16


class SignIn:
    """Tells who may see the page. Called from any thread."""

    def __init__(
        self, token: str, *, key: bytes, is_chosen: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`is_chosen`: the token was chosen by the person; else it was made for this run and printed."""
        self._token, self.is_chosen = token.encode(), is_chosen
        known = b"surehold review page\0" + (self._token if is_chosen else b"")
        self._cookie = hmac.new(key, known, hashlib.sha256).hexdigest().encode()
        self.door = secrets.token_urlsafe(24)
        """What a program of the same person shows to get a code."""
        self._codes, self._lock, self._clock = dict[str, float](), threading.Lock(), clock

    def make_code(self, *, seconds: float = _CODE_SECONDS) -> str:
        code, now = secrets.token_urlsafe(18), self._clock()
        with self._lock:
            fresh = {one: until for one, until in self._codes.items() if until > now}
            self._codes = dict([*fresh.items()][1 - _MAX_CODES :])
            self._codes[code] = now + seconds
        return code

    def opens_door(self, sent: str) -> bool:
        return _is_equal(sent, self.door.encode())

    def accepts(self, sent: str) -> bool:
        """Tell whether this is the token, or a code, which it then was."""
        with self._lock:
            until = self._codes.pop(sent.strip(), 0.0)
        return until > self._clock() or _is_equal(sent.strip(), self._token)

    def is_signed_in(self, request: Request) -> bool:
        return _is_equal(request.cookies.get(_cookie_name(request), ""), self._cookie)

    def remember(self, request: Request, response: Response) -> None:
        """Sign the browser in that sent a request."""
        response.set_cookie(
            _cookie_name(request),
            self._cookie.decode(),
            max_age=_COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )


def _is_equal(sent: str, wanted: bytes) -> bool:
    return hmac.compare_digest(sent.encode("utf-8", "replace"), wanted)


def _cookie_name(request: Request) -> str:
    return f"{_COOKIE_PREFIX}-{request.url.port or request.url.scheme}"

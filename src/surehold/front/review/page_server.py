"""Serves the review page in a thread of its own: beside a server on standard input and output, or alone."""

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from starlette.applications import Starlette

from surehold.errors import InvalidArgument
from surehold.front.review.page_records import PageRecord, announce_page, last_port, load_key
from surehold.front.review.sign_in import SignIn
from surehold.front.review.site import ReviewPage
from surehold.front.shared.http_server import SameSiteCheck, make_http_server, open_port
from surehold.front.shared.http_settings import CertificateFiles, HttpSettings

_END_SECONDS = 3.0


class PageThread:
    """Serves a page at an open port, in a thread of its own."""

    def __init__(
        self,
        open_page: Callable[[], ReviewPage],
        listener: socket.socket,
        settings: HttpSettings,
        certificate: CertificateFiles | None = None,
    ) -> None:
        """`open_page` is called in the thread that serves, since it may have to open the workspace."""
        self._open_page, self._listener, self._settings, self._certificate = open_page, listener, settings, certificate
        self._lock, self._is_ending = threading.Lock(), False
        self._stop: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._serve, name="review page", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        app = Starlette(routes=self._open_page().make_routes())
        server = make_http_server(SameSiteCheck(app, self._settings), certificate=self._certificate)

        def stop() -> None:
            server.should_exit = True

        with self._lock:
            if self._is_ending:
                return
            self._stop = stop
        asyncio.run(server.serve(sockets=[self._listener]))

    def close(self) -> None:
        with self._lock:
            self._is_ending = True
            stop = self._stop
        if stop is not None:
            stop()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)
        self._listener.close()


class PageServer:
    """The page of one workspace at a port of this machine. Entering opens the port; `start` begins to serve."""

    def __init__(
        self, state_dir: Path, open_page: Callable[[SignIn], ReviewPage], *, port: int = 0, answers: bool = True
    ) -> None:
        """`port` 0 is the one of the last time, if it is free, or any other."""
        self._token = secrets.token_urlsafe(24)
        self.sign_in = SignIn(self._token, key=load_key(state_dir))
        listener, self._settings = _open_same_port(port, last_port(state_dir))
        self._thread = PageThread(lambda: open_page(self.sign_in), listener, self._settings)
        self._end = ExitStack()
        record = PageRecord(url=self.url, door=self.sign_in.door, pid=os.getpid(), answers=answers)
        self._announced = announce_page(state_dir, record, port=self._settings.port)

    @property
    def url(self) -> str:
        return f"http://{self._settings.address}"

    @property
    def link(self) -> str:
        """Where the page is, with what signs a person in."""
        return f"{self.url}/#{self._token}"

    def start(self) -> None:
        self._end.enter_context(self._announced)
        self._thread.start()

    def close(self) -> None:
        self._thread.close()
        self._end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_same_port(port: int, before: int) -> tuple[socket.socket, HttpSettings]:
    if before and not port:
        with suppress(InvalidArgument):  # another page has it by now
            return open_port(HttpSettings(port=before))
    return open_port(HttpSettings(port=port))

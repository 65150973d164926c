"""Stands between a client and PostgreSQL, counts how often the client waits for an answer, and can cut the line."""

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


class CountingProxy:
    """Passes bytes on; a round trip is counted when the server answers something that the client said."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        user = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{self._listener.getsockname()[1]}"))
        self.trips = 0
        self.cut_answers_to = b""
        """The answer to what contains these words does not arrive: the connection ends instead."""
        self.cut_questions = False
        """Whether these words do not arrive either."""
        self.is_down = self.stays_up = False
        """Whether new connections fail; whether they go on to work after the one that is cut."""
        self._guard = threading.Lock()
        self._open = list[socket.socket]()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.cut_all()

    def cut_all(self) -> None:
        with self._guard:
            lines, self._open = self._open, []
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                with self._guard:
                    self._open += [client, server]
                line = _Line(self, client, server)
                threading.Thread(target=line.carry_questions, daemon=True).start()
                threading.Thread(target=line.carry_answers, daemon=True).start()


class _Line:
    def __init__(self, proxy: CountingProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._asked = self._cut = False

    def carry_questions(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                words = self._proxy.cut_answers_to
                if words and words in data:
                    self._cut = True
                    if self._proxy.stays_up:
                        self._proxy.cut_answers_to = b""
                    if self._proxy.cut_questions:
                        self._server.shutdown(socket.SHUT_RDWR)
                        break
                self._asked = True
                self._server.sendall(data)

    def carry_answers(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._cut:
                    break
                if self._asked:
                    self._asked = False
                    self._proxy.trips += 1
                self._client.sendall(data)
        if self._cut:
            self._proxy.is_down = not self._proxy.stays_up
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

"""An object store that speaks as much S3 as Surehold needs, on loopback, and that can be made to fail and to lie."""

import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

Behaviour = Literal["good", "failing", "hanging", "unconditional", "forgetful"]
"""`unconditional` ignores conditions, `forgetful` says yes and stores nothing, `hanging` takes a request and never answers."""


class ObjectService:
    """Buckets come into being when they are written to; `missing` has none."""

    def __init__(self) -> None:
        self.reset()
        self._guard = threading.Lock()
        self._server = _Server(self)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def reset(self) -> None:
        """Forget everything, and behave."""
        self.objects = dict[str, tuple[bytes, datetime]]()
        self.requests = list[tuple[str, str]]()
        """Method and path of every request."""
        self.behaviour: Behaviour = "good"
        self.released = threading.Event()

    @contextmanager
    def away(self) -> Generator[None]:
        """Close the port for a while."""
        port = self._server.server_port
        self._stop()
        try:
            yield
        finally:
            self._server = _Server(self, port)
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._stop()

    def count(self, method: str) -> int:
        """Count requests for objects of histories; those of probes are not counted."""
        return sum(one == method and "/probe/" not in path for one, path in self.requests)

    def make_older(self, **ages: float) -> None:
        self.objects = {name: (data, when - timedelta(**ages)) for name, (data, when) in self.objects.items()}

    def _stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, path: str, data: bytes, *, only_new: bool) -> int:
        with self._guard:
            if only_new and path in self.objects and self.behaviour != "unconditional":
                return 412
            if self.behaviour != "forgetful":
                self.objects[path] = (data, datetime.now(UTC))
        return 200


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed before it had its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def __init__(self, service: ObjectService, port: int = 0) -> None:
        self.service = service
        super().__init__(("127.0.0.1", port), _Answers)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # one request for each connection: a port that is closed is closed for all
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if path := self._begin():
            status = self.server.service.put(path, data, only_new=self.headers.get("If-None-Match") == "*")
            self._answer(status, {"ETag": f'"{md5(data).hexdigest()}"'})

    def do_GET(self) -> None:
        path = self._begin()
        if not path:
            return
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._answer(200, {"Content-Type": "application/xml"}, self._listing(path, query.get("prefix", [""])[0]))
        elif path in self.server.service.objects:
            data, when = self.server.service.objects[path]
            facts = {"ETag": f'"{md5(data).hexdigest()}"', "Last-Modified": format_datetime(when, usegmt=True)}
            self._answer(200, facts, data)
        else:
            code = "NoSuchBucket" if path.startswith("/missing/") else "NoSuchKey"
            self._answer(404, {}, f"<Error><Code>{code}</Code></Error>".encode())

    do_HEAD = do_GET  # noqa: N815 - its name

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if bucket := self._begin():
            keys = re.findall(r"<Key>(.*?)</Key>", body)
            for key in keys:
                self.server.service.objects.pop(f"{bucket.rstrip('/')}/{unescape(key)}", None)
            rows = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self._answer(200, {"Content-Type": "application/xml"}, f"<DeleteResult>{rows}</DeleteResult>".encode())

    def _begin(self) -> str:
        """Return the path, if it is to be answered."""
        service, path = self.server.service, unquote(urlsplit(self.path).path)
        service.requests.append((self.command, path))
        if service.behaviour == "hanging":
            service.released.wait(60)
            self.close_connection = True
            return ""
        if service.behaviour == "failing":
            self._answer(500, {}, b"<Error><Code>InternalError</Code></Error>")
            return ""
        if path.startswith("/missing/") and self.command == "PUT":
            self._answer(404, {}, b"<Error><Code>NoSuchBucket</Code></Error>")
            return ""
        return path

    def _answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _listing(self, bucket: str, prefix: str) -> bytes:
        start = f"{bucket.rstrip('/')}/"
        rows = "".join(
            f"<Contents><Key>{escape(path.removeprefix(start))}</Key><Size>{len(data)}</Size><ETag>x</ETag>"
            f"<LastModified>{when:%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
            for path, (data, when) in sorted(self.server.service.objects.items())
            if path.startswith(start + prefix)
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        ).encode()

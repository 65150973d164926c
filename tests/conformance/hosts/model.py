"""A stand-in for a language model: a loopback server that speaks the vendors' APIs and follows a script.

The script is a generator. It yields the tool call that the model makes next and is sent what the host shows the model as
its result, word for word. So a script knows only what a model would know, and what it was shown is on record.
"""

import json
import re
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from conformance.hosts.wires import Json, Offer, Reply, Request, Wire, wire_of

SERVER = "surehold"
"""What hosts are told to call our server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of the model, under our own name of the tool."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the host gave the model as the result of a call."""

    call: Call
    text: str


Script = Generator[Call, Shown, str]
"""Yields calls, is sent what was shown, and returns the model's last words."""

Find = Callable[[list[Offer], Call], tuple[Offer, Mapping[str, Any]] | None]
"""How a host wants a call of ours to be made: with which of its tools, and with which arguments."""


def prefixed(offers: list[Offer], call: Call) -> tuple[Offer, Mapping[str, Any]] | None:
    """Find a tool of ours where the host puts the name of the server in front, or in a namespace."""
    ours = re.compile(rf".*{SERVER}[_-]+{call.tool}")
    found = (offer for offer in offers if ours.fullmatch(f"{offer.namespace}_{offer.name}"))
    return next(((offer, call.arguments) for offer in found), None)


def plain(offers: list[Offer], call: Call) -> tuple[Offer, Mapping[str, Any]] | None:
    """Find a tool of ours where the host leaves its name alone."""
    return next(((offer, call.arguments) for offer in offers if offer.name == call.tool), None)


@dataclass(kw_only=True)
class Model:
    """Follows one script; every request that offers tools is a turn, everything else gets a word."""

    script: Script
    find: Find = prefixed
    shown: list[Shown] = field(default_factory=list[Shown])
    offered: set[Offer] = field(default_factory=set[Offer])
    elsewhere: set[str] = field(default_factory=set[str])
    """Other addresses that the host wanted to reach."""
    others: "Mapping[str, Model]" = field(default_factory=dict[str, "Model"])
    """Who answers a subagent, by a word of the prompt that it was given."""
    words: str | None = None
    _call: Call | None = None
    _sent: Request | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, wire: Wire, body: Json) -> Reply:
        """Answer a request of the host; the same request again gets the same answer."""
        first = json.dumps(next(iter(body.get("messages", ())), ""))
        if other := next((one for word, one in self.others.items() if word in first), None):
            return other.answer(wire, body)
        with self._lock:
            offers = wire.offered(body)
            if not offers:
                return self.words or "ok"
            self.offered.update(offers)
            if self.words is None:
                self._advance(wire.results(body))
            if self.words is not None or self._call is None:
                return self.words or "ok"
            if self._sent is None:
                found = self.find(offers, self._call)
                if found is None:
                    return f"I have no tool {self._call.tool}."
                self._sent = Request(id=f"call_{len(self.shown) + 1}", offer=found[0], arguments=found[1])
            return self._sent

    def _advance(self, results: dict[str, str]) -> None:
        """Go on in the script if the result of the call is there."""
        try:
            if self._call is None:
                self._call = next(self.script)
            elif self._sent is not None and self._sent.id in results:
                shown = Shown(call=self._call, text=results[self._sent.id])
                self.shown.append(shown)
                self._sent = None
                self._call = self.script.send(shown)
        except StopIteration as end:
            self._call, self.words = None, str(end.value)


class _Server(ThreadingHTTPServer):
    def __init__(self, model: Model, log: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.log = model, log

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a host hang up when it likes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] - only this server makes it

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.startswith("http"):
            self.do_CONNECT()
            return
        wire = wire_of(self.path)
        if wire is None:
            self._send("application/json", json.dumps({"totalTokens": 1, "input_tokens": 1}))
            return
        body = cast("Json", json.loads(data or b"{}"))
        reply = self.server.model.answer(wire, body)
        _note(self.server.log, self.path, body, reply)
        if body.get("stream") or "stream" in self.path:
            end = "data: [DONE]\n\n" if self.path.endswith("/chat/completions") else ""
            self._send("text/event-stream", "".join(map(_event, wire.stream(reply))) + end)
        else:
            self._send("application/json", json.dumps(wire.whole(reply)))

    def do_GET(self) -> None:
        if self.path.startswith("http"):
            self.do_CONNECT()
            return
        known = {"id": "scripted", "object": "model", "created": 0, "owned_by": "scripted"}
        self._send("application/json", json.dumps({"object": "list", "data": [known], "models": []}))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        """Refuse to be a proxy, and remember for what."""
        self.server.model.elsewhere.add(self.path)
        self._send("text/plain", "There is no network here.", status=403)

    def _send(self, kind: str, text: str, *, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@contextmanager
def serve(model: Model, log: Path | None = None) -> Generator[str]:
    """Serve a model on a free port of the loopback; yield its address. What it is asked goes to a file."""
    server = _Server(model, log)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _note(log: Path | None, path: str, body: Json, reply: Reply) -> None:
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"path": path, "body": body, "reply": str(reply)}, ensure_ascii=False) + "\n")


def _event(event: tuple[str, Json]) -> str:
    name, data = event
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"

"""A stand-in for a language model: a loopback server that speaks a vendor's API and follows a script.

The script is a generator. It yields the tool call that the model makes next and is sent what the agent shows the model as
its result, word for word. So a script knows only what a model would know, and what it was shown is on record.
"""

import itertools
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol, cast

Json = dict[str, Any]
Vendor = Literal["anthropic", "gemini"]
SERVER = "surehold"
"""What agents are told to call our server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of the model; the agent's own prefix of the tool's name is found in what the agent offers."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the agent gave the model as the result of a call."""

    call: Call
    text: str
    is_error: bool | None
    """None where the vendor's API has no such mark."""


Script = Generator[Call, Shown, str]
"""Yields calls, is sent what was shown, and returns the model's last words."""


class Wire(Protocol):
    """How one vendor's API spells what a scripted model needs."""

    def offered(self, request: Json) -> list[str]:
        """Return the names of the tools in a request."""
        ...

    def result(self, request: Json) -> tuple[str, bool | None] | None:
        """Return the newest tool result in a request."""
        ...

    def reply(self, call: tuple[str, Mapping[str, Any]] | None, words: str) -> list[tuple[str, Json]]:
        """Return the events of an answer: a call, or words."""
        ...


class Anthropic:
    """Messages, streamed."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def offered(self, request: Json) -> list[str]:
        return [str(tool.get("name")) for tool in _rows(request.get("tools"))]

    def result(self, request: Json) -> tuple[str, bool | None] | None:
        for message in reversed(_rows(request.get("messages"))):
            for block in _rows(message.get("content")):
                if block.get("type") == "tool_result":
                    return _text(block.get("content")), bool(block.get("is_error"))
        return None

    def reply(self, call: tuple[str, Mapping[str, Any]] | None, words: str) -> list[tuple[str, Json]]:
        number = next(self._numbers)
        if call:
            start: Json = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
            delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        else:
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": words}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message: Json = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
        }
        events: list[Json] = [
            {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
        return [(str(event["type"]), event) for event in events]


class Gemini:
    """generateContent, streamed or not."""

    def offered(self, request: Json) -> list[str]:
        return [
            str(function.get("name"))
            for tool in _rows(request.get("tools"))
            for function in _rows(tool.get("functionDeclarations"))
        ]

    def result(self, request: Json) -> tuple[str, bool | None] | None:
        for content in reversed(_rows(request.get("contents"))):
            for part in _rows(content.get("parts")):
                if "functionResponse" in part:
                    return _text(part["functionResponse"].get("response")), None
        return None

    def reply(self, call: tuple[str, Mapping[str, Any]] | None, words: str) -> list[tuple[str, Json]]:
        part: Json = {"functionCall": {"name": call[0], "args": dict(call[1])}} if call else {"text": words}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate: Json = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return [("", {"candidates": [candidate], "usageMetadata": usage})]


WIRES: dict[Vendor, Wire] = {"anthropic": Anthropic(), "gemini": Gemini()}


@dataclass(kw_only=True)
class Model:
    """Follows one script; every request that offers the script's tools is a turn, everything else gets a word."""

    wire: Wire
    script: Script
    shown: list[Shown] = field(default_factory=list[Shown])
    offered: list[str] = field(default_factory=list[str])
    pending: Call | None = None
    words: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Json) -> list[tuple[str, Json]]:
        """Return the events that answer a request of the agent."""
        with self.lock:
            names = self.wire.offered(request)
            if not names or self.words is not None:
                return self.wire.reply(None, self.words or "ok")
            self.offered = names
            self._turn(request)
            if self.pending is None:
                return self.wire.reply(None, self.words or "")
            full = next((name for name in names if _is_tool(name, self.pending.tool)), self.pending.tool)
            return self.wire.reply((full, self.pending.arguments), "")

    def _turn(self, request: Json) -> None:
        try:
            if self.pending is None:
                self.pending = next(self.script)
            elif (found := self.wire.result(request)) is not None:
                shown = Shown(call=self.pending, text=found[0], is_error=found[1])
                self.shown.append(shown)
                self.pending = self.script.send(shown)
        except StopIteration as end:
            self.pending, self.words = None, str(end.value)


@contextmanager
def serve(vendor: Vendor, script: Script) -> Generator[tuple[str, Model]]:
    """Serve a model on a free port of the loopback; yield its address and the record."""
    model = Model(wire=WIRES[vendor], script=script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            request = cast("Json", json.loads(body or b"{}"))
            if "ountTokens" in self.path or "count_tokens" in self.path:
                self._send("application/json", json.dumps({"totalTokens": 1, "input_tokens": 1}))
            elif request.get("stream") or "stream" in self.path:
                self._send("text/event-stream", "".join(map(_event, model.answer(request))))
            else:
                self._send("application/json", json.dumps(_whole(vendor, model.answer(request))))

        def do_GET(self) -> None:
            self._send("application/json", "{}")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _send(self, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _event(event: tuple[str, Json]) -> str:
    name, data = event
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def _whole(vendor: Vendor, events: list[tuple[str, Json]]) -> Json:
    """Return the same answer for a request that did not ask for a stream."""
    if vendor == "gemini":
        return events[0][1]
    start, delta = events[0][1]["message"], events[2][1]["delta"]
    return {**start, "stop_reason": "end_turn", "content": [{"type": "text", "text": delta.get("text", "")}]}


def _is_tool(offered: str, name: str) -> bool:
    """Whether an agent's name for a tool means ours: agents put the server's name in front."""
    return SERVER in offered and offered.endswith(f"_{name}")


def _rows(value: Any) -> list[Json]:
    return [row for row in cast("list[Any]", value) if isinstance(row, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return the text of a result: joined text blocks, else the value as JSON, as a model would read it."""
    if isinstance(value, str):
        return value
    blocks = _rows(value)
    if blocks and all(block.get("type") == "text" for block in blocks):
        return "\n".join(str(block["text"]) for block in blocks)
    return json.dumps(value, ensure_ascii=False)

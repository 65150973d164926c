"""The APIs of Anthropic, OpenAI and Google on the loopback, with a model that follows a script."""

import asyncio
import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Json = dict[str, Any]
ModelCall = tuple[str, Json]
"""The name of a tool and its arguments; `apply_patch` and `shell` of OpenAI are items of their own."""

_USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def anthropic_message(call: ModelCall | None) -> Json:
    content: Json = {"type": "text", "text": "done"}
    if call:
        content = {"type": "tool_use", "id": f"t{id(call)}", "name": call[0], "input": call[1]}
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [content],
        "stop_reason": "tool_use" if call else "end_turn",
        "usage": _USAGE,
    }


def openai_response(call: ModelCall | None) -> Json:
    text = {"type": "output_text", "text": "done", "annotations": list[str]()}
    item: Json = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    if call:
        named = {"id": f"i{id(call)}", "call_id": f"c{id(call)}", "status": "completed"}
        own = {"apply_patch": ("apply_patch_call", "operation"), "shell": ("shell_call", "action")}
        if call[0] in own:
            kind, field = own[call[0]]
            item = {**named, "type": kind, field: call[1]}
        else:
            item = {**named, "type": "function_call", "name": call[0], "arguments": json.dumps(call[1])}
    return {
        "id": "r1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "m",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def google_content(call: ModelCall | None) -> Json:
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": "done"}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


_APIS = {"/v1/messages": anthropic_message, "/responses": openai_response, ":generateContent": google_content}


def _stream_of(message: Json) -> str:
    """Return a message of Anthropic's API as the events in which it is streamed."""
    [block] = message["content"]
    begun: Json = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
    delta: Json = {"type": "text_delta", "text": "done"}
    if block["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": _USAGE},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


@contextmanager
def scripted_apis(calls: Sequence[ModelCall] = ()) -> Generator[tuple[str, list[Json]]]:
    """Serve these APIs; yield the address, and the requests as they come. The model makes its calls, then it is done."""
    requests, waiting = list[Json](), iter(calls)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            path, streams = self.path.partition("?")[0], bool(requests[-1].get("stream"))
            answer = next(make for end, make in _APIS.items() if path.endswith(end))(next(waiting, None))
            body = (_stream_of(answer) if streams else json.dumps(answer)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def send_frameworks_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the packages of these APIs talk to this address."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "none")
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, address)


@contextmanager
def own_event_loop() -> Generator[None]:
    """Give programs an event loop that is closed at the end: synchronous calls of frameworks leave theirs open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.close()
        asyncio.set_event_loop(None)

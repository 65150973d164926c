"""Every program of docs/frameworks.md runs as it is shown, with a model on the loopback."""

import asyncio
import json
import re
import runpy
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from docs.snippets import PROJECT, snippets_of
from spec.marks import requirement

PAGE = "docs/frameworks.md"
TEXT = {"type": "text", "text": "done"}
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
ANSWERS: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [TEXT],
        "stop_reason": "end_turn",
        "usage": USAGE,
    },
    "/responses": {
        "id": "r1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "m",
        "output": [
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    },
    ":generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}]
    },
}
"""What the APIs of Anthropic, OpenAI and Google answer when a model has nothing to call."""


def stream_of(message: dict[str, Any]) -> str:
    """Return a message of Anthropic's API as the events in which it is streamed."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


@contextmanager
def scripted_apis() -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Serve these APIs on the loopback; yield the address, and the requests as they come."""
    requests = list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            path, streams = self.path.partition("?")[0], bool(requests[-1].get("stream"))
            answer = next(answer for end, answer in ANSWERS.items() if path.endswith(end))
            body = (stream_of(answer) if streams else json.dumps(answer)).encode()
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


@requirement("front:docs:snippets", "front:adapters:frameworks")
def test_every_program_of_the_page_runs_and_gives_its_tools_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = (
        ("apply_patch", "shell"),
        ("text_editor_20250728", "memory_20250818"),
        ("edit_file", "run_command"),
        ("write_file", "execute"),
        ("edit_file", "run_command"),
        ("EditFile", "Execute"),
        (),
    )
    programs = [block for block in snippets_of(PAGE) if block.language == "python"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")

    with scripted_apis() as (address, requests), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn of their own experiments
        for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, address)
        for number, (block, names) in enumerate(zip(programs, expected, strict=True)):
            work, program = tmp_path / f"work{number}", tmp_path / f"program{number}.py"
            work.mkdir()
            program.write_text(block.text, encoding="utf-8")
            monkeypatch.chdir(work)
            requests.clear()
            with own_event_loop():
                runpy.run_path(str(program), run_name="__main__")
            told = json.dumps([one.get("tools") for one in requests])
            assert [name for name in names if f'"{name}"' not in told] == [], block
    assert [path.name for path in (tmp_path / "work6").iterdir()] == ["hello.txt"]


def test_the_versions_of_the_page_are_those_that_are_tested() -> None:
    rows = re.findall(r"\| ([a-z-]+) (\d[\d.]*) \| `", (PROJECT / PAGE).read_text("utf-8"))

    assert len(rows) == 6
    tested = {name: version(name).split(".")[:2] for name, _ in rows}
    assert {name: number.split(".")[:2] for name, number in rows} == tested

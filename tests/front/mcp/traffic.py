"""Messages that a client could send, made at random from a seed: right ones, slightly wrong ones, and junk."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from front.mcp.client import MODERN, Json

PREFIX = "io.modelcontextprotocol/"
INFO: Json = {"name": "claude-code", "version": "1", "title": "t", "icons": [{"src": "s", "sizes": ["1"]}]}
CAPABILITIES: Json = {
    "elicitation": {"url": {}},
    "experimental": {"surehold/result": {}},
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "extensions": {"x": {"y": 1}},
}
TEXT: Json = {"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 0.5}}
BLOCKS: list[Json] = [
    TEXT,
    {"type": "image", "data": "", "mimeType": "image/png"},
    {"type": "resource_link", "name": "n", "uri": "u", "size": 3},
    {"type": "resource", "resource": {"uri": "u", "text": "t"}},
]
REPLIES: Json = {
    "permission": {"action": "accept", "content": {"decision": "allow once", "n": 1, "l": ["a"]}},
    "roots": {"roots": [{"uri": "file:///x", "name": "n"}]},
    "one": {"role": "user", "model": "m", "content": TEXT, "stopReason": "endTurn"},
    "many": {
        "role": "assistant",
        "model": "m",
        "content": [
            TEXT,
            {"type": "tool_use", "id": "1", "name": "n", "input": {}},
            {"type": "tool_result", "toolUseId": "1", "content": BLOCKS, "isError": False},
        ],
    },
}
PARAMS: dict[str, Json] = {
    "ping": {},
    "server/discover": {},
    "prompts/list": {"cursor": "x"},
    "prompts/get": {"name": "surehold", "arguments": {"a": "b"}, "inputResponses": REPLIES},
    "resources/list": {"cursor": "0:"},
    "resources/templates/list": {},
    "resources/read": {"uri": "surehold://log", "inputResponses": REPLIES},
    "resources/subscribe": {"uri": "surehold://log"},
    "resources/unsubscribe": {"uri": "surehold://log"},
    "subscriptions/listen": {
        "notifications": {
            "resourceSubscriptions": ["surehold://log"],
            "toolsListChanged": True,
            "promptsListChanged": False,
            "resourcesListChanged": True,
        }
    },
    "tools/list": {"cursor": "c"},
    "tools/call": {"name": "read_file", "arguments": {"path": "a.txt"}, "task": {"ttl": 5}, "inputResponses": REPLIES},
    "completion/complete": {
        "ref": {"type": "ref/resource", "uri": "file:///{+path}"},
        "argument": {"name": "path", "value": "ROOT/"},
        "context": {"arguments": {"a": "b"}},
    },
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "clientInfo": INFO},
    "logging/setLevel": {"level": "info"},
    "roots/list": {},
    "sampling/createMessage": {},
    "tasks/list": {},
}
ARGUMENTS: tuple[tuple[str, Json], ...] = (
    ("read_file", {"path": "a.txt", "startLine": 1, "maxLines": 2}),
    ("read_file", {"path": "no such.txt"}),
    ("read_file", {"path": "../outside"}),
    ("list_directory", {"path": "."}),
    ("glob", {"pattern": "**/*.txt"}),
    ("search_files", {"query": "beta", "path": "."}),
    ("edit_file", {"path": "a.txt", "expectedSha256": "0" * 64, "edits": [{"oldText": "alpha", "newText": "A"}]}),
    ("create_file", {"path": "a.txt", "content": "x"}),
    ("write_file", {"path": "b.txt", "content": "new\n"}),
    ("move_file", {"fromPath": "no such.txt", "toPath": "b.txt"}),
    ("delete_file", {"path": "no such.txt", "expectedSha256": "0" * 64}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** End Patch"}),
    ("edit", {"path": "a.txt", "operations": [{"op": "replace", "start": "1#000000", "lines": ["x"]}]}),
    ("no_such_tool", {}),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 1.0, 1.5, 0.5, 10**30, 1e30, float("inf")),
    *("", "x", "1", " 7 ", "1.0", "1_0", "true", "YES", "text", "accept", "ref/prompt", "file:///x", "info", "user"),
    *("\ufffd", "ü", "😀", "a\x00b", "\\ud83d"),
    *([], {}, ["a"], [1], {"a": 1}, {"a": "b"}, {"a": {}}),
)
KEYS = (
    *("name", "uri", "arguments", "_meta", "cursor", "level", "ref", "argument", "context", "inputResponses", "task"),
    *("requestState", "notifications", "capabilities", "clientInfo", "protocolVersion", "progressToken", "type"),
    *("title", "version", "icons", "theme", "roots", "elicitation", "form", "url", "experimental", "tasks", "path"),
    *(
        "surehold/session",
        "claudecode/toolUseId",
        "surehold/mended",
        f"{PREFIX}protocolVersion",
        f"{PREFIX}clientCapabilities",
    ),
)
JUNK = (
    *(
        b"",
        b" ",
        b"junk",
        b"{",
        b"[]",
        b"[1, 2]",
        b"42",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        b"[" * 500,
    ),
    *(b'{"jsonrpc": "2.0"}', b'{"id": 5}', b'{"jsonrpc": "2.0", "id": 5}', b'{"jsonrpc": "1.0", "method": "ping"}'),
)
WRONG_FRAMES: tuple[Json, ...] = (
    *({"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"jsonrpc": None}, {"method": 5}, {"method": None}, {"params": []}),
    *({"params": "x"}, {"params": None}, {"id": None}, {"id": 1.5}, {"id": True}, {"id": []}, {"result": {}}),
    *({"error": {"code": 1, "message": "m"}}, {"extra": {"deep": [1]}}, {"id": ""}, {"id": "7"}),
)
_USED_AGAIN = ("", "7")
"""Ids of several messages. None of them is in a batch, or in what is no request: an answer that is not waited for could be taken
for that of a later message."""


@dataclass(frozen=True, slots=True)
class SentLine:
    """A line, and the ids for which there must be answers."""

    line: bytes
    expects: tuple[int | str, ...] = ()


class Traffic:
    """An endless conversation of one client, the same for the same seed."""

    def __init__(self, seed: int, version: str, root: str) -> None:
        self._random = random.Random(seed)
        self._version = version
        self._root = root
        self._last = 1_000

    def lines(self, count: int) -> Iterator[SentLine]:
        makers = (self._request, self._wrong_request, self._wrong_frame, self._notification, self._reply, self._junk)
        for maker in self._random.choices(makers, weights=(40, 35, 10, 6, 3, 6), k=count):
            yield maker()

    def _request(self) -> SentLine:
        return self._line(self._message(self._params(self._method())))

    def _wrong_request(self) -> SentLine:
        method, params = self._params(self._method())
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            params = self._change(params)
        return self._line(self._message((method, params)))

    def _wrong_frame(self) -> SentLine:
        message = {**self._message(self._params(self._method())), **self._random.choice(WRONG_FRAMES)}
        if self._random.random() < 0.2:
            del message[self._random.choice(list(message))]
        is_call = "method" in message and "error" not in message
        if not is_call and message.get("id") in _USED_AGAIN:
            message["id"] = f"id {self._last}"
        is_doubled = self._random.random() < 0.1 and message.get("id") not in _USED_AGAIN
        return self._line([message, message] if is_doubled else message)

    def _notification(self) -> SentLine:
        methods = ("cancelled", "initialized", "progress", "roots/list_changed", "nothing")
        params = {"requestId": self._random.choice((1, "1", None, 2.5)), "progressToken": 1, "progress": 1}
        return self._line(
            {"jsonrpc": "2.0", "method": f"notifications/{self._random.choice(methods)}", "params": params}
        )

    def _reply(self) -> SentLine:
        outcome = self._random.choice(({"result": {}}, {"error": {"code": -1, "message": "no"}}, {"result": 5}))
        return self._line({"jsonrpc": "2.0", "id": self._random.choice((1, 99, "x", None)), **outcome})

    def _junk(self) -> SentLine:
        if self._random.random() < 0.6:
            return SentLine(self._random.choice(JUNK))
        found = self._request()
        line = bytearray(found.line)
        if self._random.random() < 0.5:
            del line[self._random.randrange(len(line)) :]
        else:
            line[self._random.randrange(len(line))] = self._random.choice(b'{}[]",:\\x01\x00\xff')
        broken = bytes(line).replace(b"\n", b" ")
        with suppress(ValueError):
            json.loads(broken)
            broken = broken[:-1]  # still a request, for which no one would wait
        return SentLine(broken)

    def _method(self) -> str:
        return self._random.choice([*PARAMS, "tools/call", "tools/call", "no/such/method"])

    def _params(self, method: str) -> tuple[str, Any]:
        params: Json = json.loads(json.dumps(PARAMS.get(method, {})).replace("ROOT", self._root.lstrip("/")))
        if method == "tools/call" and self._random.random() < 0.8:
            name, arguments = self._random.choice(ARGUMENTS)
            params = {"name": name, "arguments": json.loads(json.dumps(arguments))}
        if method == "resources/read" and self._random.random() < 0.6:
            params = {
                "uri": self._random.choice((f"file://{self._root}/a.txt", f"file://{self._root}", "x:y", "file:///etc"))
            }
        if self._random.random() < 0.5:
            for name in ("inputResponses", "cursor", "task"):
                params.pop(name, None)
        if self._version == MODERN:
            params["_meta"] = {
                f"{PREFIX}protocolVersion": MODERN,
                f"{PREFIX}clientCapabilities": json.loads(json.dumps(CAPABILITIES)),
                f"{PREFIX}clientInfo": json.loads(json.dumps(INFO)),
            }
        elif not params and self._random.random() < 0.5:
            return method, None
        return method, params

    def _message(self, call: tuple[str, Any]) -> Json:
        self._last += 1
        method, params = call
        name = self._random.choice((self._last, str(self._last), f"id {self._last}"))
        message: Json = {"jsonrpc": "2.0", "id": name, "method": method}
        return message if params is None else {**message, "params": params}

    def _change(self, value: Any) -> Any:
        """Change one place somewhere in a value."""
        if isinstance(value, dict) and value and self._random.random() < 0.85:
            row = dict(cast("Json", value))
            key, way = self._random.choice(list(row)), self._random.random()
            if way < 0.12:
                del row[key]
            elif way < 0.2:
                row[self._random.choice(KEYS)] = self._random.choice(VALUES)
            else:
                row[key] = self._change(row[key])
            return row
        if isinstance(value, list) and value and self._random.random() < 0.85:
            items = list(cast("list[Any]", value))
            place = self._random.randrange(len(items))
            items[place] = self._change(items[place])
            return items
        return self._random.choice(VALUES)

    def _line(self, message: Any) -> SentLine:
        line = json.dumps(message, ensure_ascii=self._random.random() < 0.5).encode("utf-8", "surrogatepass")
        if self._random.random() < 0.02:
            line = line.replace(b"alpha", rb"\ud83d")
        rows = cast("list[Json]", message) if isinstance(message, list) else [cast("Json", message)]
        calls = [row for row in rows if "method" in row and "error" not in row]  # with an error it is a reply
        ids = [row["id"] for row in calls if type(row.get("id")) in {int, str}]
        return SentLine(line, tuple(dict.fromkeys(ids)))

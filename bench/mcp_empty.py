"""The least that a server can be: a plain loop over lines of JSON, with one tool that gives back its text."""

import json
import sys
from typing import Any

_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_TOOL = {"name": "echo", "description": "Gives back a text.", "inputSchema": _SCHEMA}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "empty", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [_TOOL]}
    return {"content": [{"type": "text", "text": params["arguments"]["text"]}], "isError": False}


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        result = _answer(message["method"], message.get("params", {}))
        reply = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False)
        sys.stdout.buffer.write(reply.encode() + b"\n")
        sys.stdout.buffer.flush()

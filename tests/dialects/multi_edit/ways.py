"""The family through every way in: two real servers, one for each kind of errors, and the library."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dialects.place import sha256
from front.mcp.client import RpcFailed, StdioClient, data_of
from surehold.library.session import AgentSession
from surehold.library.workspace import AgentWorkspace

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What one call came to, whichever way it went."""

    result: Json = field(default_factory=dict[str, Any])
    """What a model is given as data; for a reading tool, what programs are given."""
    whole: Json = field(default_factory=dict[str, Any])
    """What programs are given."""
    text: str = ""
    error: Json = field(default_factory=dict[str, Any])

    @property
    def told(self) -> tuple[int, str]:
        """The code and the message of a refusal."""
        assert self.error, self.result
        return self.error["code"], self.error["message"]


class Way(Protocol):
    """A way in."""

    def call(self, tool: str, arguments: Json) -> Reply:
        """Call a tool."""
        ...


@dataclass(frozen=True)
class Library:
    """The way of a Python program."""

    workspace: AgentWorkspace
    session: AgentSession

    def call(self, tool: str, arguments: Json) -> Reply:
        answer = self.session.answer(tool, arguments)
        if answer.error is not None:
            return Reply(text=answer.text, whole=answer.data, error=answer.data["error"])
        return Reply(result=answer.structured or answer.data, whole=answer.data, text=answer.text)


@dataclass(frozen=True)
class Served:
    """The way of a model: refusals are results that it can read."""

    client: StdioClient

    def call(self, tool: str, arguments: Json) -> Reply:
        raw = self.client.call(tool, arguments)
        (block,) = raw["content"]
        whole = data_of(raw)
        if raw["isError"]:
            if tool != "read_text_file":
                assert raw["structuredContent"] == whole
            return Reply(text=block["text"], whole=whole, error=whole["error"])
        return Reply(result=raw.get("structuredContent", whole), whole=whole, text=block["text"])


@dataclass(frozen=True)
class ByContract:
    """The way of a program that was written for the contract: refusals are JSON-RPC errors."""

    client: StdioClient

    def call(self, tool: str, arguments: Json) -> Reply:
        try:
            return Served(self.client).call(tool, arguments)
        except RpcFailed as failed:
            error = {"code": failed.code, "message": failed.message, "data": failed.data}
            return Reply(error=error, whole={"error": error})


@dataclass(frozen=True)
class Desk:
    """A directory of its own, and a way to the tools."""

    way: Way
    folder: Path

    def put(self, name: str, data: bytes | str) -> str:
        """Write a file behind the tools' back; return its sha256."""
        content = data.encode() if isinstance(data, str) else data
        (self.folder / name).write_bytes(content)
        return sha256(content)

    def get(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def on(self, tool: str, name: str, **arguments: Any) -> Reply:
        """Call a tool on a file of this desk."""
        return self.way.call(tool, {"path": self.path(name), **arguments})

    def multi_edit(self, name: str, *edits: tuple[str, str], **arguments: Any) -> Reply:
        rows = [{"old_string": old, "new_string": new} for old, new in edits]
        return self.on("multi_edit_text_file", name, edits=rows, **arguments)

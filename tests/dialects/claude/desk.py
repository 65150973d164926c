"""An agent with Read, Write and Edit: it reads, quotes, and changes files of its own directory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialects.place import Place
from front.mcp.client import data_of

KINDS = {
    "not_read",
    "partially_read",
    "stale",
    "not_found",
    "not_unique",
    "no_change",
    "use_notebook_edit",
    "file_not_found",
    "is_directory",
    "not_regular_file",
    "binary_file",
    "file_too_large",
    "permission_denied",
    "permission_required",
    "protected_path",
    "outside_roots",
    "encoding_unencodable",
    "notebook_invalid",
    "invalid_arguments",
}


@dataclass(frozen=True)
class Told:
    """What one call came to, as a model and as a program hear it."""

    raw: dict[str, Any]

    @property
    def ok(self) -> bool:
        return not self.raw.get("isError", False)

    @property
    def result(self) -> dict[str, Any]:
        return data_of(self.raw)

    @property
    def data(self) -> dict[str, Any]:
        assert self.ok, self.text
        return self.result

    @property
    def error(self) -> dict[str, Any]:
        """The refusal, whose shape is always the same, in every place where it is told."""
        assert not self.ok, self.text
        assert set(self.result) == {"error"}
        error = self.result["error"]
        assert set(error) == {"kind", "message", "suggested_action", "details"}
        assert error["kind"] in KINDS
        assert error["message"].endswith(".")
        assert error["suggested_action"]
        assert self.text.startswith(f"Nothing was written. {error['kind']}: {error['message']}\n")
        assert self.raw["structuredContent"] == self.result
        return error

    @property
    def kind(self) -> str:
        return str(self.error["kind"])

    @property
    def text(self) -> str:
        return str(self.raw["content"][0]["text"])


@dataclass(frozen=True)
class Desk:
    """One agent at one place."""

    place: Place

    def put(self, name: str, data: bytes | str) -> None:
        """Write a file behind the server's back."""
        self.place.put(name, data.encode() if isinstance(data, str) else data)

    def get(self, name: str) -> bytes:
        return self.place.get(name)

    def file(self, name: str) -> Path:
        return self.place.file(name)

    def path(self, name: str) -> str:
        return str(self.place.file(name))

    def call(self, tool: str, **arguments: Any) -> Told:
        return Told(self.place.client.call(tool, arguments))

    def read(self, name: str, **arguments: Any) -> Told:
        told = self.call("Read", file_path=self.path(name), **arguments)
        assert told.ok, told.text
        return told

    def edit(self, name: str, old: str, new: str, **arguments: Any) -> Told:
        return self.call("Edit", file_path=self.path(name), old_string=old, new_string=new, **arguments)

    def write(self, name: str, content: str, **arguments: Any) -> Told:
        return self.call("Write", file_path=self.path(name), content=content, **arguments)

    def edited(self, data: bytes | str, old: str, new: str, **arguments: Any) -> bytes:
        """Put a file, read it, edit it, and return what is there then."""
        self.put("file.txt", data)
        self.read("file.txt")
        told = self.edit("file.txt", old, new, **arguments)
        assert told.ok, told.text
        return self.get("file.txt")


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))

"""One server with the tools of every family, and the same edit asked of each of them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front.mcp.client import StdioClient


@dataclass(frozen=True)
class Said:
    """What a model is told."""

    raw: dict[str, Any]

    @property
    def ok(self) -> bool:
        return not self.raw.get("isError", False)

    @property
    def text(self) -> str:
        return "\n".join(str(block["text"]) for block in self.raw["content"])


@dataclass(frozen=True)
class EveryTool:
    """A directory of its own in the workspace of a running server."""

    client: StdioClient
    folder: Path

    def put(self, files: Mapping[str, str | bytes]) -> None:
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def files(self) -> dict[str, str]:
        """Return every file of this directory, and what is in it."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes().decode() for path in found}

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def call(self, tool: str, **arguments: Any) -> Said:
        return Said(self.client.call(tool, arguments))

    def sha256(self, name: str) -> str:
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()

    def quote_edit(self, tool: str, name: str, old: str, new: str) -> Said:
        """Replace a quoted text with one of the tools that do so, as an agent does that has read the file."""
        if tool == "Edit":
            self.call("Read", file_path=self.path(name))
            return self.call("Edit", file_path=self.path(name), old_string=old, new_string=new)
        if tool == "edit_file":
            edits = [{"oldText": old, "newText": new}]
            return self.call("edit_file", path=self.path(name), edits=edits, expectedSha256=self.sha256(name))
        edits = [{"old_string": old, "new_string": new}]
        return self.call("multi_edit_text_file", path=self.path(name), edits=edits)

    def patch(self, *lines: str) -> Said:
        """Apply an envelope patch; `{}` is this directory."""
        text = "\n".join(lines).replace("{}", str(self.folder))
        return self.call("apply_patch", patch=text)

    def anchors(self, name: str) -> dict[int, str]:
        """Read with hashes; return the anchor of every line."""
        rows = self.call("read_file", path=self.path(name), hashes=True).text.split("\n")
        anchors = [row.partition("|")[0].rstrip("!~") for row in rows if "#" in row.partition("|")[0]]
        return {int(anchor.partition("#")[0]): anchor for anchor in anchors}

    def edit_lines(self, name: str, *operations: dict[str, Any], **arguments: Any) -> Said:
        return self.call("edit", path=self.path(name), operations=list(operations), **arguments)

"""`Read` as a model's host meets it: through a real server process, over stdio."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front.mcp.client import StdioClient, data_of, surehold


@dataclass(frozen=True)
class Said:
    """What one call came to."""

    raw: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        """The result for programs; fails when the call did."""
        assert not self.raw["isError"], self.text
        return data_of(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        """The refusal; fails when the call did not."""
        assert self.raw["isError"], self.text
        return data_of(self.raw)["error"]

    @property
    def text(self) -> str:
        return str(self.raw["content"][0]["text"])

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """What comes beside the text."""
        return self.raw["content"][1:]


@dataclass(frozen=True)
class Desk:
    """A workspace with a running server."""

    client: StdioClient
    root: Path

    def put(self, name: str, data: bytes) -> str:
        """Write a file behind the server's back; return its absolute path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def call(self, tool: str, **arguments: Any) -> Said:
        return Said(self.client.call(tool, arguments))

    def read(self, path: str, **arguments: Any) -> Said:
        return self.call("Read", file_path=path, **arguments)


@contextmanager
def desk_at(base: Path, *options: str) -> Generator[Desk]:
    """Start a server with the claude family."""
    root = base / "root"
    root.mkdir()
    words = surehold("mcp", str(root), "--state-dir", str(base / "state"), "--tools", "claude", *options)
    with StdioClient(words) as client:
        yield Desk(client, root)

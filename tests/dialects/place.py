"""The tools as an agent meets them: through a real server process, over stdio."""

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front.mcp.client import StdioClient, data_of


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What one call came to."""

    raw: dict[str, Any]

    @property
    def ok(self) -> bool:
        assert self.raw.get("isError", False) is not self.result["ok"]
        return bool(self.result["ok"])

    @property
    def result(self) -> dict[str, Any]:
        return data_of(self.raw)

    @property
    def data(self) -> dict[str, Any]:
        assert self.ok, self.text
        return self.result["data"]

    @property
    def error(self) -> dict[str, Any]:
        assert not self.ok, self.text
        return self.result["error"]

    @property
    def text(self) -> str:
        (block,) = self.raw["content"]
        return str(block["text"])


@dataclass(frozen=True)
class Place:
    """A directory of its own in the workspace of a running server."""

    client: StdioClient
    root: Path
    state: Path
    name: str

    def path(self, name: str) -> str:
        """Return how a tool names a file of this place."""
        return f"{self.name}/{name}"

    def file(self, name: str) -> Path:
        return self.root / self.name / name

    def put(self, name: str, data: bytes) -> str:
        """Write a file behind the server's back; return its sha256."""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        self.file(name).write_bytes(data)
        return sha256(data)

    def get(self, name: str) -> bytes:
        return self.file(name).read_bytes()

    def call(self, tool: str, **arguments: Any) -> Outcome:
        return Outcome(self.client.call(tool, arguments))

    def on(self, tool: str, name: str, **arguments: Any) -> Outcome:
        """Call a tool on a file of this place."""
        return self.call(tool, path=self.path(name), **arguments)

    def entries(self) -> list[dict[str, Any]]:
        """Return what the ledger says about this place, newest first, as `surehold log` prints it."""
        return [
            row for row in json.loads(self.shell("log", "--all", "--json"))["entries"] if self.name in str(row["path"])
        ]

    def shell(self, *words: str) -> str:
        """Run `surehold` on this workspace, as a person beside the agent does."""
        command = [sys.executable, "-m", "surehold", "--root", str(self.root), "--state-dir", str(self.state), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

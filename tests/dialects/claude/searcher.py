"""An agent that looks for things with Glob and Grep, in a directory of its own."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front.mcp.client import StdioClient, data_of

_NUMBERS = itertools.count(1)
Server = tuple[StdioClient, Path, Path]


@dataclass(frozen=True)
class Heard:
    """What one call came to."""

    raw: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        assert not self.raw.get("isError", False), self.text
        assert "structuredContent" not in self.raw  # a host would show it instead of the text
        return data_of(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        assert self.raw["isError"], self.text
        return data_of(self.raw)["error"]

    @property
    def text(self) -> str:
        (block,) = self.raw["content"]
        return str(block["text"])

    @property
    def rows(self) -> list[str]:
        """The rows of a content page."""
        content = self.data["content"]
        return content.split("\n") if content else []


@dataclass(frozen=True)
class Searcher:
    """Calls the tools on one directory below the root."""

    client: StdioClient
    root: Path
    name: str

    @property
    def home(self) -> Path:
        return self.root / self.name

    def put(self, name: str | bytes, data: bytes = b"needle\n", *, age: int | None = None) -> None:
        """Write a file; `age` in seconds says how old it looks."""
        path = self.home / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if age is not None:
            os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))

    def grep(self, pattern: str, path: str = "", **more: Any) -> Heard:
        """Call Grep; `_i` stands for `-i`."""
        arguments = {name.replace("_", "-") if name in _FLAGS else name: value for name, value in more.items()}
        where = f"{self.name}/{path}" if path else self.name
        return Heard(self.client.call("Grep", {"pattern": pattern, "path": where, **arguments}))

    def glob(self, pattern: str, path: str = "", **more: Any) -> Heard:
        where = f"{self.name}/{path}" if path else self.name
        return Heard(self.client.call("Glob", {"pattern": pattern, "path": where, **more}))

    def own(self, *names: str) -> list[str]:
        """Return names as the tools spell them, relative to the root."""
        return [f"{self.name}/{name}" for name in names]

    def files(self, pattern: str, path: str = "", **more: Any) -> list[str]:
        return self.without(self.grep(pattern, path, **more).data["filenames"])

    def without(self, names: Sequence[str]) -> list[str]:
        """Return names as they are below this directory."""
        return [name.removeprefix(self.name + "/") for name in names]


_FLAGS = {"_i", "_n", "_A", "_B", "_C"}


def searcher_of(server: Server) -> Searcher:
    client, root, _ = server
    name = f"search{next(_NUMBERS)}"
    (root / name).mkdir()
    return Searcher(client, root, name)

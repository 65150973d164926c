"""A scratch workspace, and editors on it."""

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front.acp.editor import Answer, Editor, closing, command, connected


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One root and one state directory."""

    root: Path
    state: Path

    @asynccontextmanager
    async def editor(self, *options: str, answer: Answer = closing, files: bool = False) -> AsyncGenerator[Editor]:
        """Start the real agent on this workspace, and open a session of a real client."""
        async with connected(command(self.root, self.state, *options), answer) as editor:
            await editor.begin(self.root, files=files)
            await editor.wait_until_welcome()
            yield editor

    def put(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def get(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self.get(name)).hexdigest()

    def edit(self, name: str, *pairs: tuple[str, str]) -> str:
        """Return the prompt that edits a file."""
        edits = [{"oldText": old, "newText": new} for old, new in pairs]
        return call("edit_file", path=name, expectedSha256=self.sha256(name), edits=edits)


def call(tool: str, **arguments: Any) -> str:
    """Return a call as a person would paste it."""
    return json.dumps({"tool": tool, "arguments": arguments})

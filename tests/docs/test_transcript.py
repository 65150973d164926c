"""The conversation that the README shows is held again, with a real server, and must come out the same."""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from docs.snippets import snippets
from spec.marks import requirement
from waiting import HANG_SECONDS

_SHA256 = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
_CHANGE = re.compile(r"(?<=changeId: )[0-9a-z]{26}")


class Server:
    """A server process, and one line out, one line in."""

    def __init__(self, root: Path, state: Path) -> None:
        self.process = subprocess.Popen(
            (sys.executable, "-m", "surehold", "mcp", root, "--state-dir", state),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.request("initialize", hello)

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "menu.txt").write_text("Tea 2.50\nCoffee 3.00\n", encoding="utf-8")
    server = Server(root, tmp_path / "state")
    with server.process:
        yield server
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(HANG_SECONDS) == 0


@requirement("front:docs:clients")
def test_the_readme_shows_what_a_model_really_reads(server: Server, tmp_path: Path) -> None:
    (shown,) = [block.text for block in snippets() if block.page == "README.md" and block.text.startswith("→")]
    menu = tmp_path / "root" / "menu.txt"
    hashes, said = dict[str, str](), list[str]()
    for part in shown.strip().split("\n\n"):
        first = part.partition("\n")[0]
        if meanwhile := re.fullmatch(r'\(a person changes "(.+)" to "(.+)"\)', first):
            menu.write_text(menu.read_text("utf-8").replace(meanwhile[1], meanwhile[2]), encoding="utf-8")
            said.append(first)
            continue
        name, _, arguments = first.removeprefix("→ ").partition(" ")
        for short, full in hashes.items():
            arguments = arguments.replace(f"{short}…", full)
        result = server.request("tools/call", {"name": name, "arguments": json.loads(arguments)})
        text = result["content"][0]["text"].rstrip()
        hashes |= {found[1]: found[0] for found in _SHA256.finditer(text)}
        said.append(first + "\n" + _SHA256.sub(r"\1…", text))

    assert [_CHANGE.sub("ID", part) for part in said] == [
        _CHANGE.sub("ID", part) for part in shown.strip().split("\n\n")
    ]
    assert menu.read_text("utf-8") == "Tea 2.80\nCoffee 3.10\n"

"""Two server processes on one workspace, each with an agent that edits the same file."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from front.mcp.client import StdioClient, data_of, surehold
from spec.marks import requirement

EDITS = int(os.environ.get("SUREHOLD_SERVER_EDITS", "500"))


def work(client: StdioClient, name: str, edits: int, acknowledged: list[str]) -> None:
    """Add lines of our own to a file that another process adds lines to; a refusal is retried from what it says."""
    digest = data_of(client.call("read_file", {"path": "shared.txt"}))["data"]["sha256"]
    for number in range(edits):
        line = f"{name} {number}"
        edit = {"oldText": f"end of {name}", "newText": f"{line}\nend of {name}"}
        while True:
            arguments = {"path": "shared.txt", "expectedSha256": digest, "edits": [edit]}
            result: dict[str, Any] = data_of(client.call("edit_file", arguments))
            if result["ok"]:
                digest = result["data"]["afterSha256"]
                acknowledged.append(line)
                break
            assert result["error"]["kind"] == "stale_file", result
            digest = result["error"]["details"]["retryWithSha256"]


@requirement("files:stale:lifecycle", "promise:refusal:one_retry")
def test_two_servers_lose_no_edit(tmp_path: Path, count: Callable[[str, int], None]) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "shared.txt").write_text("end of one\nend of two\n")
    command = surehold("mcp", root, "--state-dir", tmp_path / "state")
    acknowledged: dict[str, list[str]] = {"one": [], "two": []}
    with StdioClient(command) as first, StdioClient(command) as second, ThreadPoolExecutor(2) as agents:
        for done in [
            agents.submit(work, client, name, EDITS, acknowledged[name])
            for client, name in ((first, "one"), (second, "two"))
        ]:
            done.result()

    count("edits by two servers", sum(map(len, acknowledged.values())))
    lines = (root / "shared.txt").read_text().splitlines()
    assert [len(done) for done in acknowledged.values()] == [EDITS, EDITS]
    assert lines == [*acknowledged["one"], "end of one", *acknowledged["two"], "end of two"]

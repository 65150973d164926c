"""What the server adds to a call: the round trip minus the work itself, against the round trip of a plain JSON loop."""

import json
import time
from pathlib import Path
from statistics import median

from mcp_client import EMPTY, McpClient, connected, ours
from sample import NAME, scratch, source
from table import Row

from surehold import Settings, open_workspace
from surehold.library.families import tools_of
from surehold.tools.call import CallContext

_CALLS = 600
_WARM = 50
_TOKEN_CHARACTERS = 4


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        (root / NAME).write_text(source(2_000), encoding="utf-8")
        with connected(EMPTY) as empty, connected(ours(root, folder / "state")) as server:
            text = server.call("read_file", {"path": NAME})["content"][0]["text"]
            trips = _in_turns(empty, server, text)
            resident, tools = server.memory("VmRSS"), server.request("tools/list")["tools"]
        with connected(ours(root, folder / "state")) as idle:
            idle.call("read_file", {"path": NAME})
            resting = idle.memory("VmRSS")
        engine = _engine(root, folder / "other-state")
    return [
        Row(
            name="what a call costs beside its work (read_file, 2 KB)",
            measured=(trips[1] - engine) / trips[0],
            goal=1.5,
            note=f"of a call to a plain JSON loop: {trips[0] * 1e3:.2f} → {trips[1] * 1e3:.2f} ms, "
            f"{engine * 1e3:.2f} ms of it work; median of {_CALLS}",
        ),
        Row(
            name="tools/list of the default set",
            measured=len(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) / _TOKEN_CHARACTERS,
            unit="tokens",
            goal=4_000,
            note=f"estimated, {len(tools)} tools, 4 characters a token",
        ),
        Row(name="memory of a server at rest", measured=resting, unit="MB", goal=45, note="RSS after the first call"),
        Row(name=f"  after {_CALLS} calls", measured=resident, unit="MB", note="RSS"),
    ]


def _in_turns(empty: McpClient, server: McpClient, text: str) -> tuple[float, float]:
    taken: tuple[list[float], list[float]] = ([], [])
    calls = ((empty, "echo", {"text": text}), (server, "read_file", {"path": NAME}))
    for number in range(_CALLS + _WARM):
        for side, (client, tool, arguments) in enumerate(calls):
            start = time.perf_counter()
            client.call(tool, arguments)
            if number >= _WARM:
                taken[side].append(time.perf_counter() - start)
    return median(taken[0]), median(taken[1])


def _engine(root: Path, state: Path) -> float:
    """Call the same tool in this process, with plain data, as the server does."""
    tool = next(one for one in tools_of("files") if one.name == "read_file")
    taken = list[float]()
    with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
        context = CallContext(session=workspace.session(agent="bench"))
        for _ in range(_CALLS):
            start = time.perf_counter()
            assert tool.call(context, {"path": NAME}).ok
            taken.append(time.perf_counter() - start)
    return median(taken)

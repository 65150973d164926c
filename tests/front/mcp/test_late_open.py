"""A server says what it offers before it opens its workspace; if that cannot be opened, it says so and ends."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from front.mcp.client import Json, StdioClient, surehold
from front.mcp.conftest import make_site
from front.mcp.site import Site
from spec.marks import requirement
from surehold.errors import StateUnavailable
from surehold.front.mcp.catalog import ServerCatalog
from surehold.front.mcp.connection import ClientConnection
from surehold.front.mcp.json_rpc import RpcNotification, RpcRequest
from surehold.library.families import list_tools
from waiting import HANG_SECONDS

HEAVY = ("surehold.workspace.workspace", "surehold.stores.base", "surehold.disk.base", "surehold.dialects", "sqlite3")
LIBRARIES = ("pydantic", "mcp", "asyncio", "logging", "concurrent.futures", "pathspec", "zstandard")
LIST_ALL = """
import json, sys
from surehold.front.cli.main import build_parser
from surehold.front.mcp.catalog import ServerCatalog
from surehold.front.mcp.stdio import serve_stdio
from surehold.front import server_launch
from surehold.library.families import list_tools

build_parser(("mcp",)).parse_args(["mcp", "."])
catalog = ServerCatalog(list_tools("all"), roots=("/",))
assert catalog.list_tools() and catalog.describe_server() and catalog.list_prompts()
print(json.dumps(sorted(sys.modules)))
"""


@requirement("front:mcp:early_list")
def test_what_a_server_offers_is_told_without_the_workspace_and_without_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", LIST_ALL], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))

    assert not loaded & {*HEAVY, *LIBRARIES}


SERVE_AND_TELL = """
import atexit, json, pathlib, sys
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text(json.dumps(sorted(sys.modules))))
from surehold.front.cli.main import run
sys.exit(run(sys.argv[2:]))
"""


def modules_after_a_read(folder: Path, tool: str, arguments: Json, *flags: str) -> set[str]:
    """Return what a server has loaded when it has listed its tools and shown one file."""
    folder.mkdir()
    site = make_site(folder)
    site.put("a.txt", "one\n")
    told = folder / "modules"
    words = ("mcp", str(site.root), "--state-dir", str(site.state), *flags)
    with StdioClient(["-c", SERVE_AND_TELL, str(told), *words]) as client:
        client.request("tools/list")
        assert not client.call(tool, arguments)["isError"]
    return set(json.loads(told.read_text()))


@requirement("front:mcp:early_list")
def test_the_first_read_of_each_vocabulary_loads_the_same_libraries(tmp_path: Path) -> None:
    default = modules_after_a_read(tmp_path / "default", "read_file", {"path": "a.txt"})
    claude = modules_after_a_read(tmp_path / "claude", "Read", {"file_path": "a.txt"}, "--tools", "claude")

    own = {"read", "read_result", "read_text", "located_file", "wire"}
    assert claude - default == {
        *("surehold.dialects.claude", "surehold.media", "surehold.media.magic"),
        *(f"surehold.dialects.claude.{name}" for name in own),
    }


def spoiled(tmp_path: Path) -> Site:
    """Return a workspace whose state directory is a file."""
    site = Site(root=tmp_path / "root", state=tmp_path / "state")
    site.root.mkdir()
    site.state.write_text("not a directory")
    return site


def hello(number: int) -> Json:
    info = {"name": "claude-code", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}


@requirement("front:mcp:early_list")
@pytest.mark.parametrize("method", ["tools/call", "resources/list"])
def test_a_call_is_told_why_the_workspace_cannot_be_opened_and_the_server_ends(tmp_path: Path, method: str) -> None:
    site = spoiled(tmp_path)
    params = {"name": "read_file", "arguments": {"path": "a.txt"}} if method == "tools/call" else {}
    messages = [
        hello(1),
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": method, "params": params},
    ]
    client = StdioClient(surehold("mcp", site.root, "--state-dir", site.state), handshake=False)
    client.send_line(b"\n".join(json.dumps(one).encode() for one in messages))

    assert client.answer(1)["serverInfo"]["name"] == "surehold"
    assert client.answer(2)["tools"]
    error = client.raw_answer(3)["error"]
    assert (error["code"], error["data"]["kind"]) == (-32603, "command_failed")
    assert "The state directory cannot be used." in error["message"]
    assert client.wait() == 1
    assert "Refused: " in client.errors()
    assert "The state directory cannot be used." in client.errors()
    assert "Traceback" not in client.errors()


@requirement("front:mcp:early_list")
def test_the_end_waits_until_the_last_answer_has_been_sent() -> None:
    sending, may_send = threading.Event(), threading.Event()
    sent = list[Json]()

    def send_slowly(message: Json) -> None:
        sending.set()
        may_send.wait(HANG_SECONDS)
        sent.append(message)

    def fail_to_open() -> NoReturn:
        raise StateUnavailable("The state directory cannot be used.")

    def start(work: Callable[[], None]) -> None:
        threading.Thread(target=work).start()

    catalog = ServerCatalog(list_tools("all"), roots=("/",))
    connection = ClientConnection(catalog, fail_to_open, send=send_slowly, start=start, when_lost=lambda: None)
    connection.take_message(RpcNotification("notifications/initialized", None))
    connection.take_message(RpcRequest(3, "resources/list", {}))
    assert sending.wait(HANG_SECONDS)
    connection.finish_calls(HANG_SECONDS, has_reader=lambda: may_send.set() or True)
    connection.close()

    assert [(one["id"], one["error"]["data"]["reason"]) for one in sent] == [(3, "audit_unavailable")]


@requirement("front:mcp:early_list")
def test_a_server_whose_workspace_cannot_be_opened_ends_without_being_called(tmp_path: Path) -> None:
    site = spoiled(tmp_path)
    client = StdioClient(surehold("mcp", site.root, "--state-dir", site.state), handshake=False)
    client.send(hello(1))

    assert client.answer(1)["serverInfo"]["name"] == "surehold"
    assert client.wait() == 1
    assert "Refused: " in client.errors()


@requirement("front:mcp:early_list")
def test_a_client_that_only_looks_is_told_at_the_end(tmp_path: Path) -> None:
    site = spoiled(tmp_path)
    command = [sys.executable, *surehold("mcp", site.root, "--state-dir", site.state)]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=HANG_SECONDS)

    assert (done.returncode, done.stdout) == (1, "")
    assert "Refused: " in done.stderr

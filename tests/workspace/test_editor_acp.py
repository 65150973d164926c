"""Files through a real ACP connection: two ends of a socket, the protocol's own package on both."""

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, run_agent
from acp.schema import (
    ClientCapabilities,
    FileSystemCapabilities,
    InitializeResponse,
    ReadTextFileResponse,
    WriteTextFileResponse,
)

from disk.editors import Editor
from spec.marks import requirement
from surehold.errors import Unavailable
from surehold.front.acp.editor_files import AcpEditorFiles, can_edit
from workspaces import real_workspace

T = TypeVar("T")


class Host:
    """A client whose files are those of an editor."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.sessions = set[str]()
        self.refusal: RequestError | None = None
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        await self._before(session_id)
        assert (line, limit) == (None, None)
        text = self.editor.read_text(path)
        if text is None:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=text)

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> WriteTextFileResponse | None:
        await self._before(session_id)
        self.editor.write_text(path, content)
        return None

    async def _before(self, session_id: str) -> None:
        self.sessions.add(session_id)
        self.asked.set()
        await self.answers.wait()
        if self.refusal is not None:
            raise self.refusal


class Agent:
    """The other end: all that is wanted of it is its connection."""

    def __init__(self) -> None:
        self.conn: Any = None

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)


@dataclass
class Line:
    """A connection that lives on a loop in a thread of its own."""

    editor: Editor = field(default_factory=Editor)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        self.host, self.agent = Host(self.editor), Agent()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._connect())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def files(self, timeout: float = 10.0) -> AcpEditorFiles:
        return AcpEditorFiles(self.agent.conn, "session-1", self.loop, timeout=timeout)

    async def _connect(self) -> None:
        self.ends = [await asyncio.open_connection(sock=end) for end in socket.socketpair()]
        (reader, writer), (other_reader, other_writer) = self.ends
        self.serving = asyncio.ensure_future(run_agent(self.agent, writer, reader))  # type: ignore[arg-type]
        self.client = connect_to_agent(self.host, other_writer, other_reader)  # type: ignore[arg-type]
        await self.client.initialize(protocol_version=PROTOCOL_VERSION)

    async def hang_up(self) -> None:
        """Close the client's end, whatever it is doing; the agent notices that, and ends."""
        await self.client.close()
        for _, writer in reversed(self.ends):
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            await self.serving

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self.run(self.hang_up())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


@requirement("multi_edit:acp:editor_files", "multi_edit:acp:weaker_guarantee")
def test_an_unsaved_buffer_is_edited_over_a_real_connection(line: Line, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "a"
    path.write_bytes(b"saved\n")
    line.editor.type(path, "typed \u00e4\u2028\n")

    with real_workspace(root, editor=line.files()) as workspace:
        session = workspace.session()
        assert session.read("a").text == "typed \u00e4\u2028\n"
        session.edit("a", ("typed", "edited"))
        assert (line.editor.text(path), path.read_bytes()) == ("edited \u00e4\u2028\n", b"saved\n")
        assert "cannot compare and write in one step" in workspace.disk.write_caution(workspace.target("a"))
        session.undo()

    assert (line.editor.text(path), path.read_bytes()) == ("typed \u00e4\u2028\n", b"saved\n")
    assert line.host.sessions == {"session-1"}


def test_many_threads_may_ask_at_once(line: Line, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}" for number in range(20)]
    for path in paths:
        path.write_text(path.name)
    files = line.files()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(files.read_text, map(str, paths))) == [path.name for path in paths]


@pytest.mark.parametrize(
    "refusal",
    [
        RequestError(-32002, "Resource not found"),
        RequestError(-32603, "Internal error", {"details": "ENOENT: no such file or directory, open '/x'"}),
        RequestError(-32000, "File /x not found"),
        RequestError(-32602, "The path does not exist"),
    ],
)
def test_a_file_that_the_client_does_not_have_is_none(line: Line, refusal: RequestError) -> None:
    line.host.refusal = refusal

    assert line.files().read_text("/x") is None


@pytest.mark.parametrize(
    "refusal",
    [
        RequestError.method_not_found("fs/read_text_file"),
        RequestError(-32603, "Session not found"),
        RequestError(-32000, "Permission denied."),
    ],
)
def test_any_other_refusal_says_what_the_client_said(line: Line, refusal: RequestError) -> None:
    line.host.refusal = refusal
    files = line.files()

    for ask, what in ((lambda: files.read_text("/x"), "read"), (lambda: files.write_text("/x", "text"), "write")):
        with pytest.raises(Unavailable) as refused:
            ask()
        assert (refused.value.reason, refused.value.path) == ("editor_refused", "/x")
        assert refused.value.message == f"The editor refused to {what} `/x` ({refusal})."
        assert refused.value.details == {"editor_code": refusal.code}


def test_a_write_to_a_file_that_the_client_does_not_have_is_refused(line: Line) -> None:
    line.host.refusal = RequestError.resource_not_found("/x")

    with pytest.raises(Unavailable) as refused:
        line.files().write_text("/x", "text")

    assert refused.value.reason == "editor_refused"


def test_a_client_that_does_not_answer_is_given_up(line: Line) -> None:
    line.loop.call_soon_threadsafe(line.host.answers.clear)

    with pytest.raises(Unavailable) as refused:
        line.files(timeout=0.05).read_text("/x")

    assert (refused.value.reason, refused.value.details) == ("editor_timeout", {"seconds": 0.05})


def test_a_connection_that_ends_is_told(line: Line, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    files = line.files()
    assert files.read_text(str(tmp_path / "a")) == "x"
    line.run(line.hang_up())

    with pytest.raises(Unavailable) as refused:
        files.read_text(str(tmp_path / "a"))
    assert refused.value.reason == "editor_gone"

    line.close()
    with pytest.raises(Unavailable) as refused:
        files.write_text(str(tmp_path / "a"), "y")
    assert refused.value.reason == "editor_gone"


def test_a_connection_that_ends_while_it_is_asked_is_told(line: Line) -> None:
    line.loop.call_soon_threadsafe(line.host.answers.clear)

    async def hang_up_when_asked() -> None:
        await line.host.asked.wait()
        await line.hang_up()

    hung_up = asyncio.run_coroutine_threadsafe(hang_up_when_asked(), line.loop)
    with pytest.raises(Unavailable) as refused:
        line.files().read_text("/x")

    hung_up.result(10)
    assert refused.value.reason == "editor_gone"


def test_the_thread_of_the_loop_is_refused_instead_of_waiting_for_itself(line: Line) -> None:
    files = line.files()

    async def ask() -> None:
        files.read_text("/x")

    with pytest.raises(RuntimeError, match="other threads"):
        line.run(ask())


def test_a_client_must_both_read_and_write() -> None:
    def fs(*, read: bool, write: bool) -> ClientCapabilities:
        return ClientCapabilities(fs=FileSystemCapabilities(read_text_file=read, write_text_file=write))

    assert can_edit(fs(read=True, write=True))
    for capabilities in (None, ClientCapabilities(), fs(read=True, write=False), fs(read=False, write=True)):
        assert not can_edit(capabilities)


def test_the_innermost_directory_that_a_client_named_otherwise_decides_how_a_path_is_spelled(line: Line) -> None:
    names = {"/real": "/link", "/real/inner": "/other"}
    files = AcpEditorFiles(line.agent.conn, "session-1", line.loop, names=names)

    for path in ("/real/a", "/real/inner/a", "/really/a"):
        files.read_text(path)

    assert line.editor.asked == ["/link/a", "/other/a", "/really/a"]

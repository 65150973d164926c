"""An editor: a real client of the protocol, with a real agent process at the other end of a pipe."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from acp import spawn_agent_process, text_block
from acp.client import ClientSideConnection
from acp.connection import StreamEvent
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    RequestPermissionResponse,
)

from waiting import HANG_SECONDS

if TYPE_CHECKING:
    from acp.interfaces import Client

Json = dict[str, Any]
Answer = Callable[["Editor", Json], Awaitable[RequestPermissionResponse]]


def choosing(option: str) -> Answer:
    """Make a person who always chooses this option."""

    async def answer(_: "Editor", __: Json) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))

    return answer


async def closing(_: "Editor", __: Json) -> RequestPermissionResponse:
    """Close the question without an answer."""
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def silent(_: "Editor", __: Json) -> RequestPermissionResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class Editor:
    """The client's side of one connection, and everything that passed it."""

    answer: Answer
    frames: list[StreamEvent] = field(default_factory=list[StreamEvent])
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """What the editor's own files hold; saved or not is its business."""
    conn: ClientSideConnection = field(init=False)
    process: Process = field(init=False)
    session: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    # What the agent calls.
    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:
        self.asked.set()
        return await self.answer(self, self.questions[-1])

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take note; the frames hold it."""

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> Json:
        if path not in self.buffers:
            raise RequestError.resource_not_found(path)
        return {"content": self.buffers[path]}

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> None:
        self.buffers[path] = content

    def on_connect(self, conn: Any) -> None:
        """Know the agent already."""

    # What a person does.
    async def begin(self, cwd: Path | str, *, files: bool = False) -> Json:
        """Shake hands and open a session; return what the agent said to that."""
        can = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=files, write_text_file=files))
        me = Implementation(name="test-editor", version="1")
        await self.conn.initialize(protocol_version=1, client_capabilities=can, client_info=me)
        opened = await self.conn.new_session(cwd=str(cwd), mcp_servers=[])
        self.session = opened.session_id
        return opened.model_dump(by_alias=True, exclude_none=True)

    async def say(self, *texts: str) -> str:
        """Send a prompt, and return why the turn ended."""
        blocks: list[Any] = [text_block(text) for text in texts]
        answer = await asyncio.wait_for(self.conn.prompt(session_id=self.session, prompt=blocks), HANG_SECONDS)
        return answer.stop_reason

    async def wait_until_welcome(self) -> None:
        """Wait for what an agent says unasked at the beginning of a session."""
        while not self.updates:  # noqa: ASYNC110 - frames are noted by the package, which reports nothing
            await asyncio.sleep(0.01)

    async def wait_until_asked(self) -> None:
        await asyncio.wait_for(self.asked.wait(), HANG_SECONDS)
        self.asked.clear()

    # What passed.
    @property
    def received(self) -> list[Json]:
        """Every message of the agent."""
        return [one.message for one in self.frames if one.direction.value == "incoming"]

    @property
    def questions(self) -> list[Json]:
        return [one["params"] for one in self.received if one.get("method") == "session/request_permission"]

    @property
    def updates(self) -> list[Json]:
        return [one["params"]["update"] for one in self.received if one.get("method") == "session/update"]

    @property
    def events(self) -> list[Json]:
        """The events of tool calls."""
        kinds = ("tool_call", "tool_call_update")
        return [one for one in self.updates if one.get("sessionUpdate") in kinds or "type" in one]

    @property
    def statuses(self) -> list[str]:
        return [one["status"] for one in self.events]

    @property
    def message(self) -> str:
        """What the agent said last."""
        said = [one for one in self.updates if one.get("sessionUpdate") == "agent_message_chunk"]
        return str(said[-1]["content"]["text"])


def command(root: Path, state: Path, *options: str) -> list[str]:
    """Return the words that start the real agent."""
    return [sys.executable, "-m", "surehold", "acp", str(root), "--state-dir", str(state), *options]


@asynccontextmanager
async def connected(words: Sequence[str], answer: Answer = closing) -> AsyncGenerator[Editor]:
    """Start an agent, and connect an editor to it."""
    editor = Editor(answer)
    async with spawn_agent_process(
        cast("Client", editor),
        *words,
        env=dict(os.environ),
        transport_kwargs={"stderr": None, "limit": 1 << 26, "shutdown_timeout": HANG_SECONDS},
        observers=[editor.frames.append],
    ) as (conn, process):
        editor.conn, editor.process = conn, process
        yield editor


def run(scenario: Awaitable[None]) -> None:
    """Run a scenario to its end."""
    asyncio.run(_whole(scenario))


async def _whole(scenario: Awaitable[None]) -> None:
    await asyncio.wait_for(scenario, 120)

# The package's own way to write an agent does not satisfy its own types.
# pyright: reportIncompatibleMethodOverride=false, reportAbstractUsage=false
"""Your own agent with Surehold's tools."""

import asyncio
from typing import Any

import acp

from surehold import open_workspace
from surehold.front.acp.reporter import Reporter


class MyAgent(acp.Agent):
    def on_connect(self, conn: acp.Client) -> None:
        self.conn = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        session = open_workspace(cwd).session(agent="my-agent", mode="default")
        self.reporter = Reporter(self.conn, session.id, session)
        return acp.NewSessionResponse(session_id=session.id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        call = {"path": "hello.txt", "content": prompt[0].text}  # what your model asked for
        async with self.reporter.turn(prompt[0].text):
            answer = await self.reporter.call("create_file", call)
        await self.conn.session_update(session_id=session_id, update=acp.update_agent_message_text(answer.text))
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(MyAgent()))

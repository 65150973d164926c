"""openai-agents with the server and the scripted model: `python openai_agents.py URL COMMAND [ARGUMENT …]`."""

import asyncio
import sys

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

url, command, *arguments = sys.argv[1:]


async def main() -> None:
    set_tracing_disabled(disabled=True)
    model = OpenAIResponsesModel(model="scripted", openai_client=AsyncOpenAI(base_url=f"{url}/v1", api_key="scripted"))
    server = MCPServerStdio(params={"command": command, "args": arguments}, client_session_timeout_seconds=60)
    async with server:
        agent = Agent(name="scripted", model=model, mcp_servers=[server])
        print((await Runner.run(agent, "Follow the script.", max_turns=500)).final_output)


asyncio.run(main())

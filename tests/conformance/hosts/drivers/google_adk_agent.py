"""google-adk with the server and the scripted model: `python google_adk_agent.py URL COMMAND [ARGUMENT …]`."""

import asyncio
import os
import sys

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters

url, command, *arguments = sys.argv[1:]
os.environ.update(GOOGLE_API_KEY="scripted", GOOGLE_GEMINI_BASE_URL=url, GOOGLE_GENAI_USE_VERTEXAI="0")


async def main() -> None:
    server = StdioServerParameters(command=command, args=arguments)
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    agent = Agent(name="scripted", model="gemini-2.5-flash", tools=[toolset])
    runner = InMemoryRunner(agent=agent, app_name="scripted")
    session = await runner.session_service.create_session(app_name="scripted", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text="Follow the script.")])
    async for event in runner.run_async(
        user_id="user", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=1000)
    ):
        if event.is_final_response() and event.content and event.content.parts:
            print(event.content.parts[0].text)
    await toolset.close()


asyncio.run(main())

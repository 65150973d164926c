"""pydantic-ai with the server and the scripted model: `python pydantic_ai_agent.py URL COMMAND [ARGUMENT …]`."""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

url, command, *arguments = sys.argv[1:]


async def main() -> None:
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="scripted"))
    toolset = MCPToolset(StdioTransport(command=command, args=arguments), init_timeout=60)
    async with Agent(model, toolsets=[toolset]) as agent:
        print((await agent.run("Follow the script.", usage_limits=UsageLimits(request_limit=None))).output)


asyncio.run(main())

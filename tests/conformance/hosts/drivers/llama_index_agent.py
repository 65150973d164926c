"""LlamaIndex with the server and the scripted model: `python llama_index_agent.py URL COMMAND [ARGUMENT …]`."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

url, command, *arguments = sys.argv[1:]


async def main() -> None:
    client = BasicMCPClient(command, args=arguments, timeout=60)
    tools = await McpToolSpec(client=client).to_tool_list_async()
    model = OpenAI(model="gpt-4.1", api_base=f"{url}/v1", api_key="scripted")
    agent = FunctionAgent(tools=tools, llm=model, timeout=1200)
    print(await agent.run("Follow the script.", max_iterations=500))


asyncio.run(main())

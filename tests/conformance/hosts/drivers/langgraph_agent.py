"""langchain-mcp-adapters with langgraph: `python langgraph_agent.py URL COMMAND [ARGUMENT …]`.

`get_tools` of the adapters starts a server for each call, which is how their documentation begins.
"""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

url, command, *arguments = sys.argv[1:]


async def main() -> None:
    client = MultiServerMCPClient({"surehold": {"transport": "stdio", "command": command, "args": arguments}})
    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="scripted")
    agent = create_agent(model, await client.get_tools())
    messages = [{"role": "user", "content": "Follow the script."}]
    state = await agent.ainvoke({"messages": messages}, {"recursion_limit": 1000})
    print(state["messages"][-1].content)


asyncio.run(main())

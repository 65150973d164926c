"""An agent of LangChain: `python with_langchain.py DIRECTORY "REQUEST"`, with ANTHROPIC_API_KEY set."""

import sys

from langchain.agents import create_agent

from surehold import open_workspace
from surehold.adapters.langchain import langchain_tools


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="chain")
        agent = create_agent("anthropic:claude-sonnet-5-5", langchain_tools(session, shell=True))
        with session.turn(request) as turn:
            answer = agent.invoke({"messages": [{"role": "user", "content": request}]})
            print(answer["messages"][-1].text)
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

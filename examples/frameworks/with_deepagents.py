"""An agent of deepagents, with a shell: `python with_deepagents.py DIRECTORY "REQUEST"`, with ANTHROPIC_API_KEY set."""

import sys

from deepagents import create_deep_agent

from surehold import open_workspace
from surehold.adapters.deepagents import SessionSandbox


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="deep")
        agent = create_deep_agent("anthropic:claude-sonnet-5-5", backend=SessionSandbox(session))
        with session.turn(request) as turn:
            answer = agent.invoke({"messages": [{"role": "user", "content": request}]})
            print(answer["messages"][-1].text)
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An agent of Pydantic AI: `python with_pydantic_ai.py DIRECTORY "REQUEST"`, with ANTHROPIC_API_KEY set."""

import sys

from pydantic_ai import Agent

from surehold import open_workspace
from surehold.adapters.pydantic_ai import SessionToolset


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="typed")
        agent = Agent("anthropic:claude-sonnet-5-5", toolsets=[SessionToolset(session, shell=True)])
        with session.turn(request) as turn:
            print(agent.run_sync(request).output)
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

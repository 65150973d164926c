"""An agent of Google's ADK: `python with_google_adk.py DIRECTORY "REQUEST"`, with GOOGLE_API_KEY set."""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.environment import EnvironmentToolset

from surehold import open_workspace
from surehold.adapters.functions import plain_functions
from surehold.adapters.google_adk import SessionEnvironment, tell_refusal


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="adk")
        more = [one for one in plain_functions(session) if one.__name__ in {"delete_file", "move_file"}]
        tools = [EnvironmentToolset(environment=SessionEnvironment(session)), *more]
        agent = LlmAgent(name="adk", model="gemini-2.5-flash", tools=tools, on_tool_error_callback=tell_refusal)
        with session.turn(request) as turn:
            asyncio.run(InMemoryRunner(agent=agent).run_debug(request))
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

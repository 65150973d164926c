"""An agent of the OpenAI Agents SDK: `python with_openai_agents.py DIRECTORY "REQUEST"`, with OPENAI_API_KEY set."""

import sys

from agents import Agent, ApplyPatchTool, Runner, ShellTool

from surehold import open_workspace
from surehold.adapters.openai_agents import PatchEditor, shell_executor


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="coder")
        editor = PatchEditor(session)
        agent = Agent(
            name="Coder",
            model="gpt-5",
            tools=[ApplyPatchTool(editor=editor), ShellTool(executor=shell_executor(session))],
        )
        with session.turn(request) as turn:
            print(Runner.run_sync(agent, request, hooks=editor.hooks).final_output)
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An agent of Anthropic's tool runner: `python with_anthropic.py DIRECTORY "REQUEST"`, with ANTHROPIC_API_KEY set."""

import sys

from anthropic import Anthropic

from surehold import open_workspace
from surehold.adapters.anthropic import MemoryTool, TextEditorTool


def main(directory: str = ".", request: str = "Tidy up.") -> None:
    """Let the agent do what is asked for, as one turn, and list what it changed."""
    with open_workspace(directory) as workspace:
        session = workspace.session(agent="claude")
        runner = Anthropic().beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            tools=[TextEditorTool(session), MemoryTool(session)],
            messages=[{"role": "user", "content": request}],
        )
        with session.turn(request) as turn:
            print(*(block.text for block in runner.until_done().content if block.type == "text"))
        for change in workspace.changes(session=session, turn=turn.id):
            print(f"{change.change_id}: {', '.join(change.paths)} (+{change.added} -{change.removed})")
        print(f"To take it back: surehold undo --session {session.id} --turn {turn.id}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""First steps: run it in any directory; it tidies up after itself."""

from surehold import open_workspace

with open_workspace(".") as workspace:
    agent = workspace.session(agent="me")
    agent.create("hello.txt", "Hello, wrold!\n")
    receipt = agent.edit("hello.txt", ("wrold", "world"))
    print(receipt.diff)
    agent.undo(receipt.change_id)  # any change, at any time later
    agent.delete("hello.txt")  # into the trash; agent.restore brings it back

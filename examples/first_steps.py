"""First steps: run it in any directory; it cleans up after itself."""

from surehold import open_workspace

with open_workspace(".") as workspace:
    agent = workspace.session(agent="me")
    made = agent.create_file("hello.txt", "Hello, wrold!\n")
    done = agent.edit_file("hello.txt", [("wrold", "world")], expected_sha256=made.sha256)
    print(done.diff)
    agent.undo(done.change_id)  # any change, at any time later
    agent.delete_file("hello.txt", expected_sha256=made.sha256)  # to the trash; restore_file brings it back

"""The Python library: a workspace and a session with a typed method for every tool, and the list of tool families."""

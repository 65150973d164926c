"""An example agent on top of `surehold.front.acp`: it has no model and runs the tool calls that a person writes.

`surehold acp` starts it, so it is installed with Surehold; nothing in Surehold itself depends on it.
"""

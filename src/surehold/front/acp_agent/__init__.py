"""An example agent on top of `surehold.front.acp`: it has no model and runs the tool calls that a person writes.

`surehold acp` starts it. Nothing else in the code base imports it.
"""

"""The Python library: a workspace and a session with a typed method for every tool, and the list of tool families.

It sits above the dialects and below the front ends. No tool is defined here, and no tool family imports it.
"""

"""The command line for people: one module per group of commands, and what they share.

Commands open a workspace and print what it returns. No module here opens a file to change it, and nothing heavy is
imported at module level: `surehold --help` must stay fast.
"""

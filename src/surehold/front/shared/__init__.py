"""What several front ends share: safe text, lines over stdio, the approval queue, and bug reports.

Nothing here imports a front end (`cli`, `mcp`, `acp`, `review`) or a protocol library.
"""

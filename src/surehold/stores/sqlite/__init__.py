"""The store in SQLite: its connections, its tables, its stored bytes and its migrations.

Only the wiring (`app`) imports `store`; no type of SQLite leaves this package. Nothing here reads or writes a file
of the workspace.
"""

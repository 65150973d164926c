"""How the steps of one change reach this machine's disk: staged, published, undone or cleaned up, all or none.

`create_remove`, `replace` and `rename` hold the actions; `writer` runs them. Nothing here decides whether a change is
allowed, locks a directory, or knows about editors and the history; only `disk.local` calls in.
"""

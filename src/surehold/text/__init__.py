"""The text core: bytes and values, nothing else.

1. Nothing here reads a file, a clock or the environment.
2. Bytes that an edit does not touch are copied, never decoded and encoded again.
3. An edit is a pure function from a Snapshot to an EditPlan; it may refuse, and then nothing has happened.
"""

"""What needs the SDK: HTTP, and the reference over standard input and output that our own loop is compared with."""

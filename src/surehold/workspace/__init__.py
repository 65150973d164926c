"""The heart: reading, the one write path, history and recovery."""

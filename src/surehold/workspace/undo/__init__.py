"""Undo: which files earlier changes were about, what they would be without one of them, and what to write for that."""

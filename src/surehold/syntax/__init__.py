"""Parsers for many languages, to detect whether an edit broke a file. Nothing here reads or writes files."""

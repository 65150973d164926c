"""Surehold inside agent frameworks: one module for each of them, and `functions` for all others.

Each module takes a session first, and imports its framework when it is imported itself. None of the frameworks is a dependency.
Only the public library is used here, as a program of a user would.
"""

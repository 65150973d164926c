"""Sanity checks of a planned edit: syntax, brackets, repeated lines and foreign markers.

The checks read a plan and report findings. They change nothing; the parsers live in `surehold.syntax`.
"""

"""Patches: the notations are parsed into one shape, and their hunks are placed and applied.

Parsing refuses what can be read in two ways; applying refuses what fits in no place or in several. Other edits and
diffs do not belong here.
"""

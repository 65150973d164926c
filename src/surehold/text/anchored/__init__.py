"""Edits that name lines by anchors (line number and hash): display, resolution, operations, refusals.

Quoted text and patches do not belong here. A line is changed only if it is proven to be the one that is meant.
"""

"""Edits that name text by quoting it: searching, replacing, explaining why a quotation is not found.

Anchors, patches and notebooks do not belong here. Nothing here is ever applied by similarity.
"""

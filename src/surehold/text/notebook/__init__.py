"""Jupyter notebooks: reading cells from the JSON text and editing one of them in place.

Only the file format lives here. Showing cells to a caller, and images of outputs, belong to the dialects and media.
"""

"""Blob stores: large earlier versions outside of the history, in a directory or in object storage."""

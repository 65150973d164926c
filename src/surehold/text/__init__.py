"""The text core: bytes and values, nothing else.

Bytes that an edit does not touch are copied, never decoded and encoded again.
"""

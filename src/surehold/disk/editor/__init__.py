"""The disk as an editor shows it: unsaved buffers are read, and new text is written through the editor.

Wraps any `Disk` together with `EditorFiles`. Knows nothing of the protocol that connects the editor, and never
touches a file except through the disk it wraps.
"""

"""The disk as an editor shows it: unsaved buffers are read, and new text is written through the editor."""

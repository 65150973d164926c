"""Finding files by name or by content. A disk provides the files, and permission is checked for each of them; nothing here changes a file."""

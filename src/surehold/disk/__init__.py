"""Where the files are: resolving, reading, locking and changing them."""

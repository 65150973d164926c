"""Settings that are kept in files, and what a shell knows about the command line."""

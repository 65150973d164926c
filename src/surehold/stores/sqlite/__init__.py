"""The store in SQLite: its connections, its tables, its stored bytes and its migrations."""

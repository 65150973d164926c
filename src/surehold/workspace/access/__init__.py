"""Who may read and change what: path rules, permissions, and what a session must have read before it edits. Decides only: nothing here reads or writes a file."""

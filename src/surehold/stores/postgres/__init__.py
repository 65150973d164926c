"""The store in PostgreSQL: the state of many workspaces, for servers on several machines."""

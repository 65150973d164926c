"""The ways in: each turns what its users say into calls of the workspace, and what comes back into their words."""

"""The files family: tools whose changes are gated by the sha256 of what the caller saw."""

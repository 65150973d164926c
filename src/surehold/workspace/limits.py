"""How much, and how long."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much, and how long."""

    max_file_bytes: int = 1 << 30
    """Larger files are not edited, and read only page by page."""
    lock_timeout: float = 10.0
    lease: float = 10.0
    """How long an intent is ours without being renewed, for owners whose life cannot be seen."""
    fence: float = 60.0
    """On mounts that cache: how long an older version of ours counts as a stale cache, not as an outside edit."""
    sighting_bytes: int = 4 << 20
    """Versions up to this size are kept when they are shown, so that edits can be rebased."""

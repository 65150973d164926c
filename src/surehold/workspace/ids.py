"""Names for changes, trash items and sessions: 26 letters that sort by time (ULID)."""

import os
from datetime import UTC, datetime

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26


def new_id() -> str:
    """Return a fresh name."""
    milliseconds = int(datetime.now(UTC).timestamp() * 1000)
    number = milliseconds << 80 | int.from_bytes(os.urandom(10))
    return "".join(_LETTERS[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5))


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)

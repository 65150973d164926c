"""The name under which the person at this machine is recorded."""

import os


def person_name() -> str:
    """Return the name under which a person's changes and answers are recorded."""
    return os.environ.get("USER") or "person"

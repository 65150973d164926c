"""The name under which the person at this machine is recorded."""

import os

from surehold.text.escape import escape_text


def person_name() -> str:
    """Return the name under which a person's changes and answers are recorded."""
    return escape_text(os.environ.get("USER", "")) or "person"

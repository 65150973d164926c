"""A file that says what is needed to repair a bug."""

import os
import tempfile
import traceback
from collections.abc import Sequence

from surehold.front.cli.upkeep_commands import versions


def write_report(error: Exception, argv: Sequence[str]) -> str:
    """Write what happened into a file that only this user can read; return its path, or why there is none."""
    facts = "".join(f"{name}: {value}\n" for name, value in versions().items())
    trace = "".join(traceback.format_exception(error))
    text = f"{facts}command: {' '.join(argv)!r}\n\n{trace}"
    try:
        place, path = tempfile.mkstemp(prefix="surehold-bug-", suffix=".txt")
        with os.fdopen(place, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as trouble:
        return f"(no report file: {trouble})\n{text}"
    return path

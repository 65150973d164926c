"""What is needed to repair a bug: versions, and a file that says what happened."""

import os
import tempfile
import traceback
from collections.abc import Sequence

from surehold import __version__


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


def versions() -> dict[str, str]:
    """Return what one needs to know to repeat a problem."""
    import platform
    import sqlite3

    return {
        "surehold": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
    }

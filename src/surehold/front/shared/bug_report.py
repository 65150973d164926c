"""Collects what a bug report needs: versions, and a file that says what happened."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress

from surehold import __version__
from surehold.errors import SureholdError


def write_report(error: Exception, argv: Sequence[str]) -> str:
    """Write what happened to a file that only this user can read; return its path, or why there is none."""
    facts = "".join(f"{name}: {value}\n" for name, value in collect_versions().items())
    trace = "".join(traceback.format_exception(error))
    text = f"{facts}command: {' '.join(argv)!r}\n\n{trace}"
    try:
        place, path = tempfile.mkstemp(prefix="surehold-bug-", suffix=".txt")
        with os.fdopen(place, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as trouble:
        return f"(no report file: {trouble})\n{text}"
    return path


def report_bug(error: Exception, words: Sequence[str]) -> SureholdError:
    """Report a bug in a tool call, and return the error for its caller."""
    place = write_report(error, words)
    with suppress(OSError):  # standard error may be closed
        sys.stderr.write(f"surehold: `{words[-1]}` failed ({type(error).__name__}); the report is {place}\n")
    return SureholdError(
        f"Surehold itself failed ({type(error).__name__}); this is a bug.",
        reason="bug",
        action="Read the file to see whether it changed. Please report the bug, with the report file.",
        report=place,
    )


def collect_versions() -> dict[str, str]:
    """Return what one needs to know to repeat a problem."""
    import platform
    import sqlite3

    return {
        "surehold": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
    }

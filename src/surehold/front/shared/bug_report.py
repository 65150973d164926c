"""Reports bugs: a file that says what happened, and an answer that never hides a change that was written."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from surehold import __version__
from surehold.errors import SureholdError

if TYPE_CHECKING:
    from surehold.tools.call import Answer
    from surehold.tools.spec import AnyTool
    from surehold.workspace.proposal import ChangeRecord


def write_report(error: Exception, argv: Sequence[str]) -> str:
    """Write what happened to a file that only this user can read; return its path, or why there is none."""
    import tempfile
    import traceback

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


def answer_after_bug(tool: "AnyTool", error: Exception, record: "ChangeRecord", front: str) -> "Answer":
    """Report a failure of our own, and answer the call: as done, if its change was written."""
    report = write_report(error, [front, tool.name])
    with suppress(OSError):  # standard error may be closed
        sys.stderr.write(f"surehold: `{tool.name}` failed ({type(error).__name__}); the report is {report}\n")
    if record.change_ids:
        answer = tool.changed_answer(record.change_ids, error)
        return replace(answer, text=f"{answer.text}\nreport: {report}")
    return tool.refusal_answer(
        SureholdError(
            f"Surehold itself failed ({type(error).__name__}); this is a bug.",
            reason="bug",
            action="Read the file to see whether it changed. Please report the bug, with the report file.",
            report=report,
        )
    )


def collect_versions() -> dict[str, str]:
    import platform
    import sqlite3

    return {
        "surehold": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
    }

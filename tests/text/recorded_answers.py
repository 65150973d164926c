"""Answers that are kept in full: what an edit makes of a file, or says when it refuses, one row for each case.

The rows are in `recorded/NAME.txt`. A change of behaviour shows there, to be read like any other change; where it is
meant, `SUREHOLD_RECORD=1 pytest tests/text` writes the rows again.
"""

import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from surehold.errors import SureholdError
from surehold.text.plan import Edit, EditPlan
from surehold.text.snapshot import Snapshot

_KEPT_CHARS = 80
"""Of a longer answer the beginning is kept, and a digest of all of it."""
_FOLDER = Path(__file__).parent / "recorded"


def check_answers(name: str, rows: Iterable[tuple[str, str]]) -> None:
    """Compare cases and their answers with the rows that are kept."""
    found = [f"{case}\n    {answer}" for case, answer in rows]
    file = _FOLDER / f"{name}.txt"
    if os.environ.get("SUREHOLD_RECORD"):
        file.write_text("\n".join([*found, ""]), encoding="utf-8")
    kept = file.read_text("utf-8").removesuffix("\n").split("\n")
    there = [f"{case}\n{answer}" for case, answer in zip(kept[::2], kept[1::2], strict=True)]
    assert len(found) == len(there)
    for answer, wanted in zip(found, there, strict=True):
        assert answer == wanted


def answer_of(edit: Edit, before: Snapshot) -> str:
    """Tell what an edit makes of a file, or how it is refused."""
    try:
        plan = edit.plan(before)
    except SureholdError as error:
        return describe_error(error)
    return describe_plan(plan)


def describe_plan(plan: EditPlan) -> str:
    facts = [
        *(() if plan.spans else (str(plan.after.data) if plan.after.exists else "no file",)),
        *(f"{span.start}-{span.end} {span.new!r}" for span in plan.spans),
        *(
            f"edit {one.index} {one.tier} x{one.occurrences} {[tuple(row) for row in one.ranges]}"
            for one in plan.applied
        ),
        *(
            f"op {one.index} {one.op} {one.resolution_level} {one.start_line}-{one.end_line} to {one.new_start_line}-"
            f"{one.new_end_line}{' across' if one.cross_version else ''}{f' {one.rebase}' if one.rebase else ''}"
            for one in plan.resolutions
        ),
        *(f"{one.type}: {one.detail}" for one in plan.corrections),
        *plan.warnings,
    ]
    return _one_row("; ".join(facts))


def describe_error(error: SureholdError) -> str:
    told = dict(error.as_dict())
    shown = f" shown {error.shown}" if error.shown is not None else ""
    return _one_row(
        f"{told['kind']} {told['reason']}: {told['message']} [{told['suggested_action']}] {told['details']}{shown}"
    )


def _one_row(text: str) -> str:
    row = text.encode("unicode_escape").decode()
    return row if len(row) <= _KEPT_CHARS else f"{row[:_KEPT_CHARS]}\u2026 {zlib.crc32(row.encode()):08x}"

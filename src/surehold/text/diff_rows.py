"""Reads unified diffs row by row.

A row is classified by its position, not by its first characters: inside a hunk `--- x` is a removed line, outside it
is a header.
"""

import re
from collections.abc import Iterator
from typing import Literal

RowKind = Literal["header", "hunk", "added", "removed", "same", "note"]
HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def classify_rows(diff: str) -> Iterator[tuple[RowKind, str]]:
    old = new = 0
    for row in diff.removesuffix("\n").split("\n") if diff else ():
        if row.startswith("\\"):
            yield "note", row
        elif old <= 0 and new <= 0:
            match = HUNK_HEADER.match(row)
            if match:
                old, new = int(match[2] or 1), int(match[4] or 1)
            yield ("hunk" if match else "header"), row
        else:
            old -= not row.startswith("+")
            new -= not row.startswith("-")
            yield ("added" if row.startswith("+") else "removed" if row.startswith("-") else "same"), row


def count_rows(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes."""
    kinds = [kind for kind, _ in classify_rows(diff)]
    return kinds.count("added"), kinds.count("removed")

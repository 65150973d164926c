"""Unified diffs for people: counted and painted row by row.

A row is judged by where it stands, not by how it begins: inside a hunk `--- x` is a removed line, outside it is a header.
"""

import re
from collections.abc import Iterator
from typing import Literal

from surehold.front.cli.output import Output, Style, safe

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_STYLES: dict[str, Style] = {"header": "bold", "hunk": "cyan", "added": "green", "removed": "red", "note": "dim"}

Kind = Literal["header", "hunk", "added", "removed", "same", "note"]


def count(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes."""
    kinds = [kind for kind, _ in rows(diff)]
    return kinds.count("added"), kinds.count("removed")


def counted(added: int, removed: int) -> str:
    """Return `+3 -1`, without what is zero."""
    return " ".join(f"{sign}{number}" for sign, number in (("+", added), ("-", removed)) if number)


def hand_over(out: Output, diff: str) -> None:
    """Print a diff for people on a terminal; into a pipe goes the very text, which `patch` understands."""
    if out.is_terminal or out.colour:
        paint_diff(out, diff)
        return
    try:
        out.raw(diff.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        out.raw(diff.encode("utf-8", "backslashreplace"))


def paint_diff(out: Output, diff: str) -> None:
    """Print a diff in colour."""
    found = list(rows(diff))
    content = [row for kind, row in found if kind in {"added", "removed", "same"}]
    # CRLF everywhere is not news; CR in some rows only is the difference that one looks for.
    hide_cr = bool(content) and all(row.endswith("\r") for row in content)
    for kind, row in found:
        text = row.removesuffix("\r") if hide_cr else row
        out.line(out.paint(safe(text, keep="\t"), _STYLES.get(kind, "plain")))


def rows(diff: str) -> Iterator[tuple[Kind, str]]:
    """Yield every row with what it is."""
    old = new = 0
    for row in diff.removesuffix("\n").split("\n") if diff else ():
        if row.startswith("\\"):
            yield "note", row
        elif old <= 0 and new <= 0:
            match = _HUNK.match(row)
            if match:
                old, new = (int(part or 1) for part in match.groups())
            yield ("hunk" if match else "header"), row
        else:
            old -= not row.startswith("+")
            new -= not row.startswith("-")
            yield ("added" if row.startswith("+") else "removed" if row.startswith("-") else "same"), row

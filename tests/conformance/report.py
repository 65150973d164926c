"""What was checked, and how it ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Outcome = Literal["passed", "failed", "expected failure", "not scored"]
"""`not scored` failed too, in something that the checker itself says is optional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that another program checked about our server."""

    part: str
    """Which program, in which way."""
    name: str
    outcome: Outcome
    why: str = ""
    """Why it did not pass."""
    seen: str = ""
    """How much of it passed, when it consists of parts."""


def outcome(*, ok: bool) -> Outcome:
    return "passed" if ok else "failed"


def unexpected(checks: Iterable[Check]) -> list[Check]:
    """Return the unexpected checks."""
    return [check for check in checks if check.outcome == "failed"]


def table(checks: Iterable[Check]) -> str:
    """Return every check as aligned text, below the name of its part."""
    lines = list[str]()
    for part, group in groupby(checks, key=lambda check: check.part):
        lines += ["", part]
        for check in group:
            more = "; ".join(word for word in (check.seen, check.why) if word)
            lines.append(f"  {check.outcome:<16}  {check.name}{f'  ({more})' if more else ''}")
    return "\n".join(lines).lstrip("\n")


def summary(checks: Iterable[Check]) -> dict[str, dict[Outcome, int]]:
    """Return how many checks of each part ended in which way."""
    counts = dict[str, dict[Outcome, int]]()
    for check in checks:
        row = counts.setdefault(check.part, {})
        row[check.outcome] = row.get(check.outcome, 0) + 1
    return counts

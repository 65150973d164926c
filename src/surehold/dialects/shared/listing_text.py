"""How the search and listing tools show entries, counts of skipped files, and a page of rows."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from surehold.search.query import ListedEntry, Skipped
from surehold.text.escape import escape_text

_KIND_SIGNS = {"directory": "/", "symlink": "@", "other": "?"}
_SKIPPED_WORDS = {
    "binary": "binary",
    "tooLarge": "too large",
    "denied": "denied by a rule",
    "unreadable": "unreadable",
    "ignored": "ignored",
    "hidden": "hidden",
    "changed": "changing",
}


def entry_line(path: str, kind: str, size: int) -> str:
    """Say an entry in one line: its path, what it is, and how large."""
    return f"{escape_text(path)}{_KIND_SIGNS.get(kind, '')}" + (f"  {size}" if kind == "file" else "")


def mtime_text(entry: ListedEntry) -> str:
    """Spell a time as everybody reads it."""
    seconds, rest = divmod(entry.mtime_ns, 1_000_000_000)
    return f"{_format_second(seconds)}.{rest // 1_000_000:03}Z"


@lru_cache(maxsize=1024)
def _format_second(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a clock that nobody set
        return datetime.fromtimestamp(0, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def skipped_counts(skipped: Skipped) -> dict[str, int]:
    """Return what was not looked at, by kind; kinds that nobody counted are left out."""
    counts: dict[str, Any] = {
        "binary": skipped.binary,
        "tooLarge": skipped.too_large,
        "denied": skipped.denied,
        "unreadable": skipped.unreadable,
        "ignored": skipped.ignored,
        "hidden": skipped.hidden,
        "changed": skipped.changed,
    }
    return {kind: count for kind, count in counts.items() if count}


def skipped_text(counts: dict[str, int]) -> str:
    """Say what was not looked at; empty when that is nothing."""
    return ", ".join(f"{count} {_SKIPPED_WORDS[kind]}" for kind, count in counts.items())


def count_that_fit(lines: Iterable[str], room: int) -> int:
    """Return how many lines fit; one at least."""
    number = 0
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return max(number, 1)
    return number + 1


def page_with_heading(heading: str, notes: Sequence[str], rows: Iterable[str]) -> str:
    """Put the facts first, then the rows."""
    return "\n".join([heading, *(f"[{note}]" for note in notes), *rows])


_NOT_LOOKED_AT_WORDS = {
    "ignored": "ignored",
    "hidden": "hidden",
    "binary": "binary",
    "tooLarge": "too large",
    "denied": "denied by a rule",
    "unreadable": "unreadable",
    "changed": "changing",
}
HEADING_CHARS = 1_000
"""Characters that are kept free for the facts above a page."""


def not_looked_at_counts(skipped: Skipped) -> dict[str, int]:
    """Return what was not looked at, by kind; kinds that nobody counted, or that there are none of, are left out."""
    counts = {
        "ignored": skipped.ignored,
        "hidden": skipped.hidden,
        "binary": skipped.binary,
        "tooLarge": skipped.too_large,
        "denied": skipped.denied,
        "unreadable": skipped.unreadable,
        "changed": skipped.changed,
    }
    return {kind: count for kind, count in counts.items() if count}


def not_looked_at_text(counts: dict[str, int]) -> str:
    """Say what was not looked at; empty when that is nothing."""
    said = ", ".join(f"{count} {_NOT_LOOKED_AT_WORDS[kind]}" for kind, count in counts.items())
    return f"not looked at: {said}" if said else ""


def count_with_noun(number: int, one: str, many: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def page_with_facts(facts: Iterable[str], notes: Sequence[str], rows: Iterable[str]) -> str:
    """Put the facts first, then what is to be known about them, then the rows."""
    return "\n".join([" · ".join(fact for fact in facts if fact), *(f"[{note}]" for note in notes), *rows])

"""What the three finding tools have in common: how entries and skipped files are told."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from surehold.search.values import ListedEntry, Skipped
from surehold.text.visible import safe

_KINDS = {"directory": "/", "symlink": "@", "other": "?"}
_WORDS = {
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
    return f"{safe(path)}{_KINDS.get(kind, '')}" + (f"  {size}" if kind == "file" else "")


def mtime(entry: ListedEntry) -> str:
    """Spell a time as everybody reads it."""
    seconds, rest = divmod(entry.mtime_ns, 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1_000_000:03}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
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
    return ", ".join(f"{count} {_WORDS[kind]}" for kind, count in counts.items())


def fitting(lines: Iterable[str], room: int) -> int:
    """Return how many lines fit; one at least."""
    number = 0
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return max(number, 1)
    return number + 1


def page_text(heading: str, notes: Sequence[str], rows: Iterable[str]) -> str:
    """Put the facts first, then the rows."""
    return "\n".join([heading, *(f"[{note}]" for note in notes), *rows])

"""How the search and listing tools show entries, counts of skipped files, and a page of rows."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from pydantic.alias_generators import to_snake

from surehold.search.query import ListedEntry, Skipped
from surehold.text.escape import escape_text
from surehold.text.measure import TextRoom
from surehold.tools.call import AnswerBudget

_HEADING_UNITS = 1_000
"""What is kept free for the facts above a page and the cursor below it."""
_KIND_SIGNS = {"directory": "/", "symlink": "@", "other": "?"}
_SKIPPED_WORDS = {
    "ignored": "ignored",
    "hidden": "hidden",
    "binary": "binary",
    "tooLarge": "too large",
    "denied": "denied by a rule",
    "unreadable": "unreadable",
    "changed": "changing",
}


def listing_room(budget: AnswerBudget) -> TextRoom:
    """Return the room of the rows of a page."""
    room = budget.page_room
    return room.less(min(_HEADING_UNITS, room.size // 2))


def entry_line(path: str, kind: str, size: int) -> str:
    return f"{escape_text(path)}{_KIND_SIGNS.get(kind, '')}" + (f"  {size}" if kind == "file" else "")


def mtime_text(entry: ListedEntry) -> str:
    """Return the time of an entry in ISO 8601, in UTC."""
    seconds, rest = divmod(entry.mtime_ns, 1_000_000_000)
    return f"{_format_second(seconds)}.{rest // 1_000_000:03}Z"


@lru_cache(maxsize=1024)
def _format_second(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):  # beyond what a date can be
        return "1970-01-01T00:00:00"


def skipped_counts(skipped: Skipped) -> dict[str, int]:
    """Return what was not searched, by kind; kinds without any, or not counted, are left out."""
    return {kind: count for kind in _SKIPPED_WORDS if (count := getattr(skipped, to_snake(kind)))}


def skipped_text(label: str, counts: dict[str, int]) -> str:
    """Return the same in words, after a label; empty if there is nothing."""
    words = ", ".join(f"{count} {_SKIPPED_WORDS[kind]}" for kind, count in counts.items())
    return f"{label}: {words}" if words else ""


def count_noun(number: int, one: str, many: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def page_text(facts: Iterable[str], notes: Sequence[str], rows: Iterable[str], *, following: str = "") -> str:
    """Lay a page out; the call that goes on is named above and below, since hosts cut at either end or between."""
    heading = " · ".join(fact for fact in (*facts, following) if fact)
    return "\n".join([heading, *(f"[{note}]" for note in notes), *rows, *([f"[{following}]"] if following else [])])

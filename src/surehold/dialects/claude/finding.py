"""What Glob and Grep have in common: where they look, how they say what they did not look at, and how a page is laid out."""

from collections.abc import Iterable, Sequence

from surehold.search.values import Skipped

_WORDS = {
    "ignored": "ignored",
    "hidden": "hidden",
    "binary": "binary",
    "tooLarge": "too large",
    "denied": "denied by a rule",
    "unreadable": "unreadable",
    "changed": "changing",
}
HEADING = 1_000
"""Characters that are kept free for the facts above a page."""


def not_looked_at(skipped: Skipped) -> dict[str, int]:
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


def in_words(counts: dict[str, int]) -> str:
    """Say what was not looked at; empty when that is nothing."""
    said = ", ".join(f"{count} {_WORDS[kind]}" for kind, count in counts.items())
    return f"not looked at: {said}" if said else ""


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def page_text(facts: Iterable[str], notes: Sequence[str], rows: Iterable[str]) -> str:
    """Put the facts first, then what is to be known about them, then the rows."""
    return "\n".join([" · ".join(fact for fact in facts if fact), *(f"[{note}]" for note in notes), *rows])

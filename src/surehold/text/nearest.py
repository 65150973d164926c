"""What a quoted text was probably meant to be, for the message of a refusal. Nothing is ever applied by nearness.

1. Lines that are equal but for blanks vote for the place where the quotation would begin.
2. Without any such line, the line with the most words in common stands for the place.
3. What is shown are the file's own lines, so that the next call can quote them.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from surehold.text.quotes import DOUBLE, SINGLE
from surehold.text.snapshot import Snapshot

Cause = Literal["blanks", "line_numbers_copied", "other_lines", ""]

_SHOWN = 3
_MOST_LINES = 200_000
_MOST_BYTES = 16 << 20
"""So many are compared; the rest of a larger file is not looked at."""
_MOST_POSITIONS = 64
_MOST_ROWS = 40
MOST_TEXT = 2_000
"""How many characters of a place are shown."""
_WIDEST = 10_000
_ENOUGH = 0.5
_WORD = re.compile(r"\w+")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_FOLDED = str.maketrans(
    {
        **dict.fromkeys(SINGLE, "'"),
        **dict.fromkeys(DOUBLE, '"'),
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys(_INVISIBLE, ""),
    }
)
_PREFIX = re.compile(r"^[ \t]*\d+(?:#[0-9a-f]{4,}(?:\.\d+)?[!~]?\||\t|→|\|| ?: ?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Lines that are much like a quotation."""

    line: int
    text: str
    differing: int
    """How many of the quoted lines are different, blanks aside."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        row: dict[str, Any] = {"line": self.line, "text": self.text}
        return {**row, "differing_lines": self.differing} if self.differing else row


def without_numbers(old: str) -> str | None:
    """Return a quotation without the line numbers that a reader shows in front of each line; None when it has none."""
    rows = old.split("\n")
    filled = [row for row in rows if row]
    if not filled or not all(_PREFIX.match(row) for row in filled):
        return None
    return "\n".join(_PREFIX.sub("", row) for row in rows)


def compared(snapshot: Snapshot) -> int:
    """Return how many lines of a file are compared with a quotation."""
    return min(_MOST_LINES, bisect_left(snapshot.lines.starts, _MOST_BYTES))


def nearest(snapshot: Snapshot, old: str) -> tuple[Near, ...]:
    """Return the places that are most like a quotation, best first; none when nothing is."""
    quoted = [row.strip() for row in old.split("\n")]
    if quoted and not quoted[-1]:
        quoted.pop()
    if not any(quoted):
        return ()
    lines = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[: compared(snapshot)]]
    stripped = [line.strip() for line in lines]
    starts = _voted(stripped, quoted) or _wordy(stripped, quoted)
    return tuple(_near(lines, stripped, quoted, start) for start in starts[:_SHOWN])


def looking_alike(snapshot: Snapshot, old: str) -> Near | None:
    """Return where a text stands that a reader cannot tell from a quotation; None when nowhere."""
    if old.isascii() and snapshot.data.isascii():
        return None
    lines = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[: compared(snapshot)]]
    page, wanted = "\n".join(map(look, lines)), "\n".join(map(look, old.split("\n"))).strip()
    at = page.find(wanted) if wanted else -1
    if at < 0:
        return None
    first = page.count("\n", 0, at)
    rows = lines[first : first + min(wanted.count("\n") + 1, _MOST_ROWS)]
    return Near(line=first + 1, text="\n".join(rows)[:MOST_TEXT], differing=0)


def look(text: str) -> str:
    """Return what a line looks like: one form for characters that a reader cannot tell apart."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFKC", text.translate(_FOLDED)).split())


def _voted(stripped: Sequence[str], quoted: Sequence[str]) -> list[int]:
    """Return where the quotation would begin by the vote of its lines, those with the most votes first."""
    wanted = {text for text in quoted if text}
    positions: dict[str, list[int]] = {}
    for index, text in enumerate(stripped):
        if text in wanted and len(found := positions.setdefault(text, [])) < _MOST_POSITIONS:
            found.append(index)
    votes = Counter[int]()
    for offset, text in enumerate(quoted):
        for index in positions.get(text, ()):
            if index - offset >= 0:
                votes[index - offset] += 1
    ranked = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    best = ranked[0][1] if ranked else 0
    return [start for start, count in ranked if count == best or count * 2 > best]


def _wordy(stripped: Sequence[str], quoted: Sequence[str]) -> list[int]:
    """Return where the quotation would begin if its longest line stood where most of its words do."""
    offset, longest = max(enumerate(quoted), key=lambda pair: len(pair[1]))
    words = set(_WORD.findall(longest[:_WIDEST].casefold()))
    scores = list[tuple[float, int]]()
    for index, text in enumerate(stripped if words else ()):
        if len(text) > _WIDEST or index < offset:
            continue
        others = set(_WORD.findall(text.casefold()))
        shared = len(words & others)
        if (score := shared / (len(words) + len(others) - shared)) >= _ENOUGH:
            scores.append((-score, index - offset))
    return [start for _, start in sorted(scores)[:_SHOWN]]


def _near(lines: Sequence[str], stripped: Sequence[str], quoted: Sequence[str], start: int) -> Near:
    end = min(start + min(len(quoted), _MOST_ROWS), len(lines))
    there = stripped[start : start + len(quoted)]
    same = sum(one == other for one, other in zip(quoted, there, strict=False))
    return Near(line=start + 1, text="\n".join(lines[start:end])[:MOST_TEXT], differing=len(quoted) - same)

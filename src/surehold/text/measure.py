"""How large a text is where it is shown: in characters, bytes or JSON, and in estimated tokens; and how much of it fits."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Unit = Literal["characters", "bytes", "json"]
"""What a host counts: UTF-16 code units (as JavaScript does), bytes of UTF-8, or characters of a JSON string."""

_DENSE_RUN = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
"""Base64, hashes and the like: no word of a language, so that a token is only one or two characters."""
_DENSE_CHARS = 40
_DENSE_KINDS = 12
"""Such a run has many different characters; one of a few, such as a ruled line, costs little."""
_BLOCK_ROWS = 64
"""How many rows are measured at once: measuring a row takes as long as measuring a thousand characters."""
QUARTERS_PER_TOKEN = 4
DENSE_QUARTERS = 8 / 3
"""Quarters of a token that a character of such a run costs: the most that one of ASCII can."""


def count_units(text: str, unit: Unit) -> int:
    """Return the size of a text; a character that UTF-8 cannot hold counts as the escape that is shown for it."""
    if unit == "json":
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    if text.isascii():
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "backslashreplace"))
    return len(text.encode("utf-16-le", "backslashreplace")) // 2


def count_quarter_tokens(text: str) -> int:
    """Return an estimate, by script, in quarters of a token, so that many short texts add up to the long one.

    A token is 4 characters of ASCII, 1.5 of base64, 2 of an alphabet such as Greek or Cyrillic, or 1 of Chinese, Japanese or
    Korean; an emoji is 3 tokens. How many of each there are follows from the lengths in three encodings, which is quick.
    """
    words = text.split() if len(text) >= _DENSE_CHARS else ()  # no run has blanks, and few words are that long
    long_words = [word for word in words if len(word) >= _DENSE_CHARS]
    runs = _DENSE_RUN.findall(" ".join(long_words)) if long_words else ()
    dense = sum(len(run) for run in runs if len(set(run)) >= _DENSE_KINDS)
    extra = math.ceil(dense * (DENSE_QUARTERS - 1))
    if text.isascii():
        return len(text) + extra
    plain = len(text.encode("ascii", "ignore"))
    size = len(text.encode("utf-8", "surrogatepass"))
    beyond = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)
    others = len(text) - plain - beyond  # of two bytes, or of three
    of_three = size - plain - 4 * beyond - 2 * others
    return plain + extra + 2 * (others - of_three) + 4 * of_three + 12 * beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRoom:
    """How much text fits somewhere, and how it is measured there."""

    size: int = 1 << 40
    measure: Callable[[str], int] = len

    def count_fitting(self, rows: Iterable[str], *, end: str = "\n") -> int:
        """Return how many rows fit, each with what ends it; of those that do not, only a few are looked at."""
        room, count, left = self.size, 0, iter(rows)
        while block := list(islice(left, _BLOCK_ROWS)):
            size = self.measure(end.join((*block, "")))
            if size > room:
                return count + self._count_fitting_alone(block, end, room)
            room, count = room - size, count + len(block)
        return count

    def _count_fitting_alone(self, rows: Sequence[str], end: str, room: int) -> int:
        more = self.measure(end)
        for count, row in enumerate(rows):
            room -= self.measure(row) + more
            if room < 0:
                return count
        return len(rows)

    def cut_text(self, text: str) -> str:
        """Return the beginning of a text that fits."""
        if self.measure(text) <= self.size:
            return text
        fits, too_many = 0, len(text)
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self.measure(text[:middle]) <= self.size:
                fits = middle
            else:
                too_many = middle
        return text[:fits]

    def cut_lines(self, text: str) -> str:
        """Return the whole lines from the beginning of a text that fit."""
        head = self.cut_text(text)
        return text if head == text else head[: head.rfind("\n") + 1]

    def less(self, size: int) -> "TextRoom":
        return TextRoom(size=max(self.size - size, 0), measure=self.measure)


ANY_SIZE = TextRoom()

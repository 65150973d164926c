"""Which lines of a file are most like a quotation.

1. Lines that are equal except for blanks vote for the place where the quotation would begin. Without any such line, the
   line with the most words in common is taken.
2. From there on, quoted lines that are a little higher or lower, as the file has more lines or fewer between, are
   followed: all lines that the quotation corresponds to are shown.
3. The lines shown are the file's own, so that the next call can quote them.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surehold.text.quoted.matching import DOUBLE_QUOTES, SINGLE_QUOTES
from surehold.text.snapshot import Snapshot

_MAX_SIMILAR_PLACES = 3
_MAX_COMPARED_LINES = 200_000
_MAX_COMPARED_BYTES = 16 << 20
"""So many are compared; the rest of a larger file is not looked at."""
_MAX_POSITIONS_PER_LINE = 64
_MAX_SHOWN_LINES = 40
_MAX_SKIPPED_LINES = 10
"""So many lines of the file that are not quoted may be between two that are."""
MAX_SHOWN_CHARS = 2_000
"""How many characters of a place are shown."""
_MAX_LINE_CHARS = 10_000
_MIN_WORD_SIMILARITY = 0.5
_WORD = re.compile(r"\w+")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_LOOK_ALIKE_FOLDS = str.maketrans(
    {
        **dict.fromkeys(SINGLE_QUOTES, "'"),
        **dict.fromkeys(DOUBLE_QUOTES, '"'),
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys(_INVISIBLE, ""),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarLines:
    """Lines that are much like a quotation."""

    line: int
    text: str
    differing: int
    """How many of the quoted lines are different, blanks aside."""

    @property
    def span(self) -> tuple[int, int]:
        """The lines that are shown whole; of a text that was cut the last one is not."""
        return self.line, self.line + self.text.count("\n") - (len(self.text) >= MAX_SHOWN_CHARS)

    def as_dict(self) -> dict[str, Any]:
        row: dict[str, Any] = {"line": self.line, "text": self.text}
        return {**row, "differing_lines": self.differing} if self.differing else row


def compared_line_count(snapshot: Snapshot) -> int:
    return min(_MAX_COMPARED_LINES, bisect_left(snapshot.lines.starts, _MAX_COMPARED_BYTES))


def find_nearest(snapshot: Snapshot, old: str) -> tuple[SimilarLines, ...]:
    """Return the places that are most like a quotation, best first; none when nothing is."""
    quoted = [row.strip() for row in old.split("\n")]
    if quoted and not quoted[-1]:
        quoted.pop()
    if not any(quoted):
        return ()
    lines = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[: compared_line_count(snapshot)]]
    stripped = [line.strip() for line in lines]
    positions = _find_positions(stripped, quoted)
    starts = _starts_by_votes(positions, quoted) or _starts_by_words(stripped, quoted)
    page = _ComparedPage(lines=lines, stripped=stripped, quoted=quoted, positions=positions)
    return tuple(dict.fromkeys(page.lines_at_start(start) for start in starts[:_MAX_SIMILAR_PLACES]))


def find_look_alike(snapshot: Snapshot, old: str) -> SimilarLines | None:
    """Return where a text is that a reader cannot tell from a quotation; None when nowhere."""
    if old.isascii() and snapshot.data.isascii():
        return None
    lines = [snapshot.encoding.decode(row) for row in snapshot.lines.contents[: compared_line_count(snapshot)]]
    page, wanted = "\n".join(map(normalize_look, lines)), "\n".join(map(normalize_look, old.split("\n"))).strip()
    at = page.find(wanted) if wanted else -1
    if at < 0:
        return None
    first = page.count("\n", 0, at)
    rows = lines[first : first + min(wanted.count("\n") + 1, _MAX_SHOWN_LINES)]
    return SimilarLines(line=first + 1, text="\n".join(rows)[:MAX_SHOWN_CHARS], differing=0)


def normalize_look(text: str) -> str:
    """Return what a line looks like: one form for characters that a reader cannot tell apart."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKE_FOLDS)).split())


def _find_positions(stripped: Sequence[str], quoted: Sequence[str]) -> dict[str, list[int]]:
    """Return where each quoted line is, blanks aside."""
    wanted = {text for text in quoted if text}
    positions: dict[str, list[int]] = {}
    for index, text in enumerate(stripped):
        if text in wanted and len(found := positions.setdefault(text, [])) < _MAX_POSITIONS_PER_LINE:
            found.append(index)
    return positions


def _starts_by_votes(positions: dict[str, list[int]], quoted: Sequence[str]) -> list[int]:
    """Return where the quotation would begin by the vote of its lines, those with the most votes first."""
    votes = Counter[int]()
    for offset, text in enumerate(quoted):
        for index in positions.get(text, ()):
            votes[index - offset] += 1
    ranked = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    best = ranked[0][1] if ranked else 0
    return [start for start, count in ranked if count == best or count * 2 > best]


def _starts_by_words(stripped: Sequence[str], quoted: Sequence[str]) -> list[int]:
    """Return where the quotation would begin if its longest line were where most of its words are."""
    offset, longest = max(enumerate(quoted), key=lambda pair: len(pair[1]))
    words = set(_WORD.findall(longest[:_MAX_LINE_CHARS].casefold()))
    scores = list[tuple[float, int]]()
    for index, text in enumerate(stripped if words else ()):
        if len(text) > _MAX_LINE_CHARS or index < offset:
            continue
        others = set(_WORD.findall(text.casefold()))
        shared = len(words & others)
        if (score := shared / (len(words) + len(others) - shared)) >= _MIN_WORD_SIMILARITY:
            scores.append((-score, index - offset))
    return [start for _, start in sorted(scores)[:_MAX_SIMILAR_PLACES]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedPage:
    """The lines of a file and of a quotation, to be laid side by side."""

    lines: Sequence[str]
    stripped: Sequence[str]
    quoted: Sequence[str]
    positions: dict[str, list[int]]

    def lines_at_start(self, start: int) -> SimilarLines:
        """Return the lines that the quotation corresponds to if most of it begins at `start`."""
        pairs = [
            (offset, start + offset)
            for offset in range(max(-start, 0), min(len(self.quoted), len(self.stripped) - start))
            if self.quoted[offset] == self.stripped[start + offset]
        ]
        filled = [pair for pair in pairs if self.quoted[pair[0]]] or [(0, start)]
        above, below = self._follow(filled[0], -1), self._follow(filled[-1], 1)
        first, last = [filled[0], *above][-1], [filled[-1], *below][-1]
        begin, end = first[1] - first[0], last[1] + len(self.quoted) - last[0]
        same = {*above, *below, *(pair for pair in pairs if filled[0] <= pair <= filled[-1])}
        unseen, begin = max(-begin, 0), max(begin, 0)  # the quotation may begin above the file
        return SimilarLines(
            line=begin + 1,
            text="\n".join(self.lines[begin : min(end, begin + _MAX_SHOWN_LINES)])[:MAX_SHOWN_CHARS],
            differing=max(len(self.quoted) - unseen, min(end, len(self.lines)) - begin) - len(same),
        )

    def _follow(self, pair: tuple[int, int], direction: int) -> list[tuple[int, int]]:
        """Return which quoted lines above or below a pair are which lines of the file, one after the other."""
        found, unmatched = list[tuple[int, int]](), 0
        for offset in range(pair[0] + direction, len(self.quoted) if direction > 0 else -1, direction):
            if not self.quoted[offset]:
                index = pair[1] + offset - pair[0]
                found += [(offset, index)] if index >= 0 and self.stripped[index : index + 1] == [""] else []
                continue
            # A line that the file has more than once may be another one, unless what is between was quoted otherwise.
            only_one = len(self.positions.get(self.quoted[offset], ())) == 1
            index = self._look_for(offset, pair[1], direction, _MAX_SKIPPED_LINES if only_one else unmatched)
            if index is None:
                unmatched += 1
            else:
                pair, unmatched = (offset, index), 0
                found.append(pair)
        return found

    def _look_for(self, offset: int, index: int, direction: int, skipped: int) -> int | None:
        """Return where the quoted line is next if no more than so many lines, blank ones aside, are skipped."""
        for _ in range(_MAX_SKIPPED_LINES + 1):
            index += direction
            if not 0 <= index < len(self.stripped) or self.stripped[index] == self.quoted[offset]:
                return index if 0 <= index < len(self.stripped) else None
            skipped -= bool(self.stripped[index])
            if skipped < 0:
                return None
        return None

"""Lines as anchors name them: shown as `N#HASH|text` rows with quality marks, and found again by their hashes."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Literal

from surehold.text.align import shared_ends
from surehold.text.diff import Hunk
from surehold.text.encoding import UTF8, Encoding
from surehold.text.escape import escape_lines, escape_text
from surehold.text.measure import TextRoom
from surehold.text.plan import EditPlan
from surehold.text.snapshot import DIGEST_DIGITS, LineRanges, Snapshot, digest_text, line_digests, merge_ranges

Quality = Literal["low", "med", "high"]

_MAX_HIGH_OCCURRENCES = 3
_LOW_QUALITY = re.compile(r"""[\s{}()\[\]<>,;:'"`]*(?:(?:/>|\*/|end\b|</[\w.:-]*>)[\s{}()\[\]<>,;:'"`]*)*""")
_WORD = re.compile(r"[^\W\d_]{3}")


def judge_quality(content: str, occurrences: int) -> Quality:
    if _LOW_QUALITY.fullmatch(content):
        return "low"
    if occurrences > _MAX_HIGH_OCCURRENCES or not _WORD.search(content):
        return "med"
    return "high"


SHORT_HASH_DIGITS = 6
_UNIQUE_HASH_DIGITS = 8
_SHORT_HASH_SHIFT = 4 * (DIGEST_DIGITS - SHORT_HASH_DIGITS)
_SPARSE_STRIDE_LINES = 8
"""With few anchors, at least so many lines lie between two of them."""
_QUALITY_MARKS: dict[Quality, str] = {"low": "!", "med": "~", "high": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredLine:
    line: int
    hash: str
    occurrence: int | None
    """Which of several equal lines it is; None when there is only one."""
    quality: Quality
    text: str

    @property
    def anchor(self) -> str:
        return f"{self.line}#{self.hash}" + (f".{self.occurrence}" if self.occurrence else "")

    @property
    def prefix(self) -> str:
        """What is printed before the text: the anchor, the mark of its quality, and a bar."""
        return f"{self.anchor}{_QUALITY_MARKS[self.quality]}|"

    def __str__(self) -> str:
        return f"{self.anchor}{_QUALITY_MARKS[self.quality]}|{self.text}"


def anchor_lines(
    contents: Sequence[bytes], everything: Iterable[Sequence[int]], *, start: int, encoding: Encoding
) -> tuple[AnchoredLine, ...]:
    """Return the lines from `start` on with their anchors; `everything` are the digests of the whole file, in pieces."""
    return _anchor_numbered_lines(contents, range(start, start + len(contents)), everything, encoding)


def anchor_lines_at(snapshot: Snapshot, numbers: Iterable[int]) -> dict[int, AnchoredLine]:
    """Return lines from anywhere in a file with their anchors, by their numbers."""
    wanted = sorted(set(numbers))
    contents = [snapshot.lines.contents[number - 1] for number in wanted]
    return {row.line: row for row in _anchor_numbered_lines(contents, wanted, [snapshot.digests], snapshot.encoding)}


def _anchor_numbered_lines(
    contents: Sequence[bytes], numbers: Sequence[int], everything: Iterable[Sequence[int]], encoding: Encoding
) -> tuple[AnchoredLine, ...]:
    shown = line_digests(list(contents), encoding)
    wanted = numbers if isinstance(numbers, range) else frozenset(numbers)
    shorts = frozenset(digest >> _SHORT_HASH_SHIFT for digest in shown)
    totals, occurrences = dict[int, int](), dict[int, int]()
    for number, digest in enumerate(chain.from_iterable(everything), start=1):
        if digest >> _SHORT_HASH_SHIFT in shorts:
            totals[digest] = total = totals.get(digest, 0) + 1
            if number in wanted:
                occurrences[number] = total
    spelled, out = _shortest_hashes({*shown, *totals}), list[AnchoredLine]()
    for number, content, digest in zip(numbers, contents, shown, strict=True):
        text, total = encoding.decode(content), totals.get(digest, 1)
        nth, quality = occurrences.get(number) if total > 1 else None, judge_quality(text, total)
        out.append(AnchoredLine(line=number, hash=spelled[digest], occurrence=nth, quality=quality, text=text))
    return tuple(out)


def _shortest_hashes(digests: Iterable[int]) -> dict[int, str]:
    """Return the shortest beginning of every digest that no other one has."""
    alike = defaultdict[int, list[int]](list)
    for digest in digests:
        alike[digest >> _SHORT_HASH_SHIFT].append(digest)
    spelled = dict[int, str]()
    for short, group in alike.items():
        if len(group) == 1:
            spelled[group[0]] = f"{short:0{SHORT_HASH_DIGITS}x}"
            continue
        for digest in group:
            full, others = digest_text(digest), [digest_text(other) for other in group if other != digest]
            spelled[digest] = next(
                full[:n]
                for n in range(_UNIQUE_HASH_DIGITS, DIGEST_DIGITS + 1)
                if all(other[:n] != full[:n] for other in others)
            )
    return spelled


def render_sparse(found: Iterable[AnchoredLine]) -> Iterator[str]:
    """Spell rows with few anchors: a good line carries one now and then, and those below count from it.

    `119#c812f1|def f():` then `+1|    x = 1`: the second line is addressed as `119#c812f1+1`.
    """
    last: AnchoredLine | None = None
    for row in found:
        is_good = row.quality == "high" and row.occurrence is None
        if last is None or (is_good and row.line - last.line >= _SPARSE_STRIDE_LINES):
            last = row if is_good else None
            yield str(row)
        else:
            yield f"+{row.line - last.line}|{row.text}"


def stream_digests(chunks: Iterable[bytes], encoding: Encoding, *, breaker: bytes = b"\n") -> Iterator[list[int]]:
    """Yield the line digests of a file that streams by; for encodings with one byte per unit."""
    parts, skip = list[bytes](), len(encoding.bom)
    for chunk in chunks:
        first, *lines = chunk[skip:].split(breaker)
        parts.append(first)
        skip = 0
        if lines:
            ended = [b"".join(parts), *lines[:-1]]
            yield line_digests([line.removesuffix(b"\r") for line in ended], encoding)
            parts = [lines[-1]]
    if rest := b"".join(parts):
        yield line_digests([rest], encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredDiff:
    """Hunks as text, and which lines of the new version they show."""

    text: str
    truncated: bool
    shown: tuple[int, ...]
    """Numbers of the lines that are shown as they are now."""
    new: tuple[AnchoredLine, ...]
    """The lines that were written."""


def anchored_diff(plan: EditPlan, *, room: TextRoom) -> AnchoredDiff:
    """Return the rows of the hunks of a plan, as many as fit."""
    found = list(plan.hunks())
    signs = dict(numbered for hunk in found for numbered in _numbered_signs(hunk))
    rows = anchor_lines_at(plan.after, signs) if signs else {}
    numbered = list(_render_lines(found, rows, plan))
    shown_rows = escape_lines("\n".join(line for line, _ in numbered)).split("\n")
    kept = numbered[: room.count_fitting(shown_rows)]
    lines, shown = [line for line, _ in kept], [number for _, number in kept if number]
    cut = len(kept) < len(numbered)
    new = tuple(rows[number] for number in shown if signs[number] == "+")
    return AnchoredDiff(text="\n".join(lines), truncated=cut, shown=tuple(shown), new=new)


def _numbered_signs(hunk: Hunk) -> Iterator[tuple[int, str]]:
    number = hunk.new_start
    for line in hunk.lines:
        sign = chr(line[0])
        if sign in " +":
            yield number, sign
            number += 1


def _render_lines(found: list[Hunk], rows: dict[int, AnchoredLine], plan: EditPlan) -> Iterator[tuple[str, int]]:
    """Yield every row as text, and the number of the line that it shows; 0 for others."""
    for hunk in found:
        yield hunk.header, 0
        numbers = _numbered_signs(hunk)
        for line in hunk.lines:
            if line.startswith(b"-"):
                yield plan.decode_row(line).rstrip("\r\n"), 0
            else:
                number, sign = next(numbers)
                yield f"{sign}{rows[number]}", number


BUCKET_DIGITS = 4
"""As many digits every hash has; lines are sorted by them."""
_BUCKET_SHIFT = 4 * (DIGEST_DIGITS - BUCKET_DIGITS)
CONTEXT_DIGITS = 8
_LANDMARK_LINES = 40
"""How far away a line may be that tells where another one would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVersion:
    """One version that a session was shown, and which of its lines: 1-based, inclusive, sorted."""

    sha256: str
    load: Callable[[], bytes | None]
    """Returns its bytes, which most calls never need; None when they were not kept."""
    spans: LineRanges
    anchored: LineRanges | None = None
    """The lines whose anchors of this very version were shown; None when that is not known.

    After its own edit a session knows all lines, but only those of the answer by their new anchors. A refusal may show
    an anchor with the beginning of a long line: such a line can be named, but was not seen.
    """


def hash_buckets(hashes: Iterable[str]) -> frozenset[int]:
    return frozenset(int(hash_[:BUCKET_DIGITS], 16) for hash_ in hashes if hash_)


def _has_line(spans: LineRanges, line: int) -> bool:
    at = bisect_left(spans, line + 1, key=itemgetter(1))
    return at < len(spans) and spans[at][0] <= line + 1


class IndexedVersion:
    """The lines of one version that begin like some hashes, and what was shown of it."""

    def __init__(self, snapshot: Snapshot, shown: Sequence[ShownVersion], buckets: frozenset[int]) -> None:
        self.snapshot = snapshot
        self._buckets = buckets
        self._seen = merge_ranges(span for each in shown for span in each.spans)
        self.knows_anchors = all(each.anchored is not None for each in shown)
        """Whether it is known which lines were shown with their anchors."""
        self._anchored = merge_ranges(
            span for each in shown for span in (each.spans if each.anchored is None else each.anchored)
        )
        self._found: dict[tuple[str, str | None], list[int]] = {}
        self._named = merge_ranges([*self._seen, *self._anchored])
        self._displayed: dict[tuple[str, str | None], list[int]] = {}
        self._told_apart: dict[tuple[int, ...], bool] = {}
        self._shared_ends: dict[int, tuple[int, int]] = {}

    @cached_property
    def _lines_by_bucket(self) -> dict[int, list[int]]:
        buckets, digests, found = self._buckets, self.snapshot.digests, dict[int, list[int]]()
        for line in [line for line, digest in enumerate(digests) if digest >> _BUCKET_SHIFT in buckets]:
            found.setdefault(digests[line] >> _BUCKET_SHIFT, []).append(line)
        return found

    def __len__(self) -> int:
        return len(self.snapshot.lines)

    def lines_with_hash(self, hash_: str, tail: str | None = None) -> list[int]:
        """Return the 0-based lines whose digest begins so, and whose text is the one that was copied."""
        key = (hash_, tail)
        if key not in self._found:
            self._found[key] = self._search_lines(hash_, tail)
        return self._found[key]

    def line_has_hash(self, line: int, hash_: str, tail: str | None = None) -> bool:
        """Tell whether this line is among the candidates, without looking at the others."""
        if not (0 <= line < len(self) and len(hash_) <= DIGEST_DIGITS):
            return False
        fits = self.snapshot.digests[line] >> 4 * (DIGEST_DIGITS - len(hash_)) == int(hash_, 16)
        return fits and (tail is None or self.line_says(line, tail))

    def shown_lines_with_hash(self, hash_: str, tail: str | None = None) -> list[int]:
        key = (hash_, tail)
        if key not in self._displayed:
            self._displayed[key] = [line for line in self.lines_with_hash(hash_, tail) if self.names_line(line)]
        return self._displayed[key]

    def shows_line(self, line: int) -> bool:
        """Tell whether all of a line was shown."""
        return _has_line(self._seen, line)

    def names_line(self, line: int) -> bool:
        """Tell whether a line was shown, if only by its anchor and its beginning."""
        return _has_line(self._named, line)

    def shows_anchor(self, line: int) -> bool:
        return _has_line(self._anchored, line)

    def line_text(self, line: int) -> str:
        return self.snapshot.encoding.decode(self.snapshot.lines.contents[line])

    def line_says(self, line: int, tail: str) -> bool:
        """Tell whether a copied text is that of the line; a text that was cut for display is its beginning."""
        text, wanted = self.line_text(line).rstrip(" \t"), tail.rstrip(" \t")
        if wanted in (text, escape_text(text, keep="\t")):
            return True
        beginning = wanted.removesuffix("…")
        return beginning not in ("", wanted) and text.startswith(beginning)

    def context_id(self, line: int) -> str:
        """Name a line together with the nearest lines above and below it that are not blank."""
        above, below = self._filled_neighbours
        around = (above[line], self.snapshot.digests[line], below[line])
        named = b" ".join(b"-" if digest is None else digest_text(digest).encode() for digest in around)
        return digest_text(line_digests([named], UTF8)[0])[:CONTEXT_DIGITS]

    def lines_with_context(self, beginning: str) -> set[tuple[int, str]]:
        """Return the digest and the context id of shown lines whose context id begins so."""
        return {one for one in self._shown_contexts.get(beginning[:BUCKET_DIGITS], ()) if one[1].startswith(beginning)}

    @cached_property
    def _shown_contexts(self) -> dict[str, set[tuple[int, str]]]:
        found = dict[str, set[tuple[int, str]]]()
        for line in (line for first, last in self._named for line in range(first - 1, min(last, len(self)))):
            context = self.context_id(line)
            found.setdefault(context[:BUCKET_DIGITS], set()).add((self.snapshot.digests[line], context))
        return found

    def differ_in_context(self, lines: Sequence[int]) -> bool:
        """Tell whether these lines have surroundings that are pairwise different."""
        key = tuple(lines)
        if key not in self._told_apart:
            self._told_apart[key] = len({self.context_id(line) for line in lines}) == len(lines)
        return self._told_apart[key]

    @cached_property
    def unique_lines(self) -> dict[bytes, int]:
        """Where each line is, terminator included; -1 for lines that are there several times."""
        places = dict[bytes, int]()
        for number, raw in enumerate(self.snapshot.lines.raw):
            places[raw] = -1 if raw in places else number
        return places

    def is_unmoved(self, line: int, other: "IndexedVersion") -> bool:
        """Tell whether everything down to this line, or from it on, is the same bytes at the same place in another version."""
        if id(other) not in self._shared_ends:
            mine, its = self.snapshot.data, other.snapshot.data
            head, tail = shared_ends(mine, its)
            self._shared_ends[id(other)] = (head, len(mine) - (tail if len(self) == len(other) else 0))
        head, tail = self._shared_ends[id(other)]
        starts = self.snapshot.lines.starts
        return starts[line + 1] <= head or starts[line] >= tail

    def estimate_place(self, line: int, other: "IndexedVersion") -> int:
        """Return where a line would be in another version, by the nearest line that is there once."""
        mine, places = self.snapshot.lines.raw, other.unique_lines
        for step in range(_LANDMARK_LINES):
            for number in (line - step, line + step):
                there = places.get(mine[number], -1) if 0 <= number < len(mine) else -1
                if there >= 0:
                    return max(0, there + line - number)
        return line

    @cached_property
    def _filled_neighbours(self) -> tuple[list[int | None], list[int | None]]:
        """The digest of the nearest line that is not blank, above and below each line."""
        pairs = [
            (digest, bool(content.strip(b" \t\0")))
            for digest, content in zip(self.snapshot.digests, self.snapshot.lines.contents, strict=True)
        ]
        return _nearest_filled(pairs), _nearest_filled(pairs[::-1])[::-1]

    def _search_lines(self, hash_: str, tail: str | None) -> list[int]:
        if len(hash_) > DIGEST_DIGITS:
            return []
        digests, shift, value = self.snapshot.digests, 4 * (DIGEST_DIGITS - len(hash_)), int(hash_, 16)
        alike = self._lines_by_bucket.get(int(hash_[:BUCKET_DIGITS], 16), ())
        found = [line for line in alike if digests[line] >> shift == value]
        if tail is None:
            return found
        speakers = {digests[line]: line for line in found}
        kept = {digest for digest, line in speakers.items() if self.line_says(line, tail)}
        return [line for line in found if digests[line] in kept]


def _nearest_filled(pairs: list[tuple[int, bool]]) -> list[int | None]:
    last: int | None = None
    out = list[int | None]()
    for digest, filled in pairs:
        out.append(last)
        last = digest if filled else last
    return out

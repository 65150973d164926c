"""Lines as `N#HASH|text` rows with quality marks, and diffs whose rows carry fresh anchors."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from surehold.text.diff import Hunk
from surehold.text.encoding import Encoding
from surehold.text.escape import escape_lines
from surehold.text.measure import TextRoom
from surehold.text.plan import EditPlan
from surehold.text.snapshot import DIGEST_DIGITS, Snapshot, digest_text, line_digests

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

"""Renders a diff as HTML: line numbers, marked words, colours, in one column or side by side, as many rows as a page can bear.

1. A row is escaped before anything else: neither markup nor characters that steer a terminal or reorder text get through.
2. Line numbers are drawn by the style sheet, so a copied diff is a diff.
3. In pairs of a removed and an added line, what differs between their common beginning and end is marked.
4. With both versions of the file at hand, equal lines between the hunks can be opened, and code has colours. A line that
   had to be escaped has none.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby, islice, pairwise, zip_longest

from surehold.syntax.colours import ColourSpan, find_colours
from surehold.text.diff_rows import HUNK_HEADER, RowKind, classify_rows
from surehold.text.escape import reveal_lines
from surehold.text.snapshot import ABSENT, Snapshot, merge_ranges

_MAX_ROW_CHARS = 20_000
_MAX_MARKED_CHARS = 2000
_MIN_COMMON_SHARE = 0.3
"""Of the shorter of two lines; below that they are two lines, not one that changed."""
_FOLDED_ROWS = 400
"""How many equal lines between two hunks can be opened; of more, the first and the last."""
_ALL_FOLDED_ROWS = 2000
_PAGE_ROWS = 800
_PAGE_FOLDED_ROWS = 600
_PAGE_CHARS = 400_000

PartControl = Callable[[int], str]
"""Makes what is offered for one hunk, as HTML; the first is number 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One row of a diff, with its line numbers before and after; 0 where it has none."""

    kind: RowKind
    text: str
    old: int = 0
    new: int = 0
    part: int = -1
    """Of the heading of a hunk: its number."""
    gap: tuple[int, int, int] = (0, 0, 0)
    """Of the heading of a hunk: the first equal line above it that is left out, before and after, and how many there are."""


@dataclass(slots=True)
class PageRoom:
    """How much more of diffs a page shows, all of its files together, so that a browser shows it at once."""

    rows: int = _PAGE_ROWS
    folded: int = _PAGE_FOLDED_ROWS
    chars: int = _PAGE_CHARS

    def take_rows(self, rows: Iterable[DiffRow], limit: int) -> list[DiffRow]:
        """Return as many of some rows as there is room for; very long ones are cut."""
        taken = list[DiffRow]()
        for row in islice(rows, min(limit, self.rows)):
            if self.chars <= 0:
                break
            cut = row
            if len(row.text) > _MAX_ROW_CHARS:
                rest = len(row.text) - _MAX_ROW_CHARS
                cut = replace(row, text=f"{row.text[:_MAX_ROW_CHARS]} … {rest:,} more characters")
            self.chars -= len(cut.text)
            taken.append(cut)
        self.rows -= len(taken)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSides:
    """Both versions of the file that a diff is about."""

    name: str
    before: Snapshot = ABSENT
    after: Snapshot = ABSENT

    def lines(self, side: str) -> list[bytes]:
        snapshot = self.before if side == "old" else self.after
        return snapshot.lines.raw if snapshot.exists and snapshot.is_text else []

    def colour(self, side: str, numbers: Iterable[int]) -> dict[int, list[ColourSpan]]:
        """Return the colours of some lines, by their number; offsets are those of characters."""
        snapshot = self.before if side == "old" else self.after
        raw = self.lines(side)
        if not raw or snapshot.encoding.name != "utf-8" or snapshot.encoding.bom:
            return {}
        starts, wanted = snapshot.lines.starts, sorted(set(numbers) - {0})
        wanted = wanted[: bisect_left(wanted, len(raw) + 1)]
        ranges = [(starts[a - 1], starts[b - 1] + len(raw[b - 1])) for a, b in merge_ranges((n, n) for n in wanted)]
        spans = find_colours(self.name, snapshot.data, ranges)
        return {n: _cut_spans(raw[n - 1], starts[n - 1], spans) for n in wanted} if spans else {}


def _cut_spans(line: bytes, start: int, spans: Sequence[ColourSpan]) -> list[ColourSpan]:
    """Return the part of ascending spans that is in one line, counted in its characters."""
    found = list[ColourSpan]()
    for at in range(bisect_left(spans, start + 1, key=lambda one: one.end), len(spans)):
        one = spans[at]
        if one.start >= start + len(line):
            break
        left, right = max(one.start - start, 0), min(one.end - start, len(line))
        if not line.isascii():
            left, right = (len(line[:end].decode("utf-8", "replace")) for end in (left, right))
        found.append(ColourSpan(left, right, one.kind))
    return found


def number_rows(diff: str) -> Iterator[DiffRow]:
    old, new, part = 1, 1, -1
    for kind, text in classify_rows(reveal_lines(diff).rstrip("\n")):
        if kind == "hunk" and (found := HUNK_HEADER.match(text)):
            first_old, first_new = (int(found[i]) + (found[i + 1] == "0") for i in (1, 3))
            gap, part = (old, new, first_new - new), part + 1
            old, new = first_old, first_new
            yield DiffRow(kind=kind, text=text, part=part, gap=gap)
            continue
        if kind == "header":
            old = new = 1
        has_old, has_new = kind in {"same", "removed"}, kind in {"same", "added"}
        yield DiffRow(kind=kind, text=text, old=old if has_old else 0, new=new if has_new else 0)
        old, new = old + has_old, new + has_new


def render_diff(
    diff: str,
    *,
    split: bool = False,
    first: int = 0,
    limit: int | None = None,
    more: str = "",
    sides: FileSides | None = None,
    part: PartControl | None = None,
    room: PageRoom | None = None,
) -> str:
    """Render some rows of a diff, all without `room`; `more` is the address of others, to which their number is added."""
    if not diff:
        return '<p class="quiet">The content stays the same.</p>'
    count = diff.rstrip("\n").count("\n") + 1
    rows = islice(number_rows(diff), first, None)
    shown = room.take_rows(rows, limit or count) if room else [*rows]
    left = count - first - len(shown)
    folded = room.folded if room else _ALL_FOLDED_ROWS
    painter = DiffPainter(sides, part, split=split, folded=folded)
    body = painter.render(shown, is_end=left <= 0) if shown else ""
    if room:
        room.folded = painter.room
    note = ""
    if left > 0:
        link = f' <a href="{escape(more)}{first + len(shown)}">Go on</a>' if more else ""
        note = f'<p class="notice">{left:,} more rows of this diff are not shown here.{link}</p>'
    return f"{body}{note}"


class DiffPainter:
    """Renders rows of one file's diff."""

    def __init__(self, sides: FileSides | None, part: PartControl | None, *, split: bool, folded: int) -> None:
        self._sides, self._part, self._split = sides, part, split
        self._marks = dict[int, tuple[int, int]]()
        self._old, self._new = dict[int, list[ColourSpan]](), dict[int, list[ColourSpan]]()
        self.room = folded
        """How many equal lines may yet be there to be opened."""

    def render(self, rows: Sequence[DiffRow], *, is_end: bool) -> str:
        self._marks = _mark_pairs(rows)
        if self._sides:
            self._old = self._sides.colour("old", (row.old for row in rows if row.kind == "removed"))
            self._new = self._sides.colour("new", (row.new for row in rows))
        blocks = list[str]()
        for is_head, group in groupby(rows, key=lambda row: row.kind == "hunk"):
            if is_head:
                blocks += (self._render_hunk(row) for row in group)
            else:
                found = [*group]
                blocks.append(self._render_split(found) if self._split else self._render_unified(found))
        if is_end and rows and self._sides:
            blocks.append(self._render_end(rows))
        kind, label = ("diff split", "before and after") if self._split else ("diff", "changes")
        return f'<div class="{kind}" tabindex="0" role="group" aria-label="{label}">{"".join(blocks)}</div>'

    def _render_hunk(self, row: DiffRow) -> str:
        control = self._part(row.part) if self._part else ""
        return f'{self._render_fold(*row.gap)}<div class="hunk whole"><span>{escape(row.text)}</span>{control}</div>'

    def _render_end(self, rows: Sequence[DiffRow]) -> str:
        old, new = (max((getattr(row, side) for row in rows), default=0) for side in ("old", "new"))
        return self._render_fold(old + 1, new + 1, len(self._sides.lines("new")) - new) if self._sides and new else ""

    def _render_fold(self, old: int, new: int, count: int) -> str:
        """Render equal lines that the diff leaves out, so that they can be opened."""
        lines = self._sides.lines("new")[new - 1 : new - 1 + count] if self._sides and count > 0 else []
        if not lines or len(lines) != count or self.room <= 0:
            return ""
        half, decode = _FOLDED_ROWS // 2, self._sides.after.encoding.decode if self._sides else bytes.decode
        kept = [*range(count)] if count <= _FOLDED_ROWS else [*range(half), *range(count - half, count)]
        if len(kept) > self.room:
            self.room = 0
            return ""
        self.room -= len(kept)
        rows = list[str]()
        for at in kept:
            if at == count - half and count > _FOLDED_ROWS:
                rows.append(f'<span class="note">… {count - len(kept):,} lines are not shown …\n</span>')
            text = escape(reveal_lines(decode(lines[at])).rstrip("\r\n"))
            rows.append(f'<span class="same" data-old="{old + at}" data-new="{new + at}"> {text}\n</span>')
        word = "1 equal line" if count == 1 else f"{count:,} equal lines"
        return f'<details class="fold whole"><summary>{word}</summary><pre>{"".join(rows)}</pre></details>'

    def _render_unified(self, rows: Iterable[DiffRow]) -> str:
        return f"<pre>{''.join(map(self._render_row, rows))}</pre>"

    def _render_row(self, row: DiffRow) -> str:
        numbers = f' data-old="{row.old or ""}" data-new="{row.new or ""}"' if row.old or row.new else ""
        return f'<span class="{row.kind}"{numbers}>{self._paint(row)}\n</span>'

    def _render_split(self, rows: Sequence[DiffRow]) -> str:
        lines = list[str]()
        for kind, group in groupby(rows, key=lambda row: "changed" if row.kind in {"added", "removed"} else row.kind):
            found = [*group]
            if kind == "same":
                lines += [self._render_half(row, "old") + self._render_half(row, "new") for row in found]
            elif kind == "changed":
                gone, new = ([row for row in found if row.kind == one] for one in ("removed", "added"))
                pairs = zip_longest(gone, new)
                lines += [self._render_half(one, "old") + self._render_half(other, "new") for one, other in pairs]
            else:
                lines += [f'<span class="{row.kind} whole">{escape(row.text)}</span>' for row in found]
        return "".join(lines)

    def _render_half(self, row: DiffRow | None, side: str) -> str:
        if row is None:
            return '<span class="empty"></span>'
        number = row.old if side == "old" else row.new
        return f'<span class="{row.kind}" data-{side}="{number}">{self._paint(row)}</span>'

    def _paint(self, row: DiffRow) -> str:
        spans = (self._old.get(row.old) if row.kind == "removed" else self._new.get(row.new)) or ()
        if spans and self._sides and not self._is_plain(row):
            spans = ()
        return paint_text(row.text, spans, self._marks.get(id(row)))

    def _is_plain(self, row: DiffRow) -> bool:
        """Tell whether a row shows its line as it is: nothing was escaped."""
        side, number = ("old", row.old) if row.kind == "removed" else ("new", row.new)
        line = self._sides.lines(side)[number - 1] if self._sides else b""
        return line.decode("utf-8", "replace").rstrip("\r\n") == row.text[1:]


def paint_text(text: str, spans: Sequence[ColourSpan], mark: tuple[int, int] | None) -> str:
    """Return a row as HTML: escaped, coloured, and with what differs marked. Offsets count from its second character."""
    if not spans and not mark:
        return escape(text)
    begin, end = mark or (0, 0)
    ends = sorted({0, len(text) - 1, begin, end, *(at for one in spans for at in one[:2])})
    ends = [at for at in ends if at < len(text)]
    parts, number = [escape(text[:1])], 0
    for left, right in pairwise(ends):
        while number < len(spans) and spans[number].end <= left:
            number += 1
        piece = escape(text[left + 1 : right + 1])
        if number < len(spans) and spans[number].start <= left:
            piece = f'<i class="{spans[number].kind}">{piece}</i>'
        parts.append(f"<mark>{piece}</mark>" if begin <= left < right <= end else piece)
    return "".join(parts)


def _mark_pairs(rows: Iterable[DiffRow]) -> dict[int, tuple[int, int]]:
    """Return what differs in paired lines, by the identity of the row."""
    marked = dict[int, tuple[int, int]]()
    for is_changed, group in groupby(rows, key=lambda row: row.kind in {"added", "removed"}):
        if not is_changed:
            continue
        found = list(group)
        gone, new = ([row for row in found if row.kind == kind] for kind in ("removed", "added"))
        if len(gone) != len(new):
            continue
        for one, other in zip(gone, new, strict=True):
            spans = find_difference(one.text[1:], other.text[1:])
            if spans:
                marked[id(one)], marked[id(other)] = spans
    return marked


def find_difference(one: str, other: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return where two lines differ, between a common beginning and end; None when they have too little in common."""
    least = min(len(one), len(other))
    if not least or max(len(one), len(other)) > _MAX_MARKED_CHARS:
        return None
    start = next((i for i in range(least) if one[i] != other[i]), least)
    end = next((i for i in range(least - start) if one[-1 - i] != other[-1 - i]), least - start)
    # A mark begins and ends with a word.
    while start and start < len(one) and one[start - 1].isalnum() and one[start].isalnum():
        start -= 1
    while end and end < least and one[-end - 1].isalnum() and one[-end].isalnum():
        end -= 1
    if (start + end) < least * _MIN_COMMON_SHARE:
        return None
    return (start, len(one) - end), (start, len(other) - end)

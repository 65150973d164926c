"""Renders a diff as HTML: line numbers, marked words, in one column or side by side, as many rows as a page can bear.

1. A row is escaped before anything else: neither markup nor characters that steer a terminal or reorder text get through.
2. Line numbers are drawn by the style sheet, so a copied diff is a diff.
3. In pairs of a removed and an added line, what differs between their common beginning and end is marked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, zip_longest

from surehold.text.diff_rows import HUNK_HEADER, RowKind, classify_rows
from surehold.text.escape import escape_lines

MAX_ROWS = 2000
_MAX_MARKED_CHARS = 2000
_MIN_COMMON_SHARE = 0.3
"""Of the shorter of two lines; below that they are two lines, not one that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One row of a diff, with its line numbers before and after; 0 where it has none."""

    kind: RowKind
    text: str
    old: int = 0
    new: int = 0


def number_rows(diff: str) -> Iterator[DiffRow]:
    old = new = 0
    for kind, text in classify_rows(escape_lines(diff).rstrip("\n")):
        if kind == "hunk" and (found := HUNK_HEADER.match(text)):
            old, new = int(found[1]), int(found[3])
        has_old, has_new = kind in {"same", "removed"}, kind in {"same", "added"}
        yield DiffRow(kind=kind, text=text, old=old if has_old else 0, new=new if has_new else 0)
        old, new = old + has_old, new + has_new


def render_diff(diff: str, *, split: bool = False, first: int = 0, limit: int = MAX_ROWS, more: str = "") -> str:
    """Render some rows of a diff; `more` is the address of the following ones, to which their number is added."""
    if not diff:
        return '<p class="quiet">The content stays the same.</p>'
    rows = list(number_rows(diff))
    shown = rows[first : first + limit]
    left = len(rows) - first - len(shown)
    body = _render_split(shown) if split else _render_unified(shown)
    note = ""
    if left > 0:
        link = f' <a href="{escape(more)}{first + limit}">Go on</a>' if more else ""
        note = f'<p class="notice">{left:,} more rows of this diff are not shown here.{link}</p>'
    return f"{body}{note}"


def _render_unified(rows: Sequence[DiffRow]) -> str:
    marks = _mark_pairs(rows)
    return f'<pre class="diff" tabindex="0">{"".join(_render_row(row, marks) for row in rows)}</pre>'


def _render_row(row: DiffRow, marks: dict[int, str]) -> str:
    text = marks.get(id(row)) or escape(row.text)
    numbers = f' data-old="{row.old or ""}" data-new="{row.new or ""}"' if row.old or row.new else ""
    return f'<span class="{row.kind}"{numbers}>{text}\n</span>'


def _render_split(rows: Sequence[DiffRow]) -> str:
    marks = _mark_pairs(rows)
    lines = list[str]()
    for kind, group in groupby(
        rows, key=lambda row: row.kind if row.kind in {"same", "hunk", "header", "note"} else "changed"
    ):
        found = list(group)
        if kind == "same":
            lines += [_render_pair(row, row, marks) for row in found]
        elif kind == "changed":
            gone, new = ([row for row in found if row.kind == one] for one in ("removed", "added"))
            lines += [_render_pair(one, other, marks) for one, other in zip_longest(gone, new)]
        else:
            lines += [f'<span class="{row.kind} whole">{escape(row.text)}</span>' for row in found]
    return f'<div class="diff split" tabindex="0" role="group" aria-label="before and after">{"".join(lines)}</div>'


def _render_pair(left: DiffRow | None, right: DiffRow | None, marks: dict[int, str]) -> str:
    return _render_half(left, marks, "old") + _render_half(right, marks, "new")


def _render_half(row: DiffRow | None, marks: dict[int, str], side: str) -> str:
    if row is None:
        return '<span class="empty"></span>'
    number = row.old if side == "old" else row.new
    text = marks.get(id(row)) or escape(row.text)
    return f'<span class="{row.kind}" data-{side}="{number}">{text}</span>'


def _mark_pairs(rows: Iterable[DiffRow]) -> dict[int, str]:
    """Return the text of paired lines with what differs marked, by the identity of the row."""
    marked = dict[int, str]()
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
                marked[id(one)] = _mark(one.text, spans[0])
                marked[id(other)] = _mark(other.text, spans[1])
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


def _mark(text: str, span: tuple[int, int]) -> str:
    start, end = span[0] + 1, span[1] + 1
    middle = f"<mark>{escape(text[start:end])}</mark>" if end > start else ""
    return f"{escape(text[:start])}{middle}{escape(text[max(end, start) :])}"

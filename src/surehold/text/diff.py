"""Unified diffs that `patch` and `git apply` accept.

1. Rows keep the bytes of their lines; only `render_hunks` turns them into text.
2. A hunk never shows less context than requested, except at the edges of the file: `patch` reads less as an edge.
3. `walk_hunks` looks at the bytes around the changes, never at all lines of the file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from surehold.text.align import TextRegion, find_changes

_NO_NEWLINE = "\n\\ No newline at end of file\n"
_SHORT_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}
_NAME_ESCAPES = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    **_SHORT_ESCAPES,
    # A byte of a file name that is not UTF-8 arrives as a lone surrogate, which could not be encoded again.
    **{0xDC00 + byte: f"\\{byte:03o}" for byte in range(0x80, 0x100)},
}

SpanOffsets = tuple[int, int, int, int]
"""Bytes `before_start` to `before_end` became bytes `after_start` to `after_end`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Changed lines that are close together, with the equal lines around them.

    Line numbers count from 1; those of an empty range name the line before it, so they may be 0.
    """

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[bytes, ...]
    """Each begins with a blank, `-` or `+` and keeps its line's terminator."""

    @property
    def header(self) -> str:
        """Return the `@@` row without its terminator."""
        return f"@@ -{_range_text(self.old_start, self.old_lines)} +{_range_text(self.new_start, self.new_lines)} @@"

    def count_rows(self, sign: bytes) -> int:
        return [row[:1] for row in self.lines].count(sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedDiff:
    """A unified diff as text, empty when nothing differs."""

    text: str
    truncated: bool
    added: int = 0
    removed: int = 0
    """How many lines there are of each kind, also those that were cut off."""


def find_hunks(a: Sequence[bytes], b: Sequence[bytes], *, context: int = 3) -> list[Hunk]:
    """Return what turns the lines `a` into the lines `b`."""
    return [_build_hunk(a, b, group, context) for group in _group_changes(find_changes(a, b), context)]


def render_hunks(
    found: Iterable[Hunk], *, from_name: str, to_name: str, decode: Callable[[bytes], str], limit: int | None = None
) -> UnifiedDiff:
    """Return hunks as a unified diff, cut after a whole row if it would exceed `limit` bytes of UTF-8."""
    texts: list[str] = []
    head, size = [f"--- {quote_name(from_name)}\n", f"+++ {quote_name(to_name)}\n"], 0
    added = removed = 0
    truncated = False
    for hunk in found:
        added, removed = added + hunk.count_rows(b"+"), removed + hunk.count_rows(b"-")
        if truncated:
            continue  # only counted
        head.append(f"{hunk.header}\n")
        fits = limit is None or len(hunk.lines) <= limit  # each row is a byte at least
        text = "".join(head) + _hunk_text(hunk, decode) if fits else ""
        if limit is not None and (not fits or size + _utf8_size(text) > limit):
            texts += _rows_that_fit(chain(head, _hunk_rows(hunk, decode)), limit - size)
            truncated = True
        else:
            texts.append(text)
        size += _utf8_size(text)
        head = []
    return UnifiedDiff(text="".join(texts), truncated=truncated, added=added, removed=removed)


def walk_hunks(
    before: bytes,
    after: bytes,
    spans: Sequence[SpanOffsets],
    *,
    context: int = 3,
    above: int | None = None,
    begin: int = 0,
) -> Iterator[Hunk]:
    """Yield the hunks of a change whose spans are known: sorted, disjoint, all other bytes equal.

    `above` is how many lines end before the first span, if known; `begin` is where the first line begins, which is
    after the byte order mark unless the mark belongs to the line.

    For texts whose lines end in LF or CRLF, in any encoding in which LF is one byte and means nothing else.
    """
    counted = line = shift = 0
    for start, cores, end in _cluster_spans(before, spans, context, begin):
        if above is not None:
            line, above = above - before.count(b"\n", start, spans[0][0]), None
        else:
            line += before.count(b"\n", counted, start)
        counted = start
        old, new, changes = _cut_window(before, after, start, cores, end)
        for group in _group_changes(changes, context):
            yield _build_hunk(old, new, group, context, line=line, shift=shift)
        shift += len(new) - len(old)


def quote_name(name: str) -> str:
    """Return a file name as git writes it in a diff header, with C escapes if it needs them."""
    quoted = name.translate(_NAME_ESCAPES)
    if quoted != name:
        return f'"{quoted}"'
    # Without the tab, patch would take what follows a blank for a date.
    return f"{name}\t" if " " in name else name


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text whose lines end in LF or CRLF, each with its terminator."""
    *pieces, last = data.split(b"\n")
    lines = list(map(bytes.__add__, pieces, repeat(b"\n")))
    return [*lines, last] if last else lines


def _group_changes(changes: Iterable[TextRegion], context: int) -> Iterator[list[TextRegion]]:
    """Yield the changes of each hunk: those whose context would touch or overlap belong together."""
    group: list[TextRegion] = []
    for change in changes:
        if group and change.a - group[-1].a_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _build_hunk(
    a: Sequence[bytes], b: Sequence[bytes], group: list[TextRegion], context: int, *, line: int = 0, shift: int = 0
) -> Hunk:
    """Return one hunk; `line` lines are above those given, and `shift` more above the new ones."""
    above = min(context, group[0].a)
    below = min(context, len(a) - group[-1].a_end)
    a_start, a_end = group[0].a - above, group[-1].a_end + below
    b_start, b_end = group[0].b - above, group[-1].b_end + below
    rows, here = list[bytes](), a_start
    for change in group:
        rows += [b" " + line for line in a[here : change.a]]
        rows += [b"-" + line for line in a[change.a : change.a_end]]
        rows += [b"+" + line for line in b[change.b : change.b_end]]
        here = change.a_end
    rows += [b" " + line for line in a[here:a_end]]
    return Hunk(
        old_start=line + a_start + (a_end > a_start),
        old_lines=a_end - a_start,
        new_start=line + shift + b_start + (b_end > b_start),
        new_lines=b_end - b_start,
        lines=tuple(rows),
    )


def _range_text(start: int, lines: int) -> str:
    return f"{start}" if lines == 1 else f"{start},{lines}"


def _hunk_text(hunk: Hunk, decode: Callable[[bytes], str]) -> str:
    data = b"".join(hunk.lines)
    if data.isascii() and data.endswith(b"\n") and data.count(b"\n") == len(hunk.lines):
        return decode(data)  # nearly all texts: each row ends in LF, and no character can reach into another row
    return "".join(_hunk_rows(hunk, decode))


def _hunk_rows(hunk: Hunk, decode: Callable[[bytes], str]) -> Iterator[str]:
    ends_in_cr = dict[bool, bool]()  # by side, and only asked where a row has no LF
    for row in (chr(line[0]) + decode(line[1:]) for line in hunk.lines):
        if row.endswith("\n"):
            yield row
            continue
        is_new = row[0] == "+"
        if row.endswith("\r") and is_new not in ends_in_cr:
            ends_in_cr[is_new] = _uses_cr(hunk.lines, b" +" if is_new else b" -", decode)
        yield row + ("\n" if row.endswith("\r") and ends_in_cr[is_new] else _NO_NEWLINE)


def _rows_that_fit(rows: Iterable[str], room: int) -> Iterator[str]:
    for row in rows:
        room -= _utf8_size(row)
        if room < 0:
            return
        yield row


def _utf8_size(text: str) -> int:
    """Count bytes of UTF-8; decoders may leave lone surrogates for bytes that are not text, which count like others."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _uses_cr(rows: Sequence[bytes], signs: bytes, decode: Callable[[bytes], str]) -> bool:
    """Tell whether a lone CR ends the lines of one side: where LF does, at most the last row is without it."""
    return sum(row[0] in signs and not decode(row[1:]).endswith("\n") for row in rows) > 1


def _cut_window(
    before: bytes, after: bytes, start: int, cores: list[TextRegion], end: int
) -> tuple[list[bytes], list[bytes], list[TextRegion]]:
    """Return the old and the new lines of a stretch, and what differs between them.

    Only touched lines are aligned: a change that slid into its context would show too little of it.
    """
    old, new, changes = list[bytes](), list[bytes](), list[TextRegion]()
    for core in cores:
        equal = split_lines(before[start : core.a])
        gone, come = split_lines(before[core.a : core.a_end]), split_lines(after[core.b : core.b_end])
        a, b = len(old) + len(equal), len(new) + len(equal)
        changes += (TextRegion(a + i, a + i_end, b + j, b + j_end) for i, i_end, j, j_end in find_changes(gone, come))
        old += equal + gone
        new += equal + come
        start = core.a_end
    rest = split_lines(before[start:end])
    return old + rest, new + rest, changes


def _cluster_spans(
    before: bytes, spans: Iterable[SpanOffsets], context: int, begin: int
) -> Iterator[tuple[int, list[TextRegion], int]]:
    """Yield stretches whose contexts touch together, with where these contexts begin and end."""
    cluster, start, reach = list[TextRegion](), 0, 0
    for core in _touched_lines(before, spans, begin):
        above = _line_start_above(before, core.a, context, begin)
        if cluster and above > reach:
            yield start, cluster, reach
            cluster = []
        if not cluster:
            start = above
        cluster.append(core)
        reach = _line_end_below(before, core.a_end, context)
    if cluster:
        yield start, cluster, reach


def _touched_lines(before: bytes, spans: Iterable[SpanOffsets], begin: int) -> Iterator[TextRegion]:
    """Yield the whole lines that the spans touch; spans that share a line, or touch adjacent ones, come as one."""
    a, a_end, b, b_end = -1, -1, 0, 0
    for start, end, after_start, after_end in spans:
        if end < a_end:  # in the same line as the span before: nothing to look for
            b_end = after_end + a_end - end
            continue
        first = max(before.rfind(b"\n", begin, start) + 1, begin)
        past = before.find(b"\n", end) + 1 or len(before)
        if first > a_end:
            if a_end >= 0:
                yield TextRegion(a, a_end, b, b_end)
            a, b = first, after_start - (start - first)
        a_end, b_end = past, after_end + (past - end)
    if a_end >= 0:
        yield TextRegion(a, a_end, b, b_end)


def _line_start_above(data: bytes, start: int, lines: int, begin: int) -> int:
    """Return the start of the line that is `lines` above the line start `start`, or `begin`."""
    for _ in range(lines):
        if start <= begin:
            return begin
        start = max(data.rfind(b"\n", begin, start - 1) + 1, begin)
    return start


def _line_end_below(data: bytes, end: int, lines: int) -> int:
    """Return the end of the line that ends `lines` terminators after `end`, or the end of the text."""
    for _ in range(lines):
        end = data.find(b"\n", end) + 1
        if not end:
            return len(data)
    return end

"""Unified diffs that `patch` and `git apply` accept.

1. Rows keep the bytes of their lines; only `unified` and `render` turn them into text.
2. A hunk never shows less context than asked for, except at the edges of the file: appliers read less as an edge.
3. `local_hunks` looks at the bytes around the changes, never at all lines of the file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from surehold.text.align import Block, align, join

_NO_NEWLINE = "\n\\ No newline at end of file\n"
_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}
_QUOTED = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    **_ESCAPES,
    # A byte of a file name that is not UTF-8 arrives as a lone surrogate, which could not be encoded again.
    **{0xDC00 + byte: f"\\{byte:03o}" for byte in range(0x80, 0x100)},
}

Span = tuple[int, int, int, int]
"""Bytes `before_start` to `before_end` became bytes `after_start` to `after_end`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Changed lines that stand close together, with the equal lines around them.

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
        return f"@@ -{_extent(self.old_start, self.old_lines)} +{_extent(self.new_start, self.new_lines)} @@"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedDiff:
    """A unified diff as text, empty when nothing differs."""

    text: str
    truncated: bool


class _Change(NamedTuple):
    """Lines `a` to `a_end` of the old text became lines `b` to `b_end` of the new one."""

    a: int
    a_end: int
    b: int
    b_end: int


class _Stretch(NamedTuple):
    """Whole lines around one or more spans: what changed lies between `before` and `before_end`."""

    before: int
    before_end: int
    after: int
    after_end: int


def hunks(
    a: Sequence[bytes], b: Sequence[bytes], *, context: int = 3, blocks: Sequence[Block] | None = None
) -> list[Hunk]:
    """Return what turns the lines `a` into the lines `b`; `blocks` are their equal runs, if known."""
    found = align(a, b) if blocks is None else blocks
    return [_hunk(a, b, group, context) for group in _groups(_changes(found, len(a), len(b)), context)]


def unified(
    a: Sequence[bytes],
    b: Sequence[bytes],
    *,
    from_name: str,
    to_name: str,
    decode: Callable[[bytes], str],
    context: int = 3,
    limit: int | None = None,
) -> UnifiedDiff:
    """Return the unified diff of two texts, cut after a whole row if it would exceed `limit` bytes of UTF-8."""
    found = hunks(a, b, context=context)
    return render(found, from_name=from_name, to_name=to_name, decode=decode, limit=limit)


def render(
    found: Iterable[Hunk],
    *,
    from_name: str,
    to_name: str,
    decode: Callable[[bytes], str],
    limit: int | None = None,
) -> UnifiedDiff:
    """Return hunks as a unified diff, cut after a whole row if it would exceed `limit` bytes of UTF-8."""
    rows: list[str] = []
    size = 0
    for row in _rows(found, from_name, to_name, decode):
        if limit is not None:
            # Decoders may leave lone surrogates for bytes that are no text; they count like other characters.
            size += len(row.encode("utf-8", "surrogatepass"))
            if size > limit:
                return UnifiedDiff(text="".join(rows), truncated=True)
        rows.append(row)
    return UnifiedDiff(text="".join(rows), truncated=False)


def local_hunks(
    before: bytes, after: bytes, spans: Sequence[Span], *, context: int = 3, above: int | None = None
) -> list[Hunk]:
    """Return the hunks of a change whose spans are known: sorted, disjoint, all other bytes equal.

    `above` is how many lines end before the first span, when that was counted already.

    For texts whose lines end in LF or CRLF, in any encoding in which LF is one byte and stands for nothing else.
    """
    found: list[Hunk] = []
    counted = line = shift = 0
    for cores in _clusters(before, spans, context):
        start = _back(before, cores[0].before, context)
        end = _forward(before, cores[-1].before_end, context)
        if above is not None:
            line, above = above - before.count(b"\n", start, spans[0][0]), None
        else:
            line += before.count(b"\n", counted, start)
        counted = start
        part = _Part()
        for core in cores:
            part.keep(split_lines(before[start : core.before]))
            old, new = before[core.before : core.before_end], after[core.after : core.after_end]
            part.change(split_lines(old), split_lines(new))
            start = core.before_end
        part.keep(split_lines(before[start:end]))
        found += (
            replace(hunk, old_start=hunk.old_start + line, new_start=hunk.new_start + line + shift)
            for hunk in hunks(part.old, part.new, context=context, blocks=join(part.blocks))
        )
        shift += len(part.new) - len(part.old)
    return found


def quote_name(name: str) -> str:
    """Return a file name as git writes it in a diff header, with C escapes if it needs them."""
    quoted = name.translate(_QUOTED)
    if quoted != name:
        return f'"{quoted}"'
    # Without the tab, patch would take what follows a blank for a date.
    return f"{name}\t" if " " in name else name


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text whose lines end in LF or CRLF, each with its terminator."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _changes(blocks: Iterable[Block], length_a: int, length_b: int) -> Iterator[_Change]:
    i = j = 0
    for a, b, size in blocks:
        if (i, j) != (a, b):
            yield _Change(i, a, j, b)
        i, j = a + size, b + size
    if (i, j) != (length_a, length_b):
        yield _Change(i, length_a, j, length_b)


def _groups(changes: Iterable[_Change], context: int) -> Iterator[list[_Change]]:
    """Yield the changes of each hunk: those whose context would touch or overlap belong together."""
    group: list[_Change] = []
    for change in changes:
        if group and change.a - group[-1].a_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(a: Sequence[bytes], b: Sequence[bytes], group: list[_Change], context: int) -> Hunk:
    above = min(context, group[0].a)
    below = min(context, len(a) - group[-1].a_end)
    a_start, a_end = group[0].a - above, group[-1].a_end + below
    b_start, b_end = group[0].b - above, group[-1].b_end + below
    rows: list[bytes] = []
    here = a_start
    for change in group:
        rows += (b" " + line for line in a[here : change.a])
        rows += (b"-" + line for line in a[change.a : change.a_end])
        rows += (b"+" + line for line in b[change.b : change.b_end])
        here = change.a_end
    rows += (b" " + line for line in a[here:a_end])
    return Hunk(
        old_start=a_start + (a_end > a_start),
        old_lines=a_end - a_start,
        new_start=b_start + (b_end > b_start),
        new_lines=b_end - b_start,
        lines=tuple(rows),
    )


def _extent(start: int, lines: int) -> str:
    return f"{start}" if lines == 1 else f"{start},{lines}"


def _rows(found: Iterable[Hunk], from_name: str, to_name: str, decode: Callable[[bytes], str]) -> Iterator[str]:
    for index, hunk in enumerate(found):
        if not index:
            yield f"--- {quote_name(from_name)}\n"
            yield f"+++ {quote_name(to_name)}\n"
        yield f"{hunk.header}\n"
        rows = [chr(row[0]) + decode(row[1:]) for row in hunk.lines]
        old_ends_in_cr, new_ends_in_cr = _uses_cr(rows, " -"), _uses_cr(rows, " +")
        for row in rows:
            if row.endswith("\n"):
                yield row
            elif row.endswith("\r") and (new_ends_in_cr if row[0] == "+" else old_ends_in_cr):
                yield row + "\n"
            else:
                yield row + _NO_NEWLINE


def _uses_cr(rows: list[str], signs: str) -> bool:
    """Tell whether a lone CR ends the lines of one side: where LF does, at most the last row is without it."""
    return sum(row[0] in signs and not row.endswith("\n") for row in rows) > 1


class _Part:
    """The lines around a few changes on both sides, and which of them are equal."""

    def __init__(self) -> None:
        self.old: list[bytes] = []
        self.new: list[bytes] = []
        self.blocks: list[Block] = []

    def keep(self, lines: list[bytes]) -> None:
        """Append lines that did not change."""
        self._append(lines, lines, [Block(0, 0, len(lines))])

    def change(self, old: list[bytes], new: list[bytes]) -> None:
        """Append touched lines. Only they are aligned: a change that slid into its context would show too little of it."""
        self._append(old, new, align(old, new))

    def _append(self, old: list[bytes], new: list[bytes], blocks: list[Block]) -> None:
        self.blocks += (Block(len(self.old) + a, len(self.new) + b, size) for a, b, size in blocks)
        self.old += old
        self.new += new


def _clusters(before: bytes, spans: Iterable[Span], context: int) -> Iterator[list[_Stretch]]:
    """Yield stretches whose contexts touch together."""
    cluster: list[_Stretch] = []
    reach = 0
    for core in _cores(before, spans):
        if cluster and _back(before, core.before, context) > reach:
            yield cluster
            cluster = []
        cluster.append(core)
        reach = _forward(before, core.before_end, context)
    if cluster:
        yield cluster


def _cores(before: bytes, spans: Iterable[Span]) -> Iterator[_Stretch]:
    """Yield the whole lines that the spans touch; spans that share a line come as one."""
    last: _Stretch | None = None
    for start, end, after_start, after_end in spans:
        first = before.rfind(b"\n", 0, start) + 1
        past = _forward(before, end, 1)
        core = _Stretch(first, past, after_start - (start - first), after_end + (past - end))
        if last and first <= last.before_end:
            last = last._replace(before_end=past, after_end=core.after_end)
            continue
        if last:
            yield last
        last = core
    if last:
        yield last


def _back(data: bytes, start: int, lines: int) -> int:
    """Return where the line stands that is `lines` above the line start `start`, or 0."""
    for _ in range(lines):
        if start <= 0:
            return 0
        start = data.rfind(b"\n", 0, start - 1) + 1
    return start


def _forward(data: bytes, end: int, lines: int) -> int:
    """Return the end of the line that ends `lines` terminators after `end`, or the end of the text."""
    for _ in range(lines):
        end = data.find(b"\n", end) + 1
        if not end:
            return len(data)
    return end

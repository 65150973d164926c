"""What an edit would do: the plan of spans, computed before anything is written, and its diff."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, repeat, tee
from operator import add
from typing import Any, NamedTuple, Protocol

from surehold.text.align import shared_ends
from surehold.text.diff import Hunk, UnifiedDiff, find_hunks, quote_name, render_hunks, walk_hunks
from surehold.text.encoding import UTF8, declaration_warnings
from surehold.text.snapshot import ABSENT, LineCounter, Snapshot, Version

_COMPARED_BYTES = 1 << 16
_COPIED_BYTES = 1 << 10
"""Fewer bytes are copied faster than they are referred to."""
_LF = 10
_NARROWED_BYTES = 1 << 20
"""Of larger files only what is between their equal ends is compared."""
_KEPT_FACTS = frozenset({"_span_offsets", "_span_breaks", "changes_bytes"})
"""What was computed of the spans, and holds for the same spans."""
MAX_COMPARED_BYTES = 32 << 20
"""More than this is not compared line by line: it would take minutes, and many times its size of memory."""


class Span(NamedTuple):
    """Bytes `start` to `end` of the file become `new`; a tuple, since there may be a million of them."""

    start: int
    end: int
    new: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Something fixed for the caller; always reported."""

    type: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The last line whose anchors still hold, and the first that must be read again."""

    anchors_valid_through: int
    must_refresh_from_line: int


class LineSpan(NamedTuple):
    """Where a match was, and where its replacement is: 1-based, inclusive; a tuple, as a span is."""

    start_line: int
    end_line: int
    new_start_line: int
    new_end_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    index: int
    occurrences: int
    ranges: tuple[LineSpan, ...]
    tier: str = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebaseEvidence:
    """Where lines of an earlier version were found again, and by which proofs besides the alignment."""

    from_line: int
    to_line: int
    evidence: str
    context: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOperation:
    """Which lines one operation of a line edit found, and where its own lines are afterwards: 1-based, inclusive."""

    index: int
    op: str
    resolution_level: str
    start_line: int
    """Of an insert, the line before or after which it goes; of an edge, the first or last line."""
    end_line: int
    new_start_line: int
    new_end_line: int
    """One less than the start when it writes no line."""
    cross_version: bool = False
    rebase: RebaseEvidence | None = None


@dataclass(frozen=True, kw_only=True)
class EditPlan:
    """Before, after, and the spans between them."""

    before: Snapshot
    after: Snapshot
    spans: tuple[Span, ...] = ()
    """Sorted and disjoint; empty when one side is absent."""
    applied: tuple[EditOutcome, ...] = ()
    corrections: tuple[Correction, ...] = ()
    warnings: tuple[str, ...] = ()
    resolutions: tuple[ResolvedOperation, ...] = ()
    """One for every applied operation of a line edit, in the order of the call; empty for other edits."""

    @cached_property
    def changes_bytes(self) -> bool:
        """Whether anything would be different; outside of the spans nothing can be."""
        if not self.spans:
            return self.before != self.after
        old, new = self.before.data, self.after.data
        # One by one: the first mostly tells it.
        places = range(self.spans[0].start, self.spans[-1].end, _COMPARED_BYTES)
        return len(old) != len(new) or not all(new.startswith(old[at : at + _COMPARED_BYTES], at) for at in places)

    def with_outcomes(self, applied: Iterable[EditOutcome]) -> "EditPlan":
        """Return the plan with what its edits did, and a warning if the file no longer is what it declares."""
        warnings = declaration_warnings(self.before.data, self.after.data, self.before.encoding)
        plan = replace(self, applied=tuple(applied), warnings=warnings)
        plan.__dict__.update({name: self.__dict__[name] for name in _KEPT_FACTS & self.__dict__.keys()})
        return plan

    @property
    def horizon(self) -> Horizon | None:
        """The first line whose anchors are invalid after the edit; None if nothing changes or a side is absent."""
        if not self.spans or not self.changes_bytes:
            return None
        changed = next(span for span in self.spans if self.before.data[span.start : span.end] != span.new)
        same, _ = shared_ends(self.before.data[changed.start : changed.end], changed.new)
        first = self.after.line_number(changed.start + same)
        return Horizon(anchors_valid_through=first - 1, must_refresh_from_line=first)

    def span_offsets(self) -> list[tuple[int, int, int, int]]:
        """List every span as (before start, before end, after start, after end)."""
        return self._span_offsets

    @cached_property
    def _span_offsets(self) -> list[tuple[int, int, int, int]]:
        shift, rows = 0, list[tuple[int, int, int, int]]()
        for start, end, new in self.spans:
            begin, size = start + shift, len(new)
            rows.append((start, end, begin, begin + size))
            shift += size - (end - start)
        return rows

    def span_breaks(self) -> tuple[list[int], list[int], list[int]]:
        """List the line in which every span begins, and how many line breaks go and come; where LF ends all lines."""
        return self._span_breaks

    @cached_property
    def _span_breaks(self) -> tuple[list[int], list[int], list[int]]:
        if not self.spans:
            return [], [], []
        data, lf = self.before.data, repeat(b"\n")
        starts, ends, news = zip(*self.spans, strict=True)
        removed, added = list(map(data.count, lf, starts, ends)), list(map(bytes.count, news, lf))
        between = map(data.count, lf, ends, starts[1:])
        lines = accumulate(map(add, removed, between), initial=self.before.line_number(starts[0]))
        return list(lines), removed, added

    def line_spans(self) -> list[LineSpan]:
        if self.before.needs_table or self.after.needs_table:
            old, new = LineCounter(self.before), LineCounter(self.after)
            return [
                LineSpan(
                    start_line=old.line_at(start),
                    end_line=old.line_at(max(start, end - 1)),
                    new_start_line=new.line_at(new_start),
                    new_end_line=new.line_at(max(new_start, new_end - 1)),
                )
                for start, end, new_start, new_end in self.span_offsets()
            ]
        before, rows, shift = self.before.data, list[LineSpan](), 0
        for (_, end, new), line, removed, added in zip(self.spans, *self.span_breaks(), strict=True):
            new_line = line + shift
            last = line + removed - (removed > 0 and before[end - 1] == _LF)
            rows.append(LineSpan(line, last, new_line, new_line + added - (added > 0 and new[-1] == _LF)))
            shift += added - removed
        return rows

    @property
    def differing_bytes(self) -> int:
        """How many bytes of the larger side have to be compared."""
        if not self.spans:
            return max(self.before.size, self.after.size)
        return max(self.spans[-1].end - self.spans[0].start, sum(len(span.new) for span in self.spans))

    def is_part_of(self, other: Snapshot) -> bool:
        """Tell whether another version has each change with the lines beside it, more often than the file had before."""
        if not other.exists:  # whoever removed it
            return False
        if not self.spans or other == self.after:
            return other == self.after
        rows = (hunk.lines for hunk in self.hunks(context=1))
        changed = [b"".join(row[1:] for row in lines if row[:1] != b"-") for lines in rows]
        # Of lines that are gone with all around them nothing is left that could be found.
        return not self.is_wide and all(one and other.data.count(one) > self.before.data.count(one) for one in changed)

    @cached_property
    def is_wide(self) -> bool:
        """Whether a version is in UTF-16 or UTF-32; its hunks are in UTF-8 then."""
        return self.before.encoding.width > 1 or self.after.encoding.width > 1

    def hunks(self, *, context: int = 3, with_bom: bool = False) -> Iterator[Hunk]:
        """Yield the changed lines with their context; a byte order mark is part of its line only if that is asked for.

        Each hunk is worked out once, when it is first asked for.
        """
        key = context, with_bom and bool(self.before.encoding.bom or self.after.encoding.bom)
        kept, found = tee(self._shared_hunks.get(key) or self._walk_hunks(*key))
        self._shared_hunks[key] = kept
        return found

    def decode_row(self, row: bytes) -> str:
        """Return a row of a hunk as text, with its sign and its terminator."""
        encoding = UTF8 if self.is_wide else self.after.encoding if row[:1] == b"+" else self.before.encoding
        return chr(row[0]) + encoding.decode(row[1:])

    @cached_property
    def _shared_hunks(self) -> dict[tuple[int, bool], Iterator[Hunk]]:
        return {}

    def _walk_hunks(self, context: int, with_bom: bool) -> Iterator[Hunk]:
        plan = _convert_to_utf8(self) if self.is_wide else self
        if plan is None or not _spans_tell_lines(plan):
            rows = (_hunk_rows(side, wide=self.is_wide, with_bom=with_bom) for side in (self.before, self.after))
            yield from find_hunks(*rows, context=context)
            return
        above = plan.before.line_number(plan.spans[0].start) - 1
        begin = 0 if with_bom else len(plan.before.encoding.bom)
        data = plan.before.data, plan.after.data
        yield from walk_hunks(*data, plan.span_offsets(), context=context, above=above, begin=begin)


class Edit(Protocol):
    """A pure recipe."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Work out the result, or refuse."""
        ...


class Check(Protocol):
    """Looks at a plan and warns or refuses."""

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        """Return warnings; raise to refuse the plan."""
        ...


def splice_spans(before: Snapshot, spans: Sequence[Span], **facts: Any) -> EditPlan:
    """Build the plan that copies everything except the spans, which must be sorted and disjoint."""
    data, view, pieces, at = before.data, memoryview(before.data), list[bytes | memoryview](), 0
    for start, end, new in spans:
        pieces += (data[at:start] if start - at < _COPIED_BYTES else view[at:start], new)
        at = end
    pieces.append(view[at:])
    after = Snapshot(b"".join(pieces), meta=before.meta, encoding=before.encoding)
    return EditPlan(before=before, after=after, spans=tuple(spans), **facts)


@dataclass(frozen=True, slots=True)
class Delete:
    """Leave nothing."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the absence."""
        return EditPlan(before=before, after=ABSENT)


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave the bytes as they are: the edit of a plain move."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan no difference."""
        return EditPlan(before=before, after=before)


def _convert_to_utf8(plan: EditPlan) -> EditPlan | None:
    """Return the same plan for the same text in UTF-8; None where it has no spans, or its lines would be others."""
    data, encoding = plan.before.data, plan.before.encoding
    begin, name = len(encoding.bom), encoding.name
    if not plan.spans or plan.spans[0].start < begin or plan.after.encoding != encoding:
        return None
    try:
        text, spans = convert_parts(data, plan.spans, lambda part: part.decode(name).encode(), begin=begin)
    except UnicodeError:
        return None
    return splice_spans(Snapshot(text, encoding=UTF8), spans)


def convert_parts(
    data: bytes, spans: Sequence[Span], convert: Callable[[bytes], bytes], *, begin: int = 0
) -> tuple[bytes, list[Span]]:
    """Convert a text and what its spans make of it, each part by itself; return it with the spans that it has then."""
    at, size, pieces, moved = begin, 0, list[bytes](), list[Span]()
    for span in spans:
        kept, old, new = map(convert, (data[at : span.start], data[span.start : span.end], span.new))
        moved.append(Span(start=size + len(kept), end=size + len(kept) + len(old), new=new))
        pieces += (kept, old)
        at, size = span.end, moved[-1].end
    return b"".join((*pieces, convert(data[at:]))), moved


def _spans_tell_lines(plan: EditPlan) -> bool:
    """Tell whether the spans say which lines changed, so that nothing has to be searched for."""
    before, after = plan.before, plan.after
    if not plan.spans or before.needs_table or after.needs_table:
        return False
    return before.encoding.bom == after.encoding.bom


def _hunk_rows(snapshot: Snapshot, *, wide: bool, with_bom: bool) -> list[bytes]:
    """Return the lines with their terminators, as UTF-8 where a version is wide."""
    encoding, rows = snapshot.encoding, snapshot.lines.raw
    if wide:
        return [encoding.decode(line).encode() for line in rows]
    return [encoding.bom + b"".join(rows[:1]), *rows[1:]] if with_bom and encoding.bom else rows


DIFF_LIMIT_BYTES = 64 * 1024
"""How many bytes of a diff are kept in the ledger and sent to a caller."""
DEV_NULL = "/dev/null"


def diff_of_plan(plan: EditPlan, *, from_name: str, to_name: str, limit: int | None = DIFF_LIMIT_BYTES) -> UnifiedDiff:
    """Return the difference that a plan makes; a missing version is `/dev/null`."""
    before, after = plan.before, plan.after
    if not plan.changes_bytes:
        return UnifiedDiff(text="", truncated=False)
    names = (from_name if before.exists else DEV_NULL, to_name if after.exists else DEV_NULL)
    if not (before.is_text and after.is_text):
        line = f"Binary files {quote_name(names[0])} and {quote_name(names[1])} differ\n"
        return UnifiedDiff(text=line, truncated=False)
    encoding = UTF8 if plan.is_wide else before.encoding if before.exists else after.encoding
    found = plan.hunks(with_bom=True)
    return render_hunks(found, from_name=names[0], to_name=names[1], decode=encoding.decode, limit=limit)


def diff_between(
    before: Snapshot, after: Snapshot, *, from_name: str, to_name: str, limit: int | None = None
) -> UnifiedDiff:
    """Return the difference between two versions; a missing one is `/dev/null`.

    Where too much differs to be compared line by line, it is one row that says so, with sizes and hashes.
    """
    plan = plan_between(before, after)
    if plan.changes_bytes and plan.differing_bytes > MAX_COMPARED_BYTES and before.is_text and after.is_text:
        names = (from_name if before.exists else DEV_NULL, to_name if after.exists else DEV_NULL)
        text = name_difference(*names, (before.version, after.version), why="too large to compare line by line")
        return UnifiedDiff(text=text, truncated=False)
    return diff_of_plan(plan, from_name=from_name, to_name=to_name, limit=limit)


def plan_between(before: Snapshot, after: Snapshot) -> EditPlan:
    """Return the plan that makes one version of the other; of large ones, what is between their equal ends."""
    if min(before.size, after.size) <= _NARROWED_BYTES:
        return EditPlan(before=before, after=after)
    head, tail = shared_ends(before.data, after.data)
    span = Span(start=head, end=before.size - tail, new=after.data[head : after.size - tail])
    return EditPlan(before=before, after=after, spans=(span,))


def name_difference(from_name: str, to_name: str, versions: tuple[Version | None, Version | None], *, why: str) -> str:
    """Return one row that says that two versions differ, why it does not show how, and what they are."""
    facts = "; ".join(f"{one.size} bytes, sha256 {one.sha256}" if one else "no file" for one in versions)
    return f"Files {quote_name(from_name)} and {quote_name(to_name)} differ: {why} ({facts})\n"

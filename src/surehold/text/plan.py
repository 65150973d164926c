"""What an edit would do: the plan of spans, computed before anything is written, and its diff."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from typing import Any, Protocol

from surehold.text.align import shared_ends
from surehold.text.diff import Hunk, UnifiedDiff, find_hunks, quote_name, render_hunks, walk_hunks
from surehold.text.encoding import UTF8, declaration_warnings
from surehold.text.snapshot import ABSENT, LineCounter, Snapshot

_COMPARED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes `start` to `end` of the file become `new`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpan:
    """Where a match was, and where its replacement is: 1-based, inclusive."""

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
        return replace(self, applied=tuple(applied), warnings=warnings)

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
        shift, rows = 0, list[tuple[int, int, int, int]]()
        for span in self.spans:
            begin = span.start + shift
            rows.append((span.start, span.end, begin, begin + len(span.new)))
            shift += len(span.new) - (span.end - span.start)
        return rows

    def line_spans(self) -> list[LineSpan]:
        old, new = LineCounter(self.before), LineCounter(self.after)
        if self.spans and not (self.before.needs_table or self.after.needs_table):
            same = self.spans[0].start  # up to here both are the same text, which is counted once
            new = LineCounter(self.after, at=same, line=old.line_at(same))
        return [
            LineSpan(
                start_line=old.line_at(start),
                end_line=old.line_at(max(start, end - 1)),
                new_start_line=new.line_at(new_start),
                new_end_line=new.line_at(max(new_start, new_end - 1)),
            )
            for start, end, new_start, new_end in self.span_offsets()
        ]

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
    view, pieces, at = memoryview(before.data), list[bytes | memoryview](), 0
    for span in spans:
        pieces += (view[at : span.start], span.new)
        at = span.end
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
    return before.encoding.bom == after.encoding.bom and plan.spans[0].start >= len(before.encoding.bom)


def _hunk_rows(snapshot: Snapshot, *, wide: bool, with_bom: bool) -> list[bytes]:
    """Return the lines with their terminators, as UTF-8 where a version is wide."""
    encoding, rows = snapshot.encoding, snapshot.lines.raw
    if wide:
        return [encoding.decode(line).encode() for line in rows]
    return [encoding.bom + rows[0], *rows[1:]] if with_bom and rows and encoding.bom else rows


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
    """Return the difference between two versions; a missing one is `/dev/null`."""
    return diff_of_plan(EditPlan(before=before, after=after), from_name=from_name, to_name=to_name, limit=limit)

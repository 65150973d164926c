"""Edits to lines that are named by their anchors: parse a call's operations, locate their lines, splice them.

1. All operations address the file as it is before the call; their order matters only for inserts into the same gap.
2. If one operation cannot be done, the whole call is refused, with every problem that was found.
3. What is corrected for the caller is reported: a range in reverse order, anchors that were copied along with text,
   an operation that was sent twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from surehold.errors import NoChange, NotEncodable, NotFound, SchemaInvalid
from surehold.text.anchored import refusals
from surehold.text.anchored.anchor import LinePointer, parse_anchor
from surehold.text.anchored.index import IndexedVersion, ShownVersion, hash_buckets
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    LineChange,
    Operation,
    RangeOperation,
    ReplaceLine,
    ReplaceRange,
    SingleLineOperation,
    byte_spans,
    copied_hashes,
    detect_copied_rows,
    find_overlaps,
    new_places,
    sort_changes,
    split_rows,
)
from surehold.text.anchored.problems import OperationProblem, build_refusal
from surehold.text.anchored.resolve import AmbiguousLine, AnchorResolver, FoundLines, MissingLine, Resolution
from surehold.text.anchored.rows import judge_quality
from surehold.text.encoding import declaration_warnings
from surehold.text.plan import Correction, EditOutcome, EditPlan, LineSpan, ResolvedOperation, splice_spans
from surehold.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOperation:
    """An operation with its anchors and its text read."""

    index: int
    op: Operation
    pointers: tuple[LinePointer, ...]
    rows: tuple[str, ...]

    @property
    def edge(self) -> str | None:
        """The edge of the file that it points at, instead of a line."""
        return self.pointers[0].anchor.edge


def parse_operation(index: int, op: Operation, before: Snapshot) -> ParsedOperation | list[OperationProblem]:
    """Read the fields of an operation, or tell what is wrong with each of them."""
    read = [_parse_pointer(index, op, each) for each in _anchored_fields(op)]
    problems = [each for each in read if isinstance(each, OperationProblem)]
    if problems:
        return problems
    rows = list[str]()
    if not isinstance(op, (DeleteLine, DeleteRange)):
        rows = split_rows(op.content, lone_cr_breaks=before.lines.breaker == before.encoding.encode_newline("\r"))
    pointers = tuple(each for each in read if isinstance(each, LinePointer))
    return ParsedOperation(index=index, op=op, pointers=pointers, rows=tuple(rows))


class _AnchorField(NamedTuple):
    """A field that holds an anchor, with the occurrence and the line number beside it."""

    name: str
    text: str
    occurrence: int | None
    line: int | None


def _anchored_fields(op: Operation) -> tuple[_AnchorField, ...]:
    if isinstance(op, (ReplaceRange, DeleteRange)):
        return (
            _AnchorField("start_hash", op.start_hash, None, op.start_line),
            _AnchorField("end_hash", op.end_hash, None, op.end_line),
        )
    return (_AnchorField("hash", op.hash, op.occurrence, op.line),)


def _parse_pointer(index: int, op: Operation, field: _AnchorField) -> LinePointer | OperationProblem:
    try:
        anchor = parse_anchor(field.text, field=field.name)
    except SchemaInvalid as error:
        return refusals.bad_field(index, op, error)
    if anchor.edge and not isinstance(op, (InsertAfter, InsertBefore)):
        message = f"`{anchor.edge}` is not a line, so it cannot be in `{field.name}` of {op.op}"
        action = "Use BOF and EOF with insert_after or insert_before."
        return refusals.unfit_value(index, op, message, action, field=field.name, given=anchor.edge)
    nth = field.occurrence
    if nth is not None and anchor.occurrence not in (None, nth):
        message = f"`{field.name}` says occurrence {anchor.occurrence}, but `occurrence` says {nth}"
        return refusals.unfit_value(index, op, message, "Send one of the two.", field="occurrence", given=nth)
    return LinePointer(
        field=field.name,
        anchor=anchor,
        occurrence=anchor.occurrence if nth is None else nth,
        number=field.line if anchor.line is None else anchor.line,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocatedOperation:
    """One operation whose lines are known: 0-based, inclusive."""

    request: ParsedOperation
    first: int
    last: int
    found: FoundLines | None
    """None for an edge of the file."""


@dataclass(slots=True, kw_only=True)
class LineEditCall:
    """The operations of one call, and the file that they are for."""

    operations: Sequence[Operation]
    before: Snapshot
    shown: Sequence[ShownVersion]
    guards_unseen: bool
    """Ranges must not cover lines that the session was never shown."""
    strict_order: bool
    refusal_chars: int
    _problems: list[OperationProblem] = field(default_factory=list[OperationProblem])
    _corrections: list[Correction] = field(default_factory=list[Correction])

    def build_plan(self) -> EditPlan:
        """Find all lines, check them, and splice; or refuse with all problems."""
        requests = self._parse_operations()
        hashes = {pointer.anchor.hash for each in requests for pointer in each.pointers}
        hashes |= copied_hashes(row for each in requests for row in each.rows)
        resolver = AnchorResolver(self.before, self.shown, hash_buckets(hashes))
        requests = [self._clean_content(each, _real_hash_test(resolver)) for each in requests]
        pointing = [each for each in requests if each.edge is None]
        found = resolver.resolve_pointers([each.pointers for each in pointing])
        resolutions = {each.index: resolution for each, resolution in zip(pointing, found, strict=True)}
        located = [self._locate_operation(each, resolutions.get(each.index), resolver) for each in requests]
        done = [each for each in located if each is not None]
        changes = sort_changes([_line_change(each, len(self.before.lines)) for each in done])
        for one, other in find_overlaps(changes):
            self._problems.append(refusals.overlapping_changes(one, other, self.operations[other.index]))
        if self._problems:
            raise build_refusal(self._problems, resolver.live, room=self.refusal_chars)
        return self._splice_changes(done, self._encode_rows(changes, done))

    def _parse_operations(self) -> list[ParsedOperation]:
        """Read every operation; one that was sent twice counts once."""
        requests, first = list[ParsedOperation](), dict[Operation, int]()
        for index, op in enumerate(self.operations):
            if op in first:
                detail = f"Operation {index} repeats operation {first[op]}. Applied once."
                self._corrections.append(Correction(type="duplicate_operation", detail=detail))
                continue
            first[op] = index
            match parse_operation(index, op, self.before):
                case ParsedOperation() as request:
                    requests.append(request)
                case problems:
                    self._problems += problems
        return requests

    def _clean_content(self, request: ParsedOperation, is_real: Callable[[str], bool]) -> ParsedOperation:
        """Cut off anchors that were copied along with the text; tell of text where that is not certain."""
        content = detect_copied_rows(request.rows, is_real)
        if not content.copied:
            return request
        if content.is_mixed:
            message = f"{content.copied} of {len(content.rows)} rows of `content` begin with a copied anchor"
            action = "Send the text of the lines without anchors."
            facts = {"field": "content", "copied_rows": content.copied, "content_rows": len(content.rows)}
            self._problems.append(refusals.unfit_value(request.index, request.op, message, action, **facts))
        elif content.copied:
            detail = (
                f"Operation {request.index}: copied anchors were cut off from {content.copied} rows of the content."
            )
            self._corrections.append(Correction(type="anchor_prefixes_stripped", detail=detail))
        return replace(request, rows=content.clean_rows)

    def _locate_operation(
        self, request: ParsedOperation, resolution: Resolution | None, resolver: AnchorResolver
    ) -> _LocatedOperation | None:
        """Return the lines of an operation, or tell what is wrong with them."""
        op = request.op
        if resolution is None:
            line = 0 if request.edge == "BOF" else max(0, len(self.before.lines) - 1)
            return _LocatedOperation(request=request, first=line, last=line, found=None)
        if not isinstance(resolution, FoundLines):
            self._problems += (self._describe_failure(request, failure, resolver.live) for failure in resolution)
            return None
        if isinstance(op, (ReplaceRange, DeleteRange)):
            return self._locate_range(request, op, resolution, resolver.live)
        return self._locate_line(request, op, resolution, resolver.live)

    def _describe_failure(
        self, request: ParsedOperation, failure: MissingLine | AmbiguousLine, live: IndexedVersion
    ) -> OperationProblem:
        op = request.op
        if isinstance(failure, MissingLine):
            if failure.home is not None and isinstance(op, (ReplaceRange, DeleteRange)):
                return refusals.range_changed(request.index, op, failure, failure.home, live)
            return refusals.stale_anchor(request.index, op, failure, live)
        is_line = not isinstance(op, (ReplaceRange, DeleteRange))
        if is_line and failure.pointer.is_bare and _is_low_quality(live, failure.lines[0]):
            return refusals.low_entropy(request.index, op, failure.pointer, failure.lines, live)
        return refusals.ambiguous_anchor(request.index, op, failure, live)

    def _locate_line(
        self, request: ParsedOperation, op: SingleLineOperation, found: FoundLines, live: IndexedVersion
    ) -> _LocatedOperation | None:
        reading, target = found.home.readings[0], found.targets[0]
        named = target + reading.line - reading.target
        if not reading.placed and _is_low_quality(live, named):
            pointer = request.pointers[0]
            equal = [named, *(line for line in live.lines_with_hash(pointer.anchor.hash) if line != named)]
            self._problems.append(refusals.low_entropy(request.index, op, pointer, equal, live))
            return None
        return _LocatedOperation(request=request, first=target, last=target, found=found)

    def _locate_range(
        self, request: ParsedOperation, op: RangeOperation, found: FoundLines, live: IndexedVersion
    ) -> _LocatedOperation | None:
        first, last = found.targets
        if first == last:
            self._problems.append(refusals.same_line(request.index, op, first))
            return None
        if first > last:
            if self.strict_order or found.carried:
                self._problems.append(refusals.reversed_range(request.index, op, found))
                return None
            detail = f"start_line ({first + 1}) was after end_line ({last + 1}). Swapped automatically."
            self._corrections.append(Correction(type="range_order_swapped", detail=detail))
            first, last = last, first
        if self.guards_unseen and (unseen := _unseen_lines(found, first, last, live)):
            self._problems.append(refusals.unseen_lines(request.index, op, unseen))
            return None
        return _LocatedOperation(request=request, first=first, last=last, found=found)

    def _encode_rows(self, changes: Sequence[LineChange], done: Sequence[_LocatedOperation]) -> list[LineChange]:
        encode, rows = self.before.encoding.encode, {each.request.index: each.request.rows for each in done}
        out = list[LineChange]()
        for change in changes:
            try:
                out.append(replace(change, rows=tuple(encode(row) for row in rows[change.index])))
            except NotEncodable as error:
                error.details["operation_index"] = change.index
                raise
        return out

    def _splice_changes(self, done: Sequence[_LocatedOperation], changes: Sequence[LineChange]) -> EditPlan:
        before = self.before
        spans = byte_spans(before, changes)
        if not spans:
            raise NoChange("Every line is already as the operations want it.", sha256=before.sha256)
        places = new_places(changes)
        resolutions = tuple(_resolved_operation(each, places[each.request.index]) for each in done)
        plan = splice_spans(before, spans)
        return EditPlan(
            before=before,
            after=plan.after,
            spans=plan.spans,
            applied=tuple(_applied_operation(each) for each in resolutions),
            corrections=tuple(self._corrections),
            warnings=declaration_warnings(before.data, plan.after.data, before.encoding),
            resolutions=resolutions,
        )


def _line_change(done: _LocatedOperation, total: int) -> LineChange:
    """Return the lines that an operation replaces, or the gap that it fills."""
    op, first, end = done.request.op, done.first, done.last + 1
    if done.found is None:  # an edge of the file
        first = end = 0 if done.request.edge == "BOF" else total
    elif isinstance(op, InsertBefore):
        end = first
    elif isinstance(op, InsertAfter):
        first = end
    return LineChange(index=done.request.index, start=first, end=end, rows=())


def _unseen_lines(found: FoundLines, first: int, last: int, live: IndexedVersion) -> list[int]:
    """Return the lines of a range that the session was shown neither where it read them nor where they are now."""
    home = found.home.version
    shift = found.targets[0] - found.home.targets[0]
    return [line for line in range(first, last + 1) if not (home.shows_line(line - shift) or live.shows_line(line))]


def _is_low_quality(version: IndexedVersion, line: int) -> bool:
    return judge_quality(version.line_text(line), 1) == "low"


def _real_hash_test(resolver: AnchorResolver) -> Callable[[str], bool]:
    def is_real(hash_: str) -> bool:
        versions = chain((resolver.live,), resolver.shown_versions())
        return any(version.lines_with_hash(hash_) for version in versions)

    return is_real


def _resolved_operation(done: _LocatedOperation, place: tuple[int, int]) -> ResolvedOperation:
    found = done.found
    return ResolvedOperation(
        index=done.request.index,
        op=done.request.op.op,
        resolution_level=found.level if found else "edge",
        start_line=done.first + 1,
        end_line=done.last + 1,
        new_start_line=place[0] + 1,
        new_end_line=place[1],
        cross_version=bool(found and found.carried),
        rebase=found.carried if found else None,
    )


def _applied_operation(resolved: ResolvedOperation) -> EditOutcome:
    lines = LineSpan(
        start_line=resolved.start_line,
        end_line=resolved.end_line,
        new_start_line=resolved.new_start_line,
        new_end_line=max(resolved.new_start_line, resolved.new_end_line),
    )
    return EditOutcome(index=resolved.index, occurrences=1, ranges=(lines,), tier=resolved.resolution_level)


__all__ = [
    "AnchoredEdits",
    "DeleteLine",
    "DeleteRange",
    "InsertAfter",
    "InsertBefore",
    "Operation",
    "ReplaceLine",
    "ReplaceRange",
    "ShownVersion",
]

UNLIMITED_CHARS = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredEdits:
    """Operations on lines, and what the session that sends them was shown of the file."""

    operations: tuple[Operation, ...]
    shown: tuple[ShownVersion, ...] = ()
    """Newest first; without any, anchors are looked up in the file as it is."""
    strict_order: bool = False
    """A range from bottom to top is refused, not turned around."""
    allow_rebase: bool = True
    """Anchors of earlier versions are carried over; off when the caller has named the version that it means."""
    refusal_chars: int = UNLIMITED_CHARS
    """How many characters of fresh rows a refusal shows."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Find every line, then splice all operations at once; refuse all of them if one cannot be done."""
        if not before.exists:
            raise NotFound("There is no file to edit.")
        if not self.operations:
            raise SchemaInvalid("There is no operation to apply.", reason="no_operations", field="operations")
        call = LineEditCall(
            operations=self.operations,
            before=before,
            shown=[each for each in self.shown if self.allow_rebase or each.sha256 == before.sha256],
            guards_unseen=bool(self.shown),
            strict_order=self.strict_order,
            refusal_chars=self.refusal_chars,
        )
        return call.build_plan()

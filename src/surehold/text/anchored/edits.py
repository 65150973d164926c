"""Edits to lines that are named by their anchors: parse a call's operations, locate their lines, splice them.

1. All operations address the file as it is before the call; their order matters only for inserts into the same gap.
2. If one operation cannot be done, the whole call is refused, with every problem that was found.
3. What is corrected for the caller is reported: a range in reverse order, anchors that were copied along with text,
   an operation that was sent twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surehold.errors import NoChange, NotFound, SchemaInvalid
from surehold.text.anchored import problems
from surehold.text.anchored.anchor import LinePointer, parse_anchor
from surehold.text.anchored.lines import IndexedVersion, ShownVersion, hash_buckets, judge_quality
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    LineChange,
    Operation,
    ParsedOperation,
    RangeOperation,
    byte_spans,
    copied_hashes,
    find_overlaps,
    new_places,
    sort_changes,
    split_rows,
    strip_copied_anchor,
)
from surehold.text.anchored.problems import OperationProblem
from surehold.text.anchored.refusals import build_refusal
from surehold.text.anchored.resolve import AnchorResolver, FoundLines, Resolution, UnclearLine
from surehold.text.measure import ANY_SIZE, TextRoom
from surehold.text.plan import Correction, EditOutcome, EditPlan, LineSpan, ResolvedOperation, splice_spans
from surehold.text.snapshot import Snapshot

_AnchorField = tuple[str, str, int | None, int | None]
"""A field that holds an anchor: its name, its text, and the occurrence and the line number beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredEdits:
    """Operations on lines, and what the session that sends them was shown of the file."""

    operations: tuple[Operation, ...]
    shown: tuple[ShownVersion, ...] = ()
    """Newest first; without any, only hashes that are unique in the file as it is are taken."""
    strict_order: bool = False
    """A range from bottom to top is refused, not turned around."""
    allow_rebase: bool = True
    """Anchors of earlier versions are carried over; off when the caller has named the version that it means."""
    refusal_room: TextRoom = ANY_SIZE
    """How many fresh rows a refusal shows."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Find every line, then splice all operations at once; refuse all of them if one cannot be done."""
        if not before.exists:
            raise NotFound("There is no file to edit.")
        if not self.operations:
            raise SchemaInvalid("There is no operation to apply.", reason="no_operations", field="operations")
        return LineEditCall(self, before).build_plan()


class LineEditCall:
    """The operations of one call, and the file that they are for."""

    def __init__(self, edits: AnchoredEdits, before: Snapshot) -> None:
        self._edits, self._before = edits, before
        self._problems, self._corrections = list[OperationProblem](), list[Correction]()

    def build_plan(self) -> EditPlan:
        """Find all lines, check them, and splice; or refuse with all problems."""
        edits, sent = self._edits, self._parse_operations()
        resolver = self._make_resolver(sent)
        requests = [replace(each, pointers=tuple(map(resolver.read_context, each.pointers))) for each in sent]
        if requests != sent:  # other hashes are looked up than were sent
            resolver = self._make_resolver(requests)
        requests = [self._clean_content(each, resolver) for each in requests]
        pointing = [each for each in requests if each.edge is None]
        found = resolver.resolve_pointers([each.pointers for each in pointing])
        resolutions = {each.index: resolution for each, resolution in zip(pointing, found, strict=True)}
        located = [self._locate_operation(each, resolutions.get(each.index), resolver.live) for each in requests]
        changes = sort_changes([each for each in located if each is not None])
        for one, other in find_overlaps(changes):
            self._note_problem(other.index, problems.overlapping_changes(one, other))
        if self._problems:
            raise build_refusal(self._problems, resolver.live, room=edits.refusal_room)
        return self._splice_changes(changes)

    def _make_resolver(self, requests: Sequence[ParsedOperation]) -> AnchorResolver:
        edits, hashes = self._edits, {pointer.anchor.hash for each in requests for pointer in each.pointers}
        hashes.update(copied_hashes(row for each in requests for row in each.rows))
        shown = [each for each in edits.shown if edits.allow_rebase or each.sha256 == self._before.sha256]
        return AnchorResolver(self._before, shown, hash_buckets(hashes), is_named=not edits.allow_rebase)

    def _note_problem(self, index: int, problem: OperationProblem) -> None:
        self._problems.append(replace(problem, index=index, op=self._edits.operations[index].op))

    def _note_correction(self, kind: str, detail: str) -> None:
        self._corrections.append(Correction(type=kind, detail=detail))

    def _parse_operations(self) -> list[ParsedOperation]:
        """Read every operation; one that was sent twice counts once."""
        requests, first = list[ParsedOperation](), dict[Operation, int]()
        for index, op in enumerate(self._edits.operations):
            if op in first:
                detail = f"Operation {index} repeats operation {first[op]}. Applied once."
                self._note_correction("duplicate_operation", detail)
                continue
            first[op] = index
            pointers = [self._parse_pointer(index, each) for each in _anchored_fields(op)]
            rows = list[str]()
            if not isinstance(op, (DeleteLine, DeleteRange)):
                lone_cr = self._before.lines.breaker == self._before.encoding.encode_newline("\r")
                rows = split_rows(op.content, lone_cr_breaks=lone_cr)
            read = tuple(each for each in pointers if each is not None)
            if len(read) == len(pointers):
                requests.append(ParsedOperation(index=index, op=op, pointers=read, rows=tuple(rows)))
        return requests

    def _parse_pointer(self, index: int, sent: _AnchorField) -> LinePointer | None:
        (field, text, nth, line), op = sent, self._edits.operations[index]
        try:
            anchor = parse_anchor(text, field=field)
        except SchemaInvalid as error:
            message = error.message.rstrip(".?")
            self._note_problem(index, problems.unfit_value(message, error.action, error.details, error.reason))
            return None
        if anchor.edge and not isinstance(op, (InsertAfter, InsertBefore)):
            message = f"`{anchor.edge}` is not a line, so it cannot be in `{field}` of {op.op}"
            action = "Use BOF and EOF with insert_after or insert_before."
            self._note_problem(index, problems.unfit_value(message, action, {"field": field, "given": anchor.edge}))
            return None
        if nth is not None and anchor.occurrence not in (None, nth):
            message = f"`{field}` says occurrence {anchor.occurrence}, but `occurrence` says {nth}"
            facts = {"field": "occurrence", "given": nth}
            self._note_problem(index, problems.unfit_value(message, "Send one of the two.", facts))
            return None
        nth, number = anchor.occurrence if nth is None else nth, line if anchor.line is None else anchor.line
        return LinePointer(field=field, anchor=anchor, occurrence=nth, number=number, beside=line)

    def _clean_content(self, request: ParsedOperation, resolver: AnchorResolver) -> ParsedOperation:
        """Cut off anchors that were copied along with the text; tell of text where that is not certain."""
        index, total = request.index, len(request.rows)
        copied = sum(map(resolver.knows_hash, copied_hashes(request.rows)))
        if not copied:
            return request
        if copied < total:
            message = f"{copied} of {total} rows of `content` begin with a copied anchor"
            action = "Send the text of the lines without anchors."
            facts = {"field": "content", "copied_rows": copied, "content_rows": total}
            self._note_problem(index, problems.unfit_value(message, action, facts))
        else:
            detail = f"Operation {index}: copied anchors were cut off from {copied} rows of the content."
            self._note_correction("anchor_prefixes_stripped", detail)
        return replace(request, rows=tuple(map(strip_copied_anchor, request.rows)))

    def _locate_operation(
        self, request: ParsedOperation, resolution: Resolution | None, live: IndexedVersion
    ) -> LineChange | None:
        """Return the lines of an operation, or tell what is wrong with them."""
        op = request.op
        if resolution is None:
            line = 0 if request.edge == "BOF" else max(0, len(live) - 1)
            gap = 0 if request.edge == "BOF" else len(live)
            return LineChange(request=request, start=gap, end=gap, first=line, last=line, found=None)
        if not isinstance(resolution, FoundLines):
            for failure in resolution:
                self._note_problem(request.index, _describe_failure(op, failure, live))
            return None
        if isinstance(op, RangeOperation):
            return self._locate_range(request, op, resolution, live)
        reading, target = resolution.home.readings[0], resolution.targets[0]
        named = target + reading.line - reading.target
        if not reading.placed and _is_low_quality(live, named):
            pointer = request.pointers[0]
            equal = [named, *(line for line in live.lines_with_hash(pointer.anchor.hash) if line != named)]
            self._note_problem(request.index, problems.low_entropy(op, pointer, equal, live))
            return None
        start = target + 1 if isinstance(op, InsertAfter) else target
        end = target if isinstance(op, InsertBefore) else target + 1
        return LineChange(request=request, start=start, end=end, first=target, last=target, found=resolution)

    def _locate_range(
        self, request: ParsedOperation, op: RangeOperation, found: FoundLines, live: IndexedVersion
    ) -> LineChange | None:
        first, last = found.targets
        if first == last:
            self._note_problem(request.index, problems.same_line(op, first))
            return None
        if first > last:
            if self._edits.strict_order or found.carried:
                self._note_problem(request.index, problems.reversed_range(op, found))
                return None
            detail = f"start_line ({first + 1}) was after end_line ({last + 1}). Swapped automatically."
            self._note_correction("range_order_swapped", detail)
            first, last = last, first
        if self._edits.shown and (unseen := _unseen_lines(found, first, last, live)):
            self._note_problem(request.index, problems.unseen_lines(unseen))
            return None
        return LineChange(request=request, start=first, end=last + 1, first=first, last=last, found=found)

    def _splice_changes(self, changes: Sequence[LineChange]) -> EditPlan:
        before = self._before
        spans = byte_spans(before, changes)
        if not spans:
            raise NoChange("Every line is already as the operations want it.", sha256=before.sha256)
        places = new_places(changes)
        in_call_order = sorted(changes, key=lambda change: change.index)
        resolutions = tuple(_resolved_operation(each, places[each.index]) for each in in_call_order)
        plan = splice_spans(before, spans, corrections=tuple(self._corrections), resolutions=resolutions)
        return plan.with_outcomes(_applied_operation(each) for each in resolutions)


def _anchored_fields(op: Operation) -> tuple[_AnchorField, ...]:
    if isinstance(op, RangeOperation):
        return ("start_hash", op.start_hash, None, op.start_line), ("end_hash", op.end_hash, None, op.end_line)
    return (("hash", op.hash, op.occurrence, op.line),)


def _describe_failure(op: Operation, failure: UnclearLine, live: IndexedVersion) -> OperationProblem:
    if not failure.lines:
        if failure.home is not None and isinstance(op, RangeOperation):
            return problems.range_changed(failure, failure.home, live)
        return problems.stale_anchor(failure, live)
    is_line = not isinstance(op, RangeOperation)
    if is_line and failure.pointer.is_bare and _is_low_quality(live, failure.lines[0]):
        return problems.low_entropy(op, failure.pointer, failure.lines, live)
    return problems.ambiguous_anchor(failure, live, is_range=not is_line)


def _unseen_lines(found: FoundLines, first: int, last: int, live: IndexedVersion) -> list[int]:
    """Return the lines of a range that the session was shown neither where it read them nor where they are now."""
    home = found.home.version
    shift = found.targets[0] - found.home.targets[0]
    return [line for line in range(first, last + 1) if not (home.shows_line(line - shift) or live.shows_line(line))]


def _is_low_quality(version: IndexedVersion, line: int) -> bool:
    return judge_quality(version.line_text(line), 1) == "low"


def _resolved_operation(done: LineChange, place: tuple[int, int]) -> ResolvedOperation:
    found = done.found
    return ResolvedOperation(
        index=done.index,
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
    start, end, new_start = resolved.start_line, resolved.end_line, resolved.new_start_line
    new_end = max(new_start, resolved.new_end_line)
    lines = LineSpan(start_line=start, end_line=end, new_start_line=new_start, new_end_line=new_end)
    return EditOutcome(index=resolved.index, occurrences=1, ranges=(lines,), tier=resolved.resolution_level)

"""One call of line edits, worked out; problems and corrections gather on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import surehold.text.anchor_refusals as refusals
from surehold.errors import NoChange, NotEncodable
from surehold.text.anchor_index import IndexedVersion, Shown, buckets_of
from surehold.text.anchor_trouble import Problem, refuse
from surehold.text.encoding import contradictions
from surehold.text.line_content import content_of, copied_hashes
from surehold.text.line_operations import (
    DeleteRange,
    InsertAfter,
    InsertBefore,
    OnLine,
    OnRange,
    Operation,
    ReplaceRange,
)
from surehold.text.line_regions import LineChange, in_order, new_places, overlaps, spans_of
from surehold.text.line_request import Request, read_request
from surehold.text.plan import Applied, Correction, EditPlan, LineSpan, ResolvedOperation, splice
from surehold.text.quality import quality
from surehold.text.resolve import Ambiguous, Found, Missing, Resolution, Resolver
from surehold.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """One operation whose lines are known: 0-based, inclusive."""

    request: Request
    first: int
    last: int
    found: Found | None
    """None for an edge of the file."""


@dataclass(slots=True, kw_only=True)
class LineCall:
    """The operations of one call, and the file that they are for."""

    operations: Sequence[Operation]
    before: Snapshot
    shown: Sequence[Shown]
    guards_unseen: bool
    """Ranges must not cover lines that the session was never shown."""
    strict_order: bool
    forgotten: bool = False
    """The session was shown other versions whose bytes are not known any more."""
    _problems: list[Problem] = field(default_factory=list[Problem])
    _corrections: list[Correction] = field(default_factory=list[Correction])

    def plan(self) -> EditPlan:
        """Find all lines, check them, and splice; or refuse with all problems."""
        requests = self._requests()
        hashes = {pointer.anchor.hash for each in requests for pointer in each.pointers}
        hashes |= copied_hashes(row for each in requests for row in each.rows)
        resolver = Resolver(self.before, self.shown, buckets_of(hashes), forgotten=self.forgotten)
        requests = [self._cleaned(each, _is_real(resolver)) for each in requests]
        pointing = [each for each in requests if each.edge is None]
        found = resolver.resolve([each.pointers for each in pointing])
        resolutions = {each.index: resolution for each, resolution in zip(pointing, found, strict=True)}
        located = [self._locate(each, resolutions.get(each.index), resolver) for each in requests]
        done = [each for each in located if each is not None]
        changes = in_order([_change(each, len(self.before.lines)) for each in done])
        for one, other in overlaps(changes):
            self._problems.append(refusals.overlap(one, other, self.operations[other.index]))
        if self._problems:
            raise refuse(self._problems, resolver.live)
        return self._spliced(done, self._encoded(changes, done))

    def _requests(self) -> list[Request]:
        """Read every operation; one that was sent twice counts once."""
        requests, first = list[Request](), dict[Operation, int]()
        for index, op in enumerate(self.operations):
            if op in first:
                detail = f"Operation {index} repeats operation {first[op]}. Applied once."
                self._corrections.append(Correction(type="duplicate_operation", detail=detail))
                continue
            first[op] = index
            match read_request(index, op, self.before):
                case Request() as request:
                    requests.append(request)
                case problems:
                    self._problems += problems
        return requests

    def _cleaned(self, request: Request, is_real: Callable[[str], bool]) -> Request:
        """Cut off anchors that were copied along with the text; tell of text where that is not certain."""
        content = content_of(request.rows, is_real)
        if not content.copied:
            return request
        if content.is_mixed:
            message = f"{content.copied} of {len(content.rows)} rows of `content` begin with a copied anchor"
            action = "Send the text of the lines without anchors."
            facts = {"field": "content", "copied_rows": content.copied, "content_rows": len(content.rows)}
            self._problems.append(refusals.unfit(request.index, request.op, message, action, **facts))
        elif content.copied:
            detail = (
                f"Operation {request.index}: copied anchors were cut off from {content.copied} rows of the content."
            )
            self._corrections.append(Correction(type="anchor_prefixes_stripped", detail=detail))
        return replace(request, rows=content.clean)

    def _locate(self, request: Request, resolution: Resolution | None, resolver: Resolver) -> _Done | None:
        """Return the lines of an operation, or tell what is wrong with them."""
        op = request.op
        if resolution is None:
            line = 0 if request.edge == "BOF" else max(0, len(self.before.lines) - 1)
            return _Done(request=request, first=line, last=line, found=None)
        if not isinstance(resolution, Found):
            self._problems += (self._failure(request, failure, resolver.live) for failure in resolution)
            return None
        if isinstance(op, (ReplaceRange, DeleteRange)):
            return self._locate_range(request, op, resolution, resolver.live)
        return self._locate_line(request, op, resolution, resolver.live)

    def _failure(self, request: Request, failure: Missing | Ambiguous, live: IndexedVersion) -> Problem:
        op = request.op
        if isinstance(failure, Missing):
            if failure.home is not None and isinstance(op, (ReplaceRange, DeleteRange)):
                return refusals.range_changed(request.index, op, failure, failure.home, live)
            return refusals.stale(request.index, op, failure, live)
        is_line = not isinstance(op, (ReplaceRange, DeleteRange))
        if is_line and failure.pointer.is_bare and _is_low(live, failure.lines[0]):
            return refusals.low_entropy(request.index, op, failure.pointer, failure.lines, live)
        return refusals.ambiguous(request.index, op, failure, live)

    def _locate_line(self, request: Request, op: OnLine, found: Found, live: IndexedVersion) -> _Done | None:
        reading, target = found.home.readings[0], found.targets[0]
        named = target + reading.line - reading.target
        if not reading.placed and _is_low(live, named):
            pointer = request.pointers[0]
            equal = [named, *(line for line in live.candidates(pointer.anchor.hash) if line != named)]
            self._problems.append(refusals.low_entropy(request.index, op, pointer, equal, live))
            return None
        return _Done(request=request, first=target, last=target, found=found)

    def _locate_range(self, request: Request, op: OnRange, found: Found, live: IndexedVersion) -> _Done | None:
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
        if self.guards_unseen and (unseen := _unseen(found, first, last, live)):
            self._problems.append(refusals.unseen(request.index, op, unseen))
            return None
        return _Done(request=request, first=first, last=last, found=found)

    def _encoded(self, changes: Sequence[LineChange], done: Sequence[_Done]) -> list[LineChange]:
        encode, rows = self.before.encoding.encode, {each.request.index: each.request.rows for each in done}
        out = list[LineChange]()
        for change in changes:
            try:
                out.append(replace(change, rows=tuple(encode(row) for row in rows[change.index])))
            except NotEncodable as error:
                error.details["operation_index"] = change.index
                raise
        return out

    def _spliced(self, done: Sequence[_Done], changes: Sequence[LineChange]) -> EditPlan:
        before = self.before
        spans = spans_of(before, changes)
        if not spans:
            raise NoChange("Every line is already as the operations want it.", sha256=before.sha256)
        places = new_places(changes)
        resolutions = tuple(_resolved(each, places[each.request.index]) for each in done)
        plan = splice(before, spans)
        return EditPlan(
            before=before,
            after=plan.after,
            spans=plan.spans,
            applied=tuple(_applied(each) for each in resolutions),
            corrections=tuple(self._corrections),
            warnings=contradictions(before.data, plan.after.data, before.encoding),
            resolutions=resolutions,
        )


def _change(done: _Done, total: int) -> LineChange:
    """Return the lines that an operation replaces, or the gap that it fills."""
    op, first, end = done.request.op, done.first, done.last + 1
    if done.found is None:  # an edge of the file
        first = end = 0 if done.request.edge == "BOF" else total
    elif isinstance(op, InsertBefore):
        end = first
    elif isinstance(op, InsertAfter):
        first = end
    return LineChange(index=done.request.index, start=first, end=end, rows=())


def _unseen(found: Found, first: int, last: int, live: IndexedVersion) -> list[int]:
    """Return the lines of a range that the session was shown neither where it read them nor where they are now."""
    home = found.home.version
    shift = found.targets[0] - found.home.targets[0]
    return [line for line in range(first, last + 1) if not (home.shows(line - shift) or live.shows(line))]


def _is_low(version: IndexedVersion, line: int) -> bool:
    return quality(version.text(line), 1) == "low"


def _is_real(resolver: Resolver) -> Callable[[str], bool]:
    versions = [resolver.live, *resolver.shown]

    def is_real(hash_: str) -> bool:
        return any(version.candidates(hash_) for version in versions)

    return is_real


def _resolved(done: _Done, place: tuple[int, int]) -> ResolvedOperation:
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


def _applied(resolved: ResolvedOperation) -> Applied:
    lines = LineSpan(
        start_line=resolved.start_line,
        end_line=resolved.end_line,
        new_start_line=resolved.new_start_line,
        new_end_line=max(resolved.new_start_line, resolved.new_end_line),
    )
    return Applied(index=resolved.index, occurrences=1, ranges=(lines,), tier=resolved.resolution_level)

"""Which lines of which version a session was shown, and what of that still holds for the file as it is now."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from surehold.errors import SureholdError
from surehold.stores.base import Entry, LedgerQuery, PathRecord, Sighting, Store, WriterSpan
from surehold.text.align import align_lines
from surehold.text.snapshot import LineCounter, LineRanges, Snapshot, Version, merge_ranges

if TYPE_CHECKING:
    from surehold.text.plan import EditPlan


def sighting_after_write(plan: "EditPlan", *, session: str, key: str, known: Sighting | None) -> Sighting | None:
    """Carry what was seen over the session's own edit: untouched lines move, written lines count as seen."""
    if not plan.after.exists:
        return None
    build = partial(Sighting, session=session, path=key, sha256=plan.after.sha256)
    is_text = plan.after.is_text and plan.before.is_text
    if not plan.before.exists or (known is not None and known.whole):
        total = _count_lines_after(plan, known) if is_text else 0
        return build(spans=((1, total),) if total else (), whole=True)
    if not is_text or plan.after.size <= len(plan.after.encoding.bom):
        return build(spans=(), whole=plan.after.size == 0)
    touched = _find_changed_lines(plan)
    written = [(first, last) for _, _, first, last in touched if first <= last]
    spans = merge_ranges([*_carry_seen_lines(touched, known.spans if known else ()), *written])
    # Counting the lines of a large file takes a while, so the first line is looked at before.
    whole = bool(spans) and spans[0][0] == 1 and spans == ((1, plan.after.line_count),)
    return build(spans=spans, whole=whole)


def _count_lines_after(plan: "EditPlan", known: Sighting | None) -> int:
    """Count the lines of the new version; where those of the old one are known, only the changed bytes are looked at."""
    before, after = plan.before, plan.after
    counted = known is not None and len(known.spans) == 1 and known.spans[0][0] == 1 and known.sha256 == before.sha256
    spans = plan.span_offsets()
    told = after.size == before.size + sum(
        new_end - new_start - (end - start) for start, end, new_start, new_end in spans
    )
    if known is None or not (counted and spans and told) or before.needs_table or after.needs_table:
        return after.line_count
    breaks = known.spans[0][1] - _ends_open(before)
    for start, end, new_start, new_end in spans:
        breaks += after.data.count(b"\n", new_start, new_end) - before.data.count(b"\n", start, end)
    return breaks + _ends_open(after)


def _ends_open(snapshot: Snapshot) -> bool:
    """Tell whether the last line has no line break."""
    return snapshot.size > len(snapshot.encoding.bom) and not snapshot.data.endswith(b"\n")


def subtract_spans(wanted: Sequence[tuple[int, int]], known: LineRanges) -> LineRanges:
    """Return the wanted lines that are not among the known ones; the known are sorted and disjoint."""
    out = list[tuple[int, int]]()
    for first, last in wanted:
        at = first
        for start, end in clip_spans(known, first, last):
            if start > at:
                out.append((at, start - 1))
            at = end + 1
        if at <= last:
            out.append((at, last))
    return tuple(out)


def clip_spans(known: LineRanges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of sorted and disjoint spans that lie between two lines."""
    for index in range(bisect_left(known, first, key=lambda span: span[1]), len(known)):
        start, end = known[index]
        if start > last:
            return
        yield max(start, first), min(end, last)


_LF = 10


_LineReplacement = tuple[int, int, int, int]
"""Lines `first` to `last` became lines `new_first` to `new_last`; an empty range ends before it begins."""


def _find_changed_lines(plan: "EditPlan") -> list[_LineReplacement]:
    """Return which lines each span changes: whole lines that come or go leave their neighbours alone."""
    if plan.before.needs_table or plan.after.needs_table:
        return _look_up_changed_lines(plan)
    old, new = plan.before.data, plan.after.data
    old_edges, new_edges = _line_edges(plan.before), _line_edges(plan.after)
    rows, shift = list[_LineReplacement](), 0
    for (start, end, new_start, new_end), line, removed, added in zip(
        plan.span_offsets(), *plan.span_breaks(), strict=True
    ):
        whole = (
            (start in old_edges or old[start - 1 : start] == b"\n")
            and (end in old_edges or old[end - 1 : end] == b"\n")
            and (new_start in new_edges or new[new_start - 1 : new_start] == b"\n")
            and (new_end in new_edges or new[new_end - 1 : new_end] == b"\n")
        )
        last, new_last = line + removed, line + shift + added
        if whole or end == len(old):
            last = last - (old[end - 1] == _LF) if end > start else line - whole
        if whole or new_end == len(new):
            new_last = new_last - (new[new_end - 1] == _LF) if new_end > new_start else line + shift - whole
        rows.append((line, last, line + shift, new_last))
        shift += added - removed
    return rows


def _line_edges(snapshot: Snapshot) -> tuple[int, ...]:
    """Return where a line begins although no other one ends there, and where the file ends."""
    return len(snapshot.encoding.bom), snapshot.size


def _look_up_changed_lines(plan: "EditPlan") -> list[_LineReplacement]:
    """Do the same where lines are not told apart by LF bytes alone."""
    old, new = LineCounter(plan.before), LineCounter(plan.after)
    rows = list[_LineReplacement]()
    for start, end, new_start, new_end in plan.span_offsets():
        edges = (plan.before, start), (plan.before, end), (plan.after, new_start), (plan.after, new_end)
        whole = all(_begins_line(*edge) for edge in edges)
        first, last = _line_range(old, plan.before, start, end, whole=whole)
        new_first, new_last = _line_range(new, plan.after, new_start, new_end, whole=whole)
        rows.append((first, last, new_first, new_last))
    return rows


def _line_range(counter: LineCounter, snapshot: Snapshot, start: int, end: int, *, whole: bool) -> tuple[int, int]:
    first = counter.line_at(start)
    if not whole and end < snapshot.size:
        return first, counter.line_at(end)  # the line in which the change ends is another one now
    return first, counter.line_at(end - 1) if end > start else first - whole


def _begins_line(snapshot: Snapshot, offset: int) -> bool:
    """Tell whether a line begins at this offset, or the file ends there."""
    if offset in (len(snapshot.encoding.bom), snapshot.size):
        return True
    if snapshot.needs_table:
        starts = snapshot.lines.starts
        return starts[bisect_left(starts, offset)] == offset
    return snapshot.data[offset - 1 : offset] == b"\n"


def _carry_seen_lines(touched: Sequence[_LineReplacement], seen: LineRanges) -> list[tuple[int, int]]:
    """Shift seen lines that no span touches; both come sorted, and each is walked over once."""
    out, edge, shift = list[tuple[int, int]](), 0, 0
    for first, last, _, new_last in touched:
        if edge + 1 < first:
            out += _shift_spans(seen, edge + 1, first - 1, shift)
        edge, shift = last, new_last - last
    return [*out, *_shift_spans(seen, edge + 1, seen[-1][1] if seen else 0, shift)]


def _shift_spans(seen: LineRanges, first: int, last: int, shift: int) -> Iterator[tuple[int, int]]:
    """Move the seen lines between two of them, if there are any between."""
    return ((a + shift, b + shift) for a, b in clip_spans(seen, first, last))


_MAX_COMPARED_BYTES = 16 << 20
"""Versions are compared up to this size together; larger ones are told apart by their hashes alone."""


class KnownFile:
    """One file as it is now, what the session was shown of it, and who wrote it."""

    def __init__(self, record: PathRecord, current: Snapshot, *, store: Store | None = None, session: str = "") -> None:
        self.path, self.seen = record.key, record.sightings
        self.current, self.session = current, session
        self._head, self._writers, self._store = record.head, record.writers, store

    @cached_property
    def shown(self) -> Sighting | None:
        """What was shown of this very version; not asked before it is needed, since a large file is still being hashed."""
        return next((one for one in self.seen if one.sha256 == self.current.sha256), None)

    @property
    def spans(self) -> LineRanges:
        if self.shown is None:
            return ()
        return self.all_lines if self.shown.whole else self.shown.spans

    @property
    def is_fully_known(self) -> bool:
        return not subtract_spans(self.all_lines, self.spans) or not subtract_spans(self.all_lines, self.known)

    @cached_property
    def all_lines(self) -> LineRanges:
        total = self.current.line_count
        return ((1, total),) if total else ()

    @cached_property
    def known(self) -> LineRanges:
        """Lines that were shown, of this version, or of earlier ones in which they are the same."""
        found = list(self.spans)
        for base, spans in self.earlier_versions:
            found += _carry_over_lines(base, self.current, spans)
        return merge_ranges(found)

    @cached_property
    def earlier_versions(self) -> list[tuple[Snapshot, LineRanges]]:
        """Other versions whose bytes were kept, newest first, with the lines that were shown of them."""
        found = list[tuple[Snapshot, LineRanges]]()
        for one in self.seen:
            is_other = one.sha256 not in {"", self.current.sha256}
            data = self.load_version(one.sha256) if is_other else None
            if data is not None and len(data) + self.current.size <= _MAX_COMPARED_BYTES:
                base = Snapshot(data, encoding=self.current.encoding)
                total = base.line_count if one.whole else 0
                found.append((base, ((1, total),) if total else one.spans))
        return found

    def load_version(self, sha256: str) -> bytes | None:
        """Return the bytes of a version; None if they were too large to be kept, or were pruned since."""
        if self._store is None:
            return None
        try:
            return self._store.read_blob(sha256)
        except SureholdError:
            return None

    @property
    def sighting(self) -> Sighting | None:
        """What the session has seen of the current version; with earlier versions, if those were asked."""
        return self.sighting_of(self.known) if "known" in self.__dict__ else self.shown

    def sighting_of(self, spans: LineRanges) -> Sighting:
        """Return these lines of the file, or its absence, as shown."""
        whole = not subtract_spans(self.all_lines, spans)
        return Sighting(session=self.session, path=self.path, sha256=self.current.sha256, spans=spans, whole=whole)

    def newest_own_entry(self) -> Entry | None:
        """Return the newest change of the path, if this session made it."""
        if self._store is None:
            return None
        newest = self._store.list_entries(LedgerQuery(path=self.path, ok_only=True, limit=1))
        return newest[0] if newest and newest[0].call.session == self.session else None

    @property
    def last_writer(self) -> str:
        """Who wrote the version that is there: a tool family, `external`, or nothing if it was never written."""
        if self._head is None:
            return "external" if self.shown_before else ""
        return self._head.writer if self._is_recorded else "external"

    @property
    def _is_recorded(self) -> bool:
        """Whether the ledger knows the version that is there; where it knows none, whether it is the one that was shown."""
        return not self.shown_before if self._head is None else self._head.has_bytes(self.current.sha256)

    @property
    def shown_before(self) -> str:
        """The version that the session was shown last, where another one is there and the ledger knows none."""
        newest = self.seen[0].sha256 if self.seen else ""
        return newest if self._head is None and newest != self.current.sha256 else ""

    @property
    def writers(self) -> tuple[str, ...]:
        """Who ever wrote the file, in the order of their first change, without repetition."""
        return self.with_outside_writer(one.writer for one in self._writer_spans)

    @property
    def baseline_continuity(self) -> Literal["clean", "mixed"]:
        """Whether anything but `edit` wrote the file since this session first saw it; since ever, if it never did."""
        if self.shown_before:
            return "mixed"
        first = min((one.seq for one in self.seen), default=0)
        names = {one.writer for one in self._writer_spans if one.last_seq > first} - {"edit"}
        outside = self._outside_edits(first) if "external" in names else []
        if self._head and not self._is_recorded:
            outside.append((self._head.version, self.current.sha256))
        return "mixed" if names - {"external"} or any(self._came_later(*one) for one in outside) else "clean"

    def _outside_edits(self, after_seq: int) -> list[tuple[Version | None, str]]:
        """Return what each recorded outside edit replaced, and the version that it left."""
        query = LedgerQuery(path=self.path, operation="external", ok_only=True, after_seq=after_seq)
        entries = self._store.list_entries(query) if self._store else ()
        return [(one.change.before, one.change.after.sha256 if one.change.after else "") for one in entries]

    def _came_later(self, replaced: Version | None, left: str) -> bool:
        """Tell whether an outside edit came after the first look; it is recorded later than it happens."""
        seen = {one.sha256 for one in self.seen}
        return left not in seen or (replaced.sha256 if replaced else "") in seen

    def with_outside_writer(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names, each once, and `external` if the version that is there is not recorded."""
        outside = [] if self._is_recorded else ["external"]
        return tuple(dict.fromkeys([*names, *outside]))

    @cached_property
    def _writer_spans(self) -> tuple[WriterSpan, ...]:
        if self._writers is not None:
            return self._writers
        return self._store.list_writers(self.path) if self._store else ()


def _carry_over_lines(base: Snapshot, current: Snapshot, spans: LineRanges) -> Iterator[tuple[int, int]]:
    for block in align_lines(base.lines.raw, current.lines.raw):
        shift = block.b - block.a
        for start, end in clip_spans(spans, block.a + 1, block.a + block.size):
            yield start + shift, end + shift

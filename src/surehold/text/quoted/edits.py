"""Edits that replace text the caller quotes exactly.

1. The old text must occur exactly once, unless all of its occurrences are asked for.
2. New line breaks take the terminators they replace, otherwise that of the line they are in. Only an edit that changes
   nothing but line breaks has them written as sent.
3. `SnapshotEdits`: every edit is searched for in the same file. `SequentialEdits`: every edit is searched for in the
   result of the one before it. Both produce one plan, from the original to the final text.
4. Sequential edits are made many at once where that comes to the same. Every other one searches the whole staged text,
   and is applied or refused by that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from surehold.errors import InvalidArgument, MultipleMatches, NotEncodable, OldTextNotFound, OverlappingEdits
from surehold.text.encoding import Encoding
from surehold.text.escape import quote_line
from surehold.text.plan import EditOutcome, EditPlan, LineSpan, Span, splice_spans
from surehold.text.quoted.matching import Haystack, TextMatch, TextMatches, differs_in_breaks_alone
from surehold.text.quoted.near_miss import explain_miss
from surehold.text.quoted.sequential import Replacement, StagedPlace, StagedText
from surehold.text.snapshot import LineCounter, Snapshot

_BREAK = re.compile(r"\r\n|\n")
_BATCH_ENCODINGS = re.compile(r"utf|ascii|bytes")
"""In these encodings equal bytes, aligned to units, are equal characters."""
_PREVIEW_CHARS = 80
_MAX_LISTED_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StringEdit:
    """Replace `old` by `new`."""

    old: str
    new: str
    replace_all: bool = False
    expected_occurrences: int | None = None
    """Replace all, but only when there are exactly so many."""


@dataclass(frozen=True, slots=True)
class SnapshotEdits:
    """Edits that all look at the same file; two of them must not want the same bytes."""

    edits: tuple[StringEdit, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        """Find every edit in the original, then splice them all at once."""
        if not self.edits:
            raise InvalidArgument("There is no edit to apply.", reason="no_edits", action="Send at least one edit.")
        haystack = Haystack(before)
        if len(self.edits) == 1:
            return _plan_alone(haystack, self.edits[0])
        wanted = list[tuple[Span, int]]()
        tiers = list[str]()
        for index, edit in enumerate(self.edits):
            matches = _find_matches(haystack, edit, index, of=len(self.edits))
            tiers.append(matches.tier)
            wanted += ((span, index) for span in _build_spans(before, edit, matches))
        wanted.sort(key=lambda pair: (pair[0].start, pair[0].end))
        _refuse_overlap(wanted)
        plan = splice_spans(before, [span for span, _ in wanted])
        ranges = dict[int, list[LineSpan]]()
        for (_, owner), lines in zip(wanted, plan.line_spans(), strict=True):
            ranges.setdefault(owner, []).append(lines)
        applied = (
            EditOutcome(index=index, occurrences=len(ranges[index]), ranges=tuple(ranges[index]), tier=tier)
            for index, tier in enumerate(tiers)
        )
        return plan.with_outcomes(applied)


def _plan_alone(haystack: Haystack, edit: StringEdit) -> EditPlan:
    """Plan the only edit of a call, perhaps of very many places: those of one text are in order, and do not overlap."""
    before, matches = haystack.snapshot, _find_matches(haystack, edit, 0, of=1)
    plan = splice_spans(before, _build_spans(before, edit, matches))
    ranges = tuple(plan.line_spans())
    return plan.with_outcomes([EditOutcome(index=0, occurrences=len(ranges), ranges=ranges, tier=matches.tier)])


@dataclass(frozen=True, slots=True)
class SequentialEdits:
    """Edits that each look at the result of the one before."""

    edits: tuple[StringEdit, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        """Stage the edits one after the other; the plan goes from the original to the last stage."""
        if len(self.edits) <= 1:
            return SnapshotEdits(self.edits).plan(before)
        staged, applied, tried = StagedText(before), list[EditOutcome](), len(self.edits)
        while (index := len(applied)) < len(self.edits):
            made = _apply_many(staged, before, self.edits[index : index + tried], index)
            applied += made or [_apply_one(staged, before, self.edits[index], index, of=len(self.edits))]
            tried = 2 * (len(applied) - index)  # so that no more than twice as many are looked at as are made
        return EditPlan(before=before, after=staged.snapshot, spans=staged.spans).with_outcomes(applied)


def _apply_many(staged: StagedText, original: Snapshot, edits: Sequence[StringEdit], first: int) -> list[EditOutcome]:
    """Make the first edits that come to the same when they are made at once; none of them may need a closer look."""
    before = staged.snapshot
    encoding, ending = before.encoding, _uniform_ending(before, original)
    if len(edits) == 1 or ending is None or not _BATCH_ENCODINGS.match(encoding.name):
        return []
    breaks = before.line_count
    batch = list[Replacement]()
    for edit in edits:
        made = _encode_edit(edit, encoding, ending)
        breaks += edit.new.count("\n") - edit.old.count("\n")
        if made is None or (ending == "\r\n" and breaks <= 1):  # without any break, the original decides about the next
            break
        batch.append(made)
    outcomes = list[EditOutcome]()
    places = staged.replace_many(batch, first=first)
    for number, line in enumerate(_lines_at_their_turn(before, places, batch)):
        old, new = batch[number].old[: -encoding.width], batch[number].new[: -encoding.width]
        lines = LineSpan(
            start_line=line,
            end_line=line + _count_breaks(old, encoding),
            new_start_line=line,
            new_end_line=line + _count_breaks(new, encoding),
        )
        tier = "line_endings" if ending == "\r\n" and "\n" in edits[number].old else "exact"
        outcomes.append(EditOutcome(index=first + number, occurrences=1, ranges=(lines,), tier=tier))
    return outcomes


def _uniform_ending(snapshot: Snapshot, original: Snapshot) -> Literal["\n", "\r\n", ""] | None:
    """Return how every line ends; nothing when that differs or there is a lone CR, None where CR ends the lines.

    Where no line ends any more, it is as in the original; None if that takes a closer look.
    """
    encoding, data = snapshot.encoding, snapshot.data
    if snapshot.lines.style == "none" and original.lines.style not in ("none", "lf"):
        return "\r\n" if original.lines.style == "crlf" else None
    if snapshot.lines.breaker == encoding.encode_newline("\r"):
        return None
    if encoding.width > 1:
        data = snapshot.text.encode("utf-8", "surrogatepass")
    if b"\r" not in data:
        return "\n"
    return "\r\n" if data.count(b"\r\n") == data.count(b"\r") == data.count(b"\n") else ""


def _encode_edit(edit: StringEdit, encoding: Encoding, ending: str) -> Replacement | None:
    """Return an edit as the bytes to find and to write; None when that takes a look at the whole text."""
    old, new = edit.old, edit.new.replace("\r\n", "\n")
    if edit.replace_all or edit.expected_occurrences is not None or not old or old == new:
        return None
    if "\r" in old or "\r" in new or "\ufeff" in old or (not ending and ("\n" in old or "\n" in new)):
        return None
    try:
        return Replacement(encoding.encode(old.replace("\n", ending)), encoding.encode(new.replace("\n", ending)))
    except NotEncodable:
        return None  # it is refused when its turn comes


def _lines_at_their_turn(
    before: Snapshot, places: Sequence[StagedPlace], edits: Sequence[Replacement]
) -> Iterator[int]:
    """Yield the line at which each edit is made after those before it in the list, whose places are in no order."""
    counter, encoding = LineCounter(before), before.encoding
    starts = sorted({start for start, _ in places})
    lines = [(rank, counter.line_at(start)) for rank, start in enumerate(starts)]
    ranked, gained = dict(zip(starts, lines, strict=True)), [0] * (len(starts) + 1)  # a tree of sums
    for (start, written), edit in zip(places, edits, strict=False):
        rank, line = ranked[start]
        at = rank + 1
        while rank:
            line += gained[rank]
            rank &= rank - 1
        yield line + _count_breaks(written, encoding)
        gain = _count_breaks(edit.new, encoding) - _count_breaks(edit.old, encoding)
        while gain and at < len(gained):
            gained[at] += gain
            at += at & -at


def _count_breaks(data: bytes, encoding: Encoding) -> int:
    return data.count(b"\n") if encoding.width == 1 else data.decode(encoding.name, "replace").count("\n")


def _apply_one(staged: StagedText, before: Snapshot, edit: StringEdit, index: int, *, of: int) -> EditOutcome:
    whole = staged.snapshot
    try:
        matches = _find_matches(Haystack(whole), edit, index, of=of)
    except OldTextNotFound as missing:
        raise _explain_conflict(staged, before, edit, missing) or missing from None
    breaks = before if whole.lines.style == "none" else whole
    plan = splice_spans(whole, _build_spans(whole, edit, matches, breaks.lines.dominant))
    ranges = tuple(plan.line_spans())
    staged.replace_spans(plan.after, plan.spans, [index] * len(plan.spans))
    return EditOutcome(index=index, occurrences=len(ranges), ranges=ranges, tier=matches.tier)


def _explain_conflict(
    staged: StagedText, before: Snapshot, edit: StringEdit, missing: OldTextNotFound
) -> OverlappingEdits | OldTextNotFound | None:
    """Tell whether an old text is missing because an earlier edit replaced it, or took a part of it or more than it."""
    original = Haystack(before).find(edit.old)
    if original.count != 1:
        return None
    (place,) = original.found
    takers = staged.edits_that_removed(*place)
    others = [taker for taker, parts in takers.items() if parts != [place]]
    index: int = missing.details["edit_index"]
    quoted = quote_line(edit.old, _PREVIEW_CHARS)
    if takers and not others:
        action = "Leave this edit out, or write it for the text as the earlier one leaves it."
        message = f"Edit {index}: edit {min(takers)} already replaced {quoted}."
        details: dict[str, Any] = {
            **missing.details,
            "already_applied": False,
        }  # not in the file, but by this very call
        return OldTextNotFound(message, reason="replaced_before", action=action, **details)
    if not others:
        return None
    return OverlappingEdits(
        f"Edit {index}: edit {min(others)} already replaced a part of {quoted}.",
        reason="sequential_conflict",
        action="Write this edit for the text as the earlier one leaves it, or merge the two.",
        edit_index=index,
        prior_index=min(others),
        line=before.line_number(place[0]),
        closest=missing.details["closest"],
    )


def _find_matches(haystack: Haystack, edit: StringEdit, index: int, *, of: int) -> TextMatches:
    name = f"Edit {index}: " if of > 1 else ""
    if not edit.old:
        raise InvalidArgument(f"{name}The old text is empty.", reason="empty_old_text", edit_index=index)
    if edit.old == edit.new:
        raise InvalidArgument(f"{name}The old and the new text are the same.", reason="same_text", edit_index=index)
    matches, expected = haystack.find(edit.old), edit.expected_occurrences
    apart = matches.count == len(matches.found)
    fits = edit.replace_all or matches.count == 1 if expected is None else apart and matches.count == expected
    if matches.found and fits:
        return matches
    quoted = quote_line(edit.old, _PREVIEW_CHARS)
    if not matches.found:
        miss = explain_miss(haystack, edit.old, edit.new)
        raise OldTextNotFound(
            f"{name}{quoted} is not in the file: {miss.why}.",
            action=miss.action,
            edit_index=index,
            old_text=edit.old,
            already_applied=miss.reason == "already_applied",
            closest=list(miss.closest),
        )
    facts: dict[str, Any] = {"count": matches.count, "lines": match_lines(haystack.snapshot, matches)}
    if expected is None:
        raise MultipleMatches(f"{name}{quoted} occurs {matches.count} times.", edit_index=index, **facts)
    found = matches.count if apart else f"{matches.count} that overlap"
    message = f"{name}Expected {expected} occurrences of {quoted}, found {found}."
    raise MultipleMatches(message, reason="other_count", edit_index=index, **facts)


def match_lines(snapshot: Snapshot, matches: TextMatches) -> list[int]:
    """Return the lines in which the first matches begin."""
    counter = LineCounter(snapshot)
    return [counter.line_at(start) for start, _ in matches.found[:_MAX_LISTED_LINES]]


def _build_spans(
    snapshot: Snapshot, edit: StringEdit, matches: TextMatches, dominant: bytes | None = None
) -> list[Span]:
    encode = snapshot.encoding.encode
    as_sent = differs_in_breaks_alone(edit.old, edit.new)
    rows = [encode(edit.new)] if as_sent else [encode(row) for row in _BREAK.split(edit.new)]
    lines = snapshot.lines
    if len(rows) == 1 or lines.style != "mixed":
        new = rows[0] if len(rows) == 1 else (dominant or lines.dominant).join(rows)
        return [Span(start, end, new) for start, end in matches.found]
    return [Span(*match, _join_with_terminators(snapshot, match, rows)) for match in matches.found]


def _join_with_terminators(snapshot: Snapshot, match: TextMatch, rows: list[bytes]) -> bytes:
    """Join rows that take the place of lines which end in different ways."""
    lines = snapshot.lines
    first, last = map(lines.index_at, match)
    after = first + (first == last)  # a break that is put into a line comes after its beginning
    breaks = lines.inherited_terminators(after, max(last, after), len(rows) - 1)
    return b"".join(row + end for row, end in zip(rows[:-1], breaks, strict=True)) + rows[-1]


def _refuse_overlap(wanted: list[tuple[Span, int]]) -> None:
    for (one, first), (other, second) in pairwise(wanted):
        if other.start < one.end:
            pair = sorted((first, second))
            raise OverlappingEdits(f"Edits {pair[0]} and {pair[1]} change the same bytes.", edit_indices=pair)

"""Edits that replace text the caller quotes exactly.

1. The old text must occur exactly once, unless all of its occurrences are asked for.
2. New line breaks take the terminators they replace, otherwise that of the line they are in. A caller that quotes CR
   itself has its line breaks written as sent.
3. `SnapshotEdits`: every edit is searched for in the same file. `SequentialEdits`: every edit is searched for in the
   result of the one before it. Both produce one plan, from the original to the final text.
4. A sequential edit whose text occurs once, at a place that is known without searching the whole text, is applied
   there. Every other one searches the whole staged text, and is applied or refused by that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from surehold.errors import InvalidArgument, MultipleMatches, NotEncodable, OldTextNotFound, OverlappingEdits
from surehold.text.encoding import declaration_warnings
from surehold.text.lines import Lines
from surehold.text.plan import EditOutcome, EditPlan, LineSpan, Span, splice_spans
from surehold.text.quoted.matching import Haystack, TextMatch, TextMatches
from surehold.text.quoted.near_miss import find_nearest, strip_line_numbers
from surehold.text.quoted.sequential import LineEndingCounts, StagedText, find_disjoint_spans
from surehold.text.snapshot import LineCounter, Snapshot

_BREAK = re.compile(r"\r\n|\n")
_ANY_BREAK = re.compile(r"\r\n|\n|\r")
_MAX_UNPREPARED_EDITS = 3
"""So many sequential edits are quicker made one after the other than prepared for."""
_LOCAL_ENCODINGS = frozenset({"utf-8", "ascii", "bytes"})
"""In these encodings, and in wide ones, a few bytes tell where a character begins; in others the line does."""
_PREVIEW_CHARS = 80
_COMPARED_CHARS = 8_000
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
        _require_edits(self.edits)
        haystack = Haystack(before)
        wanted = list[tuple[Span, int]]()
        tiers = list[TextMatches]()
        for index, edit in enumerate(self.edits):
            matches = _find_matches(haystack, before, edit, index, of=len(self.edits))
            tiers.append(matches)
            wanted += ((span, index) for span in _build_spans(before, edit, matches, before.lines))
        wanted.sort(key=lambda pair: (pair[0].start, pair[0].end))
        _refuse_overlap(wanted)
        plan = splice_spans(before, [span for span, _ in wanted])
        ranges = _group_line_spans(plan, [index for _, index in wanted])
        applied = tuple(
            EditOutcome(index=i, occurrences=len(ranges[i]), ranges=tuple(ranges[i]), tier=m.tier)
            for i, m in enumerate(tiers)
        )
        warnings = declaration_warnings(before.data, plan.after.data, before.encoding)
        return EditPlan(before=before, after=plan.after, spans=plan.spans, applied=applied, warnings=warnings)


@dataclass(frozen=True, slots=True)
class SequentialEdits:
    """Edits that each look at the result of the one before."""

    edits: tuple[StringEdit, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        """Stage the edits one after the other; the plan goes from the original to the last stage."""
        _require_edits(self.edits)
        if len(self.edits) == 1:
            return SnapshotEdits(self.edits).plan(before)
        needles = _encode_needles(before, self.edits) if len(self.edits) > _MAX_UNPREPARED_EDITS else {}
        staged = StagedText(before, {needle for pair in needles.values() for needle in pair})
        if plan := _apply_all_at_once(staged, before, self.edits, needles):
            return plan
        applied = list[EditOutcome]()
        for index, edit in enumerate(self.edits):
            place = _find_only_place(staged, edit, needles.get(edit.old, ()))
            made = place and _apply_at_place(staged, edit, index, place)
            applied.append(made or _apply_to_whole_text(staged, before, edit, index, of=len(self.edits)))
        after = staged.snapshot()
        warnings = declaration_warnings(before.data, after.data, before.encoding)
        return EditPlan(
            before=before, after=after, spans=staged.changed_spans, applied=tuple(applied), warnings=warnings
        )


def _encode_needles(before: Snapshot, edits: Sequence[StringEdit]) -> dict[str, tuple[bytes, ...]]:
    """Return the bytes of every old text, and in a file with CRLF those of its lines with these ends."""
    found, style = dict[str, tuple[bytes, ...]](), before.lines.style
    for edit in edits:
        if edit.old and not edit.replace_all and edit.expected_occurrences is None:
            texts = [edit.old, _ANY_BREAK.sub("\r\n", edit.old)] if style == "crlf" else [edit.old]
            try:
                found[edit.old] = tuple(dict.fromkeys(map(before.encoding.encode, texts)))
            except NotEncodable:
                continue  # it is refused when its turn comes
    return found


def _apply_all_at_once(
    staged: StagedText, before: Snapshot, edits: Sequence[StringEdit], needles: Mapping[str, tuple[bytes, ...]]
) -> EditPlan | None:
    """Make edits inside of lines all at once; None when they might meet, or one of them needs a closer look."""
    if before.encoding.name not in _LOCAL_ENCODINGS or before.needs_table or len(needles) < len(edits):
        return None
    if any(edit.old == edit.new or _ANY_BREAK.search(edit.old) or _ANY_BREAK.search(edit.new) for edit in edits):
        return None
    try:
        news = [before.encoding.encode(edit.new) for edit in edits]
    except NotEncodable:
        return None  # it is refused when its turn comes
    spans = find_disjoint_spans(before, [staged.probes[needles[edit.old][0]] for edit in edits], news)
    if spans is None:
        return None
    ordered, counter = sorted(spans, key=lambda span: span.start), LineCounter(before)
    lines = {span.start: counter.line_at(span.start) for span in ordered}
    plan = splice_spans(before, ordered)
    return EditPlan(
        before=before,
        after=plan.after,
        spans=plan.spans,
        applied=tuple(_report_line_edit(index, lines[span.start]) for index, span in enumerate(spans)),
        warnings=declaration_warnings(before.data, plan.after.data, before.encoding),
    )


def _report_line_edit(index: int, line: int) -> EditOutcome:
    """Say what an edit did that has no line break."""
    lines = LineSpan(start_line=line, end_line=line, new_start_line=line, new_end_line=line)
    return EditOutcome(index=index, occurrences=1, ranges=(lines,))


def _find_only_place(staged: StagedText, edit: StringEdit, needles: tuple[bytes, ...]) -> TextMatch | None:
    """Return the only place of an old text; None when there is none, or only the whole text can tell."""
    if edit.replace_all or edit.expected_occurrences is not None or edit.old == edit.new:
        return None
    for number, needle in enumerate(needles):
        if number and staged.line_endings.style != "crlf":
            return None
        places = staged.find_places(needle)
        if places is None or len(places) > 1:
            return None
        if places:
            return TextMatch(places[0], places[0] + len(needle))
    return None


def _apply_at_place(staged: StagedText, edit: StringEdit, index: int, place: TextMatch) -> EditOutcome | None:
    """Make an edit at the only place of its bytes; None when what stands around leaves a doubt."""
    ends, encoding = staged.line_endings, staged.encoding
    if encoding.name in _LOCAL_ENCODINGS and not _ANY_BREAK.search(edit.old) and not _ANY_BREAK.search(edit.new):
        return _apply_within_line(staged, edit, index, place)
    mixes = ends.style == "mixed" and _BREAK.search(edit.new) is not None
    if mixes and encoding.width > 1:
        return None
    by_line = mixes or (encoding.width == 1 and encoding.name not in _LOCAL_ENCODINGS)
    begin, data = staged.text_around(place.start, place.end, whole_lines=by_line)
    window = Snapshot(data, encoding=staged.bare_encoding)
    matches = Haystack(window).find(edit.old)
    if [(begin + match.start, begin + match.end) for match in matches.found] != [(place.start, place.end)]:
        return None
    (span,) = _build_spans(window, edit, matches, ends)
    old = data[span.start : span.end]
    at_the_end = not span.new and place.end == staged.size  # behind the last line there is no line to name
    if not ends.keeps_lf_lines(old, span.new) or (at_the_end and encoding.width > 1):
        return None
    line = staged.line_number(place.start)
    lines = LineSpan(
        start_line=line,
        end_line=line + ends.count_breaks(old[: -encoding.width]),
        new_start_line=line,
        new_end_line=line + ends.count_breaks(span.new[: -encoding.width]),
    )
    staged.replace_bytes(place.start, place.end, span.new, index=index)
    return EditOutcome(index=index, occurrences=1, ranges=(lines,), tier=matches.tier)


def _apply_within_line(staged: StagedText, edit: StringEdit, index: int, place: TextMatch) -> EditOutcome | None:
    """Make an edit that has no line break at the only place of its bytes: what stands around cannot matter."""
    if not staged.line_endings.lf_ends_lines:
        return None
    new, line = staged.encoding.encode(edit.new), staged.line_number(place.start)
    staged.replace_bytes(place.start, place.end, new, index=index)
    return _report_line_edit(index, line)


def _apply_to_whole_text(staged: StagedText, before: Snapshot, edit: StringEdit, index: int, *, of: int) -> EditOutcome:
    """Make an edit by a look at the whole text."""
    whole = staged.snapshot()
    try:
        matches = _find_matches(Haystack(whole), whole, edit, index, of=of)
    except OldTextNotFound as missing:
        raise _explain_conflict(staged, before, edit, missing) or missing from None
    plan = splice_spans(whole, _build_spans(whole, edit, matches, whole.lines))
    ranges = _group_line_spans(plan, [0] * len(plan.spans))[0]
    for span in reversed(plan.spans):
        staged.replace_bytes(span.start, span.end, span.new, index=index)
    staged.keep_snapshot(plan.after)
    return EditOutcome(index=index, occurrences=len(ranges), ranges=tuple(ranges), tier=matches.tier)


def _explain_conflict(
    staged: StagedText, before: Snapshot, edit: StringEdit, missing: OldTextNotFound
) -> OverlappingEdits | None:
    """Tell whether an old text is missing because an earlier edit took a part of it, or more than it."""
    original = Haystack(before).find(edit.old)
    if original.count != 1:
        return None
    (place,) = original.found
    takers = staged.edits_that_removed(place.start, place.end)
    others = [taker for taker, parts in takers.items() if parts != [(place.start, place.end)]]
    if not others:
        return None
    index: int = missing.details["edit_index"]
    return OverlappingEdits(
        f"Edit {index}: a part of this text was replaced by edit {min(others)}: `{_preview_text(edit.old)}`.",
        reason="sequential_conflict",
        action="Write this edit for the text as the earlier one leaves it, or merge the two.",
        edit_index=index,
        prior_index=min(others),
        line=before.line_number(place.start),
        closest=missing.details["closest"],
    )


def _require_edits(edits: Sequence[StringEdit]) -> None:
    if not edits:
        raise InvalidArgument("There is no edit to apply.", reason="no_edits", action="Send at least one edit.")


def _find_matches(haystack: Haystack, snapshot: Snapshot, edit: StringEdit, index: int, *, of: int) -> TextMatches:
    name = f"Edit {index}: t" if of > 1 else "T"
    if not edit.old:
        raise InvalidArgument(f"{name}he old text is empty.", reason="empty_old_text", edit_index=index)
    if edit.old == edit.new:
        raise InvalidArgument(f"{name}he old and the new text are the same.", reason="same_text", edit_index=index)
    matches = haystack.find(edit.old)
    if not matches.found:
        raise _not_found_error(haystack, snapshot, edit, index, name)
    expected = edit.expected_occurrences
    if expected is not None and matches.count != expected:
        raise MultipleMatches(
            f"{name}here should be {expected} places of `{_preview_text(edit.old)}`, and there are {matches.count}.",
            reason="other_count",
            edit_index=index,
            count=matches.count,
            lines=_first_match_lines(snapshot, matches),
        )
    if matches.count > 1 and not edit.replace_all and expected is None:
        raise MultipleMatches(
            f"{name}his text stands in {matches.count} places: `{_preview_text(edit.old)}`.",
            edit_index=index,
            count=matches.count,
            lines=_first_match_lines(snapshot, matches),
        )
    return matches


def _not_found_error(
    haystack: Haystack, snapshot: Snapshot, edit: StringEdit, index: int, name: str
) -> OldTextNotFound:
    """Say why a text is not there, as far as that can be told, and show what is there instead."""
    applied = bool(edit.new) and haystack.find(edit.new).count == 1
    bare = strip_line_numbers(edit.old)
    copied = bare is not None and bool(haystack.find(bare).found)
    near = find_nearest(snapshot, _cut_for_comparison(bare if copied and bare else edit.old))
    why, action = "", None
    if copied:
        why, action = " (its line numbers are not part of the file)", "Leave the line numbers out."
    elif applied:
        why, action = " (the new text is there already)", "Leave this edit out if it was made before."
    elif near and not near[0].differing:
        why = f" (line {near[0].line} differs in blanks only)"
    elif near:
        why = f" (the closest lines begin at line {near[0].line})"
    return OldTextNotFound(
        f"{name}his text is not in the file{why}: `{_preview_text(edit.old)}`.",
        action=action,
        edit_index=index,
        old_text=edit.old,
        already_applied=applied,
        closest=[place.as_dict() for place in near],
    )


def _build_spans(
    snapshot: Snapshot, edit: StringEdit, matches: TextMatches, ends: Lines | LineEndingCounts
) -> list[Span]:
    encoding = snapshot.encoding
    as_sent = matches.tier == "exact" and "\r" in edit.old
    rows = [encoding.encode(edit.new)] if as_sent else [encoding.encode(row) for row in _BREAK.split(edit.new)]
    return [
        Span(start=match.start, end=match.end, new=_join_with_terminators(snapshot, match, rows, ends))
        for match in matches.found
    ]


def _join_with_terminators(
    snapshot: Snapshot, match: TextMatch, rows: list[bytes], ends: Lines | LineEndingCounts
) -> bytes:
    if len(rows) == 1:
        return rows[0]
    style = ends.style
    if style in ("lf", "none"):
        return snapshot.encoding.encode_newline("\n").join(rows)
    if style != "mixed":
        return ends.dominant.join(rows)
    replaced = _terminators_in(snapshot, match)
    last = replaced[-1] if replaced else _terminator_at(snapshot, match.start, ends)
    breaks = [*replaced, *[last] * len(rows)]
    return b"".join(row + end for row, end in zip(rows[:-1], breaks, strict=False)) + rows[-1]


def _terminators_in(snapshot: Snapshot, match: TextMatch) -> list[bytes]:
    lines = snapshot.lines
    first, last = lines.index_at(match.start), lines.index_at(match.end)
    return [end for i in range(first, last) if (end := lines.terminator(i))]


def _terminator_at(snapshot: Snapshot, offset: int, ends: Lines | LineEndingCounts) -> bytes:
    lines = snapshot.lines
    index = lines.index_at(offset)
    return lines.terminator(index) or (lines.terminator(index - 1) if index else b"") or ends.dominant


def _refuse_overlap(wanted: list[tuple[Span, int]]) -> None:
    for (one, first), (other, second) in pairwise(wanted):
        if other.start < one.end:
            pair = sorted((first, second))
            raise OverlappingEdits(f"Edits {pair[0]} and {pair[1]} want the same bytes.", edit_indices=pair)


def _group_line_spans(plan: EditPlan, owners: list[int]) -> dict[int, list[LineSpan]]:
    """Return the line numbers of every span, by the edit that made it."""
    spans: dict[int, list[LineSpan]] = {}
    for owner, row in zip(owners, plan.line_spans(), strict=True):
        spans.setdefault(owner, []).append(row)
    return spans


def _first_match_lines(snapshot: Snapshot, matches: TextMatches) -> list[int]:
    counter = LineCounter(snapshot)
    return [counter.line_at(match.start) for match in matches.found[:_MAX_LISTED_LINES]]


def _cut_for_comparison(text: str) -> str:
    """Return as many whole lines as are worth being compared with others."""
    return (
        text if len(text) <= _COMPARED_CHARS else text[:_COMPARED_CHARS].rpartition("\n")[0] or text[:_COMPARED_CHARS]
    )


def _preview_text(text: str) -> str:
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"

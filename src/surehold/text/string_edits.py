"""Exact-string edits: replace text that is named by quoting it.

1. An old text must stand exactly once, unless all of its places are asked for.
2. New line breaks take the terminators they replace, else that of the line they stand in; a caller that quotes CR
   itself has its line breaks written as sent.
3. `SnapshotEdits`: every edit looks at the same file. `SequentialEdits`: every edit looks at the result of the one
   before it. Both end in one plan, original to final.
4. A sequential edit whose text stands once, at a place that can be told without a look at the whole text, is made
   there. Every other one looks at the whole text as it is staged, and decides and refuses by that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from surehold.errors import InvalidArgument, MultipleMatches, NotEncodable, OldTextNotFound, OverlappingEdits
from surehold.text.encoding import contradictions
from surehold.text.lines import Lines
from surehold.text.matching import Haystack, Match, Matches
from surehold.text.nearest import nearest, without_numbers
from surehold.text.plan import Applied, EditPlan, LineSpan, Span, splice
from surehold.text.snapshot import LineCounter, Snapshot
from surehold.text.staged import Staged
from surehold.text.staged_apart import apart
from surehold.text.staged_ends import Ends

_BREAK = re.compile(r"\r\n|\n")
_ANY_BREAK = re.compile(r"\r\n|\n|\r")
_FEW = 3
"""So many sequential edits are quicker made one after the other than prepared for."""
_LOCAL = frozenset({"utf-8", "ascii", "bytes"})
"""In these encodings, and in wide ones, a few bytes tell where a character begins; in others the line does."""
_SHOWN = 80
_COMPARED = 8_000
_LISTED = 20


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
        _need_some(self.edits)
        haystack = Haystack(before)
        wanted = list[tuple[Span, int]]()
        tiers = list[Matches]()
        for index, edit in enumerate(self.edits):
            matches = _find(haystack, before, edit, index, of=len(self.edits))
            tiers.append(matches)
            wanted += ((span, index) for span in _spans(before, edit, matches, before.lines))
        wanted.sort(key=lambda pair: (pair[0].start, pair[0].end))
        _refuse_overlap(wanted)
        plan = splice(before, [span for span, _ in wanted])
        ranges = _line_spans(plan, [index for _, index in wanted])
        applied = tuple(
            Applied(index=i, occurrences=len(ranges[i]), ranges=tuple(ranges[i]), tier=m.tier)
            for i, m in enumerate(tiers)
        )
        warnings = contradictions(before.data, plan.after.data, before.encoding)
        return EditPlan(before=before, after=plan.after, spans=plan.spans, applied=applied, warnings=warnings)


@dataclass(frozen=True, slots=True)
class SequentialEdits:
    """Edits that each look at the result of the one before."""

    edits: tuple[StringEdit, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        """Stage the edits one after the other; the plan goes from the original to the last stage."""
        _need_some(self.edits)
        if len(self.edits) == 1:
            return SnapshotEdits(self.edits).plan(before)
        needles = _needles(before, self.edits) if len(self.edits) > _FEW else {}
        staged = Staged(before, {needle for pair in needles.values() for needle in pair})
        if plan := _make_all(staged, before, self.edits, needles):
            return plan
        applied = list[Applied]()
        for index, edit in enumerate(self.edits):
            place = _only_place(staged, edit, needles.get(edit.old, ()))
            made = place and _make_there(staged, edit, index, place)
            applied.append(made or _make(staged, before, edit, index, of=len(self.edits)))
        after = staged.snapshot()
        warnings = contradictions(before.data, after.data, before.encoding)
        return EditPlan(before=before, after=after, spans=staged.spans, applied=tuple(applied), warnings=warnings)


def _needles(before: Snapshot, edits: Sequence[StringEdit]) -> dict[str, tuple[bytes, ...]]:
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


def _make_all(
    staged: Staged, before: Snapshot, edits: Sequence[StringEdit], needles: Mapping[str, tuple[bytes, ...]]
) -> EditPlan | None:
    """Make edits inside of lines all at once; None when they might meet, or one of them needs a closer look."""
    if before.encoding.name not in _LOCAL or before.needs_table or len(needles) < len(edits):
        return None
    if any(edit.old == edit.new or _ANY_BREAK.search(edit.old) or _ANY_BREAK.search(edit.new) for edit in edits):
        return None
    try:
        news = [before.encoding.encode(edit.new) for edit in edits]
    except NotEncodable:
        return None  # it is refused when its turn comes
    spans = apart(before, [staged.probes[needles[edit.old][0]] for edit in edits], news)
    if spans is None:
        return None
    ordered, counter = sorted(spans, key=lambda span: span.start), LineCounter(before)
    lines = {span.start: counter.line(span.start) for span in ordered}
    plan = splice(before, ordered)
    return EditPlan(
        before=before,
        after=plan.after,
        spans=plan.spans,
        applied=tuple(_in_line(index, lines[span.start]) for index, span in enumerate(spans)),
        warnings=contradictions(before.data, plan.after.data, before.encoding),
    )


def _in_line(index: int, line: int) -> Applied:
    """Say what an edit did that has no line break."""
    lines = LineSpan(start_line=line, end_line=line, new_start_line=line, new_end_line=line)
    return Applied(index=index, occurrences=1, ranges=(lines,))


def _only_place(staged: Staged, edit: StringEdit, needles: tuple[bytes, ...]) -> Match | None:
    """Return the only place of an old text; None when there is none, or only the whole text can tell."""
    if edit.replace_all or edit.expected_occurrences is not None or edit.old == edit.new:
        return None
    for number, needle in enumerate(needles):
        if number and staged.ends.style != "crlf":
            return None
        places = staged.places(needle)
        if places is None or len(places) > 1:
            return None
        if places:
            return Match(places[0], places[0] + len(needle))
    return None


def _make_there(staged: Staged, edit: StringEdit, index: int, place: Match) -> Applied | None:
    """Make an edit at the only place of its bytes; None when what stands around leaves a doubt."""
    ends, encoding = staged.ends, staged.encoding
    if encoding.name in _LOCAL and not _ANY_BREAK.search(edit.old) and not _ANY_BREAK.search(edit.new):
        return _make_in_line(staged, edit, index, place)
    mixes = ends.style == "mixed" and _BREAK.search(edit.new) is not None
    if mixes and encoding.width > 1:
        return None
    by_line = mixes or (encoding.width == 1 and encoding.name not in _LOCAL)
    begin, data = staged.around(place.start, place.end, whole_lines=by_line)
    window = Snapshot(data, encoding=staged.bare_encoding)
    matches = Haystack(window).find(edit.old)
    if [(begin + match.start, begin + match.end) for match in matches.found] != [(place.start, place.end)]:
        return None
    (span,) = _spans(window, edit, matches, ends)
    old = data[span.start : span.end]
    at_the_end = not span.new and place.end == staged.size  # behind the last line there is no line to name
    if not ends.stay_lines(old, span.new) or (at_the_end and encoding.width > 1):
        return None
    line = staged.line(place.start)
    lines = LineSpan(
        start_line=line,
        end_line=line + ends.breaks(old[: -encoding.width]),
        new_start_line=line,
        new_end_line=line + ends.breaks(span.new[: -encoding.width]),
    )
    staged.splice(place.start, place.end, span.new, index=index)
    return Applied(index=index, occurrences=1, ranges=(lines,), tier=matches.tier)


def _make_in_line(staged: Staged, edit: StringEdit, index: int, place: Match) -> Applied | None:
    """Make an edit that has no line break at the only place of its bytes: what stands around cannot matter."""
    if not staged.ends.are_lines:
        return None
    new, line = staged.encoding.encode(edit.new), staged.line(place.start)
    staged.splice(place.start, place.end, new, index=index)
    return _in_line(index, line)


def _make(staged: Staged, before: Snapshot, edit: StringEdit, index: int, *, of: int) -> Applied:
    """Make an edit by a look at the whole text."""
    whole = staged.snapshot()
    try:
        matches = _find(Haystack(whole), whole, edit, index, of=of)
    except OldTextNotFound as missing:
        raise _conflict(staged, before, edit, missing) or missing from None
    plan = splice(whole, _spans(whole, edit, matches, whole.lines))
    ranges = _line_spans(plan, [0] * len(plan.spans))[0]
    for span in reversed(plan.spans):
        staged.splice(span.start, span.end, span.new, index=index)
    staged.keep(plan.after)
    return Applied(index=index, occurrences=len(ranges), ranges=tuple(ranges), tier=matches.tier)


def _conflict(staged: Staged, before: Snapshot, edit: StringEdit, missing: OldTextNotFound) -> OverlappingEdits | None:
    """Tell whether an old text is missing because an earlier edit took a part of it, or more than it."""
    original = Haystack(before).find(edit.old)
    if original.count != 1:
        return None
    (place,) = original.found
    takers = staged.taken_by(place.start, place.end)
    others = [taker for taker, parts in takers.items() if parts != [(place.start, place.end)]]
    if not others:
        return None
    index: int = missing.details["edit_index"]
    return OverlappingEdits(
        f"Edit {index}: a part of this text was replaced by edit {min(others)}: `{_shown(edit.old)}`.",
        reason="sequential_conflict",
        action="Write this edit for the text as the earlier one leaves it, or merge the two.",
        edit_index=index,
        prior_index=min(others),
        line=before.line_number(place.start),
        closest=missing.details["closest"],
    )


def _need_some(edits: Sequence[StringEdit]) -> None:
    if not edits:
        raise InvalidArgument("There is no edit to apply.", reason="no_edits", action="Send at least one edit.")


def _find(haystack: Haystack, snapshot: Snapshot, edit: StringEdit, index: int, *, of: int) -> Matches:
    name = f"Edit {index}: t" if of > 1 else "T"
    if not edit.old:
        raise InvalidArgument(f"{name}he old text is empty.", reason="empty_old_text", edit_index=index)
    if edit.old == edit.new:
        raise InvalidArgument(f"{name}he old and the new text are the same.", reason="same_text", edit_index=index)
    matches = haystack.find(edit.old)
    if not matches.found:
        raise _not_found(haystack, snapshot, edit, index, name)
    expected = edit.expected_occurrences
    if expected is not None and matches.count != expected:
        raise MultipleMatches(
            f"{name}here should be {expected} places of `{_shown(edit.old)}`, and there are {matches.count}.",
            reason="other_count",
            edit_index=index,
            count=matches.count,
            lines=_lines_of(snapshot, matches),
        )
    if matches.count > 1 and not edit.replace_all and expected is None:
        raise MultipleMatches(
            f"{name}his text stands in {matches.count} places: `{_shown(edit.old)}`.",
            edit_index=index,
            count=matches.count,
            lines=_lines_of(snapshot, matches),
        )
    return matches


def _not_found(haystack: Haystack, snapshot: Snapshot, edit: StringEdit, index: int, name: str) -> OldTextNotFound:
    """Say why a text is not there, as far as that can be told, and show what is there instead."""
    applied = bool(edit.new) and haystack.find(edit.new).count == 1
    bare = without_numbers(edit.old)
    copied = bare is not None and bool(haystack.find(bare).found)
    near = nearest(snapshot, _beginning(bare if copied and bare else edit.old))
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
        f"{name}his text is not in the file{why}: `{_shown(edit.old)}`.",
        action=action,
        edit_index=index,
        old_text=edit.old,
        already_applied=applied,
        closest=[place.as_dict() for place in near],
    )


def _spans(snapshot: Snapshot, edit: StringEdit, matches: Matches, ends: Lines | Ends) -> list[Span]:
    encoding = snapshot.encoding
    as_sent = matches.tier == "exact" and "\r" in edit.old
    rows = [encoding.encode(edit.new)] if as_sent else [encoding.encode(row) for row in _BREAK.split(edit.new)]
    return [
        Span(start=match.start, end=match.end, new=_with_terminators(snapshot, match, rows, ends))
        for match in matches.found
    ]


def _with_terminators(snapshot: Snapshot, match: Match, rows: list[bytes], ends: Lines | Ends) -> bytes:
    if len(rows) == 1:
        return rows[0]
    style = ends.style
    if style in ("lf", "none"):
        return snapshot.encoding.newline("\n").join(rows)
    if style != "mixed":
        return ends.dominant.join(rows)
    replaced = _terminators_in(snapshot, match)
    last = replaced[-1] if replaced else _terminator_at(snapshot, match.start, ends)
    breaks = [*replaced, *[last] * len(rows)]
    return b"".join(row + end for row, end in zip(rows[:-1], breaks, strict=False)) + rows[-1]


def _terminators_in(snapshot: Snapshot, match: Match) -> list[bytes]:
    lines = snapshot.lines
    first, last = lines.index_at(match.start), lines.index_at(match.end)
    return [end for i in range(first, last) if (end := lines.terminator(i))]


def _terminator_at(snapshot: Snapshot, offset: int, ends: Lines | Ends) -> bytes:
    lines = snapshot.lines
    index = lines.index_at(offset)
    return lines.terminator(index) or (lines.terminator(index - 1) if index else b"") or ends.dominant


def _refuse_overlap(wanted: list[tuple[Span, int]]) -> None:
    for (one, first), (other, second) in pairwise(wanted):
        if other.start < one.end:
            pair = sorted((first, second))
            raise OverlappingEdits(f"Edits {pair[0]} and {pair[1]} want the same bytes.", edit_indices=pair)


def _line_spans(plan: EditPlan, owners: list[int]) -> dict[int, list[LineSpan]]:
    """Return the line numbers of every span, by the edit that made it."""
    spans: dict[int, list[LineSpan]] = {}
    for owner, row in zip(owners, plan.line_spans(), strict=True):
        spans.setdefault(owner, []).append(row)
    return spans


def _lines_of(snapshot: Snapshot, matches: Matches) -> list[int]:
    counter = LineCounter(snapshot)
    return [counter.line(match.start) for match in matches.found[:_LISTED]]


def _beginning(text: str) -> str:
    """Return as many whole lines as are worth being compared with others."""
    return text if len(text) <= _COMPARED else text[:_COMPARED].rpartition("\n")[0] or text[:_COMPARED]


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

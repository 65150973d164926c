"""One quoted text becomes another, in the style of the file: the edit behind `Edit`.

1. The text must stand exactly once, unless all of its places are asked for; `text/quotes.py` says where it stands.
2. What old and new text share keeps the file's own bytes; `text/style.py` says what that is.
3. An empty old text stands only in an empty file.
"""

import re
from dataclasses import dataclass

from surehold.errors import InvalidArgument, MultipleMatches
from surehold.text.encoding import contradictions, for_new_text
from surehold.text.excerpt import excerpt
from surehold.text.matching import Haystack
from surehold.text.missing import not_found
from surehold.text.plan import Applied, EditPlan, Span, splice
from surehold.text.quotes import Places, places_of
from surehold.text.snapshot import LineCounter, Snapshot
from surehold.text.style import restyled
from surehold.text.visible import safe

_LISTED = 20
_SHOWN = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StyledEdit:
    """Replace `old` by `new`, as a model quotes them."""

    old: str
    new: str
    replace_all: bool = False

    def __post_init__(self) -> None:
        """Refuse an edit that asks for nothing, before any file is looked at."""
        if self.old == self.new:
            raise InvalidArgument(
                "`old_string` and `new_string` are the same.",
                reason="same_text",
                action="Send the text as it should be as new_string.",
            )

    def plan(self, before: Snapshot) -> EditPlan:
        """Find every place, then splice them all at once."""
        if not self.old:
            return self._fill(before)
        haystack = Haystack(before)
        places = places_of(before, self.old, haystack=haystack)
        if not places.matches:
            raise not_found(before, self.old, self.new, haystack)
        if places.count > 1 and not self.replace_all:
            raise _not_unique(before, places)
        plan = splice(before, self._spans(before, places))
        ranges = tuple(plan.line_spans())
        applied = Applied(index=0, occurrences=len(ranges), ranges=ranges, tier=places.tier)
        warnings = contradictions(before.data, plan.after.data, before.encoding)
        return EditPlan(before=before, after=plan.after, spans=plan.spans, applied=(applied,), warnings=warnings)

    def _fill(self, before: Snapshot) -> EditPlan:
        if before.size > len(before.encoding.bom):
            raise InvalidArgument(
                "`old_string` is empty, and the file is not.",
                reason="empty_old_text",
                action="Quote the text to replace; to insert, quote the line beside it and send it again in new_string.",
            )
        encoding = before.encoding if before.data else for_new_text(self.new, before.encoding)
        text = self.new.removeprefix("\ufeff") if encoding.bom else self.new
        data = encoding.bom + encoding.encode(text)
        span = Span(start=0, end=before.size, new=data)
        after = Snapshot(data, meta=before.meta, encoding=encoding)
        applied = Applied(index=0, occurrences=1, ranges=())
        return EditPlan(before=before, after=after, spans=(span,), applied=(applied,))

    def _spans(self, before: Snapshot, places: Places) -> list[Span]:
        plain = self._plain(before, places)
        if plain is not None:
            return [Span(start=match.start, end=match.end, new=plain) for match in places.matches]
        as_sent = places.tier == "exact" and "\r" in self.old
        worked_out = dict[bytes, bytes]()  # where all lines end alike, equal bytes become equal bytes
        spans = list[Span]()
        for match in places.matches:
            there = before.data[match.start : match.end]
            new = worked_out.get(there) if before.lines.style != "mixed" else None
            if new is None:
                new = restyled(before, match, self.old, self.new, breaks_as_sent=as_sent)
                worked_out[there] = new
            spans.append(Span(start=match.start, end=match.end, new=new))
        return spans

    def _plain(self, before: Snapshot, places: Places) -> bytes | None:
        """Return the new bytes where they are the same for every place, whatever stands there."""
        encoding, style = before.encoding, before.lines.style
        if not places.encoded_alike or (style == "mixed" and re.search(r"[\r\n]", self.new)):
            return None
        if "\r" in self.old and places.tier == "exact":
            return encoding.encode(self.new)
        rows = self.new.replace("\r\n", "\n")
        if style == "cr":
            rows = rows.replace("\r", "\n")
        ending = encoding.newline("\n") if style in ("lf", "none") else before.lines.dominant
        return ending.join(encoding.encode(row) for row in rows.split("\n"))


def _not_unique(before: Snapshot, places: Places) -> MultipleMatches:
    counter = LineCounter(before)
    listed = [(counter.line(match.start), match.start) for match in places.matches[:_LISTED]]
    return MultipleMatches(
        f"`old_string` stands in {places.count} places.",
        action="Quote more of the lines around the one you mean, or send replace_all: true.",
        count=places.count,
        lines=[line for line, _ in listed],
        places=[{"line": line, "context": _context(before, line, start)} for line, start in listed],
        match_tier=places.tier,
    )


def _context(before: Snapshot, line: int, offset: int) -> str:
    """Return the line in which a place begins, with the lines above and below; a long one as a window on the place."""
    begin, row = before.lines.starts[line - 1], before.lines.contents[line - 1]
    if len(row) <= _SHOWN:
        return excerpt(before, [(max(line - 1, 1), line + 1)], room=4 * _SHOWN, width=_SHOWN).text
    decode = before.encoding.decode
    column = max(len(decode(before.data[begin:offset])) - _SHOWN // 2, 0)
    window = safe(decode(row)[column : column + _SHOWN], keep="\t")
    return f"{line}→{'…' * (column > 0)}{window}…"

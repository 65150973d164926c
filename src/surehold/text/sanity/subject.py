"""What the sanity checks examine (both sides of a plan, and the lines that changed) and what they report."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, Protocol

from surehold.text.align import shared_ends
from surehold.text.encoding import Encoding
from surehold.text.plan import EditPlan, Span, convert_parts, splice_spans
from surehold.text.snapshot import Snapshot

FindingKind = Literal[
    "parse_error",
    "unbalanced_delimiters",
    "seam_duplicate",
    "conflict_marker",
    "anchor_prefix",
    "line_number_prefix",
    "diff_sign",
    "lost_indentation",
    "doubtful_syntax",
    "duplicate_lines",
    "syntax_not_checked",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityFinding:
    """One thing that is odd about the text an edit would leave."""

    kind: FindingKind
    fault: str
    """What is odd, as a clause that can follow a colon."""
    line: int | None = None
    """Where it is in the new text."""
    span: int | None = None
    """Which span of the plan did it."""
    operation: int | None = None
    """Which operation of the caller that was."""
    suspicious: bool = False

    @property
    def message(self) -> str:
        """What is odd, as a sentence."""
        return f"{self.fault[:1].upper()}{self.fault[1:]}."

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "message": self.message, "line": self.line, "operation": self.operation}


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxFlaw:
    """The first place at which a text cannot be read."""

    line: int
    message: str
    exact: bool = True
    """Whether the parser knows what is wrong, and not only where it got lost."""


@dataclass(frozen=True, slots=True)
class UnparsedText:
    """A parser gave up before it could say anything."""

    reason: str
    """Why; empty when that was said before."""
    by_brackets: bool = False
    """There is no parser at all, so the brackets are compared as for a language without one."""


class SyntaxParser(Protocol):
    """One way to read a text, such as a grammar."""

    @property
    def name(self) -> str:
        """What it reads, in the words of people: `Python`, `JSON`."""
        ...

    @property
    def templates(self) -> bool:
        """Whether files of this kind are often templates, which the parser cannot read."""
        ...

    @property
    def gaps(self) -> bool:
        """Whether it is known to stumble over valid text, so that its word alone does not refuse an edit."""
        ...

    @property
    def blind_spots(self) -> re.Pattern[bytes] | None:
        """The valid text that it is known to stumble over; its word alone does not refuse an edit that writes some."""
        ...

    def find_flaw(self, source: bytes, /) -> SyntaxFlaw | UnparsedText | None:
        """Return the first flaw of some UTF-8 text, or None when all of it can be read."""
        ...


ParserLookup = Callable[[str, bytes], Sequence[SyntaxParser]]
"""Returns the ways to read a file, given its path and its text, the strictest first; none when there is no parser for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitySubject:
    """Both sides of a plan as UTF-8 with LF or CRLF, whatever the file's own encoding is."""

    before: bytes
    after: bytes
    spans: tuple[Span, ...]
    """In offsets of `before`."""

    def with_spans(self, kept: Sequence[Span]) -> bytes:
        """Return the text that only some of the spans would leave."""
        return splice_spans(Snapshot(self.before), kept).after.data

    def span_at(self, line: int) -> int:
        """Return the span that wrote a line of the new text, else the last one above it."""
        found, shift, at, number = 0, 0, 0, 1
        for index, span in enumerate(self.spans):
            number += self.after.count(b"\n", at, span.start + shift)
            at = span.start + shift
            if number > line:
                break
            found = index
            shift += len(span.new) - (span.end - span.start)
        return found


def subject_from_plan(plan: EditPlan) -> SanitySubject:
    """Bring a plan to UTF-8; one in UTF-8 without a byte order mark is taken as it is."""
    before, after = plan.before, plan.after
    spans = plan.spans or (Span(start=0, end=before.size, new=after.data),)
    encoding = before.encoding if before.data else after.encoding
    same = encoding.name in ("utf-8", "ascii", "bytes") and not encoding.bom
    if same and b"\r" not in before.data and b"\r" not in after.data:
        return SanitySubject(before=before.data, after=after.data, spans=spans)
    lone_cr = before.data != b"" and before.lines.style == "cr"
    text, moved = convert_parts(before.data, spans, partial(_convert_to_utf8, encoding=encoding, lone_cr=lone_cr))
    return SanitySubject(before=text, after=splice_spans(Snapshot(text), moved).after.data, spans=tuple(moved))


def _convert_to_utf8(data: bytes, *, encoding: Encoding, lone_cr: bool) -> bytes:
    if encoding.bom and data.startswith(encoding.bom):
        data = data[len(encoding.bom) :]
    if encoding.name not in ("utf-8", "ascii", "bytes"):
        data = encoding.decode(data).encode("utf-8", "replace")
    return data.replace(b"\r", b"\n") if lone_cr else data


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityRegion:
    """Whole lines `old` that became `new`; lines that both begin or end with belong to the surroundings."""

    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    above: tuple[bytes, ...]
    """Up to two surviving lines, the one that is touched first; none at the top."""
    below: tuple[bytes, ...]
    line: int
    """The line of the first new one."""


@dataclass(slots=True)
class _LineExtent:
    """Whole lines around one span, or around several that touch."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changed_regions(subject: SanitySubject) -> list[SanityRegion]:
    """List what changed, line by line, from top to bottom; each byte is looked at once."""
    found = list[SanityRegion]()
    line, at = 1, 0
    for extent in _line_extents(subject):
        line += subject.after.count(b"\n", at, extent.new_start)
        at = extent.new_start
        region = _trimmed_region(subject, extent, line)
        if region.old or region.new:
            found.append(region)
    return found


def _line_extents(subject: SanitySubject) -> list[_LineExtent]:
    before, after, shift, found = subject.before, subject.after, 0, list[_LineExtent]()
    for span in subject.spans:
        lead = span.start - (before.rfind(b"\n", 0, span.start) + 1)
        new_start = span.start + shift
        new_end = new_start + len(span.new)
        tail = 0
        if _is_mid_line(before, span.end) or _is_mid_line(after, new_end):
            stop = before.find(b"\n", span.end)
            tail = (len(before) if stop < 0 else stop + 1) - span.end
        shift = new_end - span.end
        if found and span.start - lead <= found[-1].old_end:
            found[-1].old_end = max(found[-1].old_end, span.end + tail)
            found[-1].new_end = max(found[-1].new_end, new_end + tail)
        else:
            found.append(_LineExtent(span.start - lead, span.end + tail, new_start - lead, new_end + tail))
    return found


def _is_mid_line(data: bytes, offset: int) -> bool:
    return offset > 0 and data[offset - 1 : offset] != b"\n"


def _trimmed_region(subject: SanitySubject, extent: _LineExtent, line: int) -> SanityRegion:
    old = _split_lines(subject.before[extent.old_start : extent.old_end])
    new = _split_lines(subject.after[extent.new_start : extent.new_end])
    head, tail = shared_ends(old, new)
    return SanityRegion(
        old=tuple(old[head : len(old) - tail]),
        new=tuple(new[head : len(new) - tail]),
        above=_nearest_two(reversed(new[:head]), _lines_before(subject.after, extent.new_start)),
        below=_nearest_two(new[len(new) - tail :], _lines_after(subject.after, extent.new_end)),
        line=line + head,
    )


def _split_lines(data: bytes) -> list[bytes]:
    return [row.removesuffix(b"\r") for row in data.removesuffix(b"\n").split(b"\n")] if data else []


def _nearest_two(*rows: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(islice(chain(*rows), 2))


def _lines_before(data: bytes, start: int) -> Iterator[bytes]:
    """Yield the lines that end before an offset, going up."""
    while start > 0:
        begin = data.rfind(b"\n", 0, start - 1) + 1
        yield data[begin:start].rstrip(b"\r\n")
        start = begin


def _lines_after(data: bytes, end: int) -> Iterator[bytes]:
    while end < len(data):
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop
        yield data[end:stop].removesuffix(b"\r")
        end = stop + 1
